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
		Short: "Print the effective settings and the file and line that set each",
		Long: Doc(`
			Print the settings of the workspace as they apply: those of quayside.yaml, of the
			files that it extends, and the defaults. Each value is replaced by the file and
			line that set it, relative to the workspace.

			The output is a quayside.yaml that extends no other file; paths in it are relative
			to the workspace. -o json and yaml list each field with its value, file and line,
			too; a field without a file is a default.

			See also: docs/promotion.md, which has the rules of spec.extends.`),
		Example: Examples(`
			quayside config

			# compare two environments
			quayside config --all -o json

			# which file sets the policy?
			quayside config -o yaml`),
		RunE: func(*cobra.Command, []string) error { return a.config() },
	}
	addOutput(cmd, a, nil, configReport{})
	addAll(cmd, a)
	return cmd
}

// configReport is the output of `quayside config`.
type configReport struct {
	Files    []string        `json:"files" doc:"that make up the settings: quayside.yaml, where there is one, then what it extends, the nearest first"`
	Settings json.RawMessage `json:"settings" doc:"effective, as a quayside.yaml that extends no other file"`
	Fields   []configField   `json:"fields" doc:"with a value each, in the order of the schema"`
}

type configField struct {
	Field string          `json:"field" doc:"as in spec.catalogs[0].source"`
	Value json.RawMessage `json:"value"`
	File  string          `json:"file,omitempty" doc:"that sets it; a default has none"`
	Line  int             `json:"line,omitempty"`
}

func (a *app) config() error {
	p, err := a.open()
	if err != nil {
		return err
	}
	w := p.Settings
	r := configReport{Files: []string{}, Settings: w.EffectiveJSON(), Fields: []configField{}}
	if w.File != "" {
		r.Files = append([]string{settings.FileName}, w.Extended...)
	} else if err := p.Absent(); err != nil {
		return err
	}
	for _, s := range w.Effective() {
		r.Fields = append(r.Fields, configField{Field: s.Field, Value: s.Value, File: s.Pos.File, Line: s.Pos.Line})
	}
	return a.print(r, func(out io.Writer) { _, _ = out.Write(w.EffectiveYAML()) })
}
