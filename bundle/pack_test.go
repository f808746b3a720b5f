package bundle

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestImage(t *testing.T) {
	fsys := newBundleDir(map[string]string{
		"tests/scorecard/config.yaml": "kind: Configuration",
		"bundle.Dockerfile":           "FROM scratch",
		"manifests/.DS_Store":         "junk",
	})
	files, labels, err := Image(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if !e.IsDir() {
			got = append(got, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"manifests/csv.yaml", "metadata/annotations.yaml", "tests/scorecard/config.yaml"}, got); d != "" {
		t.Error(d)
	}
	for key, want := range map[string]string{
		annotationPackage: "lamp", annotationDefaultChannel: "fast", annotationManifests: "manifests/", annotationMediaType: "registry+v1",
	} {
		if labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, labels[key], want)
		}
	}
	fsys["manifests/link.yaml"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}
	if _, _, err := Image(fsys); err == nil {
		t.Error("a symbolic link: no error")
	}
}
