package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/parts"
)

func testPages(t *testing.T) map[string][]byte {
	t.Helper()
	pages, err := manualPages("1.2.3", time.Date(2026, 2, 28, 23, 30, 0, 0, time.FixedZone("", -3600)))
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// TestManualPages tests that each command has one page with all texts of its help.
func TestManualPages(t *testing.T) {
	pages := testPages(t)
	if !reflect.DeepEqual(pages, testPages(t)) {
		t.Error("a second build gives other pages")
	}
	for _, cmd := range listCommands(cli.Commands(parts.All())) {
		name := "man1/" + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, ok := pages[name]
		if delete(pages, name); !ok {
			t.Errorf("%s: has no page", cmd.CommandPath())
			continue
		}
		if want := `"Mar 2026" "quayside 1.2.3" "quayside manual"`; !strings.Contains(string(page), want) {
			t.Errorf("%s: the header lacks %s", name, want)
		}
		text := plain(page)
		checkContains := func(what string) {
			t.Helper()
			if what = words(what); !strings.Contains(text, what) {
				t.Errorf("%s: lacks %q", name, what)
			}
		}
		checkContains(strings.ReplaceAll(cmd.CommandPath(), " ", "-") + " - " + cmd.Short)
		cmd.InitDefaultHelpFlag() // otherwise the usage line of a group lacks [flags]
		checkContains("SYNOPSIS " + cmd.UseLine() + " DESCRIPTION")
		checkContains("DESCRIPTION " + cmd.Long)
		checkContains(cmd.Example)
		for _, flags := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.InheritedFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				value, usage := pflag.UnquoteUsage(f)
				if f.Hidden {
					return
				}
				checkContains("--" + f.Name)
				checkContains(usage)
				if strings.Trim(value, "abcdefghijklmnopqrstuvwxyz") != "" { // not a plain type name
					checkContains(value)
				}
			})
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				checkContains(strings.ReplaceAll(sub.CommandPath(), " ", "-") + "(1)")
			}
		}
	}
	for name := range pages {
		t.Errorf("%s: is the page of no command", name)
	}
}

// plain returns the text of a page without roff markup.
func plain(page []byte) string {
	text := regexp.MustCompile(`(?m)^\.(SH|TH|nh|PP|EX|EE|RS|RE|TP|br)\b ?`).ReplaceAllString(string(page), "")
	text = regexp.MustCompile(`\\f[BIPR]`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`\\\[u[0-9A-F]+\]`).ReplaceAllStringFunc(text, func(s string) string {
		r, err := strconv.ParseInt(s[3:len(s)-1], 16, 32)
		if err != nil {
			panic(err)
		}
		return string(rune(r))
	})
	return words(strings.NewReplacer(`\&`, "", `\\`, `\`, `\-`, "-", `\[la]`, "", `\[ra]`, "").Replace(text))
}

// words returns text with single spaces between the words.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestRoff tests that groff reports no warning, and mandoc no error, for the pages.
func TestRoff(t *testing.T) {
	dir := t.TempDir()
	pages := testPages(t)
	var files []string
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, pages[name], 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	// -Werror excludes mandoc's messages about style, which go-md2man causes.
	for _, reader := range [][]string{{"groff", "-man", "-Tutf8", "-ww", "-z"}, {"mandoc", "-Tlint", "-Werror"}} {
		t.Run(reader[0], func(t *testing.T) {
			if _, err := exec.LookPath(reader[0]); err != nil {
				t.Skipf("%s is not installed", reader[0])
			}
			for _, file := range files {
				if out, err := exec.Command(reader[0], append(reader[1:], file)...).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
					t.Errorf("%s: %v\n%s", filepath.Base(file), err, out)
				}
			}
		})
	}
}
