// Package explain defines the explanations of a resolution as plain values, and formats them as text. They explain
// why an operator is pinned, which conflicts a resolution has, and why a version cannot be installed. Package
// resolve computes the conflicts and the reasons against a version, and proves each suggested change by resolving
// again. [Why] computes the reasons why an operator is pinned, from a lock and the declarations.
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

// Reasons lists the chains of requirements that explain why a package is pinned.
type Reasons struct {
	Namespace string        `json:"namespace"`
	Package   string        `json:"package"`
	Version   string        `json:"version"`
	Bundle    string        `json:"bundle"`
	Chains    [][]ChainStep `json:"chains"` // each leads from a declaration to the package; empty if the package is no longer required
}

// ChainStep is one step of a chain.
type ChainStep struct {
	Subscription string `json:"subscription,omitempty"` // set in the first step: the declaration ("namespace/name")
	At           string `json:"position,omitempty"`     // position of the declaration
	Pin          string `json:"pin"`                    // pin of this step ("namespace/package")
	Version      string `json:"version"`
	Requirement  string `json:"requirement,omitempty"` // requirement of the previous pin that this pin meets
}

// maxChains is the maximum number of chains that Why returns.
const maxChains = 100

// Why returns the chains that lead from declarations to a pinned package, shortest first. If ns is empty and
// the package is pinned in several namespaces, the error lists these namespaces. If the package is not pinned,
// the error suggests similar names.
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
		steps []ChainStep // steps in reverse order, from the package to the declaration
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

// pinOf returns the pin of a package in ns. If ns is empty, there must be exactly one pin of the
// package.
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

// notPinnedError returns the error that an item, such as a package, is not pinned. It suggests the available
// names that are similar to word.
func notPinnedError(item, word string, among []string) error {
	slices.Sort(among)
	if near := diag.Nearest(word, slices.Compact(among)); len(near) > 0 {
		return fmt.Errorf("%s is not pinned (did you mean %s?)", item, strings.Join(near, " or "))
	}
	return fmt.Errorf("%s is not pinned", item)
}

// Text returns the chains as text, one step per line, from the declaration down.
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
