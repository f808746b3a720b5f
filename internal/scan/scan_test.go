package scan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// digest returns a digest that repeats one letter.
func digest(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

func files(pairs ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

func trivyReport(name, digest string, found ...string) string {
	return fmt.Sprintf(`{"SchemaVersion": 2, "ArtifactName": %q, "ArtifactType": "container_image", "Metadata": {"OS": {"Family": "alpine"}, "RepoDigests": ["quay.io/demo/app@%s"]},
 "Results": [{"Target": "app", "Class": "os-pkgs", "Packages": [{"ID": "a"}], "Vulnerabilities": [%s]}, {"Target": "bin", "Vulnerabilities": null}]}`, name, digest, strings.Join(found, ", "))
}

func inTrivy(id, pkg, severity string) string {
	return fmt.Sprintf(`{"VulnerabilityID": %q, "PkgName": %q, "InstalledVersion": "1.0", "FixedVersion": "1.1", "Severity": %q, "Title": "a title", "PrimaryURL": "https://example.com/%s", "Layer": {"DiffID": "x"}}`, id, pkg, severity, id)
}

func grypeReport(index, manifest string, found ...string) string {
	return fmt.Sprintf(`{"matches": [%s], "source": {"type": "image", "target": {"userInput": "quay.io/demo/app:v1", "imageID": "sha256:x", "manifestDigest": %q, "tags": [], "repoDigests": ["quay.io/demo/app@%s"]}}, "descriptor": {"name": "grype"}}`,
		strings.Join(found, ", "), manifest, index)
}

func inGrype(id, pkg, severity string, related ...string) string {
	var more []string
	for _, r := range related {
		more = append(more, fmt.Sprintf(`{"id": %q, "severity": "Low"}`, r))
	}
	return fmt.Sprintf(`{"vulnerability": {"id": %q, "dataSource": "https://example.com/%s", "severity": %q, "description": "First line.\nSecond.", "fix": {"versions": ["1.1", "1.2"], "state": "fixed"}},
 "relatedVulnerabilities": [%s], "matchDetails": [], "artifact": {"name": %q, "version": "1.0", "locations": []}}`, id, id, severity, strings.Join(more, ", "), pkg)
}

func load(t *testing.T, pairs ...string) *Results {
	t.Helper()
	r, err := LoadFS(files(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func short(list []Vulnerability) []string {
	var out []string
	for _, v := range list {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", v.Severity, v.ID, v.Package, v.Installed, strings.Join(v.Aliases, " "))))
	}
	return out
}

func TestOf(t *testing.T) {
	cve := "CVE-2026-0001"
	cases := []struct {
		name  string
		files []string
		want  []string
		none  bool // whether the image has no scan
	}{
		{"not scanned", []string{"a.json", trivyReport("app", digest("b"))}, nil, true},
		{"no vulnerabilities", []string{"a.json", trivyReport("app", digest("a"))}, nil, false},
		{"trivy", []string{"a.json", trivyReport("app", digest("a"), inTrivy(cve, "zlib", "HIGH"))}, []string{"high CVE-2026-0001 zlib 1.0"}, false},
		{"grype", []string{"a.json", grypeReport(digest("a"), digest("c"), inGrype(cve, "zlib", "Negligible"))}, []string{"negligible CVE-2026-0001 zlib 1.0"}, false},
		{"by its name alone", []string{"a.json", `{"SchemaVersion": 2, "ArtifactName": "demo/app:v1@` + digest("a") + `"}`}, nil, false},
		{"unrated", []string{"a.json", trivyReport("app", digest("a"), inTrivy(cve, "zlib", ""))}, []string{"unknown CVE-2026-0001 zlib 1.0"}, false},
		{
			"both scanners, under two names",
			[]string{"b.json", trivyReport("app", digest("a"), inTrivy(cve, "x/net", "MEDIUM")), "a.json", grypeReport(digest("a"), digest("c"), inGrype("GHSA-aaaa-bbbb-cccc", "x/net", "High", cve))},
			[]string{"high CVE-2026-0001 x/net 1.0 GHSA-aaaa-bbbb-cccc"},
			false,
		},
		{
			"both scanners, the milder one first",
			[]string{"b.json", trivyReport("app", digest("a"), inTrivy(cve, "x/net", "CRITICAL")), "a.json", grypeReport(digest("a"), digest("c"), inGrype(cve, "x/net", "Low"))},
			[]string{"critical CVE-2026-0001 x/net 1.0"},
			false,
		},
		{
			"in two packages",
			[]string{"a.json", trivyReport("app", digest("a"), inTrivy(cve, "b", "LOW"), inTrivy(cve, "a", "CRITICAL"), inTrivy(cve, "a", "LOW"))},
			[]string{"critical CVE-2026-0001 a 1.0", "low CVE-2026-0001 b 1.0"},
			false,
		},
		{
			"an advisory of several",
			[]string{"a.json", grypeReport(digest("a"), "", inGrype("ALAS-1", "zlib", "High", cve, "CVE-2026-0002"))},
			[]string{"high ALAS-1 zlib 1.0 CVE-2026-0001 CVE-2026-0002"},
			false,
		},
		{
			"a platform, by its own digest",
			[]string{"a.json", grypeReport(digest("a"), digest("c")), "b.json", trivyReport("app", digest("c"), inTrivy(cve, "zlib", "HIGH"))},
			[]string{"high CVE-2026-0001 zlib 1.0"},
			false,
		},
		{
			"a platform of another index too",
			[]string{"a.json", grypeReport(digest("a"), digest("c")), "b.json", grypeReport(digest("b"), digest("c")), "c.json", trivyReport("app", digest("b"), inTrivy(cve, "zlib", "HIGH"))},
			nil, false,
		},
		{"an unrelated platform", []string{"b.json", trivyReport("app", digest("c"), inTrivy(cve, "zlib", "HIGH"))}, nil, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, known := load(t, c.files...).Vulnerabilities(digest("a"))
			if d := cmp.Diff(c.want, short(got)); d != "" || known == c.none {
				t.Errorf("known %t (-want +got):\n%s", known, d)
			}
		})
	}
}

// TestDetails checks all fields of a vulnerability.
func TestDetails(t *testing.T) {
	got, _ := load(t, "a.json", grypeReport(digest("a"), "", inGrype("CVE-1", "zlib", "High"))).Vulnerabilities(digest("a"))
	want := []Vulnerability{{ID: "CVE-1", Severity: High, Package: "zlib", Installed: "1.0", Fixed: "1.1, 1.2", Title: "First line.", Link: "https://example.com/CVE-1"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("grype (-want +got):\n%s", d)
	}
	hostile := strings.Replace(inTrivy("CVE-1", "zlib", "HIGH"), "https://example.com/CVE-1", "javascript:alert(1)", 1)
	got, _ = load(t, "a.json", trivyReport("app", digest("a"), hostile)).Vulnerabilities(digest("a"))
	want = []Vulnerability{{ID: "CVE-1", Severity: High, Package: "zlib", Installed: "1.0", Fixed: "1.1", Title: "a title"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("trivy (-want +got):\n%s", d)
	}
}

func TestNearAndLoose(t *testing.T) {
	r := load(t, "a/x.json", trivyReport("quay.io/demo/app:v1", digest("c")), "b.JSON", trivyReport("quay.io/demo/app:v2", digest("a")), "c.json", `{"SchemaVersion": 2, "ArtifactName": "app:ci"}`, "notes.txt", "not read")
	if d := cmp.Diff([]string{digest("c")}, r.OtherDigests("quay.io/demo/app", digest("a"))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"c.json (app:ci)"}, r.FilesWithoutDigest()); d != "" {
		t.Error(d)
	}
}

func TestFaults(t *testing.T) {
	deep := `{"ignored":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}"
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "a.json:1:1: truncated JSON"},
		"cut short":         {"{\"SchemaVersion\": 2,\n \"Results\": [{", "a.json:2:15: truncated JSON"},
		"no JSON":           {"{\"SchemaVersion\": 2,\n nope}", "a.json:2:3: malformed JSON: "},
		"neither":           {`{"runs": []}`, "a.json: neither a report of 'trivy"},
		"both":              {`{"SchemaVersion": 2, "matches": []}`, "a.json: neither a report of 'trivy"},
		"another version":   {"{\n\"SchemaVersion\": 3}", "a.json:2:18: unsupported SchemaVersion 3 of Trivy: must be 2"},
		"an old version":    {"[]", "a.json:1:1: reports of Trivy before 0.20 are not supported"},
		"two values":        {"{\"matches\": []}\n{}", "a.json:2:1: more than one value in the file"},
		"no object":         {`{"matches": [3]}`, "a.json:1:14: expected an object"},
		"no list":           {`{"matches": {}}`, "a.json:1:13: expected a list"},
		"a list too deep":   {deep, "a.json:1:10011: malformed JSON: "},
		"no text":           {trivyReport("app", digest("a"), `{"VulnerabilityID": 7}`), "a.json:2:119: expected a string"},
		"no digest":         {"{\"SchemaVersion\": 2, \"Metadata\": {\"RepoDigests\": [\n\"app:v1\"]}}", `a.json:2:1: "app:v1" has no digest such as app@sha256:…`},
		"no ID":             {trivyReport("app", digest("a"), `{"PkgName": "x"}`), `a.json:2:99: "" is not a vulnerability ID`},
		"a hostile ID":      {trivyReport("app", digest("a"), inTrivy("<b>", "x", "HIGH")), `a.json:2:119: "<b>" is not a vulnerability ID`},
		"of no package":     {trivyReport("app", digest("a"), inTrivy("CVE-1", "", "HIGH")), "a.json:2:119: CVE-1: package name is missing"},
		"a severity":        {`{"matches": [{"vulnerability": {"severity": "awful"}}]}`, `a.json:1:45: severity "awful": must be one of critical, high`},
		"a manifest":        {`{"source": {"target": {"manifestDigest": "sha256:x"}}, "matches": []}`, `a.json:1:42: "sha256:x" is not a digest`},
		"a name in related": {`{"matches": [{"relatedVulnerabilities": [{"id": "a b"}]}]}`, `a.json:1:49: "a b" is not a vulnerability ID`},
		"a key twice":       {`{"matches": [], "matches": []}`, "a.json:1:17: malformed JSON: duplicate object member name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadFS(files("a.json", c.text))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := LoadFS(files("a.txt", "")); err == nil || !strings.Contains(err.Error(), "no scan reports found") {
		t.Error(err)
	}
	if _, err := LoadFS(files("b.json", "", "a.json", "x")); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want a fault of each file: %v", err)
	}
}

func TestBounds(t *testing.T) {
	room := 1
	text := trivyReport("app", digest("a"), inTrivy("CVE-1", "a", "LOW"), inTrivy("CVE-2", "a", "LOW"))
	if _, err := decodeScan("a.json", []byte(text), &room); err == nil || !strings.Contains(err.Error(), "more than 1000000 vulnerabilities") {
		t.Error(err)
	}
	var many []string
	for i := range maxNames + 1 {
		many = append(many, fmt.Sprintf("%q", fmt.Sprintf("app@sha256:%064x", i)))
	}
	if _, err := LoadFS(files("a.json", `{"SchemaVersion": 2, "Metadata": {"RepoDigests": [`+strings.Join(many, ",")+"]}}")); err == nil || !strings.Contains(err.Error(), "more than 100 digests of one image") {
		t.Error(err)
	}
}

func TestSeverities(t *testing.T) {
	for _, s := range Severities() {
		got, err := ParseSeverity(strings.ToUpper(s.String()))
		if err != nil || got != s {
			t.Errorf("%s: got %s, %v", s, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(trivyReport("app", digest("a"), inTrivy("CVE-1", "a", "LOW"))))
	f.Add([]byte(grypeReport(digest("a"), digest("b"), inGrype("GHSA-1", "a", "High", "CVE-1"))))
	f.Add([]byte(`{"matches":[{"vulnerability":{"id":"x"}}],"source":null}`))
	f.Add([]byte(`{"SchemaVersion":2,"Results":null} []`))
	f.Fuzz(func(t *testing.T, data []byte) {
		room := 1000
		one, err := decodeScan("f", data, &room)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("no position: %v", err)
			}
			return
		}
		// Repeated files do not change the results.
		for _, d := range append(slices.Clone(one.digests), one.manifest) {
			once, known := newResults([]imageScan{one}).Vulnerabilities(d)
			twice, _ := newResults([]imageScan{one, one}).Vulnerabilities(d)
			if known != (d != "") || !cmp.Equal(once, twice) {
				t.Errorf("%s: known %t\nonce  %v\ntwice %v", d, known, once, twice)
			}
		}
	})
}
