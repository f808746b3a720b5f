package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

const migrationGroup = "storagemigration.k8s.io"

// migrationSinceMinor is the first minor version of Kubernetes that enables v1 of migrationGroup by
// default. The older v1beta1 is disabled by default.
const migrationSinceMinor = 37

// storageMigrations generates a StorageVersionMigration for each CRD with objects to rewrite, if the pin is in
// the migrate stage and all clusters serve the API. In every stage, it returns an error if the bundle does not
// have a CRD or version that the pin names.
func storageMigrations(in *install) ([]Object, error) {
	if in.pin.Storage == nil {
		return nil, nil
	}
	var errs diag.List
	oldVersions := map[string][]string{}
	for _, s := range in.pin.Storage.Objects {
		d := in.bundleCRD(s.Definition)
		_, from := d.Version(s.From)
		if _, to := d.Version(s.To); !from || !to {
			errs.Addf(in.pin.Fields.At("storage", in.pin.Pos), "storage: the bundle has no CustomResourceDefinition %q with both versions %q and %q", s.Definition, s.From, s.To)
		}
		oldVersions[s.Definition] = append(oldVersions[s.Definition], s.From)
	}
	api := in.migrationAPI()
	if err := errs.Err(); err != nil || api == "" || in.pin.Storage.Stage != lockfile.StorageMigrate {
		return nil, err
	}
	var out []Object
	for _, name := range slices.Sorted(maps.Keys(oldVersions)) {
		plural, group, _ := strings.Cut(name, ".")
		o := k8s.New(api, "StorageVersionMigration", "", k8s.Fit(name+"-without-"+strings.Join(oldVersions[name], "-"), 253))
		o["spec"] = map[string]any{"resource": map[string]any{"group": group, "resource": plural}}
		out = append(out, o)
	}
	return out, nil
}

// bundleCRD returns the CRD with the given name in the bundle, or the zero CRD.
func (in *install) bundleCRD(name string) k8s.CRD {
	for _, file := range in.b.Objects {
		if k8s.IsCRD(file.Object) && file.Name() == name {
			return k8s.ParseCRD(file.Object)
		}
	}
	return k8s.CRD{}
}

// migrationAPI returns the apiVersion of StorageVersionMigration that all clusters serve. It returns "" if a
// cluster does not serve the API, or has an unknown version.
func (in *install) migrationAPI() string {
	switch version := in.opt.StorageMigration; version {
	case "none":
		return ""
	case "", "auto":
	default:
		return migrationGroup + "/" + version
	}
	for _, c := range in.opt.Clusters {
		version := c.WithDefaults(profile.Cluster{KubernetesVersion: in.opt.KubernetesVersion}).KubernetesVersion
		if version == "" || parseMinor(version) < migrationSinceMinor {
			return ""
		}
	}
	return migrationGroup + "/v1"
}

// withPinnedStorage returns a CRD with the storage version that a pin requires. It returns crd
// unchanged if no pin requires one, or if the CRD does not have that version.
func withPinnedStorage(crd Object, installs []operator) Object {
	for _, in := range installs {
		if in.pin.Storage == nil {
			continue
		}
		for _, s := range in.pin.Storage.Objects {
			if _, has := k8s.ParseCRD(crd).Version(s.To); s.Definition == crd.Name() && has {
				return withStorageVersion(crd, s.To)
			}
		}
	}
	return crd
}

// withStorageVersion returns a CRD with another storage version.
func withStorageVersion(crd Object, version string) Object {
	versions := slices.Clone(k8s.List(crd, "spec", "versions"))
	for i, v := range versions {
		if m, ok := v.(map[string]any); ok {
			versions[i] = k8s.With(m, any(k8s.Text(m, "name") == version), "storage")
		}
	}
	return k8s.With(crd, any(versions), "spec", "versions")
}
