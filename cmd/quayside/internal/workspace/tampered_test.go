package workspace_test

import (
	"context"
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// The workspace with the tampered lock: the operators of the quickstart, which are embedded in
// their catalog, and an operator with bundle images that was upgraded by two hops and requires
// another operator.
const (
	appCatalog = `---
{schema: olm.package, name: app, defaultChannel: stable}
---
{schema: olm.channel, package: app, name: stable, entries: [{name: app.v1.0.0}, {name: app.v2.0.0, replaces: app.v1.0.0}, {name: app.v3.0.0, replaces: app.v2.0.0}, {name: app.v4.0.0, replaces: app.v3.0.0}]}
---
{schema: olm.channel, package: app, name: old, entries: [{name: app.v1.0.0}]}
`
	appBundle = `---
schema: olm.bundle
package: app
name: app.vVERSION
image: registry.example.com/app@sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459MAJOR
properties:
- {type: olm.package, value: {packageName: app, version: VERSION}}
- {type: olm.package.required, value: {packageName: dep, versionRange: ">=1.0.0"}}
relatedImages:
- {name: app, image: "registry.example.com/run@sha256:dbc1b4c900ffe48d575b5da5c638040125f65db0fe3e24494b76ea986457d986"}
- {name: "", image: "registry.example.com/two@sha256:dbc1b4c900ffe48d575b5da5c638040125f65db0fe3e24494b76ea986457d986"}
`
	depCatalog = `---
{schema: olm.package, name: dep, defaultChannel: stable}
---
{schema: olm.channel, package: dep, name: stable, entries: [{name: dep.v1.0.0}]}
---
{schema: olm.channel, package: dep, name: slow, entries: [{name: dep.v1.0.0}]}
---
schema: olm.bundle
package: dep
name: dep.v1.0.0
image: registry.example.com/dep@sha256:ca358758f6d27e6cf45272937977a748fd88391db679ceda7dc7bf1f005ee879
properties:
- {type: olm.package, value: {packageName: dep, version: 1.0.0}}
`
	appDeclared = `apiVersion: v1
kind: Namespace
metadata: {name: apps, labels: {team: a}, annotations: {note: b}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group, namespace: apps}
spec: {targetNamespaces: [apps, others]}
---
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: app, namespace: apps}
spec:
  package: app
  version: ">=1.0.0"
  catalog: olm/apps
  approval: Manual
  hold: waiting
  config: {env: [{name: A, value: b}]}
`
)

// tamperedFiles returns the files of the workspace with replaced contents.
func tamperedFiles(t testing.TB, replaced map[string]string) map[string]string {
	t.Helper()
	settings, err := os.ReadFile(quickstart + "/quayside.yaml")
	check(t, err)
	apps := appCatalog + depCatalog
	for _, v := range []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0"} {
		apps += strings.NewReplacer("MAJOR", v[:1], "VERSION", v).Replace(appBundle)
	}
	files := map[string]string{
		"quayside.yaml": strings.ReplaceAll(string(settings), `source: "oci:catalog"}`,
			`source: "bundles:catalog-src"}`+"\n"+`  - {name: apps, namespace: olm, source: "dir:apps"}`),
		"apps/catalog.yaml":       apps,
		"subscriptions/apps.yaml": appDeclared,
	}
	for name, text := range replaced {
		files[name] = text
	}
	return files
}

// upgradedLock returns the lock of the workspace after an upgrade from app.v1.0.0 to app.v3.0.0.
func upgradedLock(t testing.TB, e workspace.Env) string {
	t.Helper()
	files := tamperedFiles(t, map[string]string{"quayside.lock": ""})
	for _, step := range []func(*resolve.Options){
		func(*resolve.Options) {
			files["subscriptions/apps.yaml"] = strings.Replace(appDeclared, ">=1.0.0", "1.0.0", 1)
		},
		func(o *resolve.Options) {
			files["subscriptions/apps.yaml"] = strings.Replace(appDeclared, "  hold: waiting\n", "", 1)
			o.Hops, o.Named = 2, []resolve.Target{{Namespace: "apps", Package: "app"}}
		},
		func(*resolve.Options) { files["subscriptions/apps.yaml"] = appDeclared },
	} {
		var opt resolve.Options
		step(&opt)
		p, err := workspace.Open(workspace.Files(quickstartFiles(t, files), "", "."), e)
		check(t, err)
		all := p.ResolveOptions()
		all.Hops, all.Named = opt.Hops, opt.Named
		in, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: all})
		check(t, err)
		res, err := workspace.Resolve(context.Background(), in)
		check(t, errors.Join(err, res.Failed))
		files["quayside.lock"] = string(lockfile.Format(res.Lock))
	}
	return files["quayside.lock"]
}

