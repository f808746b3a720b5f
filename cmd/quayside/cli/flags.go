package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quayside/quayside/resolve"
)

// operatorFlag is --upgrade and --upgrade=namespace/package[@version], and
// others that are for all operators or for some.
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
	key, version, at := s, "", false
	want := "want namespace/package"
	if f.versions {
		key, version, at = strings.Cut(s, "@")
		want += " or namespace/package@version"
	}
	namespace, pkg, ok := strings.Cut(key, "/")
	if !ok || namespace == "" || pkg == "" || strings.Contains(pkg, "/") || at && version == "" {
		return errors.New(want)
	}
	f.named = append(f.named, resolve.Target{Namespace: namespace, Package: pkg, Version: version})
	return nil
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
