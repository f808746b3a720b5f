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
	"sigs.k8s.io/yaml"
)

const ciFiles = "../../../../examples/ci"

// TestCIExamples checks that the example files use existing inputs of the action and the component,
// and pin other actions.
func TestCIExamples(t *testing.T) {
	var uses []string
	a := readAction(t)
	for _, name := range []string{"github-pull-request.yaml", "github-upgrade.yaml", "github-tree.yaml"} {
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Steps []struct {
					Uses string
					With map[string]any
				}
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, ciFiles, name)), &workflow); err != nil {
			t.Fatal(err)
		}
		for _, j := range workflow.Jobs {
			for _, step := range j.Steps {
				uses = append(uses, step.Uses)
				if !strings.HasPrefix(step.Uses, "quayside/quayside@") {
					continue
				}
				for input, in := range a.Inputs {
					if _, given := step.With[input]; in.Required && !given {
						t.Errorf("%s: the input %s is missing", name, input)
					}
				}
				for input := range step.With {
					if _, ok := a.Inputs[input]; !ok {
						t.Errorf("%s: there is no input %s", name, input)
					}
				}
			}
		}
		if len(workflow.Permissions) == 0 {
			t.Errorf("%s does not set permissions", name)
		}
	}
	const checkout = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1"
	if want := []string{checkout, "quayside/quayside@v1", checkout, "quayside/quayside@v1", checkout, "quayside/quayside@v1"}; !slices.Equal(uses, want) {
		t.Errorf("used: %q, want %q", uses, want)
	}

	var lab struct {
		Include []struct {
			Component string
			Inputs    map[string]string
		}
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, ciFiles, "gitlab-ci.yml")), &lab); err != nil {
		t.Fatal(err)
	}
	c := readComponent(t)
	for _, in := range lab.Include {
		if _, err := c.with(t, in.Inputs); err != nil {
			t.Error(err)
		}
		for name := range in.Inputs {
			if _, ok := c.inputs[name]; !ok {
				t.Errorf("there is no input %s", name)
			}
		}
	}
	if len(lab.Include) != 1 {
		t.Error("no component is included")
	}
}

// TestCIPage checks that the examples in docs/ci.md are equal to the files in examples/ci.
func TestCIPage(t *testing.T) {
	for name, text := range map[string]string{"github-pull-request.yaml": "security-events: write", "gitlab-ci.yml": "- component:", "pre-commit-config.yaml": "hooks:"} {
		if got := yamlBlock(t, "ci.md", text); !strings.HasSuffix(read(t, ciFiles, name), "\n"+got) {
			t.Errorf("docs/ci.md differs from examples/ci/%s:\n%s", name, got)
		}
	}
}

// TestRenovateRecipe checks the recipe with three environments, without Renovate. The recipe's
// regular expression must match every pin, and every pin must have a file in the feed. After the
// test has edited versions in the locks, the commands must upgrade exactly these pins.
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
	_, work := newFleet(t)
	mustRun(t, work, "outdated", "--all", "--offline", "--feed", "feed")
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
				editVersion(t, filepath.Join(work, dir), name, last)
			}
		}
	}
	if moves != 4 {
		t.Errorf("the feeds offer %d upgrades, want 4", moves)
	}
	for _, command := range recipe.PackageRules[0].PostUpgradeTasks.Commands {
		args := strings.Fields(command)
		if args[0] != "quayside" || strings.Contains(command, "{{") {
			t.Errorf("%q is not a constant quayside command: untrusted names could reach a shell", command)
		}
		mustRun(t, work, append(args[1:], "--offline")...)
	}
	got := map[string]string{}
	for dir := range environments() {
		for name, version := range lockedVersions(t, filepath.Join(work, dir)) {
			got[dir+" "+name] = version
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pins (-want +got):\n%s", d)
	}
	mustRun(t, work, "verify", "--offline", "--all")
}
