package diff

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/lockfile"
)

// demo returns an upgrade, an installation and a removal that cover every family of rules.
func demo(t testing.TB) (before, after State) {
	t.Helper()
	const crd = "crds/demo/customresourcedefinition-widgets.demo.io.yaml"
	pin := func(pkg, version, bundle, replaces string) lockfile.Pin {
		return lockfile.Pin{Namespace: "ops", Package: pkg, Version: version, Bundle: bundle, Replaces: replaces, Image: "q/" + pkg + "@sha256:" + version, Pos: diag.Pos{File: "quayside.lock", Line: 9, Col: 3}}
	}
	load := func(operator string, files ...string) []Object {
		var out []Object
		for i := 0; i+1 < len(files); i += 2 {
			out = append(out, parsed(t, operator, files[i], files[i+1])...)
		}
		return out
	}
	mine := parsed(t, "", "team/widget.yaml", custom("v1", "{x: {a: one, b: two}}"))
	gadget := parsed(t, "", "team/gadget.yaml", "apiVersion: old.io/v1\nkind: Gadget\nmetadata: {name: g, namespace: team, finalizers: [old.io/keep]}\n")
	gadgets := strings.NewReplacer("demo.io", "old.io", "widgets", "gadgets", "Widget", "Gadget", "widget", "gadget",
		"metadata: {name: widgets.demo.io", "metadata: {annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}, name: gadgets.old.io").Replace(widget("{type: string}"))
	before = State{
		Name: "main:quayside.lock", KubernetesVersion: "1.34", Pins: []lockfile.Pin{pin("demo", "1.0.0", "demo.v1.0.0", ""), pin("old", "0.1.0", "old.v0.1.0", "")},
		Objects: slices.Concat(
			load("ops/demo", crd, widget("{type: object, properties: {a: {type: string}, b: {type: string}}}"),
				"operators/ops/demo/deployment-demo.yaml", container(""), "operators/ops/demo/clusterrole-demo.yaml", clusterRole(rule("''", "pods", "get")),
				"operators/ops/demo/clusterrolebinding-demo.yaml", binding, "operators/ops/demo/serviceaccount-demo.yaml", account),
			load("ops/old", "crds/old/gadgets.yaml", gadgets, "operators/ops/old/clusterrole-old.yaml",
				rbacHead+"kind: ClusterRole\nmetadata: {name: old}\nrules: ["+rule("old.io", "gadgets/finalizers", "update")+"]",
				"operators/ops/old/webhook.yaml", strings.ReplaceAll(hook("rules: [{apiGroups: [old.io], apiVersions: [v1], resources: [gadgets], operations: [DELETE]}]"), "demo", "old")),
		),
		Resources: append(mine, gadget...),
	}
	after = State{
		Name: "work tree", KubernetesVersion: "1.34", Pins: []lockfile.Pin{pin("demo", "2.0.0", "demo.v2.0.0", "demo.v1.0.0"), pin("fresh", "0.1.0", "fresh.v0.1.0", "")},
		Objects: slices.Concat(
			load("ops/demo", crd, widget("{type: object, required: [c], properties: {a: {type: string, enum: [two]}, c: {type: string}}}"),
				"operators/ops/demo/deployment-demo.yaml", strings.ReplaceAll(container(", env: [{name: A, value: '1'}]"), "sha256:1", "sha256:2"),
				"operators/ops/demo/clusterrole-demo.yaml", clusterRole(rule("''", "pods", "get"), rule("''", "secrets", "get, list"), rule("batch", "jobs", "create")),
				"operators/ops/demo/clusterrolebinding-demo.yaml", binding, "operators/ops/demo/serviceaccount-demo.yaml", account,
				"operators/ops/demo/webhook.yaml", hook("rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]")),
			load("ops/fresh", "operators/ops/fresh/poddisruptionbudget-fresh.yaml", "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: fresh, namespace: ops}"),
		),
		Resources: append(mine, gadget...),
	}
	return before, after
}

func TestGoldenReports(t *testing.T) {
	before, after := demo(t)
	r := compare(t, before, after)
	r, err := Judge(r, Policy{
		FailOn:  High,
		Waivers: []diag.Waiver{{Rule: "rbac.secrets", Operator: "ops/demo", Reason: "it copies pull secrets"}, {Rule: "crd.*", Reason: "was fine last year", Expires: "2025-12-31"}, {Rule: "pods.privileged", Reason: "x"}},
		Rules:   []CELRule{{Name: "no-new-webhooks", Expression: `finding.rule == "webhook.added"`, Message: "webhooks need the platform team"}},
	}, "2026-01-01")
	if err != nil {
		t.Fatal(err)
	}
	data, err := indentJSON(r.Document())
	if err != nil {
		t.Fatal(err)
	}
	sarif, err := SARIF(r, "quayside.lock")
	if err != nil {
		t.Fatal(err)
	}
	quality, err := CodeQuality(r, "quayside.lock")
	if err != nil {
		t.Fatal(err)
	}
	page, err := HTML(r)
	if err != nil {
		t.Fatal(err)
	}
	for file, got := range map[string][]byte{"demo.codequality.json": quality, "demo.txt": Text(r, false), "demo.md": Markdown(r), "demo.json": data, "demo.sarif": sarif, "demo.html": page} {
		goldentest.Compare(t, filepath.Join("testdata", "reports", file), got)
	}
	var d Document
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil || len(d.Findings) != len(r.Findings) {
		t.Errorf("decoding the JSON: %v, %d findings", err, len(d.Findings))
	}
}

