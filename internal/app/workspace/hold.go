package workspace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Hold holds back the pinned operators that must not be upgraded according to the observation
// files, with the reason from the first such file. There is one file for each cluster. An
// operator in no file is not held. An upgrade requested by name is held, too, and is a
// [PolicyError].
func (in *Inputs) Hold(files ...*health.Summary) error {
	if in.Read == nil {
		return nil
	}
	in.observed = append(in.observed, files...)
	var refused []string
	for _, p := range in.Read.Pins {
		o, why := againstAny(files, p)
		if why == "" {
			continue
		}
		in.Options.Held = append(in.Options.Held, resolve.Hold{Namespace: p.Namespace, Package: p.Package, Reason: why, At: o.Pos})
		if by := findTarget(in.Options, p); by != nil {
			asks := ""
			if !by.At.IsZero() {
				asks = " (requested by " + by.At.String() + ")"
			}
			refused = append(refused, fmt.Sprintf("%s: upgrade of %s%s blocked: %s", o.Pos, p.Key(), asks, why))
		}
	}
	if len(refused) > 0 {
		return &PolicyError{strings.Join(refused, "\n")}
	}
	return nil
}

// Settle allows the removal of leftover objects if all observation files with the successor
// report it ready at its pin, and ends the uninstallation of operators that are gone. There
// is one file for each cluster. With all, it allows every removal.
func (in *Inputs) Settle(files []*health.Summary, all bool) {
	if all {
		in.Options.Settled, in.Options.Removed = []string{"*"}, []string{"*"}
	}
	if in.Read == nil {
		return
	}
	in.Options.Removed = append(in.Options.Removed, in.gone(files)...)
	for _, p := range in.Read.Pins {
		named, runs := 0, 0
		for _, f := range files {
			o, ok := f.Operator(p.Namespace, p.Package)
			if ok {
				named++
			}
			if ok && o.State == health.StateReady && o.Pin == p.Checksum() {
				runs++
			}
		}
		if named > 0 && runs == named {
			in.Options.Settled = append(in.Options.Settled, p.Key())
		}
	}
}

// gone returns the operators being uninstalled that are absent from every cluster that got
// them, according to the observations.
func (in *Inputs) gone(files []*health.Summary) []string {
	var out []string
	for _, l := range in.Read.Leaving {
		if l.ReplacedBy != "" {
			continue
		}
		left := false
		for _, c := range in.project.Settings.Clusters {
			got, err := c.Gets(l.Key())
			if err != nil || !got {
				continue
			}
			left = left || !slices.ContainsFunc(files, func(f *health.Summary) bool {
				_, there := f.Operator(l.Namespace, l.Package)
				return (f.Cluster == c.Name || f.Cluster == "" && len(in.project.Settings.Clusters) == 1) && !there
			})
		}
		if !left {
			out = append(out, l.Key())
		}
	}
	return out
}

// againstAny returns the first observation against upgrading a pinned operator, and the
// reason; "" if there is none.
func againstAny(files []*health.Summary, pin lockfile.Pin) (health.OperatorHealth, string) {
	for _, f := range files {
		o, ok := f.Operator(pin.Namespace, pin.Package)
		if why := observationProblem(o, pin); ok && why != "" {
			return o, why
		}
	}
	return health.OperatorHealth{}, ""
}

// observationProblem returns the reason why an operator must not be upgraded from its pin,
// or "". Its own Upgradeable condition comes first. Then the observed pin must match the
// lock: an operator that has not yet reached its pin is not healthy, even if the version
// that it still runs is.
func observationProblem(o health.OperatorHealth, pin lockfile.Pin) string {
	switch {
	case o.Upgradeable != "" && o.Upgradeable != metav1.ConditionTrue:
		return fmt.Sprintf("it reports Upgradeable=%s: %s", o.Upgradeable, cmp.Or(o.UpgradeMessage, "and nothing more"))
	case o.State == health.StateUnpinned || o.State != health.StateReady && o.Pin == pin.Checksum():
		return fmt.Sprintf("unhealthy: %s", strings.TrimSuffix(fmt.Sprintf("%s: %s", o.State, o.Message), ": "))
	case o.Pin != pin.Checksum():
		if have := strings.Join(o.Applied, " and "); have != pin.Version {
			return fmt.Sprintf("not yet rolled out: the cluster was last observed with %s, the lock has %s", cmp.Or(have, "none of its objects"), pin.Version)
		}
		return "not yet rolled out: the cluster was last observed with another pin of " + pin.Version
	default:
		return ""
	}
}

// heldBack returns a warning for each operator in Options.Held, unless the resolver
// has already given one.
func (in *Inputs) heldBack(said []diag.Warning) []diag.Warning {
	var out []diag.Warning
	for _, h := range in.Options.Held {
		if !slices.ContainsFunc(said, func(w diag.Warning) bool { return w.Code == "held" && strings.HasSuffix(w.Msg, "held: "+h.Reason) }) {
			out = append(out, diag.Warning{Pos: h.At, Code: "held", Subject: h.Namespace + "/" + h.Package, Msg: fmt.Sprintf("%s/%s is held back: %s", h.Namespace, h.Package, h.Reason)})
		}
	}
	return out
}
