package render

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
)

const migrationGroup = "storagemigration.k8s.io"

// migratesSince is the minor version of Kubernetes that has v1 of the group, on by
// default. v1beta1 is older, and off unless somebody turns it on.
const migratesSince = 37

// storageMigrations returns an object for each definition whose objects are to be
// rewritten, where the pin is in that state and the clusters have the API. A pin
// that names what its bundle does not have is a fault in any state.
func storageMigrations(in *install) ([]Object, error) {
	if in.pin.Storage == nil {
		return nil, nil
	}
	var errs diag.List
	leaves := map[string][]string{}
	for _, s := range in.pin.Storage.Objects {
		d := in.definition(s.Definition)
		_, from := d.Version(s.From)
		if _, to := d.Version(s.To); !from || !to {
			errs.Addf(in.pin.Fields.At("storage", in.pin.Pos), "storage: the bundle has no CustomResourceDefinition %q with both versions %q and %q", s.Definition, s.From, s.To)
		}
		leaves[s.Definition] = append(leaves[s.Definition], s.From)
	}
	api := in.migrationAPI()
	if err := errs.Err(); err != nil || api == "" || in.pin.Storage.State != lockfile.StorageMigrate {
		return nil, err
	}
	var out []Object
	for _, name := range slices.Sorted(maps.Keys(leaves)) {
		plural, group, _ := strings.Cut(name, ".")
		o := kobj.New(api, "StorageVersionMigration", "", kobj.Fit(name+"-without-"+strings.Join(leaves[name], "-"), 253))
		o["spec"] = map[string]any{"resource": map[string]any{"group": group, "resource": plural}}
		out = append(out, o)
	}
	return out, nil
}

// definition returns the head of the bundle's definition of that name, a zero one
// where it has none.
func (in *install) definition(name string) kinds.Definition {
	for _, file := range in.b.Objects {
		if kobj.IsCRD(file.Object) && file.Name() == name {
			return kinds.Define(file.Object)
		}
	}
	return kinds.Definition{}
}

// migrationAPI returns the apiVersion by which objects are rewritten in all
// clusters, "" where there is one without.
func (in *install) migrationAPI() string {
	switch version := in.opt.StorageMigration; version {
	case "none":
		return ""
	case "", "auto":
	default:
		return migrationGroup + "/" + version
	}
	for _, c := range in.opt.Clusters {
		version := cmp.Or(c.KubernetesVersion, in.opt.KubernetesVersion)
		if version == "" || minorOf(version) < migratesSince {
			return ""
		}
	}
	return migrationGroup + "/v1"
}

// stored returns a definition with its objects stored in the version that a pin
// names, where it has that one.
func (t *tree) stored(crd Object) Object {
	for _, in := range t.installs {
		if in.pin.Storage == nil {
			continue
		}
		for _, s := range in.pin.Storage.Objects {
			if _, has := kinds.Define(crd).Version(s.To); s.Definition == crd.Name() && has {
				return storing(crd, s.To)
			}
		}
	}
	return crd
}

// storing returns a definition with its objects stored in a version.
func storing(crd Object, version string) Object {
	versions := slices.Clone(kobj.List(crd, "spec", "versions"))
	for i, v := range versions {
		if m, ok := v.(map[string]any); ok {
			versions[i] = kobj.With(m, any(kobj.Text(m, "name") == version), "storage")
		}
	}
	return kobj.With(crd, any(versions), "spec", "versions")
}
