package health

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
)

// Maximum numbers of stored versions in a status. CRDs beyond a limit are omitted: their versions
// count as unknown.
const (
	maxDefinitions = 500
	maxVersions    = 50
)

// listStoredVersions returns the stored versions of the CRDs of an installation, sorted by name. It
// omits CRDs that could not be read, and CRDs that define and store only one version.
func listStoredVersions(spec v1alpha1.InstallationSpec, found map[k8s.Key]v1alpha1.Observed) []v1alpha1.StoredVersions {
	var out []v1alpha1.StoredVersions
	for _, ref := range spec.Objects {
		o := found[keyOf(ref)].Object
		if o == nil || !k8s.IsCRD(o) {
			continue
		}
		versions := k8s.Texts(o, "status", "storedVersions")
		if len(versions) == 0 || len(versions) > maxVersions || len(versions)+len(k8s.ParseCRD(o).Versions) < 3 {
			continue
		}
		one := v1alpha1.StoredVersions{Definition: clipMessage(ref.Name)}
		for _, v := range versions {
			one.Versions = append(one.Versions, clipMessage(v))
		}
		slices.Sort(one.Versions)
		one.Versions = slices.Compact(one.Versions)
		out = append(out, one)
	}
	slices.SortStableFunc(out, compareStored)
	out = slices.CompactFunc(out, func(a, b v1alpha1.StoredVersions) bool { return a.Definition == b.Definition })
	return out[:min(len(out), maxDefinitions)]
}

func compareStored(a, b v1alpha1.StoredVersions) int {
	return cmp.Or(strings.Compare(a.Definition, b.Definition), slices.Compare(a.Versions, b.Versions))
}

// StoredVersions returns, by CRD name, the versions in which clusters store objects, sorted and without
// duplicates. Summaries with a Problem are ignored.
func StoredVersions(files []*Summary) map[string][]string {
	out := map[string][]string{}
	for _, f := range files {
		if f.Problem != "" {
			continue
		}
		for _, o := range f.Operators {
			for _, s := range o.StoredVersions {
				all := append(out[s.Definition], s.Versions...)
				slices.Sort(all)
				out[s.Definition] = slices.Compact(all)
			}
		}
	}
	return out
}
