package cli

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/terminal"
)

// renderText returns the text that write prints if the output is no terminal.
func renderText(write func(*terminal.Terminal)) string {
	var out bytes.Buffer
	write(terminal.New(&out, nil))
	return out.String()
}

// parsePackage parses a file-based catalog, and returns its package lamp.
func parsePackage(t *testing.T, text string) *catalog.Package {
	t.Helper()
	content, err := fbc.LoadFS(fstest.MapFS{"catalog.yaml": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	content.ID = catalog.ID{Namespace: "olm", Name: "test"}
	c, err := catalog.New(content)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := c.Package("lamp")
	if !ok {
		t.Fatal("no package lamp")
	}
	return p
}

// lampPackage is a package with every displayed field.
const lampPackage = `---
schema: olm.package
name: lamp
defaultChannel: stable
---
schema: olm.channel
package: lamp
name: alpha
entries: [{name: lamp.v0.9.0}]
---
schema: olm.channel
package: lamp
name: beta
entries: [{name: lamp.v0.9.0}]
---
schema: olm.channel
package: lamp
name: stable
entries:
- {name: lamp.v1.1.0, replaces: lamp.v1.0.0, skips: [lamp.v1.0.5], skipRange: '<1.0.7'}
- {name: lamp.v1.0.0}
---
schema: olm.bundle
package: lamp
name: lamp.v0.9.0
image: example.com/lamp@sha256:0
properties: [{type: olm.package, value: {packageName: lamp, version: 0.9.0}}]
---
schema: olm.bundle
package: lamp
name: lamp.v1.0.0
image: example.com/lamp@sha256:1
properties: [{type: olm.package, value: {packageName: lamp, version: 1.0.0}}]
---
schema: olm.bundle
package: lamp
name: lamp.v1.1.0
image: example.com/lamp@sha256:2
properties:
- {type: olm.package, value: {packageName: lamp, version: 1.1.0}}
- {type: olm.gvk, value: {group: example.com, version: v1, kind: Lamp}}
- {type: olm.gvk.required, value: {group: example.com, version: v1, kind: Wick}}
- {type: olm.gvk.required, value: {group: example.com, version: v1, kind: Oil}}
- {type: olm.gvk.required, value: {group: example.com, version: v1, kind: Oil}}
- {type: olm.package.required, value: {packageName: match, versionRange: '>=1.0.0'}}
- type: olm.constraint
  value: {failureMessage: needs daylight, cel: {rule: 'true'}}
- type: olm.constraint
  value:
    failureMessage: x
    any:
      constraints:
      - {package: {packageName: tin, versionRange: '>=2.0.0'}}
      - {all: {constraints: [{gvk: {group: example.com, version: v1, kind: Box}}]}}
- type: olm.constraint
  value: {failureMessage: x, not: {constraints: [{package: {packageName: storm, versionRange: '>=0.0.0'}}]}}
- type: olm.csv.metadata
  value:
    annotations: {description: "light\e[31m"}
    displayName: Lamp
    minKubeVersion: 1.20.0
    provider: {name: "Acme\nforged: yes"}
    installModes: [{type: AllNamespaces, supported: true}, {type: OwnNamespace, supported: false}]
---
schema: olm.deprecations
package: lamp
entries:
- {reference: {schema: olm.channel, name: alpha}, message: "use stable\nchannel forged"}
- {reference: {schema: olm.bundle, name: lamp.v1.0.0}, message: leaks}
---
schema: io.openshift.operators.lifecycles.v1alpha1
package: lamp
versions:
- name: "1.1"
  phases:
  - {name: Full, startDate: 2026-01-01, endDate: 2026-06-30}
  - {name: Maintenance, startDate: 2026-07-01, endDate: 2026-12-31}
  platformCompatibility:
  - {name: openshift, versions: ["4.18", "4.19"]}
`

// TestDescribePackages prints a package on several days, and checks that values from the catalog
// cannot add lines.
func TestDescribePackages(t *testing.T) {
	const want = `package:        lamp
catalog:        olm/test
name:           Lamp
description:    light\u001b[31m
provider:       Acme forged: yes
install modes:  AllNamespaces
Kubernetes:     1.20.0 or newer
provides:       example.com/v1 Lamp
requires:       any of (package tin >=2.0.0; all of (example.com/v1 Box)), example.com/v1 Oil, example.com/v1 Wick, needs daylight, none of (package storm >=0.0.0), package match >=1.0.0
`
	for day, support := range map[string]string{
		"2025-12-31": "until 2026-12-31 (from 2026-01-01)",
		"2026-06-30": "until 2026-12-31 (Full)",
		"2026-07-01": "until 2026-12-31 (Maintenance)",
		"2027-01-01": "ended 2026-12-31",
	} {
		full := want + "support:        " + support + `
phases:         Full 2026-01-01 to 2026-06-30, Maintenance 2026-07-01 to 2026-12-31
platforms:      openshift 4.18, openshift 4.19
upgrade graph:  3 versions in 3 channels

channel stable (default)
  1.1.0      lamp.v1.1.0, replaces lamp.v1.0.0, skips lamp.v1.0.5, skips range <1.0.7, support ` + support + `
  1.0.0      lamp.v1.0.0, deprecated: leaks

channel alpha (deprecated: use stable channel forged)
  0.9.0      lamp.v0.9.0

channel beta
  0.9.0      lamp.v0.9.0
`
		got := renderText(func(w *terminal.Terminal) {
			printPackages(w, inventory.DescribePackages([]*catalog.Package{parsePackage(t, lampPackage)}, day))
		})
		if d := cmp.Diff(full, got); d != "" {
			t.Errorf("on %s (-want +got):\n%s", day, d)
		}
	}
}

// TestDescribePackagesOfTwoCatalogs checks that an empty line separates the catalogs, and that
// empty optional fields are omitted.
func TestDescribePackagesOfTwoCatalogs(t *testing.T) {
	bare := parsePackage(t, `---
schema: olm.package
name: lamp
defaultChannel: stable
---
schema: olm.channel
package: lamp
name: stable
entries: [{name: lamp.v1.0.0}]
---
schema: olm.bundle
package: lamp
name: lamp.v1.0.0
image: example.com/lamp@sha256:1
properties: [{type: olm.package, value: {packageName: lamp, version: 1.0.0}}]
`)
	const one = "package:        lamp\ncatalog:        olm/test\nupgrade graph:  1 version in 1 channel\n\nchannel stable (default)\n  1.0.0      lamp.v1.0.0\n"
	got := renderText(func(w *terminal.Terminal) {
		printPackages(w, inventory.DescribePackages([]*catalog.Package{bare, bare}, ""))
	})
	if d := cmp.Diff(one+"\n"+one, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestCatalogChanges prints every kind of change. Changes inside a package are below its name.
func TestCatalogChanges(t *testing.T) {
	type change = catalog.Change
	changes := inventory.CatalogChanges{Changes: []change{
		{Kind: catalog.Added, Part: catalog.PartPackage, Package: "a", To: "1.0.0"},
		{Kind: catalog.Removed, Part: catalog.PartPackage, Package: "b\x1b", From: "2.0.0"},
		{Kind: catalog.Added, Part: catalog.PartPackage, Package: "bare"},
		{Kind: catalog.Changed, Part: catalog.PartDefault, Package: "c", From: "alpha", To: "stable"},
		{Kind: catalog.Changed, Part: catalog.PartLifecycle, Package: "c", Version: "1.0", To: "Full"},
		{Kind: catalog.Added, Part: catalog.PartDeprecation, Package: "c", Channel: "alpha", To: "old"},
		{Kind: catalog.Removed, Part: catalog.PartDeprecation, Package: "c", Bundle: "c.v1", From: "old"},
		{Kind: catalog.Added, Part: catalog.PartChannel, Package: "c", Channel: "beta", To: "c.v2"},
		{Kind: catalog.Changed, Part: catalog.PartHead, Package: "c", Channel: "stable", From: "c.v1", To: "c.v2"},
		{Kind: catalog.Added, Part: catalog.PartEdges, Package: "c", Channel: "stable", Bundle: "c.v2", To: "replaces c.v1"},
		{Kind: catalog.Changed, Part: catalog.PartEdges, Package: "c", Channel: "stable", Bundle: "c.v2", From: "replaces c.v1", To: "skips c.v1"},
		{Kind: catalog.Removed, Part: catalog.PartBundle, Package: "c", Bundle: "c.v1", From: "1.0.0"},
		{Kind: catalog.Changed, Part: catalog.PartImages, Package: "d", Bundle: "d.v1", From: "x", To: "y\nz"},
	}}
	got := renderText(func(w *terminal.Terminal) { printCatalogChanges(w, changes) })
	const want = `+ a 1.0.0
- b\u001b 2.0.0
+ bare
~ c
  ~ default channel: alpha → stable
  ~ support of 1.0: nothing → Full
  + channel alpha: deprecation: nothing → old
  - bundle c.v1: deprecation: old → nothing
  + channel beta, head c.v2
  ~ channel stable: head: c.v1 → c.v2
  + channel stable: c.v2 replaces c.v1
  ~ channel stable: c.v2: replaces c.v1 → skips c.v1
  - bundle c.v1 1.0.0
~ d
  ~ bundle d.v1: related images: x → y z
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
