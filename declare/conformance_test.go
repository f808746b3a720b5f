package declare_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/declare"
)

// TestConformanceObjects parses the declarations of every published resolution problem, and checks
// that all of them are valid and complete.
func TestConformanceObjects(t *testing.T) {
	dir := os.Getenv("QUAYSIDE_CONFORMANCE")
	if dir == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is unset: no published problems to read")
	}
	files, err := filepath.Glob(filepath.Join(dir, "resolve", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no problems in %s: %v", dir, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var p struct {
				ID      string
				Objects []json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": p.Objects})
			if err != nil {
				t.Fatal(err)
			}
			set, err := declare.Parse(p.ID+".json", list)
			if err != nil {
				t.Errorf("%s: %v", p.ID, err)
				continue
			}
			if got := len(set.Subscriptions) + len(set.OperatorGroups) + len(set.CatalogSources) + len(set.CSVs) + len(set.Namespaces); got != len(p.Objects) {
				t.Errorf("%s: %d of %d objects arrived", p.ID, got, len(p.Objects))
			}
		}
	}
}
