package project

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/resolve"
)

// hold is an operator of the lock that a cluster says is not to be moved.
type hold struct {
	resolve.Hold
	pos diag.Pos // in the file with what was observed
}

// Hold keeps the operators in their place that a cluster was seen to have and
// that must not move, as the first of the files says that has something against
// it: one for each cluster that was seen. An operator that no file names may move.
// An upgrade that was asked for by name and is held is a [PolicyError], and held
// all the same.
func (in *Inputs) Hold(files ...*report.ObservedFile) error {
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
		h := hold{resolve.Hold{Namespace: p.Namespace, Package: p.Package, Reason: why}, o.Pos}
		in.holds = append(in.holds, h)
		in.Options.Held = append(in.Options.Held, h.Hold)
		if by := names(in.Options, p); by != nil {
			asks := ""
			if !by.At.IsZero() {
				asks = ", as " + by.At.String() + " asks for"
			}
			refused = append(refused, fmt.Sprintf("%s: %s must not be moved%s: %s", o.Pos, p.Key(), asks, why))
		}
	}
	if len(refused) > 0 {
		return &PolicyError{strings.Join(refused, "\n")}
	}
	return nil
}

// Settle lets what is left of operators go whose followers clusters were seen to
// run, as they are pinned: all of the files that name one, one for each cluster. With
// all, somebody says so of every one of them.
func (in *Inputs) Settle(files []*report.ObservedFile, all bool) {
	if all {
		in.Options.Settled, in.Options.Gone = []string{"*"}, []string{"*"}
	}
	if in.Read == nil {
		return
	}
	in.Options.Gone = append(in.Options.Gone, in.gone(files)...)
	for _, p := range in.Read.Pins {
		named, runs := 0, 0
		for _, f := range files {
			o, ok := f.Operator(p.Namespace, p.Package)
			if ok {
				named++
			}
			if ok && o.State == report.StateReady && o.Pin == p.Checksum() {
				runs++
			}
		}
		if named > 0 && runs == named {
			in.Options.Settled = append(in.Options.Settled, p.Key())
		}
	}
}

// gone returns the operators being uninstalled that every cluster which got one was
// seen without.
func (in *Inputs) gone(files []*report.ObservedFile) []string {
	var out []string
	for _, l := range in.Read.Leaving {
		if l.ReplacedBy != "" {
			continue
		}
		left := false
		for _, c := range in.project.Settings.Clusters {
			got, err := render.Cluster{Operators: c.Operators}.Gets(l.Key())
			if err != nil || !got {
				continue
			}
			left = left || !slices.ContainsFunc(files, func(f *report.ObservedFile) bool {
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

// againstAny returns the first of what was seen of a pin that is against moving it,
// and why; "" where nothing is.
func againstAny(files []*report.ObservedFile, pin lockfile.Pin) (report.ObservedOperator, string) {
	for _, f := range files {
		o, ok := f.Operator(pin.Namespace, pin.Package)
		if why := against(o, pin); ok && why != "" {
			return o, why
		}
	}
	return report.ObservedOperator{}, ""
}

// against says why an operator must not move from its pin, or "". What it says
// of itself comes first; then whether what was seen is what the lock says, for
// an operator that is still on its way to the pin is not there yet, however
// healthy the version is that runs meanwhile.
func against(o report.ObservedOperator, pin lockfile.Pin) string {
	switch {
	case o.Upgradeable != "" && o.Upgradeable != metav1.ConditionTrue:
		return fmt.Sprintf("it says Upgradeable=%s: %s", o.Upgradeable, cmp.Or(o.UpgradeMessage, "and nothing more"))
	case o.State == report.StateUnpinned || o.State != report.StateReady && o.Pin == pin.Checksum():
		return fmt.Sprintf("it is not healthy yet: %s", strings.TrimSuffix(fmt.Sprintf("%s: %s", o.State, o.Message), ": "))
	case o.Pin != pin.Checksum():
		if have := strings.Join(o.Applied, " and "); have != pin.Version {
			return fmt.Sprintf("it is not healthy yet: the cluster was last seen with %s, the lock has %s", cmp.Or(have, "nothing of it"), pin.Version)
		}
		return "it is not healthy yet: the cluster was last seen with another pin of " + pin.Version
	default:
		return ""
	}
}

// heldBack returns a warning for each operator that stays for what was
// observed, where resolving did not say so itself.
func (in *Inputs) heldBack(said []diag.Warning) []diag.Warning {
	var out []diag.Warning
	for _, h := range in.holds {
		if !slices.ContainsFunc(said, func(w diag.Warning) bool { return w.Code == "held" && strings.HasSuffix(w.Msg, "held: "+h.Reason) }) {
			out = append(out, diag.Warning{Pos: h.pos, Code: "held", Subject: h.Namespace + "/" + h.Package, Msg: fmt.Sprintf("%s/%s is not moved: %s", h.Namespace, h.Package, h.Reason)})
		}
	}
	return out
}
