package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
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
	none := &terminal.Terminal{Writer: &bytes.Buffer{}}
	a := &app{out: none, talk: terminal.NewTalk(none), completes: true}
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

// TestFieldReferences keeps the pages about files in step with their schemas.
func TestFieldReferences(t *testing.T) {
	declared, err := os.ReadFile("../../../examples/quickstart/subscriptions/vault.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, ref := range map[string]struct {
		intro  string
		schema []byte
	}{
		"configuration": {`# quayside.yaml

The file is optional, and so is every field but those marked. Unknown fields are
errors. ` + "`spec.extends`" + ` inherits the settings of another file
([promotion.md](promotion.md#shared-settings) has the rules), and ` + "`quayside config`" + ` prints
those that apply. The schema number of the file is its ` + "`apiVersion`" + `: a program reads those
it knows, and refuses a newer one.

An editor that knows JSON schemas checks the file as it is written:

    # yaml-language-server: $schema=../path/to/workspace.schema.json

The schema is in [schema/workspace.schema.json](../schema/workspace.schema.json).
This page is made from it by ` + "`make golden`" + `.
`, workspace.Schema()},
		"subscription": {`# Subscription

quayside's own declaration of an operator: one object in place of OLM's Subscription,
OperatorGroup and annotations. It stands in a file below ` + "`subscriptions/`" + `
([declarations.md](declarations.md) says where else). From the
[quickstart](../examples/quickstart):

` + "```yaml\n" + string(declared) + "```" + `

Unknown fields are errors. ` + "`spec.config`" + ` is that of OLM's Subscription: env, envFrom, volumes,
volumeMounts, tolerations, resources, nodeSelector, affinity and annotations, merged as OLM merges
them. The schema, for editors, is in
[schema/subscription.schema.json](../schema/subscription.schema.json). This page is made from it
by ` + "`make golden`" + `.
`, subscription.Schema()},
		"lock-fields": {`# Fields of the lock

` + "`quayside.lock`" + ` is written by quayside and read by people: one fact to a line, a block for each
catalog, Namespace and operator. [lock.md](lock.md) says what protects it. The schema is in
[schema/lock.schema.json](../schema/lock.schema.json); this page is made from it by ` + "`make golden`" + `.
`, lockfile.JSONSchema()},
	} {
		var root schema
		if err := json.Unmarshal(ref.schema, &root); err != nil {
			t.Fatal(err)
		}
		b := bytes.NewBufferString(ref.intro + "\n| Field | Default | Meaning |\n| --- | --- | --- |\n")
		root.rows(b, "")
		golden(t, docs+name+".md", b.Bytes())
	}
}

// TestSchemaReference keeps the page that lists the schemas in step with them.
func TestSchemaReference(t *testing.T) {
	a := newTestApp()
	var files, output strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a.schemas())) {
		var root struct {
			Title string `json:"title"`
		}
		if err := json.Unmarshal(a.schemas()[name](), &root); err != nil {
			t.Fatal(err)
		}
		to, what := &files, root.Title
		if strings.HasSuffix(root.Title, " -o json") {
			to, what = &output, "`"+root.Title+"`"
		}
		fmt.Fprintf(to, "| %s | [%[2]s](../schema/%[2]s) |\n", what, name+".schema.json")
	}
	page := `# JSON schemas

Of the files that people write and review, and of what every command prints with ` + "`-o json`" + ` or
` + "`-o yaml`" + `. ` + "`quayside schema`" + ` lists them, and ` + "`quayside schema NAME`" + ` prints one. Fields are added
between releases; none changes its meaning or goes without a word in the changelog. This page is made by
` + "`make golden`" + `.

## Files

| What | Schema |
| --- | --- |
` + files.String() + `
## Output

Each allows the command's own document, and the list of ` + "`errors`" + ` and ` + "`conflicts`" + ` that is printed in
its place if the command fails before it has one ([exit-codes.md](exit-codes.md)).

| Command | Schema |
| --- | --- |
` + output.String()
	golden(t, docs+"schemas.md", []byte(page))
}

// TestExitCodePage holds docs/exit-codes.md to the constants.
func TestExitCodePage(t *testing.T) {
	source, err := os.ReadFile("cli.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(docs + "exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^\texit[A-Z]\w* += (\d+) // (.+)$`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, "| "+m[1]+" | "+m[2]+" |")
	}
	for line := range strings.Lines(string(page)) {
		if line = strings.TrimSpace(line); regexp.MustCompile(`^\| \d`).MatchString(line) {
			got = append(got, line)
		}
	}
	if d := cmp.Diff(want, got); d != "" || len(want) != exitPolicy+1 {
		t.Errorf("docs/exit-codes.md (-code +page):\n%s", d)
	}
}

// TestWarningReference keeps docs/warnings.md in step with the table of warnings: each
// is there once.
func TestWarningReference(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`# Warnings

A warning stops nothing and changes no exit code. It ends with its code, as
` + "`[unchecked]`" + `, which stays what it is; with ` + "`-o json`" + ` it has a ` + "`code`" + ` and, where it is
about something that has a name, a ` + "`subject`" + `. With ` + "`--quiet`" + ` no warning is printed.

Waive a warning to silence it:

    spec:
      policy:
        waivers:
        - rule: namespace-expected
          object: monitoring/prometheus
          reason: the platform team makes the namespace
          expires: 2027-01-01

A waived warning is not printed (` + "`--verbose`" + ` counts them), and is ` + "`waived: true`" + ` in
` + "`-o json`" + `. ` + "`object`" + ` is the subject, or the file that the warning points at; without it the
waiver selects all warnings of that code. [policy.md](policy.md#waive-a-risk) has the rest.

This page is made from the sources by ` + "`make golden`" + `.
`)
	titles := map[diag.Step]string{
		diag.Resolving: "Declarations, catalogs and lock", diag.Rendering: "Bundles and the rendered tree", diag.Otherwise: "Whatever else commands do",
	}
	step := diag.Step("none")
	seen := map[string]bool{}
	for _, c := range diag.Codes() {
		if seen[c.ID] {
			t.Errorf("%s stands in the table twice", c.ID)
		}
		seen[c.ID] = true
		if c.Step != step {
			step = c.Step
			fmt.Fprintf(&b, "\n## %s\n\n| Code | What it says |\n| --- | --- |\n", titles[step])
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.ID, c.What)
	}
	golden(t, docs+"warnings.md", b.Bytes())
}

func (s *schema) rows(b *bytes.Buffer, prefix string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		path := strings.TrimPrefix(prefix+"."+name, ".")
		if p.Description == "" && p.plain() {
			continue // as another API has it
		}
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
		if p.Description == "" {
			meaning = "" // its fields say it
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", path, value, strings.ReplaceAll(meaning, "|", `\|`))
		p.rows(b, path)
		if p.Items != nil {
			p.Items.rows(b, path+"[]")
		}
	}
}

// plain reports whether nothing at or below s says what it is for.
func (s *schema) plain() bool {
	if s.Items != nil && !s.Items.plain() {
		return false
	}
	for _, p := range s.Properties {
		if p.Description != "" || !p.plain() {
			return false
		}
	}
	return true
}
