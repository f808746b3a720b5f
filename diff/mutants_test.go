package diff

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/lockfile"
)

// mutantBase returns the objects to which the table of mutants refers.
func mutantBase(t testing.TB) State {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "mutants", "base.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := State{Name: "base", KubernetesVersion: "1.34", Pins: []lockfile.Pin{{Namespace: "ops", Package: "demo", Version: "1.0.0"}}}
	if s.Objects, err = Objects([]File{{Path: "rendered/demo.yaml", Data: data}}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range s.Objects {
		o := &s.Objects[i]
		o.Raw = nil
		if o.Operator == "" && !slices.Contains([]string{"argocd", "flux-system"}, o.Key().Namespace) {
			o.Operator = "ops/demo"
		}
	}
	return s
}

// with returns s with one object replaced or added. If content is nil, the object is removed.
func (s State) with(key k8s.Key, content map[string]any) State {
	s.Objects = slices.Clone(s.Objects)
	i := slices.IndexFunc(s.Objects, func(o Object) bool { return o.Key() == key })
	switch {
	case content == nil:
		s.Objects = slices.Delete(s.Objects, i, i+1)
	case i < 0:
		s.Objects = append(s.Objects, Object{Operator: objectOwner(content, nil), Path: "rendered/added.yaml", Content: content})
		if o := &s.Objects[len(s.Objects)-1]; o.Operator == "" && !slices.Contains([]string{"argocd", "flux-system"}, o.Key().Namespace) {
			o.Operator = "ops/demo"
		}
	default:
		o := s.Objects[i]
		o.Content, o.Raw, o.key = content, nil, k8s.Key{}
		s.Objects[i] = o
	}
	return s
}

// edit returns v with the value at path replaced, or removed if drop is true.
func edit(v any, path []string, value any, drop bool) any {
	if len(path) == 0 {
		return value
	}
	switch x := v.(type) {
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i > len(x) {
			panic("no element " + path[0])
		}
		out := slices.Clone(x)
		switch {
		case i == len(x):
			return append(out, value)
		case drop && len(path) == 1:
			return slices.Delete(out, i, i+1)
		}
		out[i] = edit(x[i], path[1:], value, drop)
		return out
	default:
		m, _ := x.(map[string]any)
		out := map[string]any{}
		for k, e := range m {
			out[k] = e
		}
		if drop && len(path) == 1 {
			delete(out, path[0])
			return out
		}
		out[path[0]] = edit(m[path[0]], path[1:], value, drop)
		return out
	}
}

// mutant returns s with the change in a line of the table.
func (s State) mutant(t testing.TB, line string) State {
	t.Helper()
	words := strings.SplitN(line, " ", 2)
	if words[0] == "add" {
		o := value(t, words[1]).(map[string]any)
		return s.with(k8s.Object(o).Key(), o)
	}
	f := strings.SplitN(words[1], " ", 4)
	i := slices.IndexFunc(s.Objects, func(o Object) bool { return o.Key().Kind == f[0] && o.Key().Name == f[1] })
	if i < 0 {
		t.Fatalf("%s: no such object", line)
	}
	o := s.Objects[i]
	if words[0] == "del" {
		return s.with(o.Key(), nil)
	}
	path := strings.Split(f[2], ".")
	if at := slices.Index(path, "annotations"); at >= 0 {
		path = append(path[:at+1:at+1], strings.Join(path[at+1:], "."))
	}
	if words[0] == "unset" {
		return s.with(o.Key(), edit(o.Content, path, nil, true).(map[string]any))
	}
	return s.with(o.Key(), edit(o.Content, path, value(t, f[3]), false).(map[string]any))
}

func value(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return normalizeNumbers(v)
}

// TestMutants checks that the default policy rejects the dangerous changes in the table. It also checks
// that none of them is merged automatically if the limit for automatic merges is low severity.
func TestMutants(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "mutants", "table.txt"))
	if err != nil {
		t.Fatal(err)
	}
	base := mutantBase(t)
	all, refused, silent, total := 0, 0, 0, map[Severity]int{}
	for line := range strings.Lines(string(data)) {
		rated, line, _ := strings.Cut(strings.TrimSpace(line), " ")
		if rated == "#" {
			continue
		}
		want, err := ParseSeverity(rated)
		if err != nil {
			t.Fatal(err)
		}
		r := compare(t, base, base.mutant(t, line))
		worst := Off
		for _, f := range r.Findings {
			worst = max(worst, f.Severity)
		}
		if r.Mergeable(Low) { // spec.propose.automerge with maxSeverity low
			t.Errorf("would be merged without a review: %s", line)
		}
		all++
		if worst < min(want, Medium) {
			t.Errorf("is %s: %s", worst, line)
		}
		if worst >= High || want <= Medium {
			refused++
		} else {
			t.Logf("not refused (%s, is %s): %s", rated, worst, line)
		}
		if worst == Off {
			silent++
		}
		total[want]++
	}
	t.Logf("%d of %d refused, %d silent; rated %v", refused, all, silent, total)
	if silent > 0 {
		t.Errorf("%d dangerous changes have no finding", silent)
	}
	if refused*100 < all*98 {
		t.Errorf("only %d of %d dangerous changes are refused", refused, all)
	}
}

