package diff

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/lockfile"
)

// image returns an image reference with a digest of one repeated letter.
func image(letter string) string { return "quay.io/demo/app@sha256:" + strings.Repeat(letter, 64) }

// scans returns scan results. Each text is the letter of an image and its vulnerabilities, such as
// "a CVE-1/zlib/HIGH CVE-2/zlib/LOW".
func scans(t testing.TB, texts ...string) *scan.Results {
	t.Helper()
	files := fstest.MapFS{}
	for i, text := range texts {
		words := strings.Fields(text)
		var found []string
		for _, word := range words[1:] {
			parts := strings.Split(word, "/")
			found = append(found, fmt.Sprintf(`{"VulnerabilityID": %q, "PkgName": %q, "InstalledVersion": "1.0", "FixedVersion": "1.1", "Severity": %q, "Title": "a *title*"}`, parts[0], parts[1], parts[2]))
		}
		files[fmt.Sprintf("%d.json", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, `{"SchemaVersion": 2, "ArtifactName": %q, "Results": [{"Vulnerabilities": [%s]}]}`, image(words[0]), strings.Join(found, ","))}
	}
	out, err := scan.LoadFS(files)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// stateRunning returns the state with an operator that runs the given images.
func stateRunning(t testing.TB, version string, images ...string) State {
	t.Helper()
	var containers []string
	for i, name := range images {
		containers = append(containers, fmt.Sprintf("{name: c%d, image: %q}", i, name))
	}
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: demo, namespace: ops}\nspec:\n  template:\n    spec:\n      containers: [" + strings.Join(containers, ", ") + "]"
	itself := image(map[string]string{"1.0.0": "e", "1.1.0": "f"}[version])
	return State{
		Name: "lock", Objects: parsed(t, "ops/demo", "rendered/demo.yaml", text),
		Pins: []lockfile.Pin{{Namespace: "ops", Package: "demo", Version: version, Bundle: "demo.v" + version, Replaces: "demo.v1.0.0", Image: itself, RelatedImages: []catalog.RelatedImage{{Image: itself}}}},
	}
}

// scannedLines returns the findings about vulnerabilities, see lines.
func scannedLines(r *Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		if f.family() == "vulnerabilities" {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s: %s", f.Severity, f.Rule, f.subject(), f.Message)))
		}
	}
	return out
}

