package survey_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/filetree"
)

// TestDisk compares the survey of a directory on disk with the survey of the same files in memory. Files that
// Git ignores, large files and links must not be read.
func TestDisk(t *testing.T) {
	files := map[string]string{
		".gitignore":                       "ignored/\n*.tmp.yaml\n",
		"apps/.gitignore":                  "!kept.tmp.yaml\n",
		"apps/kept.tmp.yaml":               request("kept"),
		"apps/dropped.tmp.yaml.tmp.yaml":   request("dropped"),
		"apps/s.yaml":                      request("s"),
		"apps/large.yaml":                  request("large") + strings.Repeat("# a long comment\n", 100_000),
		"apps/empty.yaml":                  "",
		"ignored/s.yaml":                   request("ignored"),
		"operators/a/kustomization.yaml":   "resources: [../../apps/s.yaml]\n",
		"operators/a/kustomization.yml":    "resources: [no.yaml]\n",
		"operators/a/b/kustomization.yaml": "resources: [..]\n",
		"argo/a.yaml":                      fmt.Sprintf(argo, "a", "", "operators/a", false),
		".hidden/quayside.yaml":            "",
		"envs/prod/quayside.yaml":          "",
		"quayside.yaml":                    "",
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, filesOf(files)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("s.yaml", filepath.Join(dir, "apps/link.yaml")); err != nil {
		t.Skip(err)
	}
	want, got := newSurvey(t, filesOf(files)), newSurvey(t, filetree.OpenRootDir(dir).FS())
	var names []string
	for _, d := range got.Declarations {
		names = append(names, d.Name)
	}
	if d := cmp.Diff([]string{"kept", "s"}, names); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff(want.Declarations, got.Declarations, cmpopts.IgnoreUnexported(survey.Declaration{})); d != "" {
		t.Errorf("-memory +disk\n%s", d)
	}
	if a, b := fmt.Sprint(want.Propose(nil).Choose(nil)), fmt.Sprint(got.Propose(nil).Choose(nil)); a != b {
		t.Errorf("proposals: %s in memory, %s on disk", a, b)
	}
	if d := cmp.Diff([]string{".hidden/quayside.yaml", "envs/prod/quayside.yaml", "quayside.yaml"}, got.Find("quayside.yaml")); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
