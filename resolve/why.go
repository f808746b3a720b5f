package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// Reasons says why a package is pinned.
type Reasons struct {
	Namespace string    `json:"namespace"`
	Package   string    `json:"package"`
	Version   string    `json:"version"`
	Bundle    string    `json:"bundle"`
	Chains    [][]Asked `json:"chains"` // each from a declaration to the package; empty: nothing asks for it any more
}

// Asked is one step of a chain.
type Asked struct {
	Subscription string `json:"subscription,omitempty"` // "ns/name": the chain begins here
	At           string `json:"at,omitempty"`           // where it stands
	Pin          string `json:"pin"`                    // "ns/package" that is brought by this step
	Version      string `json:"version"`
	Requirement  string `json:"requirement,omitempty"` // what the step before required
}

// maxChains bounds the chains of one answer.
const maxChains = 100

// Why returns who asked for a pinned package, the shortest chains first. The
// error says that the package is not pinned, with the nearest names.
func Why(lock *lockfile.File, decl *subscription.Set, ns, pkg string) (*Reasons, error) {
	pin, ok := lock.Pin(ns, pkg)
	if !ok {
		return nil, notPinned(lock, ns, pkg)
	}
	out := &Reasons{Namespace: ns, Package: pkg, Version: pin.Version, Bundle: pin.Bundle, Chains: [][]Asked{}}
	at := map[string]string{}
	for _, s := range decl.Subscriptions {
		at[s.Key()] = s.Pos.String()
	}
	byKey := map[string]lockfile.Pin{}
	for _, p := range lock.Pins {
		byKey[p.Key()] = p
	}
	type path struct {
		pin   lockfile.Pin
		steps []Asked // from the package upwards
		seen  map[string]bool
	}
	queue := []path{{pin: pin, seen: map[string]bool{pin.Key(): true}}}
	for len(queue) > 0 && len(out.Chains) < maxChains {
		here := queue[0]
		queue = queue[1:]
		for _, r := range here.pin.RequestedBy {
			step := Asked{Pin: here.pin.Key(), Version: here.pin.Version, Requirement: r.Requirement}
			if r.Subscription != "" {
				step.Subscription, step.At = r.Subscription, at[r.Subscription]
				chain := append(slices.Clone(here.steps), step)
				slices.Reverse(chain)
				out.Chains = append(out.Chains, chain)
				continue
			}
			by, ok := byKey[r.Pin]
			if !ok || here.seen[r.Pin] || len(queue) > maxChains {
				continue
			}
			seen := maps.Clone(here.seen)
			seen[r.Pin] = true
			queue = append(queue, path{pin: by, steps: append(here.steps[:len(here.steps):len(here.steps)], step), seen: seen})
		}
	}
	return out, nil
}

func notPinned(lock *lockfile.File, ns, pkg string) error {
	var names []string
	for _, p := range lock.Pins {
		names = append(names, p.Key())
	}
	return fmt.Errorf("%s/%s is not pinned%s", ns, pkg, didYouMean(ns+"/"+pkg, names))
}

// Text prints the chains, one hop a line, root first.
func (r *Reasons) Text() string {
	var b strings.Builder
	linef := func(format string, args ...any) { b.WriteString(inert.Line(fmt.Sprintf(format, args...)) + "\n") }
	linef("%s/%s %s", r.Namespace, r.Package, r.Version)
	if len(r.Chains) == 0 {
		b.WriteString("\tnothing asks for it any more\n")
	}
	for _, c := range r.Chains {
		for i, s := range c {
			b.WriteString(strings.Repeat("\t", i+1))
			if s.Subscription != "" {
				linef("%ssubscription %s asks for %s %s", at(s.At), s.Subscription, s.Pin, s.Version)
			} else {
				linef("requires %s: %s %s", s.Requirement, s.Pin, s.Version)
			}
		}
	}
	return b.String()
}