// TestPlacesPointAtTheChange checks the lines to which findings refer.
func TestPlacesPointAtTheChange(t *testing.T) {
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.demo.io}\nspec:\n  group: demo.io\n  scope: Namespaced\n  names: {kind: Widget, plural: widgets}\n" +
		"  versions:\n  - name: v0\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object}}\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            properties:\n              x:\n                type: string\n                maxLength: 9\n"
	r := compareManifests(t, crd, strings.Replace(crd, "maxLength: 9", "maxLength: 8", 1))
	if len(r.Findings) != 1 {
		t.Fatal(lines(r))
	}
	want := Region{Path: "rendered/demo.yaml", Line: 25, Column: 17, EndLine: 25, EndCol: 29}
	if d := cmp.Diff(want, r.Findings[0].Place); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestMarkdownFits renders reports that exceed the maximum length of a comment, with texts that
// attempt to inject markup.
func TestMarkdownFits(t *testing.T) {
	hostile := "`x`|</details><script>@everyone [a](b)\n# " + strings.Repeat("é", 400)
	r := &Report{Before: hostile, After: hostile}
	for i := range 3000 {
		op := fmt.Sprintf("ns%d/%s", i%100, hostile)
		if i < 100 {
			r.Operators = append(r.Operators, OperatorReport{Name: op, From: hostile, To: "2"})
		}
		s := severities()[i%5]
		r.Findings = append(r.Findings, Finding{Rule: "crd.field-removed", Severity: s, Operator: op, Message: hostile, Before: hostile, Field: hostile, Why: hostile, Object: Ref{Kind: hostile, Name: hostile}})
	}
	slices.SortFunc(r.Findings, compareFindings)
	for _, n := range []int{0, 1, 10, 3000} {
		part := *r
		part.Findings = r.Findings[:n]
		got := string(Markdown(&part))
		if len(got) >= MaxComment || !strings.HasPrefix(got, commentMarker+"\n") {
			t.Errorf("%d findings: %d bytes, begins %q", n, len(got), got[:40])
		}
		for _, line := range strings.Split(got, "\n") {
			if strings.HasPrefix(line, "# ") || outside(line, "<script>") || outside(line, "@everyone") {
				t.Fatalf("text outside of code spans: %.200q", line)
			}
		}
		if opens, closes := strings.Count(got, "\n<details"), strings.Count(got, "\n</details>"); opens != closes {
			t.Errorf("%d details open, %d close", opens, closes)
		}
	}
}

