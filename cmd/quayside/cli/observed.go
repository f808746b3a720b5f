package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/resolve"
)

// observedHold is an operator of the lock that a cluster says is not to be
// moved.
type observedHold struct {
	resolve.Hold
	pos diag.Pos // in the observed file
}

// observed reads a file that `quayside status --output` wrote; nil where no name
// is given.
func (a *app) observed(name string) (*report.ObservedFile, error) {
	if name == "" {
		return nil, nil
	}
	data, err := readFile(a.argPath(name))
	if err != nil {
		return nil, err
	}
	return report.ParseObserved(filepath.ToSlash(name), data)
}

// holds returns which operators of the lock must not move, by namespace and
// package. An operator that the file does not name may.
func holds(file *report.ObservedFile, lock *lockfile.File) []observedHold {
	if file == nil || lock == nil {
		return nil
	}
	var out []observedHold
	for _, p := range lock.Pins {
		o, ok := file.Operator(p.Namespace, p.Package)
		if !ok {
			continue
		}
		if why := against(o, p); why != "" {
			out = append(out, observedHold{resolve.Hold{Namespace: p.Namespace, Package: p.Package, Reason: why}, o.Pos})
		}
	}
	return out
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

// hold puts what was observed among what must not move. An upgrade that was
// asked for by name and is held is refused.
func hold(opt *resolve.Options, holds []observedHold) error {
	var refused []string
	for _, h := range holds {
		opt.Held = append(opt.Held, h.Hold)
		if slices.ContainsFunc(opt.Named, func(t resolve.Target) bool { return t.Namespace == h.Namespace && t.Package == h.Package }) {
			refused = append(refused, fmt.Sprintf("%s: %s/%s must not be moved: %s", h.pos, h.Namespace, h.Package, h.Reason))
		}
	}
	if len(refused) > 0 {
		return &policyError{strings.Join(refused, "\n")}
	}
	return nil
}

// heldBack returns a warning for each operator that stays for what was
// observed, where resolving did not say so itself.
func heldBack(holds []observedHold, said []diag.Warning) []diag.Warning {
	var out []diag.Warning
	for _, h := range holds {
		if !slices.ContainsFunc(said, func(w diag.Warning) bool { return w.Code == "held" && strings.HasSuffix(w.Msg, "held: "+h.Reason) }) {
			out = append(out, diag.Warning{Pos: h.pos, Code: "held", Msg: fmt.Sprintf("%s/%s is not moved: %s", h.Namespace, h.Package, h.Reason)})
		}
	}
	return out
}
