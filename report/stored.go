package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// How much is listed of stored versions. What is left out counts as unknown.
const (
	maxDefinitions = 500
	maxVersions    = 50
)

// stored returns, by name, the definitions among the objects of an installation
// that have or store more than one version, and the versions that they store.
// One that could not be read is not in it.
func stored(spec v1alpha1.InstallationSpec, found map[key]v1alpha1.Observed) []v1alpha1.StoredVersions {
	var out []v1alpha1.StoredVersions
	for _, ref := range spec.Objects {
		o := found[keyOf(ref)].Object
		if o == nil || !kobj.IsCRD(o) {
			continue
		}
		versions := kobj.Texts(o, "status", "storedVersions")
		if len(versions) == 0 || len(versions) > maxVersions || len(versions)+len(kinds.Define(o).Versions) < 3 {
			continue
		}
		one := v1alpha1.StoredVersions{Definition: short(ref.Name)}
		for _, v := range versions {
			one.Versions = append(one.Versions, short(v))
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

// Stored returns what files say that clusters store of each definition: its
// versions, sorted, of all files that name it. A definition that none names is not
// in it: nothing is known of that one.
func Stored(files []*ObservedFile) map[string][]string {
	out := map[string][]string{}
	for _, f := range files {
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
