package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/health/gate"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// HoldBack returns a copy of the problem that holds back each pinned operator for which an observation
// forbids an upgrade. files contains the observations, one element for each cluster; the first that forbids
// the upgrade gives the reason. An operator that was not observed is not held back. If the user requested a
// held-back upgrade by name, the error is a [*rules.PolicyError]. If files has observations of the upstream
// environment, the copy also rejects bundles that spec.promotion does not allow to be promoted.
func (pr *Problem) HoldBack(files ...*health.Summary) (*Problem, error) {
	out := *pr
	files, ofUpstream := splitObserved(files, pr.upstream)
	if len(ofUpstream) > 0 {
		out.Options.Objection = pr.objectUnproven(ofUpstream)
	}
	if pr.Read == nil {
		return &out, nil
	}
	out.observed = slices.Concat(pr.observed, files)
	out.Options.Held = slices.Clone(pr.Options.Held)
	var refused []string
	for _, p := range pr.Read.Pins {
		o, why := firstProblem(files, p)
		if why == "" {
			continue
		}
		out.Options.Held = append(out.Options.Held, resolve.Hold{Operator: p.Key(), Reason: why, At: o.Pos})
		if target := findTarget(pr.Options, p); target != nil {
			requested := ""
			if !target.At.IsZero() {
				requested = " (requested by " + target.At.String() + ")"
			}
			refused = append(refused, fmt.Sprintf("%s: upgrade of %s%s blocked: %s", o.Pos, p.Key(), requested, why))
		}
	}
	if len(refused) > 0 {
		return nil, &rules.PolicyError{Msg: strings.Join(refused, "\n")}
	}
	return &out, nil
}

// Hold returns a copy of the problem with additional holds.
func (pr *Problem) Hold(holds []resolve.Hold) *Problem {
	out := *pr
	out.Options.Held = slices.Concat(pr.Options.Held, holds)
	return &out
}

// splitObserved separates the observations of the upstream environment from the observations of other
// environments. upstream may be nil.
func splitObserved(files []*health.Summary, upstream *rules.Upstream) (others, ofUpstream []*health.Summary) {
	for _, f := range files {
		if upstream != nil && f.Environment == upstream.Title {
			ofUpstream = append(ofUpstream, f)
		} else {
			others = append(others, f)
		}
	}
	return others, ofUpstream
}

// objectUnproven returns a function that extends Options.Objection. The function also rejects
// bundles that, given the observations of the upstream environment, must not be promoted yet.
func (pr *Problem) objectUnproven(seen []*health.Summary) func(string, *catalog.Bundle) string {
	rule, all, now := criteria(pr.project.Settings), health.Observations(seen), pr.project.Now
	judge := func(pin gate.Pin) gate.Verdict { return gate.Judge(rule, pin, all, now) }
	return func(namespace string, to *catalog.Bundle) string {
		if why := pr.Options.Objection(namespace, to); why != "" {
			return why
		}
		why, err := pr.upstream.Unproven(namespace, to.Package().Name(), to.Name(), rule, judge)
		if err != nil {
			return err.Error()
		}
		return why
	}
}

// criteria returns the observations that spec.promotion requires.
func criteria(w *settings.Workspace) gate.Criteria {
	if s := w.Promotion; s != nil {
		return s.Criteria()
	}
	return gate.DefaultCriteria()
}

// JudgeObserved sets the field Problem of each summary that is not valid for the clusters of the
// workspace, as spec.promotion requires.
func (p *Project) JudgeObserved(observed []*health.Summary, now time.Time) error {
	rule := criteria(p.Settings)
	if rule.Signed {
		if err := p.VerifyObserved(observed); err != nil {
			return err
		}
	}
	for _, s := range observed {
		s.Judge(rule, p.Environment(), p.Settings.ClusterNames(), now)
	}
	return nil
}

