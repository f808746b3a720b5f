package resolve_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// positionCase is an expected message with the declarations that cause it, one in each dialect. The character ‸
// in a declaration marks the position that the message must have.
type positionCase struct {
	text   string
	setup  string // lines of a scenario, run before the declaration; default: a package with versions a1 and a2
	run    string // arguments of the run
	whynot string // calls WhyNot for this version of a instead of Resolve
	broken bool   // catalog olm/cat cannot be read
	direct string // the catalog with only the bundle that the declaration names

	v0, v1, own, ocm string // complete documents, or fragments that the method documents completes; empty: the dialect cannot cause the message
}

// documents returns the complete declarations of the case by dialect.
func (p positionCase) documents() map[string]string {
	out := map[string]string{}
	for _, d := range []struct{ dialect, text, head, foot string }{
		{"v0", p.v0, "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ops}\nspec:\n  {", "}\n"},
		{"v1", p.v1, "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {name: a}\nspec:\n  namespace: ops\n  source: {", "}\n"},
		{"own", p.own, "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ops}\nspec:\n  {", "}\n"},
		{"ocm", p.ocm, "apiVersion: policy.open-cluster-management.io/v1beta1\nkind: OperatorPolicy\nmetadata: {name: a}\nspec:\n  remediationAction: enforce\n  complianceType: musthave\n  upgradeApproval: Automatic\n  subscription: {", "}\n"},
	} {
		switch {
		case d.text == "":
		case strings.Contains(d.text, "apiVersion: "):
			out[d.dialect] = d.text
		default:
			out[d.dialect] = d.head + d.text + d.foot
		}
	}
	return out
}

