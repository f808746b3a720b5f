package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/workspace"
)

const docs = "../../../docs/"

// TestCommandReference keeps docs/commands.md in step with --help.
func TestCommandReference(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Commands\n\nWhat `quayside <command> --help` prints. Written by `make golden`.\n")
	for _, cmd := range commands(newTestRoot()) {
		var help bytes.Buffer
		cmd.SetOut(&help)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n```\n%s```\n", cmd.CommandPath(), &help)
	}
	golden(t, docs+"commands.md", b.Bytes())
}

func newTestRoot() *cobra.Command { return newTestApp().root }

// testApp is a program that is not run.
type testApp struct {
	*app
	root *cobra.Command
}

func newTestApp() testApp {
	none := &terminal{Writer: &bytes.Buffer{}}
	a := &app{out: none, talk: newTalk(none)}
	return testApp{a, newRoot(a)}
}

// TestSchemas keeps schema/ in step with what is read and printed: every command
// that takes -o json has one, and nothing else is there.
func TestSchemas(t *testing.T) {
	const dir, ext = "../../../schema/", ".schema.json"
	a := newTestApp()
	made := a.schemas()
	for name, schema := range made {
		golden(t, dir+name+ext, schema())
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if made[strings.TrimSuffix(f.Name(), ext)] == nil {
			t.Errorf("%s%s: no file and no command has this schema", dir, f.Name())
		}
	}
	for _, cmd := range commands(a.root) {
		if f := cmd.Flags().Lookup("output"); f != nil && len(a.documents[cmd]) == 0 {
			t.Errorf("%s: takes --output, and does not say what it prints", cmd.CommandPath())
		}
	}
}

// commands returns cmd and all below it that help lists, parents first.
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, commands(c)...)
		}
	}
	return all
}

// schema is what the reference needs of a JSON schema.
type schema struct {
	Type        any                `json:"type"`
	Description string             `json:"description"`
	Default     json.RawMessage    `json:"default"`
	Enum        []string           `json:"enum"`
	Properties  map[string]*schema `json:"properties"`
	Items       *schema            `json:"items"`
	Required    []string           `json:"required"`
}

// TestConfigurationReference keeps docs/configuration.md in step with the
// schema of quayside.yaml.
func TestConfigurationReference(t *testing.T) {
	var root schema
	if err := json.Unmarshal(workspace.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString(`# quayside.yaml

The file is optional, and so is every field but those marked. Unknown fields are
errors. An editor that knows JSON schemas checks the file as it is written:

    # yaml-language-server: $schema=../path/to/workspace.schema.json

The schema is in [schema/workspace.schema.json](../schema/workspace.schema.json).
This page is made from it by ` + "`make golden`" + `.

| Field | Default | Meaning |
| --- | --- | --- |
`)
	root.rows(&b, "")
	golden(t, docs+"configuration.md", b.Bytes())
}

func (s *schema) rows(b *bytes.Buffer, prefix string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		path := strings.TrimPrefix(prefix+"."+name, ".")
		meaning := p.Description
		if !strings.HasSuffix(meaning, ".") {
			meaning += "."
		}
		if len(p.Enum) > 0 {
			meaning += " One of `" + strings.Join(p.Enum, "`, `") + "`."
		}
		if slices.Contains(s.Required, name) {
			meaning += " Required."
		}
		value := ""
		if len(p.Default) > 0 && string(p.Default) != `""` {
			var compact bytes.Buffer
			if err := json.Compact(&compact, p.Default); err != nil {
				panic(err)
			}
			value = "`" + compact.String() + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", path, value, strings.ReplaceAll(meaning, "|", `\|`))
		p.rows(b, path)
		if p.Items != nil {
			p.Items.rows(b, path+"[]")
		}
	}
}
