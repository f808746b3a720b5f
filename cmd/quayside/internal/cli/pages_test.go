package cli

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/settings"
)

// page is a Markdown page of the repository.
type page struct {
	name  string   // path in the repository: docs/adopt.md
	lines []string // without line ends
}

const top = "../../../../"

// pages returns the pages of the repository by name, without rendered trees, fixtures and build
// outputs.
func pages(t *testing.T) map[string]page {
	t.Helper()
	all := map[string]page{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != top && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"rendered", "testdata", "dist", "bin"}, d.Name())):
			return fs.SkipDir
		case filepath.Ext(name) != ".md":
			return nil
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(top, name)
		rel = filepath.ToSlash(rel)
		all[rel] = page{rel, strings.Split(string(data), "\n")}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 25 {
		t.Fatalf("%d pages", len(all))
	}
	return all
}

// block is a code block, fenced or indented by four columns.
type block struct {
	line   int    // number of the first line, from 1
	lang   string // language of a fenced block
	lines  []string
	reason string // reason in a comment "not run" before the block
}

var notRun = regexp.MustCompile(`^<!-- not run: (\S.*\S) -->$`)

// blocks returns the code blocks of a page, and the text without them.
func (p page) blocks() (code []block, prose string) {
	var text strings.Builder
	reason, fenced, indented := "", false, false
	for i, line := range p.lines {
		rest, deep := strings.CutPrefix(line, "    ")
		switch fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```"); {
		case fenced && isFence:
			fenced = false
		case fenced:
			last := &code[len(code)-1]
			last.lines = append(last.lines, line)
		case isFence:
			code, reason, fenced = append(code, block{line: i + 2, lang: fence, reason: reason}), "", true
		case deep && strings.TrimSpace(rest) != "":
			if !indented {
				code, reason, indented = append(code, block{line: i + 1, reason: reason}), "", true
			}
			last := &code[len(code)-1]
			last.lines = append(last.lines, rest)
		default:
			text.WriteString(line + "\n")
			indented = false
			if m := notRun.FindStringSubmatch(line); m != nil {
				reason = m[1]
			} else if line != "" {
				reason = ""
			}
		}
	}
	return code, text.String()
}

var (
	codeSpan = regexp.MustCompile("`[^`]+`")
	link     = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
)

// links returns the targets of the links of a page.
func (p page) links() []string {
	_, prose := p.blocks()
	var to []string
	for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(prose, ""), -1) {
		to = append(to, m[1])
	}
	return to
}

// anchors returns the number of headings of a page for each anchor.
func (p page) anchors() map[string]int {
	_, prose := p.blocks()
	all := map[string]int{}
	for line := range strings.Lines(prose) {
		if hashes, title, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.Trim(hashes, "#") == "" {
			all[anchor(title)]++
		}
	}
	return all
}

// anchor returns the anchor of a heading in the format of forges.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// TestPageLinks checks that the links of every page to files and headings are valid.
func TestPageLinks(t *testing.T) {
	all := pages(t)
	followed := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, to := range all[name].links() {
			if strings.Contains(to, ":") {
				continue
			}
			followed++
			file, heading, named := strings.Cut(to, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if strings.HasPrefix(target, "../") {
				t.Errorf("%s: %s leads outside of the repository", name, to)
			} else if _, err := os.Stat(filepath.Join(top, target)); err != nil {
				t.Errorf("%s: %s: missing %s", name, to, target)
			} else if n := all[target].anchors()[heading]; named && n != 1 {
				t.Errorf("%s: %s: %s has %d headings that are called so", name, to, target, n)
			} else if strings.Contains(heading, "--") || strings.Trim(heading, "-") != heading {
				t.Errorf("%s: %s: the site would spell the heading otherwise than forges do", name, to)
			}
		}
	}
	if followed < 100 {
		t.Errorf("%d links", followed)
	}
}

var indexed = regexp.MustCompile(`^- \[[^\]]+\]\(([a-z0-9/-]+\.md)\): \S`)

// TestIndex checks that docs/README.md has a line for every page of docs and docs/contributing.
func TestIndex(t *testing.T) {
	all := pages(t)
	listed := map[string]int{}
	for _, line := range all["docs/README.md"].lines {
		if m := indexed.FindStringSubmatch(line); m != nil {
			listed["docs/"+m[1]]++
		}
	}
	for name := range all {
		dir := path.Dir(name)
		if (dir == "docs" || dir == "docs/contributing") && name != "docs/README.md" && listed[name] != 1 {
			t.Errorf("%[1]s is listed %[2]d times: docs/README.md wants one line of the form\n- [Title](%[3]s): content of the page", name, listed[name], strings.TrimPrefix(name, "docs/"))
		}
	}
}

// knownPrograms returns the programs that a command may start with.
func knownPrograms() []string {
	return strings.Fields("quayside git kubectl make flux argocd cosign podman docker oc helm kustomize curl go npm sh sed rm cp mv mkdir cat ls export unzip tar echo")
}

// command is a command line on a page.
type command struct {
	line int
	text string // without prompt, comment, redirections and pipes
}

var (
	comment   = regexp.MustCompile(`\s+#\s.*$`)
	redirect  = regexp.MustCompile(`\s+(>|\|).*$`)
	spaces    = regexp.MustCompile(`\s+`)
	variables = regexp.MustCompile(`^([A-Z_]+=\S+ )+`)
)

// commands returns the commands in a block. Every line of a block with language sh is a command.
func (b block) commands() []command {
	var all []command
	for i := 0; i < len(b.lines); i++ {
		c := command{line: b.line + i}
		line := strings.TrimPrefix(b.lines[i], "$ ")
		for strings.HasSuffix(line, `\`) && i+1 < len(b.lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + b.lines[i]
		}
		line = redirect.ReplaceAllString(comment.ReplaceAllString(line, ""), "")
		line = variables.ReplaceAllString(line, "")
		first, _, _ := strings.Cut(line, " ")
		isCommand := slices.Contains(knownPrograms(), first) || strings.HasSuffix(first, ".sh") || b.lang == "sh" && line != "" && !strings.HasPrefix(line, "#")
		if c.text = strings.TrimSpace(spaces.ReplaceAllString(line, " ")); isCommand && b.lang != "yaml" {
			all = append(all, c)
		}
	}
	return all
}

// shownOutput returns the lines of output in a block with language console.
func (b block) shownOutput() []string {
	var out []string
	for _, line := range b.lines {
		if b.lang == "console" && !strings.HasPrefix(line, "$ ") {
			out = append(out, line)
		}
	}
	return out
}

// TestPageOutput checks that each command output on a page, in a block with language console, also
// occurs in a script that compares it with the real output.
func TestPageOutput(t *testing.T) {
	files, err := filepath.Glob("testdata/script/pages_*.txtar")
	of, errParts := filepath.Glob("../*/*/testdata/script/pages_*.txtar") // of parts
	if files = append(files, of...); err != nil || errParts != nil {
		t.Fatal(err, errParts)
	}
	var compared strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		compared.Write(data)
	}
	seen := 0
	for name, p := range pages(t) {
		if name == "README.md" {
			continue // TestReadmeExcerpt
		}
		blocks, _ := p.blocks()
		for _, b := range blocks {
			if want := b.shownOutput(); want != nil {
				seen++
				if !strings.Contains(compared.String(), " --\n"+strings.Join(want, "\n")+"\n") {
					t.Errorf("%s:%d: no script compares with this:\n%s", name, b.line, strings.Join(want, "\n"))
				}
			}
		}
	}
	if seen < 4 {
		t.Errorf("%d blocks", seen)
	}
}

// skippedPages returns the pages that TestPageCommands skips, each with the reason, such as the name of the
// test that runs the page's commands.
func skippedPages() map[string]string {
	return map[string]string{
		"docs/tutorial.md":                  "TestTutorial",
		"docs/commands.md":                  "TestHelpExamples",
		"docs/contributing/developing.md":   "made of places in the sources",
		"docs/contributing/architecture.md": "data flow, not commands",
		"docs/from-a-repository.md":         "TestExampleFromARepository",
		"examples/fleet/README.md":          "TestGoldenExampleFleet",
		"examples/loop/README.md":           "TestLoop",
	}
}

// otherNames returns a replacer for each page whose names differ from those in scripts.
func otherNames() map[string]*strings.Replacer {
	adoption := []string{" --context prod", "", "olm.json", "cluster.yaml", "olm/community=dir:catalogs/community", "quickstart=oci:catalog"}
	return map[string]*strings.Replacer{
		"docs/adopt.md":      strings.NewReplacer(adoption...),
		"docs/authors.md":    strings.NewReplacer("$REGISTRY/ops/catalog@sha256:…", "$(cat ../first)", "/ops/", "/published/"),
		"docs/registries.md": strings.NewReplacer("--from /media/stick/images $REGISTRY/mirror", "--from carried $REGISTRY/to4", "/media/stick/images", "carried", "$REGISTRY/mirror", "$REGISTRY/to", "ops/catalog:v1", "operatorhubio/catalog:latest", "--mirror-set certs.d", "--mirror-set etc/certs.d"),
		"docs/gitops.md":     strings.NewReplacer("propose --all --tree --pull-request", "-C envs propose --all --tree", "https://git.example.com/fleet.git", "../repo"),
		"README.md":          strings.NewReplacer("grafana-operator cert-manager", "memcached-operator vault"),
	}
}

// TestPageCommands checks that every command on a page is also a line of a script of
// testdata/script, which TestScripts runs. Names, and flags that only tests need, may differ. A
// block of commands that cannot run in a test has a comment before it:
//
//	<!-- not run: reason -->
//
// For make commands except the demo, the Makefile must have the target.
func TestPageCommands(t *testing.T) {
	ran, targets := scriptCommands(t), makeTargets(t)
	seen, marked, targeted := 0, 0, 0
	places := strings.NewReplacer("make demo", "bash demo/demo.sh $(command -v quayside)", "registry.example.com", "$REGISTRY", "registry.corp", "$REGISTRY", "'", "")
	for name, p := range pages(t) {
		if _, ok := skippedPages()[name]; ok {
			continue
		}
		blocks, _ := p.blocks()
		for _, b := range blocks {
			shown := b.commands()
			if b.reason != "" && len(shown) == 0 {
				t.Errorf("%s:%d: a block without commands is marked as not run", name, b.line)
			}
			for _, c := range shown {
				seen++
				text := places.Replace(c.text)
				if other := otherNames()[name]; other != nil {
					text = other.Replace(text)
				}
				target, made := strings.CutPrefix(text, "make ")
				switch {
				case made && !slices.Contains(targets, strings.Fields(target)[0]):
					t.Errorf("%s:%d: make has no such target: %s", name, c.line, c.text)
				case made:
					targeted++
				case b.reason != "":
					marked++
				case !ran[text]:
					t.Errorf("%s:%d: no script has the line\n%s", name, c.line, text)
				}
			}
		}
	}
	t.Logf("%d commands, of which %d are marked as not run, and %d are looked up in the Makefile", seen, marked, targeted)
	if seen < 100 || marked > seen/4 {
		t.Errorf("%d commands, of which %d are marked as not run", seen, marked)
	}
}

var (
	halted  = regexp.MustCompile(`(?m)^(\[[^\]]*\] *)?(stop|skip)\b`)
	failing = regexp.MustCompile(`^(code 2|!) `)
	prefix  = regexp.MustCompile(`^((code \d+|exec|alone) )+`)
	shell   = regexp.MustCompile(`^sh -c '(.*)'$`)
	beside  = regexp.MustCompile(` (--offline|--yes|--olm-sync \S+|--watch \S+|--mirrors \S+|-C \.)( |$)`)
)

// scriptCommands returns the set of commands in the scripts.
func scriptCommands(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	of, errParts := filepath.Glob("../*/*/testdata/script/*.txtar") // of parts
	if files = append(files, of...); err != nil || errParts != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	ran := map[string]bool{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(data), "\n-- ")
		if halt := halted.FindStringIndex(script); halt != nil {
			script = script[:halt[0]] // later commands may not run
		}
		for line := range strings.Lines(script) {
			if failing.MatchString(line) {
				continue
			}
			line = prefix.ReplaceAllString(strings.TrimSpace(line), "")
			line = redirect.ReplaceAllString(shell.ReplaceAllString(line, "$1"), "")
			line = strings.ReplaceAll(line, "'", "")
			ran[line] = true
			for beside.MatchString(line) {
				line = beside.ReplaceAllString(line, "$2")
			}
			ran[line] = true
		}
	}
	return ran
}

func makeTargets(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(top + "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(string(data), -1) {
		names = append(names, m[1])
	}
	return names
}

// TestPageSettings parses the examples of quayside.yaml and of quayside's Subscriptions on pages.
func TestPageSettings(t *testing.T) {
	seen := 0
	for name, p := range pages(t) {
		blocks, _ := p.blocks()
		for _, b := range blocks {
			text := strings.Join(b.lines, "\n") + "\n"
			heading, _, whole := strings.Cut("\n"+text, "\nspec:\n")
			switch {
			case strings.Contains(heading, "\napiVersion: quayside.dev/v1alpha1\nkind: Subscription"):
				seen++
				set, err := declare.LoadFS(fstest.MapFS{"shown.yaml": {Data: []byte(text)}}, declare.LoadOptions{})
				if err != nil || len(set.Subscriptions) != 1 {
					t.Errorf("%s:%d: %+v, %v", name, b.line, set, err)
				}
				continue
			case strings.Contains(heading, "\nkind: Workspace"):
			case whole && (heading == "" || heading == "\n# quayside.yaml"):
				text = "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n" + text
			default:
				continue
			}
			seen++
			text = strings.ReplaceAll(text, "sha256:…", "sha256:"+strings.Repeat("0", 64))
			if _, err := settings.Parse(name, []byte(text)); err != nil {
				t.Errorf("%s:%d: %v", name, b.line, err)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d blocks", seen)
	}
}

// TestNamedCommands checks that commands and flags in the text of pages exist.
func TestNamedCommands(t *testing.T) {
	root := newTestRoot()
	seen := 0
	for name, p := range pages(t) {
		_, prose := p.blocks()
		for _, span := range codeSpan.FindAllString(prose, -1) {
			words := strings.Fields(strings.Trim(span, "`"))
			if words[0] != "quayside" || len(words) < 2 || strings.HasPrefix(words[1], "<") || path.Dir(name) == "test/cluster" || name == "docs/contributing/developing.md" {
				continue
			}
			seen++
			cmd, rest, err := root.Find(words[1:])
			if err != nil || cmd == root && !strings.HasPrefix(words[1], "-") {
				t.Errorf("%s: %s: unknown command", name, span)
				continue
			}
			for _, word := range rest {
				flag, _, _ := strings.Cut(strings.ReplaceAll(word, "[", "="), "=")
				var known *pflag.Flag
				switch {
				case strings.HasPrefix(flag, "--"):
					known = cmd.Flag(flag[2:])
				case strings.HasPrefix(flag, "-") && len(flag) > 1:
					if known = cmd.Flags().ShorthandLookup(flag[1:2]); known == nil {
						known = cmd.InheritedFlags().ShorthandLookup(flag[1:2])
					}
				default:
					continue
				}
				if known == nil && flag != "--help" {
					t.Errorf("%s: %s: %s has no flag %s", name, span, cmd.CommandPath(), flag)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d commands", seen)
	}
}

// TestTroubleshooting checks that a script produces every message of docs/troubleshooting.md. The
// script command told compares a message with the output of quayside.
func TestTroubleshooting(t *testing.T) {
	script, err := os.ReadFile("testdata/script/pages_troubleshooting.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, line := range pages(t)["docs/troubleshooting.md"].lines {
		message, ok := strings.CutPrefix(line, "### ")
		if !ok {
			continue
		}
		seen++
		message = strings.Trim(message, "`")
		if !strings.Contains(string(script), "\ntold '"+strings.ReplaceAll(message, "'", "''")+"'\n") {
			t.Errorf("no script expects %q", message)
		}
	}
	if seen < 15 {
		t.Errorf("%d messages", seen)
	}
}
