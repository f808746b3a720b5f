package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeasure(t *testing.T) {
	r, err := Compare(runs(t, "1.0.0", image("a"), "quay.io/demo/one:v1"), runs(t, "1.1.0", image("b"), "quay.io/demo/two@"+image("c")[len("quay.io/demo/app@"):]), CompareOptions{})
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
		if f.BytesBefore+f.BytesAfter > 0 {
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
	if d := cmp.Diff(plain, lines(&Report{Findings: before})); d != "" || before[0].BytesAfter != 0 {
		t.Errorf("what was measured was modified:\n%s", d)
	}
}