// leafPaths returns the paths of all scalars and empty values in v.
func leafPaths(v any, at []string) [][]string {
	var out [][]string
	below := func(key string, e any) { out = append(out, leafPaths(e, append(slices.Clone(at), key))...) }
	switch x := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(x) {
			below(k, x[k])
		}
	case []any:
		for i, e := range x {
			below(strconv.Itoa(i), e)
		}
	}
	if out == nil {
		out = [][]string{at}
	}
	return out
}

// mutation is a change of one field of an object.
type mutation struct {
	kind    string // "change", "remove" or "add"
	path    []string
	content map[string]any
}

// mutations returns changes of a field: another value, its removal, and an additional unknown
// field.
func mutations(content map[string]any, path []string) []mutation {
	whole := strings.Join(path, ".")
	if slices.Contains([]string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}, whole) {
		return nil // a changed identity makes it another object
	}
	var v any = content
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[p]
		case []any:
			i, _ := strconv.Atoi(p)
			v = x[i]
		}
	}
	var other any
	switch x := v.(type) {
	case string:
		other = "x" + x
	case bool:
		other = !x
	case int64:
		other = x + 1
	case float64:
		other = x + 1
	default:
		other = "x"
	}
	out := []mutation{
		{"change", path, edit(content, path, other, false).(map[string]any)},
		{"remove", path, edit(content, path, nil, true).(map[string]any)},
	}
	if _, err := strconv.Atoi(path[len(path)-1]); err != nil {
		beside := append(slices.Clone(path[:len(path)-1]), "zzz")
		out = append(out, mutation{"add", beside, edit(content, beside, "x", false).(map[string]any)})
	}
	return out
}

// findingsText returns the findings of a comparison as text, and whether there are any.
func findingsText(t testing.TB, before, after State) (string, bool) {
	t.Helper()
	r := compare(t, before, after)
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %s %s %v %s→%s %s\n", f.Severity, f.Rule, f.Object, f.Field, f.otherFields(), f.Before, f.After, f.Message)
	}
	return b.String(), len(r.Findings) > 0
}

// unreportedChanges changes every nth field of an object, alone and together with the previous change. It
// returns the number of tested changes, and the changes that are not in the report.
func unreportedChanges(t testing.TB, s State, key k8s.Key, nth int) (tried int, out []string) {
	t.Helper()
	i := slices.IndexFunc(s.Objects, func(o Object) bool { return o.Key() == key })
	content := s.Objects[i].Content
	var last mutation
	var lastText string
	for n, path := range leafPaths(content, nil) {
		if n%nth != 0 {
			continue
		}
		for _, m := range mutations(content, path) {
			after := s.with(key, m.content)
			c := &comparison{before: mustView(t, s), after: mustView(t, after), claimed: claims{}}
			pairs := normalPairs(c.before, c.after, admit.NewTypes())
			if len(pairs) == 0 || pairs[0].onBothSides() && len(c.unexplainedChanges(pairs[0])) == 0 {
				continue // the change is exempt
			}
			tried++
			text, is := findingsText(t, s, after)
			if !is {
				out = append(out, fmt.Sprintf("%s %s %s", key, m.kind, strings.Join(m.path, ".")))
				continue
			}
			if m.path[len(m.path)-1] == "name" || len(last.path) > 0 && last.path[len(last.path)-1] == "name" {
				last = mutation{} // it replaces a whole list element
			}
			if m.kind == "change" && last.path != nil {
				both := edit(last.content, m.path, nestedValue(m.content, m.path), false).(map[string]any)
				bothText, _ := findingsText(t, s, s.with(key, both))
				if bothText == lastText || bothText == text {
					out = append(out, fmt.Sprintf("%s %s hides %s or the reverse", key, strings.Join(last.path, "."), strings.Join(m.path, ".")))
				}
			}
			if m.kind == "change" {
				last, lastText = m, text
			}
		}
	}
	return tried, out
}

