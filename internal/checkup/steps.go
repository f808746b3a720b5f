package checkup

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Step is one operator of the upgrades that are proposed.
type Step struct {
	Operator string `json:"operator" doc:"namespace/package."`
	From     string `json:"from,omitempty" doc:"Version. Absent where the operator is newly installed, as a dependency."`
	To       string `json:"to,omitempty" doc:"Version. Absent where nothing needs the operator any more."`
}

// steps returns what moves from the lock of the workspace to another, in the order
// of the locks.
func (c *checker) steps(to *lockfile.File) []Step {
	out := []Step{}
	for _, ch := range lockfile.Diff(c.lock, to) {
		was, before := c.lock.Pin(ch.Namespace, ch.Package)
		now, after := to.Pin(ch.Namespace, ch.Package)
		if ch.Package == "" || before && after && was.Bundle == now.Bundle {
			continue
		}
		s := Step{Operator: ch.Namespace + "/" + ch.Package}
		if before {
			s.From = was.VersionText()
		}
		if after {
			s.To = now.VersionText()
		}
		out = append(out, s)
	}
	return out
}

// say fills in the command that makes the upgrades and no others, where there is one.
func (c *checker) say(ctx context.Context, r *Report) error {
	named := targets(r.Upgrades)
	var conflicts resolve.Conflicts
	again, err := c.try(ctx, r, resolve.Options{Named: named, Hops: -1})
	if err != nil && !errors.As(err, &conflicts) {
		return err
	}
	if again != nil && slices.Equal(c.steps(again), r.Upgrades) {
		r.Command = command(named)
	} else {
		r.Notes = append(r.Notes, "no one command makes these upgrades and no others: look at 'quayside upgrade --check' first")
	}
	return nil
}

// operators returns "namespace/package" as targets.
func operators(keys []string) []resolve.Target {
	var out []resolve.Target
	for _, key := range keys {
		namespace, pkg, _ := strings.Cut(key, "/")
		out = append(out, resolve.Target{Namespace: namespace, Package: pkg})
	}
	return out
}

// targets names the operators of steps that are pinned already, and where they go.
func targets(steps []Step) []resolve.Target {
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

func command(named []resolve.Target) string {
	words := "quayside upgrade --hops all"
	for _, t := range named {
		words += " " + t.Namespace + "/" + t.Package + "@" + t.Version
	}
	return words
}

// bundles returns what a lock pins, in its order.
func bundles(lock *lockfile.File) []string {
	var out []string
	for _, p := range lock.Pins {
		out = append(out, p.Key()+"@"+p.Bundle)
	}
	return out
}