func TestScans(t *testing.T) {
	const at = "Deployment ops/demo "
	cases := []struct {
		name          string
		before, after []string // letters of the images
		scans         []string
		want          []string
	}{
		{"the same images", []string{"a"}, []string{"a"}, []string{"b CVE-1/zlib/HIGH"}, []string{}},
		{
			"added, removed and unchanged",
			[]string{"a"},
			[]string{"b"},
			[]string{"a CVE-1/zlib/HIGH CVE-2/zlib/LOW CVE-9/x/CRITICAL", "b CVE-1/zlib/HIGH CVE-3/zlib/CRITICAL"},
			[]string{
				"critical vulnerabilities.added " + at + "CVE-3: zlib 1.0 in quay.io/demo/app, fixed in 1.1: a *title*",
				"info vulnerabilities.gone : 2 vulnerabilities no longer found (1 critical, 1 low): CVE-9, CVE-2",
				"info vulnerabilities.stayed : 1 vulnerability not fixed by the upgrade (1 high): CVE-1",
			},
		},
		{
			"in two packages and two images", nil,
			[]string{"a", "b"},
			[]string{"a CVE-1/zlib/LOW CVE-1/libz/LOW", "b CVE-1/zlib/HIGH"},
			[]string{"high vulnerabilities.added " + at + "CVE-1: libz 1.0, zlib 1.0 in quay.io/demo/app, fixed in 1.1: a *title*"},
		},
		{
			"the most severe first", nil,
			[]string{"a", "b"},
			[]string{"a CVE-1/zlib/HIGH", "b CVE-1/zlib/LOW"},
			[]string{"high vulnerabilities.added " + at + "CVE-1: zlib 1.0 in quay.io/demo/app, fixed in 1.1: a *title*"},
		},
		{"unrated", nil, []string{"a"}, []string{"a CVE-1/zlib/UNKNOWN"}, []string{"medium vulnerabilities.added " + at + "CVE-1: zlib 1.0 in quay.io/demo/app, fixed in 1.1: a *title*"}},
		{
			"the new image was not scanned",
			[]string{"a"},
			[]string{"b"},
			[]string{"a CVE-1/zlib/HIGH"},
			[]string{
				"medium vulnerabilities.not-scanned " + at + "container c0: no scan for quay.io/demo/app with this digest, only for sha256:" + strings.Repeat("a", 64) + ": scan the digest in the lock",
				"info vulnerabilities.gone : 1 vulnerability no longer found (1 high): CVE-1; some images were not scanned",
			},
		},
		{
			"the old image was not scanned",
			[]string{"a"},
			[]string{"b"},
			[]string{"b CVE-1/zlib/HIGH"},
			[]string{
				"high vulnerabilities.added " + at + "CVE-1: zlib 1.0 in quay.io/demo/app, fixed in 1.1: a *title* (possibly not new: some previous images were not scanned)",
				"low vulnerabilities.not-scanned " + at + "container c0: no scan for quay.io/demo/app with this digest, only for sha256:" + strings.Repeat("b", 64) + ": scan the digest in the lock, so new vulnerabilities cannot be recognized",
			},
		},
		{"clean", []string{"a"}, []string{"b"}, []string{"a", "b"}, []string{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			state := func(version string, letters []string) State {
				var list []string
				for _, l := range letters {
					list = append(list, image(l))
				}
				return stateRunning(t, version, list...)
			}
			r, err := Compare(state("1.0.0", c.before), state("1.1.0", c.after), CompareOptions{Scans: scans(t, c.scans...)})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, scannedLines(r)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestScansByOtherNames checks that a vulnerability is recognized by an alias if its ID differs before and
// after the change.
func TestScansByOtherNames(t *testing.T) {
	file := func(letter, id, related string) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, `{"matches": [{"vulnerability": {"id": %q, "severity": "High"}, "artifact": {"name": "zlib"}, "relatedVulnerabilities": [%s]}], "source": {"target": {"userInput": %q}}}`, id, related, image(letter))}
	}
	results, err := scan.LoadFS(fstest.MapFS{"a.json": file("a", "GHSA-1", `{"id": "CVE-1"}`), "b.json": file("b", "GHSA-1", "")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ before, after, want string }{
		{"a", "b", "info vulnerabilities.stayed : 1 vulnerability not fixed by the upgrade (1 high): GHSA-1"},
		{"b", "a", "high vulnerabilities.added Deployment ops/demo CVE-1: zlib in quay.io/demo/app"},
	} {
		r, err := Compare(stateRunning(t, "1.0.0", image(c.before)), stateRunning(t, "1.1.0", image(c.after)), CompareOptions{Scans: results})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{c.want}, scannedLines(r)); d != "" {
			t.Errorf("from %s to %s (-want +got):\n%s", c.before, c.after, d)
		}
	}
}

// TestScansByTag checks that no scan is assigned to an image without a digest.
func TestScansByTag(t *testing.T) {
	r, err := Compare(stateRunning(t, "1.0.0", image("a")), stateRunning(t, "1.1.0", "quay.io/demo/app:v2"), CompareOptions{Scans: scans(t, "a")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"medium vulnerabilities.not-scanned Deployment ops/demo container c0: quay.io/demo/app:v2 has no digest, so scans cannot be matched"}
	if d := cmp.Diff(want, scannedLines(r)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestJudgeScans(t *testing.T) {
	r, err := Compare(stateRunning(t, "1.0.0", image("a")), stateRunning(t, "1.1.0", image("b")), CompareOptions{Scans: scans(t, "a", "b CVE-1/zlib/HIGH CVE-2/zlib/MEDIUM CVE-3/zlib/UNKNOWN")})
	if err != nil {
		t.Fatal(err)
	}
	waive := func(name, expires string) diag.Waiver {
		return diag.Waiver{Rule: "vulnerabilities.added", Vulnerability: name, Reason: "not reachable", Expires: expires}
	}
	cases := []struct {
		name            string
		policy          Policy
		faults          []string
		expired, unused int
	}{
		{"the level of all findings", Policy{FailOn: High}, []string{"failOn CVE-1"}, 0, 0},
		{"a higher level than for other findings", Policy{FailOn: Medium, Vulnerabilities: []string{"critical"}}, nil, 0, 0},
		{"none", Policy{FailOn: Low, Vulnerabilities: []string{}}, nil, 0, 0},
		{"a list", Policy{Vulnerabilities: []string{"high", "unknown"}}, []string{"vulnerabilities.added CVE-1", "vulnerabilities.added CVE-3"}, 0, 0},
		{"waived", Policy{Vulnerabilities: []string{"high", "medium"}, Waivers: []diag.Waiver{waive("CVE-1", "2026-11-21")}}, []string{"vulnerabilities.added CVE-2"}, 0, 0},
		{"waived until yesterday", Policy{FailOn: High, Waivers: []diag.Waiver{waive("CVE-1", "2026-11-20")}}, []string{"failOn CVE-1"}, 1, 0},
		{"another one waived", Policy{FailOn: High, Waivers: []diag.Waiver{waive("CVE-4", "")}}, []string{"failOn CVE-1"}, 0, 1},
		{"fixed vulnerabilities, by a rule", Policy{Rules: []CELRule{{Name: "mended", Expression: `finding.vulnerabilities.exists(v, v.fixed != "" && v.severity == "medium")`}}}, []string{"mended CVE-2"}, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Judge(r, c.policy, "2026-11-21")
			if err != nil {
				t.Fatal(err)
			}
			var faults []string
			for _, f := range got.Verdict.Faults {
				faults = append(faults, f.Policy+" "+f.Subject[strings.LastIndexByte(f.Subject, ' ')+1:])
			}
			if d := cmp.Diff([]any{c.faults, c.expired, c.unused}, []any{faults, countWaiverWarnings(got, "waiver-expired"), countWaiverWarnings(got, "waiver-unused")}); d != "" {
				t.Errorf("faults, expired, unused (-want +got):\n%s", d)
			}
		})
	}
	// Without scans, it is unknown whether a waiver is used.
	plain, err := Compare(stateRunning(t, "1.0.0", image("a")), stateRunning(t, "1.1.0", image("b")), CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Judge(plain, Policy{Waivers: []diag.Waiver{waive("CVE-4", "")}}, "2026-11-21"); err != nil || len(got.Verdict.Waivers) > 0 {
		t.Errorf("unused without scans: %v, %v", got.Verdict.Waivers, err)
	}
}

// TestScansOfClusters compares scans if two clusters run different images.
func TestScansOfClusters(t *testing.T) {
	opt := CompareOptions{Scans: scans(t, "a", "b CVE-1/zlib/HIGH", "c CVE-2/zlib/HIGH")}
	var parts []Part
	for _, x := range []struct{ name, image string }{{"east", "b"}, {"west", "c"}} {
		r, err := Compare(stateRunning(t, "1.0.0", image("a")), stateRunning(t, "1.1.0", image(x.image)), opt)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, Part{Clusters: []string{x.name}, Report: r})
	}
	clusters := []string{"east", "west"}
	got := map[string][]string{}
	for _, f := range Join(parts, Fleet{Before: clusters, After: clusters}, opt).Findings {
		if f.Rule == "vulnerabilities.added" {
			got[f.Field] = f.Clusters
		}
	}
	if d := cmp.Diff(map[string][]string{"CVE-1": {"east"}, "CVE-2": {"west"}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
