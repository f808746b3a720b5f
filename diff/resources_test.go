package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

func custom(version, spec string) string {
	return "apiVersion: demo.io/" + version + "\nkind: Widget\nmetadata: {name: mine, namespace: team}\nspec: " + spec
}

// TestResources validates custom resources of the repository with the CRDs before and after the change. The
// expectations are based on apiextensions-apiserver.
func TestResources(t *testing.T) {
	cases := []struct {
		name, before, after, resource string
		want                          []string
	}{
		{"fits", "{type: string}", "{type: string, maxLength: 3}", "{x: abc}", nil},
		{"too long", "{type: string}", "{type: string, maxLength: 3}", "{x: abcd}", []string{"high resources.rejected spec.x: abcd → -"}},
		{"wrong type", "{type: string}", "{type: integer}", "{x: a}", []string{"high resources.rejected spec.x: a → -"}},
		{"required", "{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}", "{x: {}}", []string{"high resources.rejected spec.x.a"}},
		{"value removed", "{type: string, enum: [a, b]}", "{type: string, enum: [a]}", "{x: b}", []string{"high resources.rejected spec.x: b → -"}},
		{"CEL", "{type: integer}", "{type: integer, x-kubernetes-validations: [{rule: self > 3, message: too small}]}", "{x: 2}", []string{"high resources.rejected spec.x: 2 → -"}},
		{"not in a set twice", "{type: array, items: {type: string}}", "{type: array, x-kubernetes-list-type: set, items: {type: string}}", "{x: [a, a]}", []string{`high resources.rejected spec.x[1]: a → -`}},
		{"rejected before", "{type: string, maxLength: 3}", "{type: string, maxLength: 3, minLength: 1}", "{x: abcd}", []string{"low resources.already-rejected spec.x: abcd → -"}},
		{"dropped", "{type: object, properties: {a: {type: string}, b: {type: string}}}", "{type: object, properties: {a: {type: string}}}", "{x: {a: '1', b: '2'}}", []string{"high resources.field-dropped spec.x.b: 2 → -"}},
		{"dropped before", "{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string, maxLength: 9}}}", "{x: {b: '2'}}", nil},
		{"defaulted", "{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string, default: z}}}", "{x: {}}", []string{"low resources.field-defaulted spec.x.a: - → z"}},
		{"another default", "{type: object, properties: {a: {type: integer, default: 1}}}", "{type: object, properties: {a: {type: integer, default: 2}}}", "{x: {}}", []string{"low resources.field-defaulted spec.x.a: 1 → 2"}},
		{"default removed", "{type: object, properties: {a: {type: integer, default: 1}}}", "{type: object, properties: {a: {type: integer}}}", "{x: {}}", []string{"low resources.field-defaulted spec.x.a: 1 → -"}},
		{"set, so the default has no effect", "{type: object, properties: {a: {type: integer}}}", "{type: object, properties: {a: {type: integer, default: 2}}}", "{x: {a: 1}}", nil},
		{"an invalid schema", "{type: string}", "{properties: {a: {}}}", "{x: {a: z}}", []string{"high resources.schema-invalid"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mine := parsed(t, "", "team/widget.yaml", custom("v1", c.resource))
			r := compare(t, State{Objects: parsed(t, "ops/demo", "a.yaml", widget(c.before)), Resources: mine}, State{Objects: parsed(t, "ops/demo", "a.yaml", widget(c.after)), Resources: mine})
			got := []string{}
			for _, f := range r.Findings {
				if f.family() == "resources" {
					got = append(got, lines(&Report{Findings: []Finding{f}})...)
					if f.Operator != "ops/demo" || f.Place.Path == "team/widget.yaml" && f.Place.Line == 0 {
						t.Errorf("operator %q, place %v", f.Operator, f.Place)
					}
				}
			}
			for i := range got {
				got[i] = strings.TrimSpace(got[i])
			}
			if d := cmp.Diff(append([]string{}, c.want...), got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestResourceVersions(t *testing.T) {
	const plain = "{type: object, properties: {spec: {type: object, properties: {x: {type: string}}}}}"
	both := widgetOf(versionEntry("v1", "served: true, storage: true", plain), versionEntry("v1beta1", "served: true, storage: false", plain))
	one := widgetOf(versionEntry("v1", "served: true, storage: true", plain), versionEntry("v1beta1", "served: false, storage: false", plain))
	mine := parsed(t, "", "team/widget.yaml", custom("v1beta1", "{x: a}"))
	r := compare(t, State{Objects: parsed(t, "ops/demo", "a.yaml", both), Resources: mine}, State{Objects: parsed(t, "ops/demo", "a.yaml", one), Resources: mine})
	want := []string{"high crd.version-unserved v1beta1: served → not served", "high resources.version-not-served apiVersion: v1beta1 → v1"}
	if d := cmp.Diff(want, lines(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	r = compare(t, State{Objects: parsed(t, "ops/demo", "a.yaml", both), Resources: mine}, State{Resources: mine})
	want = []string{"critical data.crd-removed: v1, v1beta1 → -", "critical data.resource-orphaned kind"}
	got := lines(r)
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], " : ", ": ")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if !strings.Contains(r.Findings[0].Message, "1 object of this repository") {
		t.Error(r.Findings[0].Message)
	}
	overlaid := compare(t, State{Objects: slices.Concat(parsed(t, "ops/demo", "a.yaml", both), mine)}, State{Objects: mine})
	if d := cmp.Diff(lines(r), lines(overlaid)); d != "" {
		t.Errorf("findings (-resource in another directory +resource in an overlay):\n%s", d)
	}
	if d := cmp.Diff(r.Removals, overlaid.Removals); d != "" || len(overlaid.Removals) != 1 || len(overlaid.Removals[0].Resources) != 1 {
		t.Errorf("uninstall plan (-resource in another directory +resource in an overlay):\n%s", d)
	}
}

// TestStorageDropsFields checks that without conversion, fields that the storage version does not have
// are lost, regardless of the version of the object.
func TestStorageDropsFields(t *testing.T) {
	const (
		wide   = "{type: object, properties: {spec: {type: object, properties: {x: {type: string}}}}}"
		narrow = "{type: object, properties: {spec: {type: object}}}"
	)
	crd := func(storage, other string) string {
		return widgetOf(versionEntry("v1", "served: true, storage: true", storage), versionEntry("v2", "served: true, storage: false", other))
	}
	webhook := "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ops}}}}\n"
	mine := parsed(t, "", "team/widget.yaml", custom("v2", "{x: a}"))
	run := func(before, after string) *Report {
		return compare(t, State{Objects: parsed(t, "ops/demo", "a.yaml", before), Resources: mine}, State{Objects: parsed(t, "ops/demo", "a.yaml", after), Resources: mine})
	}
	r := run(crd(wide, wide), crd(narrow, wide))
	if d := cmp.Diff([]string{"high crd.field-removed v1 spec.x: string → -", "high resources.field-dropped spec.x: a → -"}, lines(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	r = run(crd(wide, wide)+webhook, crd(narrow, wide)+webhook)
	if d := cmp.Diff([]string{"high crd.field-removed v1 spec.x: string → -"}, lines(r)); d != "" || len(r.Notes) != 2 {
		t.Errorf("-want +got\n%s%v", d, r.Notes)
	}
}

func TestAPIs(t *testing.T) {
	budget := "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: demo, namespace: ops}"
	endpoints := "apiVersion: v1\nkind: Endpoints\nmetadata: {name: demo, namespace: ops}"
	state := func(version, docs string) State {
		return State{KubernetesVersion: version, Objects: parsed(t, "ops/demo", "a.yaml", docs)}
	}
	cases := []struct {
		name          string
		before, after State
		want          []string
	}{
		{"new and removed", state("1.34", ""), state("1.34", budget), []string{"high api.removed apiVersion: - → policy/v1beta1"}},
		{"new and deprecated", state("1.24", ""), state("1.24", budget), []string{"low api.deprecated apiVersion: - → policy/v1beta1"}},
		{"Kubernetes upgraded", state("1.24", budget), state("1.25", budget), []string{"high api.removed apiVersion: policy/v1beta1 → policy/v1beta1"}},
		{"as before", state("1.25", budget), state("1.26", budget), nil},
		{"deprecated without removal", state("1.32", endpoints), state("1.33", endpoints), []string{"low api.deprecated apiVersion: v1 → v1"}},
		{"mended", state("1.34", budget), state("1.34", strings.Replace(budget, "v1beta1", "v1", 1)), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, l := range lines(compare(t, c.before, c.after)) {
				if strings.Contains(l, " api.") {
					got = append(got, l)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
	if r := compare(t, state("", ""), state("", budget)); len(r.Notes) != 1 {
		t.Errorf("notes: %v", r.Notes)
	}
}

func TestPins(t *testing.T) {
	base := lockfile.Pin{
		Namespace: "ops", Package: "demo", Version: "1.0.0", Bundle: "demo.v1.0.0", Image: "q/d@sha256:1", Channel: "stable", Approval: "Manual",
		Catalog: lockfile.Catalog{ID: catalog.ID{Namespace: "olm", Name: "community"}}, InstallMode: catalog.OwnNamespace, WatchNamespaces: []string{"ops"},
	}
	with := func(edit func(*lockfile.Pin)) lockfile.Pin {
		p := base
		edit(&p)
		return p
	}
	to := func(version, replaces string) func(*lockfile.Pin) {
		return func(p *lockfile.Pin) {
			p.Version, p.Bundle, p.Image, p.Replaces = version, "demo.v"+version, "q/d@sha256:2", replaces
		}
	}
	cases := []struct {
		name string
		edit func(*lockfile.Pin)
		want []string
	}{
		{"nothing", func(*lockfile.Pin) {}, []string{}},
		{"one hop", to("1.1.0", "demo.v1.0.0"), []string{"info upgrade.version: 1.0.0 → 1.1.0"}},
		{"no edge", to("1.1.0", "demo.v1.0.9"), []string{"medium upgrade.no-edge: 1.0.0 → 1.1.0", "info upgrade.version: 1.0.0 → 1.1.0"}},
		{"hops skipped", func(p *lockfile.Pin) { to("1.2.0", "demo.v1.1.0")(p); p.Skipped = []string{"demo.v1.1.0"} }, []string{"medium upgrade.hops-skipped: 1.0.0 → 1.2.0", "info upgrade.version: 1.0.0 → 1.2.0"}},
		{"back", to("0.9.0", ""), []string{"high upgrade.downgrade: 1.0.0 → 0.9.0"}},
		{"rebuilt", func(p *lockfile.Pin) { p.Image = "q/d@sha256:9" }, []string{"high upgrade.same-version-other-content: q/d@sha256:1 → q/d@sha256:9"}},
		{"channel", func(p *lockfile.Pin) { p.Channel = "fast" }, []string{"low upgrade.channel channel: stable → fast"}},
		{"catalog", func(p *lockfile.Pin) { p.Catalog.ID.Name = "mine" }, []string{"medium upgrade.catalog catalog: olm/community → olm/mine"}},
		{
			"watches all", func(p *lockfile.Pin) { p.InstallMode, p.WatchNamespaces = catalog.AllNamespaces, nil },
			[]string{"medium upgrade.install-mode installMode: OwnNamespace → AllNamespaces", "medium upgrade.watch-widened watchNamespaces: ops → all namespaces"},
		},
		{
			"watches another", func(p *lockfile.Pin) { p.WatchNamespaces = []string{"team"} },
			[]string{"medium upgrade.watch-narrowed watchNamespaces: ops → team", "medium upgrade.watch-widened watchNamespaces: ops → team"},
		},
		{"approval", func(p *lockfile.Pin) { p.Approval = "Automatic" }, []string{"low upgrade.approval approval: Manual → Automatic"}},
		{"storage", func(p *lockfile.Pin) {
			p.Storage = &lockfile.Storage{Stage: lockfile.StorageStore, Objects: []lockfile.StoredVersions{{Definition: "widgets.demo.io", From: "v1beta1", To: "v1"}}}
		}, []string{"low upgrade.storage storage: - → store (widgets.demo.io v1beta1 → v1)"}},
		{"config", func(p *lockfile.Pin) { p.Config = []byte(`{"env":[]}`) }, []string{`info upgrade.config config: - → {"env":[]}`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := lines(compare(t, State{Pins: []lockfile.Pin{base}}, State{Pins: []lockfile.Pin{with(c.edit)}}))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
	if d := cmp.Diff([]string{"medium upgrade.removed: 1.0.0 → -"}, lines(compare(t, State{Pins: []lockfile.Pin{base}}, State{}))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"info upgrade.installed: - → 1.0.0"}, lines(compare(t, State{}, State{Pins: []lockfile.Pin{base}}))); d != "" {
		t.Error(d)
	}
}

// TestOwnObjects checks that quayside's own objects are not reported as a removed operator.
func TestOwnObjects(t *testing.T) {
	r := compare(t, State{Objects: parsed(t, "quayside", "crds/quayside/x.yaml", widget("{type: string}"))}, State{})
	if d := cmp.Diff([]string{"low data.crd-removed: v1 → -"}, lines(r)); d != "" || len(r.Removals) > 0 {
		t.Errorf("-want +got\n%s%v", d, r.Removals)
	}
	if got, want := r.headline(), "no operator changes: 1 low"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCostlyResources validates so many objects of a kind that the limit for validation rules is
// exceeded.
func TestCostlyResources(t *testing.T) {
	const rule = "{type: array, items: {type: string}, x-kubernetes-validations: [{rule: 'self.all(a, self.all(b, self.all(c, true)))'}]}"
	var mine []string
	for i := range 12 {
		mine = append(mine, strings.Replace(custom("v1", "{x: ["+strings.Repeat("a, ", 120)+"a]}"), "mine", fmt.Sprintf("mine-%02d", i), 1))
	}
	r := compare(t, State{}, State{Objects: parsed(t, "ops/demo", "a.yaml", widget(rule)), Resources: parsed(t, "", "team/widget.yaml", strings.Join(mine, "\n---\n"))})
	refused := 0
	for _, f := range r.Findings {
		if f.Rule == "resources.rejected" {
			refused++
		}
	}
	if refused != 10 || len(r.Notes) != 3 || !strings.Contains(r.Notes[0], "mine-10") || !strings.Contains(r.Notes[0], "takes too long") {
		t.Errorf("%d refused, notes %q", refused, r.Notes)
	}
}
