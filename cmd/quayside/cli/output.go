package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quayside/quayside/internal/yamlnode"
)

// format is the value of -o.
type format struct {
	value string
	known []string // the first is the default
}

var _ pflag.Value = (*format)(nil)

// String returns the format that was chosen.
func (f *format) String() string { return f.value }

// Type returns the formats to choose from, as the usage line shows them.
func (f *format) Type() string { return strings.Join(f.known, "|") }

// Set chooses a format.
func (f *format) Set(s string) error {
	if !slices.Contains(f.known, s) {
		return fmt.Errorf("want one of %s", strings.Join(f.known, ", "))
	}
	f.value = s
	return nil
}

// addOutput gives cmd the flag -o with text, json, yaml and more.
func addOutput(cmd *cobra.Command, f *format, more ...string) {
	addFormat(cmd, "output", f, more...)
}

// addFormat is addOutput for a command whose --output names a file: long is what
// the flag is called in full.
func addFormat(cmd *cobra.Command, long string, f *format, more ...string) {
	f.known = append([]string{"text", "json", "yaml"}, more...)
	f.value = f.known[0]
	cmd.Flags().VarP(f, long, "o", "how to print")
	complete(cmd, long, f.known)
}

// complete offers words for a flag.
func complete(cmd *cobra.Command, flag string, words []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}

// print writes v as the format says; text is called for text.
func (a *app) print(f format, v any, text func(w io.Writer) error) error {
	switch f.value {
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
		return text(a.out)
	}
}
