package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// argumentFiles returns a workspace with valid files. Version 2.0.0 of app, and all versions of tool,
// require a package that no catalog has.
func argumentFiles() map[string]string {
	bundle := func(pkg, version, more string) string {
		return fmt.Sprintf("---\nschema: olm.bundle\npackage: %[1]s\nname: %[1]s.v%[2]s\nimage: registry.example.com/%[1]s@sha256:%064[3]d\nproperties:\n"+
			"- {type: olm.package, value: {packageName: %[1]s, version: %[2]s}}\n%[4]s", pkg, version, len(pkg)+int(version[0]), more)
	}
	lacks := "- {type: olm.package.required, value: {packageName: nowhere, versionRange: '>=1.0.0'}}\n"
	channel := "---\nschema: olm.package\nname: %[1]s\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: %[1]s\nname: stable\nentries:\n"
	declared := "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: app, namespace: %s}\nspec: {package: app, channel: stable}\n"
	return map[string]string{
		"quayside.yaml": "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  catalogs:\n  - {name: test, source: 'dir:catalog'}\n",
		"catalog/all.yaml": fmt.Sprintf(channel, "app") + "- {name: app.v2.0.0, replaces: app.v1.0.0}\n- {name: app.v1.0.0, replaces: app.v0.9.0}\n- {name: app.v0.9.0}\n" +
			bundle("app", "1.0.0", "") + bundle("app", "2.0.0", lacks) + bundle("app", "0.9.0", "") +
			fmt.Sprintf(channel, "tool") + "- {name: tool.v1.0.0}\n" + bundle("tool", "1.0.0", lacks),
		"subscriptions/app.yaml":   fmt.Sprintf(declared, "ops"),
		"subscriptions/other.yaml": fmt.Sprintf(declared, "other"),
	}
}

// TestArguments checks that command-line errors name the invalid argument, and no position in a
// valid file.
func TestArguments(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	for name, text := range argumentFiles() {
		file := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(file), 0o755))
		check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	mustRunIn(t, dir, cache, "resolve", "--upgrade=ops/app@1.0.0", "--upgrade=other/app@1.0.0")
	before, err := os.ReadFile(filepath.Join(dir, "quayside.lock"))
	check(t, err)

	// The commands name an operator. An error may contain the position of a valid declaration only if the
	// declaration is part of a conflict.
	versions := []string{"resolve --upgrade=%s", "resolve --upgrade=%s --keep-going", "upgrade --yes %s", "diff --upgrade=%s"}
	whichever := append(slices.Clone(versions), "resolve --reinstall=%s", "why-not %s")
	asked := `subscriptions/app\.yaml:4:`
	for _, c := range []struct {
		what, operator string
		commands       []string
		code           int
		said, places   string
	}{
		{"a version that is missing", "ops/app@9.9.9", versions, 3, `package app has no version "9\.9\.9"`, ""},
		{"likewise", "ops/app@9.9.9", []string{"why-not %s"}, 2, `package app has no version "9\.9\.9"`, ""},
		{"a version that no edge leads to", "ops/app@0.9.0", versions, 3, `no upgrade edge from app\.v1\.0\.0 to version 0\.9\.0`, ""},
		{"a version that cannot run", "ops/app@2.0.0", versions, 3, `requires package nowhere`, asked},
		{"a namespace without it", "none/app", versions, 2, `none/app is not declared or required`, ""},
		{"likewise", "none/app", []string{"resolve --reinstall=%s"}, 2, `none/app is not declared or required`, ""},
		{"no such pin", "none/app", []string{"resolve --unpin=%s"}, 2, `none/app is not pinned`, ""},
		{"several", "app", append(whichever, "resolve --unpin=%s"), 2, `is in several namespaces: choose one of ops/app, other/app`, ""},
		{"no such package", "nowhere", []string{"why-not %s", "add %s"}, 2, `no package "nowhere"`, ""},
		{"no such version", "tool@9.9.9", []string{"add %s", "add --check %s"}, 2, `package "tool" has no version 9\.9\.9`, ""},
		{"cannot run", "tool@1.0.0", []string{"add -n ops %s", "add %s", "add --check %s"}, 3, `requires package nowhere`, ""},
	} {
		for _, command := range c.commands {
			t.Run(c.what+": "+fmt.Sprintf(command, c.operator), func(t *testing.T) {
				argument := c.operator // with its flag, as in errors
				for word := range strings.FieldsSeq(command) {
					if strings.HasSuffix(word, "=%s") {
						argument = fmt.Sprintf(word, c.operator)
					}
				}
				got := quaysideIn(t, dir, cache, strings.Fields(fmt.Sprintf(command, c.operator))...)
				if got.code != c.code {
					t.Errorf("exit code %d, want %d", got.code, c.code)
				}
				if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(argument) + `: `).MatchString(got.stderr) {
					t.Errorf("no line begins with %s", argument)
				}
				if !regexp.MustCompile(c.said).MatchString(got.stderr) {
					t.Errorf("the output does not contain %q", c.said)
				}
				for line := range strings.Lines(got.stderr) {
					if at := regexp.MustCompile(`[a-z]+/[a-z]+\.yaml:[0-9]+:`); at.MatchString(line) && (c.places == "" || !regexp.MustCompile(c.places).MatchString(line)) {
						t.Errorf("the error names a valid file: %s", line)
					}
				}
				if t.Failed() {
					t.Log(got.stderr)
				}
				check(t, os.WriteFile(filepath.Join(dir, "quayside.lock"), before, 0o600)) // --keep-going writes
			})
		}
	}
}
