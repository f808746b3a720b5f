package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/settings"
)

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the effective settings, each with the file and line that sets it",
		Long: Doc(`
			Print the effective settings of the workspace: those of quayside.yaml and of the files
			that it extends, and the defaults.

			Each value is followed by a comment with the file and line that set it, relative to
			the workspace, or with "default". The output is a valid quayside.yaml that extends no
			other file.

			With -o json and yaml, the output also lists each field with its value, file and line.
			Fields with default values have no file.

			See also: docs/configuration.md, docs/promotion.md`),
		Example: Examples(`
			quayside config

			# compare environments
			quayside config --all -o json

			# print the file and line of every field
			quayside config -o yaml`),
		RunE: func(*cobra.Command, []string) error { return a.printConfig() },
	}
	addOutput(cmd, a, nil, configReport{})
	addAll(cmd, a)
	return cmd
}

// configReport is the output of `quayside config`.
type configReport struct {
	Files    []string        `json:"files" doc:"files of the settings: quayside.yaml, if it exists, then the files that it extends, nearest first"`
	Settings json.RawMessage `json:"settings" doc:"effective, as a quayside.yaml that extends no other file"`
	Fields   []configField   `json:"fields" doc:"all fields with their values, in the order of the schema"`
}

type configField struct {
	Field string          `json:"field" doc:"such as spec.catalogs[0].source"`
	Value json.RawMessage `json:"value"`
	File  string          `json:"file,omitempty" doc:"file that sets the value; absent for defaults"`
	Line  int             `json:"line,omitempty"`
}

func (a *app) printConfig() error {
	p, err := a.open()
	if err != nil {
		return err
	}
	w := p.Settings
	r := configReport{Files: []string{}, Settings: w.EffectiveJSON(), Fields: []configField{}}
	if w.File != "" {
		r.Files = append([]string{settings.FileName}, w.Extended...)
	} else if err := p.SuggestWorkspaces(); err != nil {
		return err
	}
	for _, s := range w.Effective() {
		r.Fields = append(r.Fields, configField{Field: s.Field, Value: s.Value, File: s.Pos.File, Line: s.Pos.Line})
	}
	return a.print(r, func(out io.Writer) { _, _ = out.Write(w.EffectiveYAML()) })
}
