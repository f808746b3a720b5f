package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeasure(t *testing.T) {
	r, err := Compare(stateRunning(t, "1.0.0", image("a"), "quay.io/demo/one:v1"), stateRunning(t, "1.1.0", image("b"), "quay.io/demo/two@"+image("c")[len("quay.io/demo/app@"):]), CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	two := "quay.io/demo/two@" + image("c")[len("quay.io/demo/app@"):]
	if d := cmp.Diff([]string{image("a"), image("b"), image("e"), image("f"), two}, r.Images()); d != "" {
		t.Errorf("images (-want +got):\n%s", d)
	}
	before := r.Findings
	plain := lines(r)
	r.Measure(map[string]int64{image("a"): 45_240_000, image("b"): 120_000_000, two: 1200})
	got := map[string]string{}
	for _, f := range r.Findings {
		if d := f.document(); d.BytesBefore+d.BytesAfter > 0 {
			got[f.Rule] = f.Message
		}
	}
	want := map[string]string{
		"images.changed":            "new digest for quay.io/demo/app, 45.2 MB → 120.0 MB compressed",
		"images.repository-changed": "quay.io/demo/two replaces quay.io/demo/one, 1.2 kB compressed",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(plain, lines(&Report{Findings: before})); d != "" || before[0].document().BytesAfter != 0 {
		t.Errorf("the argument was modified:\n%s", d)
	}
}

// TestMeasureOneSide checks the messages if only one size is known, or none.
func TestMeasureOneSide(t *testing.T) {
	for want, sizes := range map[string]map[string]int64{
		"new digest":                             nil,
		"new digest, 1.0 MB compressed":          {"a": 1_000_000},
		"new digest, 1000.0 kB compressed":       {"b": 999_999},
		"new digest, 1.0 kB → 2.5 MB compressed": {"a": 1000, "b": 2_500_000},
	} {
		r := &Report{Findings: []Finding{{Rule: "images.changed", Before: "a", After: "b", Message: "new digest"}, {Rule: "pods.replicas", Before: "a", After: "b", Message: "replicas"}}}
		r.Measure(sizes)
		if r.Findings[0].Message != want || strings.Contains(r.Findings[1].Message, "compressed") {
			t.Errorf("got %q and %q, want %q", r.Findings[0].Message, r.Findings[1].Message, want)
		}
	}
}
