package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/resolve"
)

// printText prints v, or text if the output format is text.
func (a *app) printText(v any, text string) error {
	return a.print(v, func(w io.Writer) { fmt.Fprintln(w, strings.TrimSuffix(text, "\n")) })
}

// parseOperatorArg parses "[namespace/]package", or "[namespace/]package@version" if version is true.
// The target may have no namespace: see workspace.WithNamespace.
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
