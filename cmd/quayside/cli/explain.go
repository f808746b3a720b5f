package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
)

// printText prints v, as this text where text is asked for.
func (a *app) printText(v any, text string) error {
	return a.print(v, func(w io.Writer) { fmt.Fprintln(w, strings.TrimSuffix(text, "\n")) })
}

// operatorArg reads "[namespace/]package" and, where it is allowed,
// "@version". Without a namespace the target's is empty: see placed.
func operatorArg(cmd *cobra.Command, arg string, version bool) (resolve.Target, error) {
	t, ok := parseTarget(arg, version)
	if !ok {
		want := "[namespace/]package"
		if version {
			want += "[@version]"
		}
		return t, usagef(cmd, "%q: want %s", arg, want)
	}
	return t, nil
}

// placed returns t with a namespace. Where t has none it is the only one in
// which the package is pinned or asked for, else, for a package that nobody
// asks for, the one of its own name; several are an error that lists them.
func placed(t resolve.Target, lock *lockfile.File, set *subscription.Set) (resolve.Target, error) {
	if t.Namespace != "" {
		return t, nil
	}
	var in []string
	if lock != nil {
		for _, p := range lock.Pins {
			if p.Package == t.Package {
				in = append(in, p.Namespace)
			}
		}
	}
	for _, s := range set.Subscriptions {
		if s.Package == t.Package {
			in = append(in, s.Namespace)
		}
	}
	slices.Sort(in)
	in = slices.Compact(in)
	switch len(in) {
	case 0:
		t.Namespace = t.Package
	case 1:
		t.Namespace = in[0]
	default:
		var full []string
		for _, ns := range in {
			full = append(full, ns+"/"+t.Package)
		}
		return t, fmt.Errorf("package %q is in several namespaces: name one of %s", t.Package, strings.Join(full, ", "))
	}
	return t, nil
}