// AllowRemovals returns a copy of the problem that permits the removal of leftover objects if the observations in
// files confirm that it is safe. The objects of a replaced operator may be removed if every file that contains the
// successor reports it Ready at its locked pin. The objects of an uninstalled operator may be removed if the
// observations show that no cluster has the operator. If all is true, every removal is permitted.
func (pr *Problem) AllowRemovals(files []*health.Summary, all bool) *Problem {
	out := *pr
	if all {
		out.Options.Settled, out.Options.Removed = []string{"*"}, []string{"*"}
	}
	if pr.Read == nil {
		return &out
	}
	out.Options.Removed = slices.Concat(out.Options.Removed, pr.findUninstalled(files))
	out.Options.Settled = slices.Clone(out.Options.Settled)
	for _, p := range pr.Read.Pins {
		reported, ready := 0, 0
		for _, f := range files {
			o, ok := f.Operator(p.Namespace, p.Package)
			if ok {
				reported++
			}
			if ok && f.Problem == "" && o.State == health.StateReady && o.HasPin(p) {
				ready++
			}
		}
		if reported > 0 && ready == reported {
			out.Options.Settled = append(out.Options.Settled, p.Key())
		}
	}
	return &out
}

// findUninstalled returns the keys of uninstalled operators that were observed to be removed from
// every cluster. Each cluster that got such an operator must have a valid observation without it.
func (pr *Problem) findUninstalled(files []*health.Summary) []string {
	var out []string
	for _, l := range pr.Read.Leaving {
		if l.ReplacedBy != "" {
			continue
		}
		remains := slices.ContainsFunc(pr.project.Settings.Clusters, func(c profile.Cluster) bool {
			got, err := c.Gets(l.Key())
			return err == nil && got && !slices.ContainsFunc(files, func(f *health.Summary) bool {
				_, found := f.Operator(l.Namespace, l.Package)
				return (f.Cluster == c.Name || f.Cluster == "" && len(pr.project.Settings.Clusters) == 1) && f.Problem == "" && !found
			})
		})
		if !remains {
			out = append(out, l.Key())
		}
	}
	return out
}

// firstProblem returns the first observation that forbids the upgrade of a pinned operator, and the
// reason. Without such an observation, the reason is "".
func firstProblem(files []*health.Summary, pin lockfile.Pin) (health.OperatorHealth, string) {
	for _, f := range files {
		o, ok := f.Operator(pin.Namespace, pin.Package)
		why := observationProblem(o, pin)
		if why = cmp.Or(why, f.Problem); ok && why != "" {
			return o, why
		}
	}
	return health.OperatorHealth{}, ""
}

// observationProblem returns the reason why an observed operator must not be upgraded from pin, or "". An
// upgrade requires that the operator is Ready at the locked pin and does not report itself as not upgradeable.
// During a rollout, an operator is held back even if its previous version is healthy.
func observationProblem(o health.OperatorHealth, pin lockfile.Pin) string {
	switch {
	case o.Upgradeable != "" && o.Upgradeable != metav1.ConditionTrue:
		return fmt.Sprintf("it reports Upgradeable=%s: %s", o.Upgradeable, cmp.Or(o.UpgradeMessage, "no message"))
	case o.State == health.StateUnpinned || o.State != health.StateReady && o.HasPin(pin):
		return fmt.Sprintf("unhealthy: %s", strings.TrimSuffix(fmt.Sprintf("%s: %s", o.State, o.Message), ": "))
	case !o.HasPin(pin):
		if have := strings.Join(o.Applied, " and "); have != pin.Version {
			return fmt.Sprintf("not yet rolled out: the cluster was last observed with %s, but the lock has %s", cmp.Or(have, "none of its objects"), pin.Version)
		}
		return "not yet rolled out: the cluster was last observed with a different bundle of version " + pin.Version
	default:
		return ""
	}
}

// SignatureSuffix is appended to the name of an observation file for its signature file.
const SignatureSuffix = ".sigstore.json"

// ReadObserved reads a file with observations, and the signature beside it if there is one.
func ReadObserved(f source.File) ([]*health.Summary, error) {
	data, err := f.Read()
	if err != nil {
		return nil, err
	}
	out, err := health.Read(f.DisplayPath, data)
	if err != nil {
		return nil, err
	}
	saved := &health.SavedFile{Data: data}
	f.Name += SignatureSuffix
	switch saved.Signature, err = f.Read(); {
	case errors.Is(err, fs.ErrNotExist):
		return out, nil
	case err != nil:
		return nil, err
	}
	for _, s := range out {
		s.File = saved
	}
	return out, nil
}