// checkLock checks the lock of the workspace, with replaced files.
func checkLock(t testing.TB, e workspace.Env, replaced map[string]string) (*resolve.Verdict, error) {
	t.Helper()
	p, err := workspace.Open(workspace.Files(quickstartFiles(t, tamperedFiles(t, replaced)), "", "."), e)
	check(t, err)
	in, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: p.ResolveOptions()})
	if err != nil {
		return &resolve.Verdict{}, err
	}
	return in.Check(context.Background(), workspace.CheckScope{Content: true})
}

// quietLogger is a logger that drops all messages.
type quietLogger struct{ failingLogger }

func (quietLogger) Note(string, ...any) {}
func (quietLogger) Warn([]diag.Warning) {}

const otherDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// tampering is an edit of a lock. The edited lock has a valid checksum.
type tampering struct {
	field string // as in docs/lock.md
	want  string // "stale", "block" (stale without a field), "signer", "unchecked" or "nothing"
	edit  func(f *lockfile.File)
}

func tamperings() []tampering {
	ns := func(field, want string, edit func(n *lockfile.Namespace)) tampering {
		return tampering{"namespaces." + field, want, func(f *lockfile.File) { edit(&f.Namespaces[0]) }}
	}
	of := func(key, field, want string, edit func(p *lockfile.Pin)) tampering {
		return tampering{"pins." + field, want, func(f *lockfile.File) {
			for i := range f.Pins {
				if f.Pins[i].Key() == key {
					edit(&f.Pins[i])
				}
			}
		}}
	}
	pin := func(field, want string, edit func(p *lockfile.Pin)) tampering {
		return of("apps/app", field, want, edit)
	}
	return []tampering{
		pin("catalog", "stale", func(p *lockfile.Pin) { p.Catalog.ID.Name = "x" }),
		pin("catalog", "stale", func(p *lockfile.Pin) { p.Catalog.Source = "dir:elsewhere" }),
		pin("catalog", "nothing", func(p *lockfile.Pin) { p.Catalog.Digest = otherDigest }),
		pin("catalog", "stale", func(p *lockfile.Pin) { p.Catalog.Digest = "" }),
		pin("catalog", "signer", func(p *lockfile.Pin) { p.Catalog.Identity = "somebody" }),
		ns("name", "block", func(n *lockfile.Namespace) { n.Name = "x" }),
		ns("labels", "stale", func(n *lockfile.Namespace) { n.Labels = map[string]string{"team": "b"} }),
		ns("labels", "stale", func(n *lockfile.Namespace) { n.Labels = nil }),
		ns("annotations", "stale", func(n *lockfile.Namespace) { n.Annotations = map[string]string{"note": "c"} }),
		pin("namespace", "block", func(p *lockfile.Pin) { p.Namespace = "others" }),
		pin("package", "block", func(p *lockfile.Pin) { p.Package = "application" }),
		pin("version", "stale", func(p *lockfile.Pin) { p.Version = "3.0.1" }),
		pin("channel", "stale", func(p *lockfile.Pin) { p.Channel = "old" }),
		pin("channel", "stale", func(p *lockfile.Pin) { p.Channel = "" }),
		of("apps/dep", "channel", "nothing", func(p *lockfile.Pin) { p.Channel = "slow" }),
		pin("bundle", "unchecked", func(p *lockfile.Pin) { p.Bundle = "app.v3.0.1" }),
		of("vault/vault", "bundle", "stale", func(p *lockfile.Pin) { p.Bundle = "vault-operator.v0.2.0" }),
		pin("image", "stale", func(p *lockfile.Pin) { p.Image = "registry.example.com/app@" + otherDigest }),
		pin("image", "stale", func(p *lockfile.Pin) { p.Image, p.ContentDigest = "", otherDigest }),
		pin("image", "stale", func(p *lockfile.Pin) { p.Image = "registry.example.com/app:v3" }),
		pin("identity", "signer", func(p *lockfile.Pin) { p.Identity = "somebody" }),
		pin("contentDigest", "stale", func(p *lockfile.Pin) { p.ContentDigest = otherDigest }),
		of("vault/vault", "contentDigest", "stale", func(p *lockfile.Pin) { p.ContentDigest = otherDigest }),
		pin("catalog", "stale", func(p *lockfile.Pin) { p.Catalog.ID = catalog.ID{Namespace: "olm", Name: "quickstart"} }),
		pin("commit", "stale", func(p *lockfile.Pin) { p.Commit = strings.Repeat("a", 40) }),
		pin("format", "stale", func(p *lockfile.Pin) { p.Format = "helm" }),
		pin("template", "stale", func(p *lockfile.Pin) { p.Template = &lockfile.Template{Release: "x"} }),
		pin("approval", "stale", func(p *lockfile.Pin) { p.Approval = "Automatic" }),
		pin("outsideWindow", "nothing", func(p *lockfile.Pin) { p.OutsideWindow = "urgent" }),
		pin("hold", "stale", func(p *lockfile.Pin) { p.Hold = "" }),
		pin("installMode", "stale", func(p *lockfile.Pin) { p.InstallMode = catalog.AllNamespaces }),
		pin("watchNamespaces", "stale", func(p *lockfile.Pin) { p.WatchNamespaces = []string{"apps", "kube-system"} }),
		pin("watchNamespaces", "stale", func(p *lockfile.Pin) { p.WatchNamespaces = nil }),
		pin("operatorGroup", "stale", func(p *lockfile.Pin) { p.OperatorGroup = "other" }),
		pin("replaces", "unchecked", func(p *lockfile.Pin) { p.Replaces = "app.v0.9.0" }),
		pin("replaces", "nothing", func(p *lockfile.Pin) { p.Replaces, p.Skipped = "", nil }),
		pin("skipped", "unchecked", func(p *lockfile.Pin) { p.Skipped = nil }),
		pin("config", "stale", func(p *lockfile.Pin) { p.Config = []byte(`{"env":[{"name":"A","value":"c"}]}`) }),
		pin("config", "stale", func(p *lockfile.Pin) { p.Config = nil }),
		pin("requestedBy", "stale", func(p *lockfile.Pin) { p.RequestedBy = nil }),
		of("apps/dep", "requestedBy", "stale", func(p *lockfile.Pin) { p.RequestedBy = []string{"apps/dep"} }),
		pin("requires", "stale", func(p *lockfile.Pin) { p.Requires = nil }),
		pin("requires", "stale", func(p *lockfile.Pin) { p.Requires[0].Requirement = "x" }),
		pin("requires", "stale", func(p *lockfile.Pin) { p.Requires[0].Pin = "vault/vault" }),
		pin("relatedImages", "stale", func(p *lockfile.Pin) { p.RelatedImages[0].Image = "registry.example.com/evil@" + otherDigest }),
		pin("relatedImages", "stale", func(p *lockfile.Pin) { p.RelatedImages = p.RelatedImages[1:] }),
		of("vault/vault", "relatedImages", "stale", func(p *lockfile.Pin) { p.RelatedImages = nil }),
		pin("properties", "stale", func(p *lockfile.Pin) { p.Properties = p.Properties[:1] }),
		pin("properties", "stale", func(p *lockfile.Pin) {
			p.Properties = append(p.Properties, catalog.Property{Type: "olm.package.required", Value: []byte(`{"packageName":"nowhere","versionRange":">=1.0.0"}`)})
		}),
		pin("adopted", "nothing", func(p *lockfile.Pin) { p.Adopted = &lockfile.Adopted{Condition: "app.v3.0.0"} }),
		pin("storage", "nothing", func(p *lockfile.Pin) {
			p.Storage = &lockfile.Storage{Stage: lockfile.StorageStore, Objects: []lockfile.StoredVersions{{Definition: "a.example.com", From: "v1", To: "v2"}}}
		}),
		pin("declarationDigest", "stale", func(p *lockfile.Pin) { p.Declaration = otherDigest }),
	}
}

