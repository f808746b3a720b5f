package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/internal/yamlnode"
)

// format is a flag with a fixed set of values.
type format struct {
	value *string
	known []string
	hint  string // end of the error message for an unknown value
}

var _ pflag.Value = (*format)(nil)

// String returns the current value.
func (f *format) String() string { return *f.value }

// Type returns the permitted values, for the usage line.
func (f *format) Type() string { return strings.Join(f.known, "|") }

// Set sets a permitted value.
func (f *format) Set(s string) error {
	if !slices.Contains(f.known, s) {
		return fmt.Errorf("must be one of %s%s", strings.Join(f.known, ", "), f.hint)
	}
	*f.value = s
	return nil
}

// addOutput adds the flag -o to cmd. Its values are text, json, yaml, and the elements of more.
// documents are zero values of the command's JSON output, for its schema.
func addOutput(cmd *cobra.Command, a *app, more []string, documents ...any) *format {
	a.output = "text"
	f := &format{value: &a.output, known: append([]string{a.output, "json", "yaml"}, more...)}
	cmd.Flags().VarP(f, "output", "o", "output format")
	a.complete(cmd, "output", f.known)
	a.documents[cmd] = documents
	return f
}

// print prints v in the format of -o. For a format other than JSON and YAML, it calls text, which
// may be nil. With --all, it only stores a JSON or YAML document; all are printed together at the
// end.
func (a *app) print(v any, text func(w io.Writer)) error {
	a.document = v
	if a.all && (a.output == "json" || a.output == "yaml") {
		return nil
	}
	switch a.output {
	case "json":
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		data, err := yamlnode.Marshal(v)
		if err != nil {
			return err
		}
		_, err = a.out.Write(data)
		return err
	default:
		if text != nil {
			text(a.out)
		}
		return nil
	}
}

// printTable prints v. In text format, it prints a table instead.
func (a *app) printTable(v any, t *terminal.Table) error {
	return a.print(v, func(io.Writer) { t.Write(a.out) })
}

// outputOf returns the value of -o in a command line, even if the command line is invalid.
func outputOf(args []string) string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	output := flags.StringP("output", "o", "", "")
	_ = flags.Parse(args) // cobra has already reported errors
	return *output
}