// TestCodeQuality checks that the report contains each unwaived finding exactly once.
func TestCodeQuality(t *testing.T) {
	finding := Finding{Rule: "images.registry-changed", Severity: High, Operator: "ops/etcd", Why: "why", Message: "one\ntwo"}
	gone, waived, other := finding, finding, finding
	gone.Field, gone.Place = "a", Region{Path: "rendered/a.yaml", Line: 7, Removed: true}
	waived.Field, waived.Waiver = "b", "accepted"
	other.Field, other.Place = "c", Region{Path: "rendered/a b.yaml", Line: 9}
	data, err := CodeQuality(&Report{Findings: []Finding{finding, finding, gone, waived, other}}, "envs/dev/quayside.lock")
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Description, Fingerprint, Severity string
		CheckName                          string `json:"check_name"`
		Location                           struct {
			Path  string
			Lines struct{ Begin int }
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	var places []string
	prints := map[string]bool{}
	for _, issue := range got {
		places = append(places, fmt.Sprintf("%s:%d", issue.Location.Path, issue.Location.Lines.Begin))
		prints[issue.Fingerprint] = true
		if issue.Severity != "critical" || issue.CheckName != finding.Rule || strings.Contains(issue.Description, "\n") {
			t.Errorf("issue %+v", issue)
		}
	}
	if want := []string{"envs/dev/quayside.lock:1", "envs/dev/quayside.lock:1", "rendered/a b.yaml:9"}; !slices.Equal(places, want) || len(prints) != 3 {
		t.Errorf("the issues are at %q with %d fingerprints, want %q", places, len(prints), want)
	}
	for _, s := range severities() {
		if qualitySeverity(s) == "" {
			t.Errorf("no GitLab severity for %s", s)
		}
	}
	if data, err = CodeQuality(&Report{}, "x"); err != nil || strings.TrimSpace(string(data)) != "[]" {
		t.Errorf("a report without findings is %q, %v", data, err)
	}
}

// TestComment checks that comments of different workspaces have different markers, whatever the
// name of the directory.
func TestComment(t *testing.T) {
	r := &Report{Operators: []OperatorReport{{Name: "ops/demo"}}}
	for i := range 3000 {
		r.Findings = append(r.Findings, Finding{Rule: "crd.field-removed", Operator: "ops/demo", Message: fmt.Sprint(i), Field: strings.Repeat("x", 40), Why: "why"})
	}
	seen := map[string]bool{}
	for _, dir := range []string{".", "envs/dev", "envs/--> <x>y", "envs/a\nb", "envs/" + strings.Repeat("x/", 2000)} {
		marker, text := Comment(r, dir)
		if seen[marker] || strings.Count(marker, "-->") != 1 || !strings.HasSuffix(marker, " -->") || strings.ContainsAny(marker, "\n\r") {
			t.Errorf("%q has the marker %q", dir, marker)
		}
		seen[marker] = true
		if whole := marker + "\n" + text; len(whole) >= MaxComment || len(whole) < MaxComment/2 || strings.Contains(text, commentMarker) || outside(text, "<x>") {
			t.Errorf("%.60q: %d bytes, begins %q", dir, len(whole), text[:min(60, len(text))])
		}
		if dir == "." && marker+"\n"+text != string(Markdown(r)) {
			t.Error("the comment for the root directory differs from the report")
		}
	}
}

// outside reports whether line contains text outside of code spans.
func outside(line, text string) bool {
	for line != "" {
		i := strings.IndexByte(line, '`')
		if i < 0 || i > 0 && line[i-1] == '\\' {
			if i < 0 {
				return strings.Contains(line, text)
			}
			if strings.Contains(line[:i], text) {
				return true
			}
			line = line[i+1:]
			continue
		}
		if strings.Contains(line[:i], text) {
			return true
		}
		n := 1
		for i+n < len(line) && line[i+n] == '`' {
			n++
		}
		end := strings.Index(line[i+n:], line[i:i+n])
		if end < 0 {
			return strings.Contains(line[i:], text)
		}
		line = line[i+n+end+n:]
	}
	return false
}

func TestTextIsSafe(t *testing.T) {
	r := &Report{Before: "a\x1b[31m", Operators: []OperatorReport{{Name: "o\nfake finding"}}, Findings: []Finding{{Rule: "crd.field-removed", Severity: High, Operator: "o\nfake finding", Message: "m\x1b]0;x\a\u202e", Why: "w"}}}
	got := string(Text(r, false))
	if strings.ContainsAny(got, "\x1b\a\u202e") || strings.Contains(got, "\nfake") {
		t.Errorf("%q", got)
	}
	if !strings.Contains(string(Text(r, true)), "\x1b[31mHIGH\x1b[0m") {
		t.Error("no color although it is enabled")
	}
}

func TestBrokenStates(t *testing.T) {
	a := parsed(t, "o/p", "a.yaml", account)
	b := parsed(t, "o/q", "b.yaml", account+"\nsecrets: [{name: x}]")
	_, err := Compare(State{Name: "main"}, State{Name: "HEAD", Objects: append(a, b...)}, CompareOptions{})
	if want := "b.yaml: HEAD: ServiceAccount ops/demo is also in a.yaml, with different content"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Objects([]File{{Path: "x.yaml", Data: []byte("a: [")}, {Path: "y.yaml", Data: []byte("a: {")}, {Path: "kustomization.yaml", Data: []byte("}")}}, nil)
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want both broken files, one per line: %v", err)
	}
}

