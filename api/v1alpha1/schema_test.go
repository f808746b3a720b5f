package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/api/v1alpha1"
)

// TestV1Alpha1 decodes testdata/installation.json and encodes the result again. Every release must be able to
// decode this file. The -update flag does not change the file.
func TestV1Alpha1(t *testing.T) {
	want, err := os.ReadFile("testdata/installation.json")
	if err != nil {
		t.Fatal(err)
	}
	var in v1alpha1.Installation
	dec := json.NewDecoder(bytes.NewReader(want))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(in, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)+"\n"); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