func nestedValue(v any, path []string) any {
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[p]
		case []any:
			i, _ := strconv.Atoi(p)
			v = x[i]
		}
	}
	return v
}

func mustView(t testing.TB, s State) *view {
	t.Helper()
	v, err := newView(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestEveryFieldIsReported changes, removes and adds each field of each object. Each report must have a
// finding and differ from the report of any other change.
func TestEveryFieldIsReported(t *testing.T) {
	base := mutantBase(t)
	tried := 0
	var all []string
	for _, o := range base.Objects {
		n, out := unreportedChanges(t, base, o.Key(), 1)
		tried, all = tried+n, append(all, out...)
	}
	t.Logf("%d changes, %d unreported", tried, len(all))
	for _, line := range all {
		t.Error(line)
	}
}

// TestOrderIsReported makes changes, such as another order, that a comparison by name or as a set would
// not detect.
func TestOrderIsReported(t *testing.T) {
	base := mutantBase(t)
	const manager = "Deployment demo spec.template.spec.containers.0."
	for _, line := range []string{
		"set " + manager + "args [--metrics=:8080, --leader-elect, --zone, a]",
		"set " + manager + "args [--leader-elect, --metrics=:8080, --zone, a, --zone, a]",
		"set " + manager + "args [--leader-elect, --metrics=:8080, --zone, a, '']",
		"set " + manager + "env.0 {name: A, value: '1', zzz: 1}",
		"set Deployment demo spec.template.spec.priorityClassName other",
		"unset Deployment demo spec.template.spec.priorityClassName",
		"set Deployment demo metadata.annotations.x.helm.sh/chart evil",
		"set ClusterRole demo rules.0.zzz x",
		"set ClusterRole demo statusOfIt x",
		"set ClusterRoleBinding demo subjects.0.apiGroup x",
		"set CustomResourceDefinition widgets.demo.io spec.statusOfIt x",
		"set ValidatingWebhookConfiguration demo webhooks.0.statusOfIt x",
		"set Deployment demo metadata.labels {app.kubernetes.io/version: 6.6.6}",
	} {
		if _, is := findingsText(t, base, base.mutant(t, line)); !is {
			t.Errorf("no finding for %s", line)
		}
	}
	// Containers in another order, and an argument that moves to the command.
	i := slices.IndexFunc(base.Objects, func(o Object) bool { return o.Key().Is("Deployment.apps") })
	one := k8s.Items(base.Objects[i].Content, "spec", "template", "spec", "containers")[0]
	other := edit(one, []string{"name"}, "other", false)
	two := base.with(base.Objects[i].Key(), edit(base.Objects[i].Content, []string{"spec", "template", "spec", "containers"}, []any{one, other}, false).(map[string]any))
	reversed := base.with(base.Objects[i].Key(), edit(base.Objects[i].Content, []string{"spec", "template", "spec", "containers"}, []any{other, one}, false).(map[string]any))
	if _, is := findingsText(t, two, reversed); !is {
		t.Error("no finding for another order of containers")
	}
	moved := base.mutant(t, "set "+manager+"command [/manager, --leader-elect]").mutant(t, "set "+manager+"args [--metrics=:8080, --zone, a]")
	if _, is := findingsText(t, base, moved); !is {
		t.Error("no finding for an argument that moves to the command")
	}
}

// TestEveryRealFieldIsReported is like TestEveryFieldIsReported, for real operators. Without -whole, it tests
// only some operators and fields.
func TestEveryRealFieldIsReported(t *testing.T) {
	seen, tried := map[string]int{}, 0
	var all []string
	for i, h := range honestVersions(t) {
		if !*whole && i%25 != 0 {
			continue
		}
		s := h.state(t)
		for _, o := range s.Objects {
			limit, nth := 1, 1+len(leafPaths(o.Content, nil))/20
			if *whole {
				limit, nth = 12, 1+len(leafPaths(o.Content, nil))/150
			}
			if seen[o.Key().GroupKind()]++; seen[o.Key().GroupKind()] > limit {
				continue
			}
			one := s
			one.Objects = []Object{o}
			n, out := unreportedChanges(t, one, o.Key(), nth)
			tried, all = tried+n, append(all, out...)
		}
	}
	t.Logf("%d kinds, %d changes, %d unreported", len(seen), tried, len(all))
	for _, line := range all[:min(len(all), 100)] {
		t.Error(line)
	}
}
