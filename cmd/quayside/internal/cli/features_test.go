package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/testing/goldentest"
)

// featureGroup is a table of docs/comparison.md.
type featureGroup struct {
	Title    string
	Features []feature
}

// feature is a row of testdata/features.yaml, where the fields are explained.
type feature struct {
	ID, Feature, State, Note, Page string
	Proof                          []string
}

func readFeatures(t *testing.T) []featureGroup {
	t.Helper()
	data, err := os.ReadFile("testdata/features.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var groups []featureGroup
	if err := yaml.UnmarshalStrict(data, &groups); err != nil {
		t.Fatal(err)
	}
	return groups
}

// TestFeatures checks that each feature has a state, and that its proofs exist.
func TestFeatures(t *testing.T) {
	ids := map[string]bool{}
	for _, g := range readFeatures(t) {
		for _, f := range g.Features {
			if f.ID == "" || f.Feature == "" || ids[f.ID] {
				t.Errorf("%s: feature %q (%s) has no name, or an id that another one has", g.Title, f.ID, f.Feature)
			}
			ids[f.ID] = true
			for _, fault := range f.faults() {
				t.Errorf("%s (%s): %s", f.ID, f.Feature, fault)
			}
		}
	}
}

func (f feature) faults() (faults []string) {
	isBuilt := f.State == "yes" || f.State == "partly"
	switch {
	case !isBuilt && f.State != "no" && f.State != "out of scope":
		faults = append(faults, fmt.Sprintf("unknown state %q", f.State))
	case isBuilt != (len(f.Proof) > 0):
		faults = append(faults, fmt.Sprintf("%d proofs in state %q", len(f.Proof), f.State))
	case f.Note == "":
		faults = append(faults, "no note")
	}
	if strings.Contains(f.Feature+f.Note, "|") {
		faults = append(faults, "a cell of a table cannot contain |")
	}
	for _, proof := range f.Proof {
		if err := findProof(proof); err != nil {
			faults = append(faults, fmt.Sprintf("proof %s: %v", proof, err))
		}
	}
	return faults
}

// findProof returns an error if there is no script or Go test with this name.
func findProof(proof string) error {
	if path.Ext(proof) == ".txtar" {
		name := filepath.Join(top, filepath.FromSlash(proof))
		if !strings.Contains(proof, "/") {
			name = filepath.Join("testdata", "script", proof)
		}
		_, err := os.Stat(name)
		return err
	}
	dir, test, _ := strings.Cut(proof, ".")
	files, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if bytes.Contains(source, []byte("\nfunc "+test+"(t *testing.T) {")) {
			return nil
		}
	}
	return fmt.Errorf("no such test in %d files", len(files))
}

// TestFeatureFaults checks that TestFeatures would find each kind of fault in a row.
func TestFeatureFaults(t *testing.T) {
	good := feature{ID: "1", Feature: "a", State: "yes", Note: "b", Proof: []string{"add.txtar", "resolve.TestScenarios"}}
	for name, c := range map[string]struct {
		edit func(*feature)
		want string
	}{
		"good":               {func(*feature) {}, ""},
		"a script by path":   {func(f *feature) { f.Proof = []string{"cmd/quayside/internal/cli/testdata/script/add.txtar"} }, ""},
		"no state":           {func(f *feature) { f.State = "" }, `unknown state ""`},
		"no proof":           {func(f *feature) { f.State, f.Proof = "partly", nil }, `0 proofs in state "partly"`},
		"proof of no":        {func(f *feature) { f.State = "no" }, `2 proofs in state "no"`},
		"no reason":          {func(f *feature) { f.State, f.Proof, f.Note = "out of scope", nil, "" }, "no note"},
		"a missing script":   {func(f *feature) { f.Proof = []string{"missing.txtar"} }, "no such file"},
		"a missing test":     {func(f *feature) { f.Proof = []string{"resolve.TestScenario"} }, "no such test in"},
		"a missing package":  {func(f *feature) { f.Proof = []string{"missing.TestScenarios"} }, "no such test in 0 files"},
		"a row that breaks":  {func(f *feature) { f.Note = "a | b" }, "cannot contain |"},
		"no name of a proof": {func(f *feature) { f.Proof = []string{"resolve"} }, "no such test in"},
	} {
		f := good
		c.edit(&f)
		if got := strings.Join(f.faults(), "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: faults are %q, want %q", name, got, c.want)
		}
	}
}

var featureSection = regexp.MustCompile(`(?s)(<!-- features: [^>]* -->\n).*(<!-- end of features -->\n)`)

// TestGoldenComparison keeps the tables of features in docs/comparison.md up to date with
// testdata/features.yaml.
func TestGoldenComparison(t *testing.T) {
	pages := pages(t)
	var b strings.Builder
	b.WriteString(`
The features that users ask of an operator manager. Tests prove each feature with "yes" or "partly"; those
that are out of scope are the work of other tools.
`)
	for _, g := range readFeatures(t) {
		fmt.Fprintf(&b, "\n### %s\n\n| Feature | quayside | How, or the limit | More |\n| --- | --- | --- | --- |\n", g.Title)
		for _, f := range g.Features {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Feature, f.State, f.Note, pageLink(pages, f.Page))
		}
	}
	b.WriteString("\n")
	name := docs + "comparison.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(featureSection.FindAll(page, -1)) != 1 {
		t.Fatalf("%s has no section of features", name)
	}
	parts := featureSection.FindSubmatchIndex(page)
	goldentest.Compare(t, name, slices.Concat(page[:parts[3]], []byte(b.String()), page[parts[4]:]))
}

// pageLink returns a link to a page of docs, with the title of the page.
func pageLink(pages map[string]page, target string) string {
	file, _, _ := strings.Cut(target, "#")
	p, ok := pages["docs/"+file]
	if !ok {
		return cmp.Or(target, "–")
	}
	return fmt.Sprintf("[%s](%s)", strings.TrimPrefix(p.lines[0], "# "), target)
}
