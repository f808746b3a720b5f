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

// Why returns who asked for a pinned package, the shortest chains first. Without
// a namespace it is the one that the package is pinned in. The error says that it
// is not pinned, with the nearest names, or lists the namespaces that have it.
func Why(lock *lockfile.File, decl *subscription.Set, ns, pkg string) (*Reasons, error) {
	pin, err := pinOf(lock, ns, pkg)
	if err != nil {
		return nil, err
	}
	ns = pin.Namespace
	out := &Reasons{Namespace: ns, Package: pkg, Version: pin.VersionText(), Bundle: pin.Bundle, Chains: [][]Asked{}}
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
		for _, s := range here.pin.RequestedBy {
			chain := append(slices.Clone(here.steps), Asked{Pin: here.pin.Key(), Version: here.pin.VersionText(), Subscription: s, At: at[s]})
			slices.Reverse(chain)
			out.Chains = append(out.Chains, chain)
		}
		for _, r := range lock.RequiredBy(here.pin) {
			step := Asked{Pin: here.pin.Key(), Version: here.pin.VersionText(), Requirement: r.Requirement}
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

// pinOf returns the one pin of a package, in ns or, where that is empty,
// anywhere.
func pinOf(lock *lockfile.File, ns, pkg string) (lockfile.Pin, error) {
	var found []lockfile.Pin
	var keys, keysOf, names []string
	for _, p := range lock.Pins {
		keys, names = append(keys, p.Key()), append(names, p.Package)
		if p.Package == pkg && (ns == "" || p.Namespace == ns) {
			found, keysOf = append(found, p), append(keysOf, p.Key())
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return lockfile.Pin{}, fmt.Errorf("package %q is in several namespaces: name one of %s", pkg, strings.Join(keysOf, ", "))
	case ns == "":
		return lockfile.Pin{}, fmt.Errorf("package %s is not pinned%s", pkg, didYouMean(pkg, names))
	default:
		return lockfile.Pin{}, fmt.Errorf("%s/%s is not pinned%s", ns, pkg, didYouMean(ns+"/"+pkg, keys))
	}
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