// TestTampered edits every field of a lock in turn, with a valid checksum.
func TestTampered(t *testing.T) {
	e := env(t)
	e.Log = quietLogger{}
	good := upgradedLock(t, e)
	if v, err := checkLock(t, e, map[string]string{"quayside.lock": good}); err != nil || len(v.Unchecked) > 0 {
		t.Fatalf("untouched: %v, not checked: %v\n%s", err, v.Unchecked, good)
	}
	for i, c := range tamperings() {
		t.Run(c.field, func(t *testing.T) {
			f, err := lockfile.Parse("quayside.lock", []byte(good))
			check(t, err)
			c.edit(f)
			text := string(lockfile.Format(f))
			if text == good {
				t.Fatal("nothing was changed")
			}
			v, err := checkLock(t, e, map[string]string{"quayside.lock": text})
			c.judge(t, v, err, strings.Split(text, "\n"))
			if t.Failed() {
				t.Logf("%d: %v\nstale %v\nunchecked %v", i, err, v.Stale, v.Unchecked)
			}
		})
	}
}

// TestTamperedWithoutCatalog edits the fields that a bundle determines, with an unreadable
// catalog.
func TestTamperedWithoutCatalog(t *testing.T) {
	e := env(t)
	e.Log = quietLogger{}
	good := upgradedLock(t, e)
	away := func(text string) string { return strings.ReplaceAll(text, "bundles:catalog-src", "bundles:away") }
	vault := func(f *lockfile.File) *lockfile.Pin { return &f.Pins[len(f.Pins)-1] }
	for _, c := range []tampering{
		{"pins.nothing", "", func(*lockfile.File) {}},
		{"pins.bundle", "stale", func(f *lockfile.File) { vault(f).Bundle = "vault-operator.v0.2.0" }},
		{"pins.version", "stale", func(f *lockfile.File) { vault(f).Version = "0.2.0" }},
		{"pins.relatedImages", "stale", func(f *lockfile.File) { vault(f).RelatedImages = nil }},
		{"pins.relatedImages", "unchecked", func(f *lockfile.File) {
			vault(f).RelatedImages = append(vault(f).RelatedImages, catalog.RelatedImage{Image: "registry.example.com/evil@" + otherDigest})
		}},
		{"pins.properties", "stale", func(f *lockfile.File) { vault(f).Properties = vault(f).Properties[:1] }},
		{"pins.properties", "unchecked", func(f *lockfile.File) {
			vault(f).Properties = append(vault(f).Properties, catalog.Property{Type: "x", Value: []byte(`1`)})
		}},
		{"pins.catalog", "stale", func(f *lockfile.File) { vault(f).Catalog.Source = "bundles:elsewhere" }},
	} {
		t.Run(c.field, func(t *testing.T) {
			f, err := lockfile.Parse("quayside.lock", []byte(good))
			check(t, err)
			for i := range f.Pins {
				f.Pins[i].Catalog.Source = away(f.Pins[i].Catalog.Source)
			}
			c.edit(f)
			text := string(lockfile.Format(f))
			v, err := checkLock(t, e, map[string]string{"quayside.lock": text, "quayside.yaml": away(tamperedFiles(t, nil)["quayside.yaml"])})
			if c.want == "" {
				left := v.Unchecked[len(v.Unchecked)-1]
				if want := []resolve.Field{{Name: "channel", Line: 132}, {Name: "contentDigest", Line: 134}}; err != nil || !slices.Equal(left.Fields, want) {
					t.Errorf("%v, of %s/%s not checked %v", err, left.Namespace, left.Package, left.Fields)
				}
				return
			}
			c.judge(t, v, err, strings.Split(text, "\n"))
			if t.Failed() {
				t.Logf("%v\nstale %v\nunchecked %v", err, v.Stale, v.Unchecked)
			}
		})
	}
}

