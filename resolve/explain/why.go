// Package explain defines the explanations of a resolution as plain values and renders them as
// text: the chains and trees of declarations behind a pinned operator, the conflicts of a
// resolution, and the obstacles to a version. It computes chains and trees from a lock and the
// declarations. Package resolve computes the conflicts and obstacles, and proves each suggested
// change by resolving again.
//
// There is no compatibility promise yet: exported names may change in any release.
//
// Start from [Why], [Tree] and [Conflict].
package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

// Reasons lists the chains that explain why a package is pinned.
type Reasons struct {
	Namespace string        `json:"namespace"`
	Package   string        `json:"package"`
	Version   string        `json:"version"`
	Bundle    string        `json:"bundle"`
	Chains    [][]ChainStep `json:"chains"` // each from a declaration to the package; empty: it is no longer required
}

// ChainStep is one step of a chain.
type ChainStep struct {
	Subscription string `json:"subscription,omitempty"` // "ns/name": the chain begins here
	At           string `json:"position,omitempty"`     // position of the declaration
	Pin          string `json:"pin"`                    // "ns/package" added by this step
	Version      string `json:"version"`
	Requirement  string `json:"requirement,omitempty"` // the requirement that pin meets for the previous step
}

// maxChains limits the number of chains that Why returns.
const maxChains = 100

// Why returns the chains from declarations to a pinned package, the shortest first. If ns is empty,
// the package must be pinned in exactly one namespace. If the package is not pinned, the error
// suggests similar names. If it is pinned in several namespaces, the error lists them.
func Why(lock *lockfile.File, decl *declare.Set, ns, pkg string) (*Reasons, error) {
	pin, err := pinOf(lock, ns, pkg)
	if err != nil {
		return nil, err
	}
	ns = pin.Namespace
	out := &Reasons{Namespace: ns, Package: pkg, Version: pin.VersionText(), Bundle: pin.Bundle, Chains: [][]ChainStep{}}
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
		steps []ChainStep // from the package upwards
		seen  map[string]bool
	}
	queue := []path{{pin: pin, seen: map[string]bool{pin.Key(): true}}}
	for len(queue) > 0 && len(out.Chains) < maxChains {
		here := queue[0]
		queue = queue[1:]
		for _, s := range here.pin.RequestedBy {
			chain := append(slices.Clone(here.steps), ChainStep{Pin: here.pin.Key(), Version: here.pin.VersionText(), Subscription: s, At: at[s]})
			slices.Reverse(chain)
			out.Chains = append(out.Chains, chain)
		}
		for _, r := range lock.RequiredBy(here.pin) {
			step := ChainStep{Pin: here.pin.Key(), Version: here.pin.VersionText(), Requirement: r.Requirement}
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

// pinOf returns the only pin of a package in ns, or in any namespace if ns is empty.
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
		return lockfile.Pin{}, fmt.Errorf("package %q is in several namespaces: choose one of %s", pkg, strings.Join(keysOf, ", "))
	case ns == "":
		return lockfile.Pin{}, notPinnedError("package "+pkg, pkg, names)
	default:
		return lockfile.Pin{}, notPinnedError(ns+"/"+pkg, ns+"/"+pkg, keys)
	}
}

// notPinnedError returns the error for a missing pin, with the most similar pinned names.
func notPinnedError(what, word string, among []string) error {
	slices.Sort(among)
	if near := diag.Nearest(word, slices.Compact(among)); len(near) > 0 {
		return fmt.Errorf("%s is not pinned (did you mean %s?)", what, strings.Join(near, " or "))
	}
	return fmt.Errorf("%s is not pinned", what)
}

// Text renders the chains, one hop per line, root first.
func (r *Reasons) Text() string {
	var b strings.Builder
	linef := func(format string, args ...any) { b.WriteString(sanitize.Line(fmt.Sprintf(format, args...)) + "\n") }
	linef("%s/%s %s", r.Namespace, r.Package, r.Version)
	if len(r.Chains) == 0 {
		b.WriteString("\tno longer requested\n")
	}
	for _, c := range r.Chains {
		for i, s := range c {
			b.WriteString(strings.Repeat("\t", i+1))
			if s.Subscription != "" {
				pin := s.Pin + " "
				if s.Pin == s.Subscription {
					pin = "" // do not repeat the name
				}
				linef("%ssubscription %s requests %s%s", positionPrefix(s.At), s.Subscription, pin, s.Version)
			} else {
				linef("requires %s: %s %s", s.Requirement, s.Pin, s.Version)
			}
		}
	}
	return b.String()
}
