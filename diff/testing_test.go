package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/k8s"
)

// parsed parses the objects of a file. Documents in docs are separated by ---.
func parsed(t testing.TB, operator, path, docs string) []Object {
	t.Helper()
	out, err := Objects([]File{{Path: path, Data: []byte(docs)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		out[i].Operator = operator
	}
	return out
}

// compareManifests compares two lists of objects of one operator.
func compareManifests(t testing.TB, before, after string) *Report {
	t.Helper()
	return compare(t, State{Objects: parsed(t, "ops/demo", "rendered/demo.yaml", before)}, State{Objects: parsed(t, "ops/demo", "rendered/demo.yaml", after)})
}

func compare(t testing.TB, before, after State) *Report {
	t.Helper()
	before.Name, after.Name = cmp.Or(before.Name, "main:quayside.lock"), cmp.Or(after.Name, "work tree")
	r, err := Compare(before, after, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lines formats each finding as "severity rule field: before → after". It omits minor findings
// about objects, and about other fields of CRDs, RBAC and webhooks.
func lines(r *Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		if judged := append(rbacKinds(), append(webhookKinds(), crdKind)...); f.Severity < Medium && (f.Rule == "objects.added" || f.Rule == "objects.removed" ||
			f.Rule == "objects.changed" && slices.Contains(judged, k8s.Key{Group: f.Object.Group, Kind: f.Object.Kind}.GroupKind())) {
			continue
		}
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Severity, f.Rule, f.Field))
		if f.Before != "" || f.After != "" {
			line += fmt.Sprintf(": %s → %s", cmp.Or(f.Before, "-"), cmp.Or(f.After, "-"))
		}
		out = append(out, line)
	}
	return out
}

func doc(parts ...string) string { return strings.Join(parts, "\n---\n") }
