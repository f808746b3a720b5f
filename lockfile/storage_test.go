package lockfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/lockfile"
)

// TestStorage fixes the format of a storage migration.
func TestStorage(t *testing.T) {
	f := sampleLock()
	gadgets := lockfile.StoredVersions{Definition: "gadgets.example.com", From: "v1beta1", To: "v1"}
	widgets := lockfile.StoredVersions{Definition: "widgets.example.com", From: "v1alpha1", To: "v1"}
	f.Pins[1].Storage = &lockfile.Storage{Stage: lockfile.StorageMigrate, Objects: []lockfile.StoredVersions{widgets, gadgets, widgets}}
	text := string(lockfile.Format(f))
	const want = `  storage:
    stage: migrate
    objects:
    - {crd: gadgets.example.com, from: v1beta1, to: v1}
    - {crd: widgets.example.com, from: v1alpha1, to: v1}
  checksum:`
	if !strings.Contains(text, want) {
		t.Fatalf("got %s", text)
	}
	got, err := lockfile.Parse("quayside.lock", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if again := string(lockfile.Format(got)); again != text {
		t.Errorf("not canonical: %s", cmp.Diff(text, again))
	}
	changes := lockfile.Diff(sampleLock(), got)
	if len(changes) != 1 || changes[0].Kind != lockfile.Changed || !cmp.Equal(changes[0].Fields, []string{"storage"}) {
		t.Errorf("got %+v", changes)
	}
	for want, s := range map[string]lockfile.Storage{
		`stage "wait": must be one of store, migrate`: {Stage: "wait", Objects: []lockfile.StoredVersions{widgets}},
		"no objects": {Stage: lockfile.StorageStore},
		"storage: crd, from and to are required, with two different versions": {Stage: lockfile.StorageStore, Objects: []lockfile.StoredVersions{{Definition: "a.b", From: "v1", To: "v1"}}},
		"objects of a.b cannot be stored in both v2 and v3": {Stage: lockfile.StorageStore, Objects: []lockfile.StoredVersions{
			{Definition: "a.b", From: "v1", To: "v2"}, {Definition: "a.b", From: "v0", To: "v3"},
		}},
	} {
		f.Pins[1].Storage = &s
		if _, err := lockfile.Parse("quayside.lock", lockfile.Format(f)); err == nil || !strings.Contains(err.Error(), "pin: storage: ") {
			t.Errorf("want %s, got %v", want, err)
		} else if s.Stage != "wait" && len(s.Objects) != 2 && !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}
