package kube

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/report"
)

// TestStripKeepsVerdicts judges objects as the API server has them and as they
// are kept: the verdict is the same.
func TestStripKeepsVerdicts(t *testing.T) {
	files, err := filepath.Glob("../testdata/health/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d objects, %v", len(files), err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if data, err = yaml.YAMLToJSON(data); err != nil {
				t.Fatal(err)
			}
			o := new(unstructured.Unstructured)
			if err := o.UnmarshalJSON(data); err != nil {
				t.Skip("no object of an API server:", err)
			}
			whole := report.Compute(o.Object, now)
			kept, err := newStripper().strip(o.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			if got := report.Compute(kept.(*unstructured.Unstructured).Object, now); got != whole {
				t.Errorf("kept: %+v, whole: %+v", got, whole)
			}
		})
	}
}
