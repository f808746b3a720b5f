package health

import (
	"time"

	"github.com/quayside/quayside/api/v1alpha1"
)

// JudgeObjects returns the health of all objects in spec, worst first, then by group, kind,
// namespace and name. (The result of Judge has only those that are not Current, and not more than a
// limit.)
func JudgeObjects(spec v1alpha1.InstallationSpec, got []v1alpha1.Observed, now time.Time) []v1alpha1.ObjectHealth {
	found := indexObserved(got)
	out := make([]v1alpha1.ObjectHealth, 0, len(spec.Objects))
	for _, ref := range spec.Objects {
		o, read := found[keyOf(ref)]
		out = append(out, newObjectHealth(ref, judgeObject(ref, o, read, now)))
	}
	sortWorstFirst(out)
	return out
}