// judge checks that the verdict is c.want, and has the position of the field.
func (c tampering) judge(t *testing.T, v *resolve.Verdict, err error, lines []string) {
	_, field, _ := strings.Cut(c.field, ".")
	names := func(rs []resolve.Reason) bool {
		return slices.ContainsFunc(rs, func(r resolve.Reason) bool {
			return slices.ContainsFunc(r.Fields, func(f resolve.Field) bool {
				return f.Name == field && (f.Line == 0 || strings.HasPrefix(strings.TrimLeft(lines[f.Line-1], "- "), field+":"))
			})
		})
	}
	var differs *workspace.DiffersError
	var stale *resolve.StaleError
	ok := false
	switch c.want {
	case "stale":
		var unreadable *workspace.InputError
		ok = errors.As(err, &stale) && names(stale.Reasons) || field == "catalog" && errors.As(err, &unreadable)
	case "block":
		ok = errors.As(err, &stale) && slices.ContainsFunc(stale.Reasons, func(r resolve.Reason) bool {
			return r.Fields == nil && r.Pos.Line > 0 && strings.HasPrefix(lines[r.Pos.Line-1], "- ")
		})
	case "signer":
		ok = errors.As(err, &differs)
	case "unchecked":
		ok = err == nil && names(v.Unchecked)
	case "nothing":
		ok = err == nil && len(v.Unchecked) == 0
	}
	if !ok {
		t.Errorf("not %s", c.want)
	}
}