func positionCases() []positionCase {
	const (
		hub       = "name: a, source: cat, sourceNamespace: olm"
		two       = "stable: a1 a2<a1\n"
		installed = two + "sub a start=a2\nrun\nunsub a\n"
		both      = two + "catalog other 0\nstable: a1\n"
		narrow    = two + "bundle a1 modes OwnNamespace\nbundle a2 modes OwnNamespace\ngroup none ops\n"
		group     = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: og, namespace: ops}\nspec: {%s}\n---\n"
		withV0    = "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ops}\nspec: {" + hub + "}\n"
		withV1    = "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {name: a}\nspec: {namespace: ops, source: {sourceType: Catalog, catalog: {packageName: a}}}\n"
		withOCM   = "apiVersion: policy.open-cluster-management.io/v1beta1\nkind: OperatorPolicy\nmetadata: {name: a}\nspec: {complianceType: musthave, upgradeApproval: Automatic, subscription: {name: a, namespace: ops}}\n"
		withOwn   = "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ops}\nspec: {package: a}\n"
	)
	around := func(p positionCase, spec string) positionCase { // adds the same OperatorGroup to each dialect
		g := fmt.Sprintf(group, spec)
		p.v0, p.v1, p.own = g+withV0, g+withV1, g+withOwn
		p.ocm = strings.Replace(withOCM, "spec: {", "spec: {operatorGroup: {name: og, "+spec+"}, ", 1)
		return p
	}
	return []positionCase{
		{
			text: "is not in any catalog",
			v1:   `sourceType: OCIImage, ociImage: {ref: ‸quay.io/x}`, own: `bundle: ‸"image:quay.io/x"`,
		},
		{
			text: `package "a" is in several catalogs`, setup: both,
			v1: `sourceType: Catalog, catalog: {packageName: ‸a}`, own: `package: ‸a`, ocm: `name: ‸a, namespace: ops`,
		},
		{
			text: `package "a" is in several catalogs`, setup: both,
			v1: `sourceType: Catalog, catalog: {packageName: a, selector: ‸{}}`,
		},
		{
			text: "catalog olm/cat cannot be used", broken: true,
			v0: `name: a, source: ‸cat, sourceNamespace: olm`, own: `package: a, catalog: ‸olm/cat`, ocm: `name: a, namespace: ops, source: ‸cat, sourceNamespace: olm`,
		},
		{
			text: "catalog olm/cat cannot be used", broken: true, direct: "cat",
			v1: `sourceType: OCIImage, ociImage: {ref: ‸quay.io/x}`, own: `bundle: ‸"image:quay.io/x"`,
		},
		{text: "no catalog olm/cut", v0: `name: a, source: ‸cut, sourceNamespace: olm`, own: `package: a, catalog: ‸olm/cut`, ocm: `name: a, namespace: ops, source: ‸cut, sourceNamespace: olm`},
		{
			text: "catalog team/hidden is not visible", setup: "catalog hidden 0 team\nstable: a1\n",
			v0: `name: a, source: hidden, sourceNamespace: ‸team`, own: `package: a, catalog: ‸team/hidden`, ocm: `name: a, namespace: ops, source: hidden, sourceNamespace: ‸team`,
		},
		{
			text: `no package "b"`,
			v0:   `name: ‸b, source: cat, sourceNamespace: olm`, v1: `sourceType: Catalog, catalog: {packageName: ‸b}`, own: `package: ‸b`, ocm: `name: ‸b, namespace: ops`,
		},
		{
			text: `no package "a" in any visible catalog`,
			v1:   `sourceType: Catalog, catalog: {packageName: a, selector: ‸{matchLabels: {tier: gold}}}`,
		},
		{
			text: `channel "stabel" not in package a`,
			v0:   `channel: ‸stabel, ` + hub, v1: `sourceType: Catalog, catalog: {packageName: a, channels: [‸stabel]}`, own: `package: a, channel: ‸stabel`, ocm: `channel: ‸stabel, name: a, namespace: ops`,
		},
		{
			text: `package a has no version "9.0.0"`, run: "up=a@9",
			v0: `channel: stable, name: ‸a, source: cat, sourceNamespace: olm`, v1: `sourceType: Catalog, catalog: {packageName: ‸a}`, own: `package: ‸a`,
		},
		{
			text: `no bundle "a.v9" in package a`,
			v0:   `startingCSV: ‸a.v9, ` + hub, ocm: `startingCSV: ‸a.v9, name: a, namespace: ops`,
		},
		{
			text: `no version of package a in channel stable is among the listed versions (a.v9)`,
			ocm:  strings.Replace(withOCM, "spec: {", "spec: {versions: ‸[a.v9], ", 1),
		},
		{
			text: `no version of package a is in the range ">=9"`,
			v1:   `sourceType: Catalog, catalog: {packageName: a, version: ‸">=9"}`, own: `package: a, version: ‸">=9"`,
		},
		{
			text: "no upgrade edge from a.v2.0.0 to version 3.0.0", run: "up=a@3", setup: installed + "beta: a3\n",
			v0: `name: ‸a, source: cat, sourceNamespace: olm`, v1: `sourceType: Catalog, catalog: {packageName: ‸a}`, own: `package: ‸a`,
		},
		{
			text: "downgrades are not allowed", direct: "old",
			setup: "stable: a2\nsub a start=a2\nrun\nunsub a\ncatalog old 0\nstable: a1\n",
			v1:    `sourceType: OCIImage, ociImage: {ref: ‸quay.io/x}`, own: `bundle: ‸"image:quay.io/x"`,
		},
		{
			text: "no version of package a in channel stable is among the listed versions (a.v9) (the newest is 2.0.0); 2.0.0 is installed", setup: installed, run: "up=a",
			ocm: strings.Replace(withOCM, "spec: {", "spec: {versions: ‸[a.v9], ", 1),
		},
		{
			text: `no version of package a is in the range ">=9" (the newest is 2.0.0); 2.0.0 is installed`, setup: installed, run: "up=a",
			v1: `sourceType: Catalog, catalog: {packageName: a, version: ‸">=9"}`, own: `package: a, version: ‸">=9"`,
		},

		{
			text: `catalog olm/cat does not contain the namespace that bundle "a.v2.0.0" suggests`,
			v1:   strings.Replace(withV1, "{namespace: ops, ", "‸{", 1),
		},
		{
			text: `bundle "a.v2.0.0" suggests an invalid namespace: "A.B"`, setup: two + "bundle a2 suggests A.B\n",
			v1: strings.Replace(withV1, "{namespace: ops, ", "‸{", 1),
		},

		around(positionCase{text: "its selector matches no declared Namespace", setup: two + "group none ops\n"}, "selector: ‸{matchLabels: {team: x}}"),
		around(positionCase{text: "serviceAccountName is ignored", setup: two + "group none ops\n"}, "serviceAccountName: ‸x"),
		around(positionCase{text: "make OperatorGroup og watch namespace ops", setup: narrow}, "targetNamespaces: ‸[b, c]"),
		{
			text: "keep only OperatorGroup og in namespace ops", setup: two + "group none ops\n",
			v0: fmt.Sprintf(group, "") + "‸" + strings.Replace(fmt.Sprintf(group, ""), "name: og", "name: other", 1) + withV0,
		},
		{text: "make it watch namespace ops", setup: narrow, own: `package: a, watchNamespaces: ‸[b, c]`},
		{text: "make it watch all namespaces", setup: strings.ReplaceAll(narrow, "OwnNamespace", "AllNamespaces"), own: `package: a, watchNamespaces: ‸[b, c]`},
		{
			text: "set startingCSV: a.v1.0.0",
			v0:   `startingCSV: ‸a.v1.0.1, ` + hub, ocm: `startingCSV: ‸a.v1.0.1, name: a, namespace: ops`,
		},
		{
			text: "remove startingCSV",
			v0:   `startingCSV: ‸a.v9, ` + hub, ocm: `startingCSV: ‸a.v9, name: a, namespace: ops`,
		},
		{
			text: "set its catalog to olm/cat",
			v0:   `name: a, source: ‸cut, sourceNamespace: olm`, own: `package: a, catalog: ‸olm/cut`,
		},
		{text: "set its catalog to olm/cat", setup: both, v1: `sourceType: Catalog, catalog: {packageName: ‸a}`},
		{
			text: "allow a.v2.0.0",
			ocm:  strings.Replace(withOCM, "spec: {", "spec: {versions: ‸[a.v9], ", 1),
		},
		{
			text: "request version 2.0.0",
			v1:   `sourceType: Catalog, catalog: {packageName: a, version: ‸">=9"}`, own: `package: a, version: ‸">=9"`,
		},
		{
			text: "remove the hold", setup: installed + "stable: a1 a2<a1 a3<a2\nstable: b1\nbundle b1 needs a >=3.0.0\n",
			own: strings.Replace(withOwn, "package: a", "package: a, hold: ‸later", 1) + "---\n" + strings.ReplaceAll(withOwn, ": a", ": b"),
		},
		{
			text: "adopt it: set status.installedCSV: a.v1.0.0", setup: two + "csv a1\n",
			v0: strings.Replace(withV0, "apiVersion", "‸apiVersion", 1),
		},
		{
			text: "move subscription ops/a to", setup: two + "stable: b1\nbundle a1 gives A\nbundle a2 gives A\nbundle b1 gives A\ngroup ops ops\n",
			own: strings.Replace(withOwn, "namespace: ops", "namespace: ‸ops", 1) + "---\n" + strings.ReplaceAll(withOwn, ": a", ": b"),
		},
		{
			text: "namespace ops has 2 OperatorGroups", setup: two + "group none ops\n",
			v0:  fmt.Sprintf(group, "") + "‸" + strings.Replace(fmt.Sprintf(group, ""), "name: og", "name: other", 1) + withV0,
			v1:  fmt.Sprintf(group, "") + "‸" + strings.Replace(fmt.Sprintf(group, ""), "name: og", "name: other", 1) + withV1,
			own: fmt.Sprintf(group, "") + "‸" + strings.Replace(fmt.Sprintf(group, ""), "name: og", "name: other", 1) + withOwn,
		},
		{text: "namespace ops has no OperatorGroup", setup: two + "group none ops\n", v0: strings.Replace(withV0, "namespace: ops", "namespace: ‸ops", 1)},
		{
			text: ", which is used", setup: installed,
			v0: withV0 + "status: {installedCSV: ‸a.v1.0.0}\n", v1: withV1 + "status: {install: {bundle: {name: ‸a.v1.0.0}}}\n",
		},

		// Conflicts and warnings that begin with the position of the request.
		{
			text: "bundle a.v2.0.0 is deprecated", setup: two + "bundle a2 message no more\n",
			v0: `channel: ‸stable, ` + hub, v1: `sourceType: Catalog, catalog: {packageName: a, channels: [‸stable], version: ">=2"}`, own: `package: a, channel: ‸stable`,
		},
		{
			text: "bundle a.v2.0.0 is deprecated", setup: two + "bundle a2 message no more\n",
			v0: `name: ‸a, source: cat, sourceNamespace: olm`, v1: `sourceType: Catalog, catalog: {packageName: ‸a, version: ">=2"}`, own: `package: ‸a`,
		},
		{
			text: "subscription ops/a requests package a", setup: two + "bundle a1 needs b >=1\nbundle a2 needs b >=1\n",
			v0: `channel: ‸stable, ` + hub, v1: `sourceType: Catalog, catalog: {packageName: a, channels: [‸stable]}`, own: `package: a, channel: ‸stable`,
		},
		{
			text: "request channel beta", setup: two + "beta: a2 a3<a2\n", whynot: "3.0.0",
			v0: `channel: ‸stable, ` + hub, v1: `sourceType: Catalog, catalog: {packageName: a, channels: [‸stable]}`, own: `package: a, channel: ‸stable`,
		},
		{text: "does not provide all APIs of ops/b", setup: "stable: b1\nbundle b1 gives K\nsub b\nrun\nunsub b\n", own: `package: a, replaces: ‸ops/b`},
		{text: "which is not in the lock", own: `package: a, replaces: ‸ops/b`},
	}
}

