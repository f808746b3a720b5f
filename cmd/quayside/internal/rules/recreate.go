package rules

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// checkRecreate returns a warning for each entry in spec.recreate that is not for the locked version of its
// operator. It returns an error for each entry that selects no object.
func checkRecreate(s *State) (Findings, error) {
	if s.Lock == nil {
		return nil, nil
	}
	var out Findings
	for i, r := range s.Settings.Recreate {
		f := Finding{Severity: Warning, Code: "outdated-recreate", Pos: s.Settings.At(diag.Item("spec.recreate", i)), Subject: r.Operator}
		locked := slices.IndexFunc(s.Lock.Pins, func(p lockfile.Pin) bool { return p.Namespace+"/"+p.Package == r.Operator })
		switch {
		case locked < 0:
			f.Msg = fmt.Sprintf("the entry has no effect: %s is not in the lock: delete the entry", r.Operator)
		case !r.IsFor(r.Operator, s.Lock.Pins[locked].Version):
			f.Msg = fmt.Sprintf("the entry is for version %s of %s, and %s is locked: the entry has no effect; delete it after the upgrade", r.Version, r.Operator, s.Lock.Pins[locked].Version)
		case !s.rendersObject(r):
			f.Severity, f.Code = Error, ""
			f.Msg = fmt.Sprintf("%s %s has no %s %s", r.Operator, r.Version, r.Kind, r.Name)
			f.Hint = "write kinds of Kubernetes without a group, and other kinds with their group: Deployment, Certificate.cert-manager.io"
		default:
			continue
		}
		out = append(out, s.accept(f))
	}
	return out, nil
}

// rendersObject reports whether the tree has an object that r selects.
func (s *State) rendersObject(r profile.Recreation) bool {
	if slices.ContainsFunc(s.Rendered.Objects, func(o render.Rendered) bool { return r.Operator == o.Operator() && r.Selects(o.Object.Key()) }) {
		return true
	}
	hasValues := slices.ContainsFunc(s.Settings.Clusters, func(c profile.Cluster) bool { return len(c.HelmValues) > 0 })
	return hasValues && slices.ContainsFunc(s.Rendered.ShippedKeys(r.Operator), r.Selects)
}
