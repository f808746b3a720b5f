package resolve_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
)

// place is one thing that the package says with a position: what it says, and a
// declaration in each dialect that earns it, with ‸ before what is pointed at.
type place struct {
	in     string // where the code takes the position, as positions names it
	says   string
	setup  string // lines of a scenario, before the declaration; none stands for the world of a1 and a2
	run    string // arguments of the run
	whynot string // asks for that version of a instead of running
	broken bool   // catalog olm/cat cannot be read
	direct string // the catalog that was made of the bundle that the declaration names

	v0, v1, own, ocm string // whole documents, or what documents completes; empty where the dialect cannot say it
}

// documents returns the declarations of the row, each complete.
func (p place) documents() map[string]string {
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

func places() []place {
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
	around := func(p place, spec string) place { // the same OperatorGroup beside each dialect
		g := fmt.Sprintf(group, spec)
		p.v0, p.v1, p.own = g+withV0, g+withV1, g+withOwn
		p.ocm = strings.Replace(withOCM, "spec: {", "spec: {operatorGroup: {name: og, "+spec+"}, ", 1)
		return p
	}
	return []place{
		{
			in: "bundle %q is in no catalog", says: "is in no catalog",
			v1: `sourceType: OCIImage, ociImage: {ref: ‸quay.io/x}`, own: `bundle: ‸"image:quay.io/x"`,
		},
		{
			in: "package %q is in several catalogs: %s", says: `package "a" is in several catalogs`, setup: both,
			v1: `sourceType: Catalog, catalog: {packageName: ‸a}`, own: `package: ‸a`, ocm: `name: ‸a, namespace: ops`,
		},
		{
			in: "package %q is in several catalogs: %s", says: `package "a" is in several catalogs`, setup: both,
			v1: `sourceType: Catalog, catalog: {packageName: a, selector: ‸{}}`,
		},
		{
			in: "catalog %s cannot be used: %v", says: "catalog olm/cat cannot be used", broken: true,
			v0: `name: a, source: ‸cat, sourceNamespace: olm`, own: `package: a, catalog: ‸olm/cat`, ocm: `name: a, namespace: ops, source: ‸cat, sourceNamespace: olm`,
		},
		{
			in: "catalog %s cannot be used: %v", says: "catalog olm/cat cannot be used", broken: true, direct: "cat",
			v1: `sourceType: OCIImage, ociImage: {ref: ‸quay.io/x}`, own: `bundle: ‸"image:quay.io/x"`,
		},
		{in: "no catalog %s%s", says: "no catalog olm/cut", v0: `name: a, source: ‸cut, sourceNamespace: olm`, own: `package: a, catalog: ‸olm/cut`, ocm: `name: a, namespace: ops, source: ‸cut, sourceNamespace: olm`},
		{
			in: "catalog %s is not visible in namespace %s, and those of namespace %s are", says: "catalog team/hidden is not visible", setup: "catalog hidden 0 team\nstable: a1\n",
			v0: `name: a, source: hidden, sourceNamespace: ‸team`, own: `package: a, catalog: ‸team/hidden`, ocm: `name: a, namespace: ops, source: hidden, sourceNamespace: ‸team`,
		},
		{
			in: "no package %q %s", says: `no package "b"`,
			v0: `name: ‸b, source: cat, sourceNamespace: olm`, v1: `sourceType: Catalog, catalog: {packageName: ‸b}`, own: `package: ‸b`, ocm: `name: ‸b, namespace: ops`,
		},
		{
			in: "packages", says: `no package "a" in any visible catalog`,
			v1: `sourceType: Catalog, catalog: {packageName: a, selector: ‸{matchLabels: {tier: gold}}}`,
		},
		{
			in: "channel %q not in package %s (have %s)", says: `channel "stabel" not in package a`,
			v0: `channel: ‸stabel, ` + hub, v1: `sourceType: Catalog, catalog: {packageName: a, channels: [‸stabel]}`, own: `package: a, channel: ‸stabel`, ocm: `channel: ‸stabel, name: a, namespace: ops`,
		},
		{
			in: "package %s has no version %q%s%s", says: `package a has no version "9.0.0"`, run: "up=a@9",
			v0: `channel: stable, name: ‸a, source: cat, sourceNamespace: olm`, v1: `sourceType: Catalog, catalog: {packageName: ‸a}`, own: `package: ‸a`,
		},
		{
			in: "no bundle %q in package %s%s", says: `no bundle "a.v9" in package a`,
			v0: `startingCSV: ‸a.v9, ` + hub, ocm: `startingCSV: ‸a.v9, name: a, namespace: ops`,
		},
		{
			in: "no version of package %s%s is %s%s", says: `no version of package a in channel stable is among those listed (a.v9)`,
			ocm: strings.Replace(withOCM, "spec: {", "spec: {versions: ‸[a.v9], ", 1),
		},
		{
			in: "no version of package %s%s is %s%s", says: `no version of package a is in the range ">=9"`,
			v1: `sourceType: Catalog, catalog: {packageName: a, version: ‸">=9"}`, own: `package: a, version: ‸">=9"`,
		},
		{
			in: "no edge leads from %s to version %s of package %s%s", says: "no edge leads from a.v2.0.0 to version 3.0.0", run: "up=a@3", setup: installed + "beta: a3\n",
			v0: `name: ‸a, source: cat, sourceNamespace: olm`, v1: `sourceType: Catalog, catalog: {packageName: ‸a}`, own: `package: ‸a`,
		},
		{
			in: "%s %s is installed, and what is asked for is %s: versions do not go down", says: "versions do not go down", direct: "old",
			setup: "stable: a2\nsub a start=a2\nrun\nunsub a\ncatalog old 0\nstable: a1\n",
			v1:    `sourceType: OCIImage, ociImage: {ref: ‸quay.io/x}`, own: `bundle: ‸"image:quay.io/x"`,
		},
		{
			in: "%s %s is installed, which is not %s, and no upgrade leads into it", says: "a 2.0.0 is installed, which is not among those listed (a.v9)", setup: installed, run: "up=a",
			ocm: strings.Replace(withOCM, "spec: {", "spec: {versions: ‸[a.v9], ", 1),
		},
		{
			in: "%s %s is installed, which is not %s, and no upgrade leads into it", says: "a 2.0.0 is installed, which is not in the range", setup: installed, run: "up=a",
			v1: `sourceType: Catalog, catalog: {packageName: a, version: ‸">=9"}`, own: `package: a, version: ‸">=9"`,
		},

		{
			in: "catalog %s does not tell which namespace bundle %q suggests: name one in spec.namespace", says: `catalog olm/cat does not tell which namespace bundle "a.v2.0.0" suggests`,
			v1: strings.Replace(withV1, "{namespace: ops, ", "‸{", 1),
		},
		{
			in: "bundle %q suggests no namespace that can be: %w; name one in spec.namespace", says: `bundle "a.v2.0.0" suggests no namespace that can be: "A.B"`, setup: two + "bundle a2 suggests A.B\n",
			v1: strings.Replace(withV1, "{namespace: ops, ", "‸{", 1),
		},

		around(place{in: "spec.selector", says: "its selector matches no declared Namespace", setup: two + "group none ops\n"}, "selector: ‸{matchLabels: {team: x}}"),
		around(place{in: "spec.serviceAccountName", says: "serviceAccountName is not honoured", setup: two + "group none ops\n"}, "serviceAccountName: ‸x"),
		around(place{in: "spec.targetNamespaces", says: "let OperatorGroup og watch namespace ops", setup: narrow}, "targetNamespaces: ‸[b, c]"),
		{
			in: "keep OperatorGroup ", says: "keep OperatorGroup og alone in namespace ops", setup: two + "group none ops\n",
			v0: fmt.Sprintf(group, "") + "‸" + strings.Replace(fmt.Sprintf(group, ""), "name: og", "name: other", 1) + withV0,
		},
		{in: "let it watch namespace ", says: "let it watch namespace ops", setup: narrow, own: `package: a, watchNamespaces: ‸[b, c]`},
		{in: "let it watch all namespaces", says: "let it watch all namespaces", setup: strings.ReplaceAll(narrow, "OwnNamespace", "AllNamespaces"), own: `package: a, watchNamespaces: ‸[b, c]`},
		{
			in: "set startingCSV: ", says: "set startingCSV: a.v1.0.0",
			v0: `startingCSV: ‸a.v1.0.1, ` + hub, ocm: `startingCSV: ‸a.v1.0.1, name: a, namespace: ops`,
		},
		{
			in: "ask for package ", says: "ask for package a, channel stable",
			v0: `channel: fast, name: ‸aa, source: cat, sourceNamespace: olm`, v1: `sourceType: Catalog, catalog: {packageName: ‸aa, channels: [fast]}`, own: `package: ‸aa, channel: fast`,
		},
		{
			in: "leave out startingCSV", says: "leave out startingCSV",
			v0: `startingCSV: ‸a.v9, ` + hub, ocm: `startingCSV: ‸a.v9, name: a, namespace: ops`,
		},
		{
			in: "ask for it from catalog ", says: "ask for it from catalog olm/cat",
			v0: `name: a, source: ‸cut, sourceNamespace: olm`, own: `package: a, catalog: ‸olm/cut`,
		},
		{in: "ask for it from catalog ", says: "ask for it from catalog olm/cat", setup: both, v1: `sourceType: Catalog, catalog: {packageName: ‸a}`},
		{
			in: "allow ", says: "allow a.v2.0.0",
			ocm: strings.Replace(withOCM, "spec: {", "spec: {versions: ‸[a.v9], ", 1),
		},
		{
			in: "ask for version ", says: "ask for version 2.0.0",
			v1: `sourceType: Catalog, catalog: {packageName: a, version: ‸">=9"}`, own: `package: a, version: ‸">=9"`,
		},
		{
			in: "take out the hold", says: "take out the hold", setup: installed + "stable: a1 a2<a1 a3<a2\nstable: b1\nbundle b1 needs a >=3.0.0\n",
			own: strings.Replace(withOwn, "package: a", "package: a, hold: ‸later", 1) + "---\n" + strings.ReplaceAll(withOwn, ": a", ": b"),
		},
		{
			in: "take it over: set status.installedCSV: ", says: "take it over: set status.installedCSV: a.v1.0.0", setup: two + "csv a1\n",
			v0: strings.Replace(withV0, "apiVersion", "‸apiVersion", 1),
		},
		{
			in: "place", says: "move subscription ops/a to", setup: two + "stable: b1\nbundle a1 gives A\nbundle a2 gives A\nbundle b1 gives A\ngroup ops ops\n",
			own: strings.Replace(withOwn, "namespace: ops", "namespace: ‸ops", 1) + "---\n" + strings.ReplaceAll(withOwn, ": a", ": b"),
		},
		{
			in: "space", says: "namespace ops has 2 OperatorGroups", setup: two + "group none ops\n",
			v0:  fmt.Sprintf(group, "") + "‸" + strings.Replace(fmt.Sprintf(group, ""), "name: og", "name: other", 1) + withV0,
			v1:  fmt.Sprintf(group, "") + "‸" + strings.Replace(fmt.Sprintf(group, ""), "name: og", "name: other", 1) + withV1,
			own: fmt.Sprintf(group, "") + "‸" + strings.Replace(fmt.Sprintf(group, ""), "name: og", "name: other", 1) + withOwn,
		},
		{in: "no-operatorgroup", says: "namespace ops has no OperatorGroup", setup: two + "group none ops\n", v0: strings.Replace(withV0, "namespace: ops", "namespace: ‸ops", 1)},
		{
			in: "state-differs", says: "the lock counts", setup: installed,
			v0: withV0 + "status: {installedCSV: ‸a.v1.0.0}\n", v1: withV1 + "status: {install: {bundle: {name: ‸a.v1.0.0}}}\n",
		},

		// What a conflict or a warning begins with: what is asked for.
		{
			in: "warnFor", says: "bundle a.v2.0.0 is deprecated", setup: two + "bundle a2 message no more\n",
			v0: `channel: ‸stable, ` + hub, v1: `sourceType: Catalog, catalog: {packageName: a, channels: [‸stable], version: ">=2"}`, own: `package: a, channel: ‸stable`,
		},
		{
			in: "warnFor", says: "bundle a.v2.0.0 is deprecated", setup: two + "bundle a2 message no more\n",
			v0: `name: ‸a, source: cat, sourceNamespace: olm`, v1: `sourceType: Catalog, catalog: {packageName: ‸a, version: ">=2"}`, own: `package: ‸a`,
		},
		{
			in: "where", says: "subscription ops/a asks for package a", setup: two + "bundle a1 needs b >=1\nbundle a2 needs b >=1\n",
			v0: `channel: ‸stable, ` + hub, v1: `sourceType: Catalog, catalog: {packageName: a, channels: [‸stable]}`, own: `package: a, channel: ‸stable`,
		},
		{
			in: "ask for channel ", says: "ask for channel beta", setup: two + "beta: a2 a3<a2\n", whynot: "3.0.0",
			v0: `channel: ‸stable, ` + hub, v1: `sourceType: Catalog, catalog: {packageName: a, channels: [‸stable]}`, own: `package: a, channel: ‸stable`,
		},
		{in: "succession", says: "does not provide all that it provides", setup: "stable: b1\nbundle b1 gives K\nsub b\nrun\nunsub b\n", own: `package: a, replaces: ‸ops/b`},
		{in: "replaces-nothing", says: "of which the lock has nothing", own: `package: a, replaces: ‸ops/b`},
	}
}

// elsewhere is where positions are taken that are no declaration's, or of a
// declaration as a whole.
func elsewhere() []string {
	return []string{
		"pos", "asked", // they hand on what others ask for
		"version range %q: %v", // the reader of declarations refuses such a range
		"remove subscription ", // the declaration as a whole is to go
		"Why",                  // likewise: who asks
	}
}

func TestPositions(t *testing.T) {
	for _, p := range places() {
		for dialect, text := range p.documents() {
			t.Run(p.in+"/"+dialect, func(t *testing.T) { p.check(t, text) })
		}
	}
}

func (p place) check(t *testing.T, text string) {
	before, after, found := strings.Cut(text, "‸")
	if !found {
		t.Fatal("nothing is marked")
	}
	want := diag.Pos{File: "d.yaml", Line: 1 + strings.Count(before, "\n"), Col: len(before) - strings.LastIndex(before, "\n")}
	set, err := subscription.Parse("d.yaml", []byte(before+after))
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

	var said []string
	for _, l := range p.said(t, s) {
		if strings.Contains(l.Text, p.says) {
			if l.At == want.String() {
				return
			}
			said = append(said, l.At)
		}
	}
	t.Errorf("%q is said of %q, want it at %s of\n%s", p.says, said, want, text)
}

// said returns all that is told, with where.
func (p place) said(t *testing.T, s *scenario) []resolve.Link {
	var out []resolve.Link
	tell := func(c *resolve.Conflict) {
		out = append(out, c.Chain...)
		for _, ch := range c.Changes {
			out = append(out, resolve.Link{At: ch.At, Text: ch.Text})
		}
	}
	if p.whynot != "" {
		o, err := resolve.WhyNot(s.index(), &s.decl, s.lock, s.opt, resolve.Target{Namespace: "ops", Package: "a", Version: p.whynot})
		if err != nil {
			t.Fatal(err)
		}
		tell(&resolve.Conflict{Changes: o.Changes})
		return out
	}
	x := s.index()
	if p.broken {
		x = x.WithBroken(catalog.ID{Namespace: "olm", Name: "cat"}, errors.New("no answer"))
	}
	var faults diag.List
	if _, err := resolve.Namespaced(x, &s.decl, s.lock, s.opt); errors.As(err, &faults) {
		for _, f := range faults {
			out = append(out, resolve.Link{At: f.Pos.String(), Text: f.Error()})
		}
		return out
	}
	s.resolveIn(x, strings.Fields(p.run))
	if s.res == nil {
		t.Fatal(s.err)
	}
	for _, w := range s.res.Warnings {
		out = append(out, resolve.Link{At: w.Pos.String(), Text: w.Msg})
	}
	for _, c := range s.res.Conflicts {
		tell(c)
	}
	return out
}

// TestEveryPositionHasARow finds in the sources where positions are taken, and
// wants each in the table.
func TestEveryPositionHasARow(t *testing.T) {
	rows := elsewhere()
	for _, p := range places() {
		rows = append(rows, p.in)
	}
	taken := positions(t)
	for _, in := range taken {
		if !slices.Contains(rows, in) {
			t.Errorf("%q: no row of places holds what it points at in each dialect", in)
		}
	}
	for _, in := range rows {
		if !slices.Contains(taken, in) {
			t.Errorf("%q: in the table, but not in the sources", in)
		}
	}
}

// positions names every place in the package that takes a position of what was
// declared: by the text that goes with it, else by the function. Those in
// check.go are of the lock.
func positions(t *testing.T) []string {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "check.go" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		var path []ast.Node
		ast.Inspect(parsed, func(n ast.Node) bool {
			if n == nil {
				path = path[:len(path)-1]
				return true
			}
			path = append(path, n)
			if takes(path) {
				out = append(out, nameOf(path))
			}
			return true
		})
	}
	return out
}

// takes reports whether the innermost node of path takes a position of what was
// declared: a call of one of the methods, or the field Pos.
func takes(path []ast.Node) bool {
	sel, ok := path[len(path)-1].(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if x, ok := sel.X.(*ast.Ident); ok && x.Name == "diag" {
		return false
	}
	call, ok := path[len(path)-2].(*ast.CallExpr)
	return sel.Sel.Name == "Pos" || ok && call.Fun == sel && slices.Contains([]string{"pos", "asked", "At"}, sel.Sel.Name)
}

// nameOf returns the first text beside the innermost node of path.
func nameOf(path []ast.Node) string {
	for i := len(path) - 1; i >= 0; i-- {
		switch n := path[i].(type) {
		case *ast.CompositeLit, *ast.CallExpr:
			if s := firstText(n); s != "" {
				return s
			}
		case *ast.FuncDecl:
			return n.Name.Name
		}
	}
	return ""
}

func firstText(n ast.Node) string {
	text := ""
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && text == "" {
			text, _ = strconv.Unquote(lit.Value)
		}
		return text == ""
	})
	return text
}