func TestPositions(t *testing.T) {
	for _, p := range positionCases() {
		for dialect, text := range p.documents() {
			t.Run(p.text+"/"+dialect, func(t *testing.T) { p.check(t, text) })
		}
	}
}

func (p positionCase) check(t *testing.T, text string) {
	before, after, found := strings.Cut(text, "‸")
	if !found {
		t.Fatal("no marked position")
	}
	want := diag.Pos{File: "d.yaml", Line: 1 + strings.Count(before, "\n"), Col: len(before) - strings.LastIndex(before, "\n")}
	set, err := declare.Parse("d.yaml", []byte(before+after))
	if err != nil {
		t.Fatal(err)
	}
	s := newScenario(t)
	s.run("stable: a1 a2<a1\n" + p.setup)
	if p.direct != "" {
		set.Subscriptions[0].Package, set.Subscriptions[0].Catalog = "a", &catalog.ID{Namespace: "olm", Name: p.direct}
	}
	s.decl.Subscriptions = set.Subscriptions
	s.decl.OperatorGroups = append(s.decl.OperatorGroups, set.OperatorGroups...)

	var positions []string
	for _, l := range p.messages(t, s) {
		if strings.Contains(l.Text, p.text) {
			if l.At == want.String() {
				return
			}
			positions = append(positions, l.At)
		}
	}
	t.Errorf("%q is reported at %q, want %s of\n%s", p.text, positions, want, text)
}

