package catalog

import (
	"encoding/json"
	"testing"
)

// FuzzPlainStrings compares what plainStrings reads with encoding/json.
func FuzzPlainStrings(f *testing.F) {
	for _, in := range []string{
		`{"group":"g","version":"v","kind":"k"}`, `{"kind":"k","group":"g","version":"v"}`, `{"group":"g","version":"v"}`, `{"group":"g","version":"v","kind":"k","kind":"l"}`,
		`{"group":"g","version":"v","kind":1}`, `{"group":"g","version":"v","Kind":"k"}`, `{"group":"g","version":"v","kind":"k" }`, `{"group":"g","version":"v","kind":"\u006b"}`,
		`{"group":"","version":"","kind":""}`, `{"group":"ü","version":"v","kind":"k"}`, `{}`, ``, `null`, `{"group":"g","group":"h","version":"v"}`, `{"group":"g","version":"v","kind":"k"}}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		got, ok := plainStrings(value, "group", "version", "kind")
		if !ok {
			return
		}
		var want struct{ Group, Version, Kind string }
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatalf("%q: accepted, but %v", value, err)
		}
		if got != [3]string{want.Group, want.Version, want.Kind} {
			t.Fatalf("%q: got %q, want %q", value, got, want)
		}
	})
}

// TestPlainStrings shows that what tools write is read without encoding/json.
func TestPlainStrings(t *testing.T) {
	got, ok := plainStrings([]byte(`{"packageName":"etcd","version":"0.9.4-a+b"}`), "packageName", "version")
	if !ok || got != [3]string{"etcd", "0.9.4-a+b"} {
		t.Errorf("got %q, %t", got, ok)
	}
}
