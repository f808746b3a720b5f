package fbc

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
)

// owner is a package with two versions.
const owner = `schema: olm.package
name: a
defaultChannel: c
---
schema: olm.channel
package: a
name: c
entries: [{name: a.v1}]
---
schema: olm.bundle
package: a
name: a.v1
image: example.com/a
properties: [{type: olm.package, value: {packageName: a, version: 1.2.7}}]
---
`

// lifecycleDocument returns a lifecycle document of one version. It appends the text more.
func lifecycleDocument(more string) string {
	return `schema: io.openshift.operators.lifecycles.v1alpha1
package: a
versions:
- name: "1.2"
  phases:
  - name: Full support
    startDate: 2025-01-01
    endDate: 2025-06-30
  - name: Maintenance support
    startDate: "2025-07-01"
    endDate: "2026-01-31"
  platformCompatibility:
  - name: openshift
    versions: ["4.18", "4.20"]
` + more
}

// TestLifecycleFaults decodes invalid documents. Each fault must have a position, the catalog
// must be valid, and the document must have no effect.
func TestLifecycleFaults(t *testing.T) {
	release := func(fields string) string { return "- {name: \"1.3\", " + fields + "}\n" }
	phase := func(fields string) string { return release("phases: [{" + fields + "}]") }
	head := "schema: io.openshift.operators.lifecycles.v1alpha1\npackage: a\n"
	for _, tt := range []struct{ name, text, want string }{
		{"right", lifecycleDocument(""), ""},
		{"valid, with another phase", lifecycleDocument(phase("name: f, startDate: 2025-01-01, endDate: 2025-01-02")), ""},
		{"unknown field", lifecycleDocument("") + "extra: 1\n", `15:1: unknown field "extra"`},
		{"unknown field of a version", lifecycleDocument(release("more: 1, phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}]")), `15:17: unknown field "versions[1].more"`},
		{"unknown field of a phase", lifecycleDocument(phase("name: f, startDate: 2025-01-01, endDate: 2025-01-02, x: []")), `15:80: unknown field "versions[1].phases[0].x"`},
		{"unknown field of a platform", lifecycleDocument(release("phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}], platformCompatibility: [{name: openshift, versions: ['4.1'], z: 1}]")), `15:143: unknown field "versions[1].platformCompatibility[0].z"`},
		{"no versions", head, `1:1: no versions`},
		{"empty versions", head + "versions: []\n", `1:1: no versions`},
		{"versions of another type", head + "versions: {a: b}\n", `3:11: versions: expected an array, got an object`},
		{"package of another type", strings.Replace(lifecycleDocument(""), "package: a", "package: 7", 1), `2:10: io.openshift.operators.lifecycles.v1alpha1: package: expected a string, got a number`},
		{"null", lifecycleDocument("- null\n"), `15:3: versions[1]: expected an object, got null`},
		{"version as a number", lifecycleDocument("- {name: 4.10, phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}]}\n"), `15:10: versions[1].name: expected a string, got a number`},
		{"version of three parts", lifecycleDocument("- {name: 1.2.3, phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}]}\n"), `15:10: versions[1].name: version "1.2.3": must be MAJOR.MINOR, such as 4.12`},
		{"version twice", lifecycleDocument("- {name: '1.2', phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}]}\n"), `15:3: versions[1]: "1.2" appears twice`},
		{"version without a name", lifecycleDocument("- phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}]\n"), `15:3: versions[1]: name is missing`},
		{"no phases", lifecycleDocument("- name: '1.3'\n"), `15:3: versions[1]: phases is missing`},
		{"phase without a day", lifecycleDocument(phase("name: f, startDate: 2025-01-01")), `15:26: versions[1].phases[0]: endDate is missing`},
		{"nonexistent day", lifecycleDocument(phase("name: f, startDate: 2025-02-29, endDate: 2025-03-01")), `15:47: versions[1].phases[0].startDate: day "2025-02-29": must be a date such as 2027-01-31`},
		{"time of a day", lifecycleDocument(phase("name: f, startDate: 2025-02-28T00:00:00Z, endDate: 2025-03-01")), `15:47: versions[1].phases[0].startDate: day "2025-02-28T00:00:00Z": must be a date such as 2027-01-31`},
		{"phase that ends before it begins", lifecycleDocument(phase("name: f, startDate: 2025-03-01, endDate: 2025-03-01")), `15:26: versions[1].phases[0]: phase "f" begins on 2025-03-01 and ends on 2025-03-01: the end must be later`},
		{
			"gap",
			lifecycleDocument("- name: '1.3'\n  phases:\n  - {name: f, startDate: 2025-03-01, endDate: 2025-03-31}\n  - {name: g, startDate: 2025-04-02, endDate: 2025-04-30}\n"),
			`18:5: versions[1].phases[1]: phase "g" begins on 2025-04-02: expected 2025-04-01, the day after phase "f" ends`,
		},
		{
			"several faults",
			lifecycleDocument("- name: x\n  phases:\n  - {name: '', startDate: 1, endDate: 2025-03-31}\n- {}\n"),
			"15:9: versions[1].name: version \"x\": must be MAJOR.MINOR, such as 4.12\n17:27: versions[1].phases[0].startDate: expected a string, got a number\n18:3: versions[2]: name is missing",
		},
		{"platform twice", lifecycleDocument(release("phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}], platformCompatibility: [{name: a, versions: ['1.0']}, {name: a, versions: ['1.0']}]")), `15:136: versions[1].platformCompatibility[1]: "a" appears twice`},
		{"platform without versions", lifecycleDocument(release("phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}], platformCompatibility: [{name: a, versions: []}]")), `15:106: versions[1].platformCompatibility[0]: versions is missing`},
		{"two documents", lifecycleDocument("") + "---\n" + lifecycleDocument(""), `16:1: duplicate document: first at f:1:1`},
		{"schema last", head[strings.Index(head, "\n")+1:] + "extra: 1\n" + "schema: io.openshift.operators.lifecycles.v1alpha1\n", `2:1: unknown field "extra"`},
		{"no package", strings.Replace(lifecycleDocument(""), "package: a\n", "", 1), `1:1: io.openshift.operators.lifecycles.v1alpha1 has no package`},
		{"missing package", strings.Replace(lifecycleDocument(""), "package: a\n", "package: aa\n", 1), `1:1: io.openshift.operators.lifecycles.v1alpha1 is for package "aa", which has no olm.package (did you mean "a"?)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := LoadFS(fstest.MapFS{"a": {Data: []byte(owner)}, "f": {Data: []byte(tt.text)}})
			if err != nil {
				t.Fatal(err)
			}
			cat, err := catalog.New(c)
			if err != nil {
				t.Fatalf("the catalog is not valid: %v", err)
			}
			if names := cat.Names(); len(names) != 1 {
				t.Errorf("packages %q, want one", names)
			}
			got := ""
			if err := cat.StrictFaults(); err != nil {
				got = strings.ReplaceAll(err.Error(), "io.openshift.operators.lifecycles.v1alpha1 of package \"a\": ", "")
				got = strings.TrimPrefix(strings.ReplaceAll("\n"+got, "\nf:", "\n"), "\n")
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			p, _ := cat.Package("a")
			b, _ := p.Bundle("a.v1")
			if found := b.Lifecycle() != nil; found != (tt.want == "") {
				t.Errorf("the bundle has a lifecycle: %t", found)
			}
		})
	}
}

// TestLifecycleLimits checks that a document beyond the limits is dropped without affecting the
// rest of the catalog.
func TestLifecycleLimits(t *testing.T) {
	var many, platforms strings.Builder
	for i := range maxReleases + 1 {
		fmt.Fprintf(&many, "- {name: '1.%d', phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}]}\n", i+100)
	}
	for i := range maxVersions + 5 {
		fmt.Fprintf(&platforms, "'1.%d',", i)
	}
	for name, text := range map[string]string{
		"versions":  lifecycleDocument(many.String()),
		"phases":    lifecycleDocument("- name: '1.3'\n  phases:\n" + strings.Repeat("  - {name: f, startDate: 2025-01-01, endDate: 2025-01-02}\n", maxPhases+3)),
		"platforms": lifecycleDocument("- {name: '1.3', phases: [{name: f, startDate: 2025-01-01, endDate: 2025-01-02}], platformCompatibility: [{name: a, versions: [" + platforms.String() + "]}]}\n"),
		"faults":    lifecycleDocument(strings.Repeat("- 7\n", 900)),
		"field":     `{"schema": "io.openshift.operators.lifecycles.v1alpha1", "package": "a", "` + strings.Repeat("x", 100_000) + `": 1}`,
	} {
		c, err := LoadFS(fstest.MapFS{"f": {Data: []byte(text)}, "g": {Data: []byte(owner)}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		faults := c.Packages[0].Lifecycles[0].Faults
		if len(faults) == 0 || len(faults) > maxTolerated {
			t.Errorf("%s: %d faults", name, len(faults))
		}
		for _, f := range faults {
			if len(f.Msg) > 4*maxName {
				t.Errorf("%s: the message of a fault has %d bytes", name, len(f.Msg))
			}
		}
	}
}