// messages returns all messages with their positions.
func (p positionCase) messages(t *testing.T, s *scenario) []explain.Link {
	var out []explain.Link
	tell := func(c *explain.Conflict) {
		out = append(out, c.Chain...)
		for _, ch := range c.Changes {
			out = append(out, explain.Link{At: ch.At, Text: ch.Text})
		}
	}
	if p.whynot != "" {
		o, err := resolve.WhyNot(s.index(), &s.decl, s.lock, s.opt, resolve.Target{Namespace: "ops", Package: "a", Version: p.whynot})
		if err != nil {
			t.Fatal(err)
		}
		tell(&explain.Conflict{Changes: o.Changes})
		return out
	}
	x := s.index()
	if p.broken {
		x = x.WithBroken(catalog.ID{Namespace: "olm", Name: "cat"}, errors.New("no response within"))
	}
	var faults diag.List
	if _, err := resolve.Namespaced(x, &s.decl, s.lock, s.opt); errors.As(err, &faults) {
		for _, f := range faults {
			out = append(out, explain.Link{At: f.Pos.String(), Text: f.Error()})
		}
		return out
	}
	s.resolveIn(x, strings.Fields(p.run))
	if s.res == nil {
		t.Fatal(s.err)
	}
	for _, w := range s.res.Warnings {
		out = append(out, explain.Link{At: w.Pos.String(), Text: w.Msg})
	}
	for _, c := range s.res.Conflicts {
		tell(c)
	}
	return out
}
