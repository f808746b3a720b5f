package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/resolve"
)

// printText prints v. In text format, it prints text instead.
func (a *app) printText(v any, text string) error {
	return a.print(v, func(w io.Writer) { fmt.Fprintln(w, strings.TrimSuffix(text, "\n")) })
}

// parseOperatorArg parses "[namespace/]package". If version is true, it also accepts
// "[namespace/]package@version". The target may have no namespace; see workspace.WithNamespace.
func parseOperatorArg(cmd *cobra.Command, arg string, version bool) (resolve.Target, error) {
	t, ok := parseTarget(arg, version)
	if !ok {
		want := "[namespace/]package"
		if version {
			want += "[@version]"
		}
		return t, Usagef(cmd, "%q: must be %s", arg, want)
	}
	return t, nil
}
