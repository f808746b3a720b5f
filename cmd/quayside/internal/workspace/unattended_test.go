package workspace_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

// TestUnreadableDependency installs an operator whose dependency has an image that cannot be fetched.
// Neither is installed, and both are listed with the reason.
func TestUnreadableDependency(t *testing.T) {
	files := storedFiles()
	replace := func(name, old, text string) {
		files[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(files[name].Data), old, text))}
	}
	replace("quayside.yaml", "catalogs: [", `catalogs: [{name: theirs, namespace: olm, source: "dir:theirs"}, `)
	replace("catalog/widget/1.0.0/csv.yaml", "  install:\n", "  customresourcedefinitions: {required: [{name: libs.example.com, kind: Lib, version: v1}]}\n  install:\n")
	files["theirs/lib.yaml"] = &fstest.MapFile{Data: []byte(`schema: olm.package
name: lib
defaultChannel: stable
---
schema: olm.channel
package: lib
name: stable
entries: [{name: lib.v1.0.0}]
---
schema: olm.bundle
package: lib
name: lib.v1.0.0
image: registry.example.com/lib@sha256:` + strings.Repeat("0", 64) + `
properties:
- {type: olm.package, value: {packageName: lib, version: 1.0.0}}
- {type: olm.gvk, value: {group: example.com, kind: Lib, version: v1}}
`)}
	p, err := workspace.Open(workspace.Files(files, "map:", "."), env(t))
	check(t, err)
	in, err := workspace.ReadProblem(t.Context(), p, workspace.Request{Options: p.ResolveOptions(), Unattended: true})
	check(t, err)
	res, err := workspace.Resolve(t.Context(), in)
	check(t, err)
	if len(res.Lock.Pins) > 0 {
		t.Errorf("pinned: %+v", res.Lock.Pins)
	}
	var held, warned []string
	for _, h := range res.Holds {
		if !strings.HasPrefix(h.Reason, "bundle lib.v1.0.0 cannot be fetched: ") {
			t.Errorf("%s is held for another reason: %s", h.Operator, h.Reason)
		}
		held = append(held, h.Operator+" "+h.Code)
	}
	for _, w := range res.Warnings {
		if w.Code == "not-fetched" {
			warned = append(warned, w.Subject+" "+w.Code)
		}
	}
	want := []string{"ops/lib not-fetched", "ops/widget not-fetched"}
	if d := cmp.Diff(want, held) + cmp.Diff(want, warned); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
