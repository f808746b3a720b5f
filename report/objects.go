package report

import (
	"time"

	"github.com/quayside/quayside/report/v1alpha1"
)

// Objects returns the health of every object that spec expects, as [Judge] sees
// it: the worst first, those that are Current last, else by group, kind,
// namespace and name. Where Judge lists some, it lists all.
func Objects(spec v1alpha1.InstallationSpec, got []v1alpha1.Observed, now time.Time) []v1alpha1.ObjectHealth {
	found := index(got)
	out := make([]v1alpha1.ObjectHealth, 0, len(spec.Objects))
	for _, ref := range spec.Objects {
		o, read := found[keyOf(ref)]
		out = append(out, listed(ref, judgeObject(ref, o, read, now)))
	}
	worstFirst(out)
	return out
}
