package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestRenovateRecipe holds the recipe against the locks of three environments and
// their feeds, as far as that goes without Renovate: the expression finds every
// pin, each has its file in the feed of its environment, and the commands, run
// after every version was written over, move all of them there and nothing else.
func TestRenovateRecipe(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(ciFiles, "renovate.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recipe struct {
		CustomManagers []struct{ MatchStrings []string }
		PackageRules   []struct {
			OverridePackageName string
			PostUpgradeTasks    struct{ Commands, FileFilters []string }
		}
	}
	if err := json.Unmarshal(data, &recipe); err != nil {
		t.Fatal(err)
	}
	if name := recipe.PackageRules[0].OverridePackageName; name != "{{{replace '[^/]*$' '' packageFile}}}operators/{{{depName}}}" {
		t.Errorf("the recipe looks for %s, and this test for the directory of the lock, operators, namespace and package", name)
	}
	expression := regexp.MustCompile(recipe.CustomManagers[0].MatchStrings[0])
	_, work := fleet(t)
	mustRun(t, work, "feed", "--all", "--offline", "--to", "feed")
	want := map[string]string{}
	moves := 0
	for dir := range environments() {
		pins := expression.FindAllStringSubmatch(read(t, work, dir+"/quayside.lock"), -1)
		if len(pins) != 5 {
			t.Fatalf("the expression finds %d pins, want 5", len(pins))
		}
		for _, pin := range pins {
			name := pin[1] + "/" + pin[2]
			var f struct{ Releases []struct{ Version string } }
			if err := json.Unmarshal([]byte(read(t, work, "feed/"+dir+"/operators/"+name+".json")), &f); err != nil {
				t.Fatal(err)
			}
			if f.Releases[0].Version != pin[3] {
				t.Errorf("%s: the feed begins with %s, the lock pins %s", name, f.Releases[0].Version, pin[3])
			}
			last := f.Releases[len(f.Releases)-1].Version
			want[dir+" "+name] = last
			if last != pin[3] {
				moves++
				writeOver(t, filepath.Join(work, dir), name, last)
			}
		}
	}
	if moves != 6 {
		t.Errorf("the feeds offer %d upgrades, want 6", moves)
	}
	for _, command := range recipe.PackageRules[0].PostUpgradeTasks.Commands {
		args := strings.Fields(command)
		if args[0] != "quayside" || strings.Contains(command, "{{") {
			t.Errorf("%q is no command of quayside's as it stands: what strangers name would go through a shell", command)
		}
		mustRun(t, work, append(args[1:], "--offline")...)
	}
	got := map[string]string{}
	for dir := range environments() {
		for name, version := range pinned(t, filepath.Join(work, dir)) {
			got[dir+" "+name] = version
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pins (-want +got):\n%s", d)
	}
	mustRun(t, work, "verify", "--offline", "--all")
}
