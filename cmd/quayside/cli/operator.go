package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/resolve"
)

// printText prints v, as this text where text is asked for.
func (a *app) printText(v any, text string) error {
	return a.print(v, func(w io.Writer) { fmt.Fprintln(w, strings.TrimSuffix(text, "\n")) })
}

// operatorArg reads "[namespace/]package" and, where it is allowed,
// "@version". Without a namespace the target's is empty: see project.Placed.
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
