package health

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/api/v1alpha1"
)

// noon is the current time in all tests.
func noon() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// parse decodes an object like an API client: integers are int64.
func parse(tb testing.TB, text string) map[string]any {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(data, &o); err != nil {
		tb.Fatal(err)
	}
	return o
}

// TestCompute evaluates the objects in testdata/health. Their first line is the expected result.
func TestCompute(t *testing.T) {
	files, err := filepath.Glob("testdata/health/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(data), "\n")
			want := strings.TrimPrefix(first, "# ")
			h := Compute(parse(t, string(data)), noon())
			got := string(h.Status)
			if h.Message != "" && want != string(v1alpha1.Unknown) { // these messages are from kstatus
				got += ": " + h.Message
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestComputeWithoutObject(t *testing.T) {
	if got := Compute(nil, noon()).Status; got != v1alpha1.NotFound {
		t.Errorf("health without an object: %s", got)
	}
	if got := Compute(map[string]any{}, noon()).Status; got != v1alpha1.Current {
		t.Errorf("health of an object without a kind: %s", got)
	}
}

func TestShort(t *testing.T) {
	long := strings.Repeat("ä", maxMessage)
	got := clipMessage("  one\n\ttwo \xff " + long)
	if !strings.HasPrefix(got, "one two � ää") || !strings.HasSuffix(got, "ä…") || len(got) > maxMessage || len(got) < maxMessage-4 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if got := clipMessage("red \x1b[31m\u202eand\u2028back\u0085\a"); got != "red \\u001b[31m\\u202eand back \\u0007" {
		t.Errorf("short keeps control characters: %q", got)
	}
	if got := clipMessage("as it is"); got != "as it is" {
		t.Errorf("got %q", got)
	}
}