// TestAdoptedEndsWithItsBundle checks that Pin.Adopted is removed by the first upgrade of the
// bundle that OLM installed.
func TestAdoptedEndsWithItsBundle(t *testing.T) {
	e := env(t)
	e.Log = quietLogger{}
	f, err := lockfile.Parse("quayside.lock", []byte(upgradedLock(t, e)))
	check(t, err)
	f.Pins[0].Adopted = &lockfile.Adopted{Condition: f.Pins[0].Bundle}
	for _, named := range [][]resolve.Target{nil, {{Namespace: "apps", Package: "app"}}} {
		p, err := workspace.Open(workspace.Files(quickstartFiles(t, tamperedFiles(t, map[string]string{
			"quayside.lock": string(lockfile.Format(f)), "subscriptions/apps.yaml": strings.Replace(appDeclared, "  hold: waiting\n", "", 1),
		})), "", "."), e)
		check(t, err)
		opt := p.ResolveOptions()
		opt.Named = named
		in, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: opt})
		check(t, err)
		res, err := workspace.Resolve(context.Background(), in)
		check(t, errors.Join(err, res.Failed))
		pin := res.Lock.Pins[0]
		if moved := pin.Bundle != f.Pins[0].Bundle; moved != (named != nil) || moved != (pin.Adopted == nil) {
			t.Errorf("from %s to %s, and %+v", f.Pins[0].Bundle, pin.Bundle, pin.Adopted)
		}
	}
}

// TestEveryFieldIsAccountedFor checks that every field of the lock is in docs/lock.md and in
// tamperings.
func TestEveryFieldIsAccountedFor(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/lock.md")
	check(t, err)
	var documented, fields, tampered []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| \\S").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, m[1])
	}
	for _, c := range tamperings() {
		tampered = append(tampered, c.field)
	}
	for list, item := range map[string]any{"namespaces": lockfile.Namespace{}, "pins": lockfile.Pin{}} {
		for _, f := range yamlnode.Fields(reflect.TypeOf(item)) {
			fields = append(fields, list+"."+f.Name)
		}
	}
	for _, f := range fields {
		if !slices.Contains(documented, f) || !slices.Contains(tampered, f) {
			t.Errorf("%s: in docs/lock.md %v, tampered with %v", f, slices.Contains(documented, f), slices.Contains(tampered, f))
		}
	}
	for _, f := range documented {
		if strings.Contains(f, ".") && !strings.HasSuffix(f, ".checksum") && !slices.Contains(fields, f) {
			t.Errorf("%s: in docs/lock.md, and not in the lock", f)
		}
	}
}
