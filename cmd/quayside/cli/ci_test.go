package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"
)

const ciFiles = "../../../examples/ci"

// steps writes the shell commands of a CI file into a script: `steps FILE
// SCRIPT`. What installs quayside is left out.
func steps(ts *testscript.TestScript, _ bool, args []string) {
	data, err := os.ReadFile(filepath.Join(ciFiles, args[0]))
	ts.Check(err)
	var file any
	ts.Check(yaml.UnmarshalStrict(data, &file))
	var out []string
	commands(file, &out)
	out = slices.DeleteFunc(out, func(s string) bool { return strings.HasPrefix(s, "go install ") })
	if len(out) == 0 {
		ts.Fatalf("%s has no commands", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte("set -e\n"+strings.Join(out, "\n")), 0o666))
}

// commands collects what stands below run (GitHub) and script (GitLab), in
// order.
func commands(v any, out *[]string) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			commands(e, out)
		}
	case map[string]any:
		if run, ok := x["run"].(string); ok {
			*out = append(*out, run)
		}
		if script, ok := x["script"].([]any); ok {
			for _, line := range script {
				*out = append(*out, line.(string))
			}
		}
		for _, e := range x {
			commands(e, out)
		}
	}
}

// TestRenovateRecipe holds the recipe against a lock and a feed, as far as that
// goes without Renovate: the expression finds every pin, each has its file in
// the feed, and the commands do what they should.
func TestRenovateRecipe(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(ciFiles, "renovate.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recipe struct {
		CustomDatasources map[string]struct{ DefaultRegistryURLTemplate string }
		CustomManagers    []struct{ MatchStrings []string }
		PackageRules      []struct {
			PostUpgradeTasks struct{ Commands []string }
		}
	}
	if err := json.Unmarshal(data, &recipe); err != nil {
		t.Fatal(err)
	}
	dir := quickstart(t)
	mustRun(t, dir, "feed", "--offline")
	expression := regexp.MustCompile(recipe.CustomManagers[0].MatchStrings[0])
	pins := expression.FindAllStringSubmatch(read(t, dir, "quayside.lock"), -1)
	if len(pins) != 5 {
		t.Fatalf("the expression finds %d pins, want 5", len(pins))
	}
	_, pattern, _ := strings.Cut(recipe.CustomDatasources["quayside"].DefaultRegistryURLTemplate, "example.com/")
	moved := 0
	for _, pin := range pins {
		name := pin[1] + "/" + pin[2]
		var f struct{ Releases []struct{ Version string } }
		if err := json.Unmarshal([]byte(read(t, dir, "feed/"+strings.ReplaceAll(pattern, "{{packageName}}", name))), &f); err != nil {
			t.Fatal(err)
		}
		if f.Releases[0].Version != pin[3] {
			t.Errorf("%s: the feed begins with %s, the lock pins %s", name, f.Releases[0].Version, pin[3])
		}
		if len(f.Releases) < 2 {
			continue
		}
		moved++
		for _, command := range recipe.PackageRules[0].PostUpgradeTasks.Commands {
			args := strings.Fields(strings.NewReplacer("{{{depName}}}", name, "{{{newVersion}}}", f.Releases[1].Version).Replace(command))
			if args[0] == "quayside" {
				mustRun(t, dir, append(args[1:], "--offline")...)
			}
		}
		after := expression.FindAllStringSubmatch(read(t, dir, "quayside.lock"), -1)
		if !slices.ContainsFunc(after, func(p []string) bool { return p[1]+"/"+p[2] == name && p[3] == f.Releases[1].Version }) {
			t.Errorf("%s did not move to %s", name, f.Releases[1].Version)
		}
	}
	if moved == 0 {
		t.Error("the feed offers no upgrade")
	}
	mustRun(t, dir, "verify", "--offline")
}