// TestEqualFilesAreParsedOnce checks that objects of equal files are reused.
func TestEqualFilesAreParsedOnce(t *testing.T) {
	files := []File{{Path: "a.yaml", Data: []byte(account)}, {Path: "b.yaml", Data: []byte(binding)}}
	first, err := collectObjects(files, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	files[1].Data = []byte(local)
	second, err := collectObjects(files, nil, nil, first)
	if err != nil {
		t.Fatal(err)
	}
	if &first[0].Raw[0] != &second[0].Raw[0] || second[1].Key().Kind != "RoleBinding" {
		t.Errorf("got %v and %v", second[0].Ref(), second[1].Ref())
	}
}

func TestRemovalPlan(t *testing.T) {
	before, after := demo(t)
	r := compare(t, before, after)
	if len(r.Removals) != 1 {
		t.Fatalf("%d plans", len(r.Removals))
	}
	got := r.Removals[0]
	if got.Operator != "ops/old" || len(got.Resources) != 1 || got.Resources[0].Path != "team/gadget.yaml" || !slices.Equal(got.Resources[0].Finalizers, []string{"old.io/keep"}) {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff([]RemovedKind{{Group: "old.io", Kind: "Gadget", Plural: "gadgets", Finalizers: true}}, got.Kinds); d != "" {
		t.Error(d)
	}
	if steps := got.steps(); len(steps) != 3 || !strings.Contains(steps[0].Lines[0], "its deletion waits for the finalizers") {
		t.Errorf("%+v", steps)
	}
}

// TestCRDIsNeverPruned checks that Argo CD never prunes a CRD, regardless of its annotations.
func TestCRDIsNeverPruned(t *testing.T) {
	for annotation, keeps := range map[string]bool{`, annotations: {argocd.argoproj.io/sync-options: "Prune=confirm,PruneLast=true"}`: false, "": true} {
		crd := parsed(t, "gone/demo", "a.yaml", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com`+annotation+`}
spec: {group: example.com, scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true}]}
`)
		r := compare(t, State{Objects: crd, KeepsDefinitions: keeps}, State{})
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "data.crd-removed" })
		if i < 0 || !strings.Contains(r.Findings[i].Message, "is removed: it is protected and not pruned; a manual deletion deletes it") {
			t.Errorf("%s: %+v", annotation, r.Findings)
		}
	}
}

// TestLeftBehind checks that a removed operator is reported as left behind only if a GitOps tool applies each
// operator separately and the operator is not being uninstalled.
func TestLeftBehind(t *testing.T) {
	objects := parsed(t, "ns/demo", "a.yaml", `
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: ns}}
`)
	pin := lockfile.Pin{Namespace: "ns", Package: "demo"}
	for _, c := range []struct {
		byOperator bool
		leaving    []lockfile.Leaving
		left       bool
	}{
		{false, nil, false},
		{true, nil, true},
		{true, []lockfile.Leaving{{Pin: pin}}, false},
		{true, []lockfile.Leaving{{Pin: lockfile.Pin{Namespace: "ns", Package: "other"}}}, true},
	} {
		r := compare(t, State{Pins: []lockfile.Pin{pin}, Objects: objects, ByOperator: c.byOperator}, State{Leaving: c.leaving})
		has := func(finding string) bool {
			return slices.ContainsFunc(lines(r), func(line string) bool { return strings.HasPrefix(line, finding) })
		}
		if has("high upgrade.left-behind") != c.left || has("medium upgrade.removed") == c.left || has("high data.volume-claim-removed") == c.left {
			t.Errorf("%+v: %+v", c, r.Findings)
		}
		if (len(r.Removals) == 0) != c.left {
			t.Errorf("%+v: %+v", c, r.Removals)
		}
		deleted := slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Rule == "data.namespace-removed" && strings.Contains(f.Message, "it is deleted")
		})
		if deleted == c.byOperator {
			t.Errorf("%+v: the Namespace is deleted: %v", c, deleted)
		}
	}
}

// TestRemovedObject checks that the finding about a removed object and the uninstall plan agree on whether
// the object is deleted.
func TestRemovedObject(t *testing.T) {
	const head = "apiVersion: v1\nkind: Namespace\nmetadata: {name: gone"
	for annotations, want := range map[string]string{
		"": "it is deleted, and everything in it",
		", annotations: {kustomize.toolkit.fluxcd.io/prune: enabled}":                    "it is deleted, and everything in it",
		", annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}":                   "it is protected and not pruned; a manual deletion deletes it and everything in it",
		", annotations: {argocd.argoproj.io/sync-options: Prune=false}":                  "it is protected and not pruned; a manual deletion deletes it and everything in it",
		", annotations: {argocd.argoproj.io/sync-options: 'Prune=confirm,Delete=false'}": "Argo CD deletes it after a confirmation, and everything in it",
	} {
		before := State{Pins: []lockfile.Pin{{Namespace: "gone", Package: "demo", Version: "1.0.0"}}, Objects: parsed(t, "gone/demo", "a.yaml", head+annotations+"}")}
		r := compare(t, before, State{})
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "data.namespace-removed" })
		if i < 0 || r.Findings[i].Message != "the namespace is removed: "+want {
			t.Errorf("%q: %+v", annotations, r.Findings)
		}
		if kept := len(r.Removals) == 1 && len(r.Removals[0].Kept) == 1; kept == strings.HasPrefix(want, "it is deleted") {
			t.Errorf("%q: %+v", annotations, r.Removals)
		}
	}
}
