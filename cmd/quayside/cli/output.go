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

// format is the value of a flag that takes one of a few words.
type format struct {
	value *string
	known []string
	hint  string // what else a word may have been meant for
}

var _ pflag.Value = (*format)(nil)

// String returns the word that was chosen.
func (f *format) String() string { return *f.value }

// Type returns the words to choose from, as the usage line shows them.
func (f *format) Type() string { return strings.Join(f.known, "|") }

// Set chooses a word.
func (f *format) Set(s string) error {
	if !slices.Contains(f.known, s) {
		return fmt.Errorf("want one of %s%s", strings.Join(f.known, ", "), f.hint)
	}
	*f.value = s
	return nil
}

// addOutput gives cmd the flag -o with text, json, yaml and more. The documents
// are what the command prints as JSON and YAML, as zero values: the schema of
// its output is made from them.
func addOutput(cmd *cobra.Command, a *app, more []string, documents ...any) *format {
	a.output = "text"
	f := &format{value: &a.output, known: append([]string{a.output, "json", "yaml"}, more...)}
	cmd.Flags().VarP(f, "output", "o", "how to print")
	a.complete(cmd, "output", f.known)
	a.documents[cmd] = documents
	return f
}

// print writes v as -o says; text, which may be nil, is called for whatever is no
// document. With --all, documents are printed together at the end.
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

// printTable is print for what is a table as text.
func (a *app) printTable(v any, t *terminal.Table) error {
	return a.print(v, func(io.Writer) { t.Write(a.out) })
}

// outputOf returns the format that a command line asks for, whether the rest of
// it can be read or not.
func outputOf(args []string) string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	output := flags.StringP("output", "o", "", "")
	_ = flags.Parse(args) // what is wrong with it is said already
	return *output
}
