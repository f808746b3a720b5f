package upgrade

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// PlatformStep is an upgrade of one operator before the cluster upgrade.
type PlatformStep struct {
	Operator string `json:"operator" doc:"namespace/package."`
	From     string `json:"from,omitempty" doc:"Version. Absent where the operator is newly installed, as a dependency."`
	To       string `json:"to,omitempty" doc:"Version. Absent where nothing needs the operator any more."`
}

// steps returns the upgrades from the lock of the workspace to another lock, in lock order.
func (c *platformChecker) steps(to *lockfile.File) []PlatformStep {
	out := []PlatformStep{}
	for _, ch := range lockfile.Diff(c.lock, to) {
		old, before := c.lock.Pin(ch.Namespace, ch.Package)
		now, after := to.Pin(ch.Namespace, ch.Package)
		if ch.Package == "" || before && after && old.Bundle == now.Bundle {
			continue
		}
		s := PlatformStep{Operator: ch.Namespace + "/" + ch.Package}
		if before {
			s.From = old.VersionText()
		}
		if after {
			s.To = now.VersionText()
		}
		out = append(out, s)
	}
	return out
}

// addCommand sets the command that makes exactly the upgrades of r, or adds a note if there is
// none.
func (c *platformChecker) addCommand(ctx context.Context, r *PlatformReport) error {
	named := stepTargets(r.Upgrades)
	var conflicts explain.Conflicts
	again, err := c.tryResolve(ctx, r, resolve.Options{Named: named, Hops: -1})
	if err != nil && !errors.As(err, &conflicts) {
		return err
	}
	if again != nil && slices.Equal(c.steps(again), r.Upgrades) {
		r.Command = upgradeCommand(named)
	} else {
		r.Notes = append(r.Notes, "no single command makes exactly these upgrades: run 'quayside upgrade --check' first")
	}
	return nil
}

// operatorTargets converts "namespace/package" keys to targets.
func operatorTargets(keys []string) []resolve.Target {
	var out []resolve.Target
	for _, key := range keys {
		namespace, pkg, _ := strings.Cut(key, "/")
		out = append(out, resolve.Target{Namespace: namespace, Package: pkg})
	}
	return out
}

// stepTargets returns targets for the upgrades of pinned operators.
func stepTargets(steps []PlatformStep) []resolve.Target {
	var out []resolve.Target
	for _, s := range steps {
		if s.From != "" && s.To != "" {
			namespace, pkg, _ := strings.Cut(s.Operator, "/")
			version, _, _ := strings.Cut(s.To, " ")
			out = append(out, resolve.Target{Namespace: namespace, Package: pkg, Version: version})
		}
	}
	return out
}

func upgradeCommand(named []resolve.Target) string {
	words := "quayside upgrade --hops all"
	for _, t := range named {
		words += " " + t.Namespace + "/" + t.Package + "@" + t.Version
	}
	return words
}

// bundleNames returns the pins of a lock as namespace/package@bundle, in lock order.
func bundleNames(lock *lockfile.File) []string {
	var out []string
	for _, p := range lock.Pins {
		out = append(out, p.Key()+"@"+p.Bundle)
	}
	return out
}
