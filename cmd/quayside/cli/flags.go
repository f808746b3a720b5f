package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quayside/quayside/resolve"
)

// operatorFlag is --upgrade and --upgrade=[namespace/]package[@version], and
// others that are for all operators or for some. Without a namespace a target's is
// empty: see project.Placed.
type operatorFlag struct {
	versions bool // may be named, too
	all      bool
	named    []resolve.Target
}

// allOperators is what such a flag means without a value.
const allOperators = "all"

// String returns nothing: there is no default to show.
func (f *operatorFlag) String() string { return "" }

// Type names the value in usage lines.
func (f *operatorFlag) Type() string { return "operator" }

// Set adds one operator, or all.
func (f *operatorFlag) Set(s string) error {
	if s == allOperators {
		f.all = true
		return nil
	}
	t, ok := parseTarget(s, f.versions)
	switch {
	case ok:
		f.named = append(f.named, t)
		return nil
	case f.versions:
		return errors.New("want [namespace/]package or [namespace/]package@version")
	default:
		return errors.New("want [namespace/]package")
	}
}

// parseTarget reads "[namespace/]package" and, where it is allowed, "@version".
func parseTarget(s string, version bool) (resolve.Target, bool) {
	t := resolve.Target{Package: s}
	at, slash := false, false
	if version {
		t.Package, t.Version, at = strings.Cut(s, "@")
	}
	if t.Namespace, t.Package, slash = strings.Cut(t.Package, "/"); !slash {
		t.Namespace, t.Package = "", t.Namespace
	}
	bad := t.Package == "" || slash && t.Namespace == "" || strings.ContainsAny(t.Package, "/@") || at && t.Version == ""
	return t, !bad
}

func (f *operatorFlag) any() bool { return f.all || len(f.named) > 0 }

// parseHops reads --hops: a number from 1, or all.
func parseHops(s string) (int, error) {
	if s == "all" {
		return -1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--hops %q: want a number from 1, or all", s)
	}
	return n, nil
}
