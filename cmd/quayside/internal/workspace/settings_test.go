package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/testing/gittest"
)

// TestExtendedSettings checks that extended files are read from the root of the workspace: the
// disk, a revision that differs from the disk, or a map.
func TestExtendedSettings(t *testing.T) {
	file := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n" + text)}
	}
	files := fstest.MapFS{
		"base.yaml":               file("spec: {profile: flux, policy: {failOn: low}, mirrors: [mirrors.yaml]}\n"),
		"envs/dev/quayside.yaml":  file("spec: {extends: ../shared.yaml}\n"),
		"envs/shared.yaml":        file("spec: {extends: ../base.yaml, output: tree}\n"),
		"envs/prod/quayside.yaml": file("spec: {extends: ../none.yaml}\n"),
		"envs/bad/quayside.yaml":  file("spec: {extends: bad.yaml}\n"),
		"envs/bad/bad.yaml":       file("spec: {profile: helm}\n"),
		"quayside.yaml":           file("spec: {extends: base.yaml}\n"),
	}
	dir := t.TempDir()
	check(t, os.CopyFS(dir, files))
	gittest.Run(t, dir, "init", "-q")
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-qm", "all")
	repo, err := gitrepo.Open(dir)
	check(t, err)
	rev, err := repo.Revision("main")
	check(t, err)
	later := t.TempDir()
	check(t, os.CopyFS(later, files))
	gittest.Run(t, later, "init", "-q")
	check(t, os.WriteFile(filepath.Join(dir, "base.yaml"), []byte("spec: [\n"), 0o644))
	for name, c := range map[string]struct {
		root      func(env string) workspace.Root
		near, top string // prefixes of file names in the workspace and in the repository
	}{
		"directory": {func(env string) workspace.Root { return workspace.Dir(filepath.Join(later, env)) }, "", "../../"},
		"revision":  {func(env string) workspace.Root { return workspace.Revision(rev, env) }, "main:ENV/", "main:"},
		"map":       {func(env string) workspace.Root { return workspace.Files(files, "", env) }, "", "../../"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := c.root("envs/dev").ReadSettings()
			check(t, err)
			if w.Profile != "flux" || w.OutputDir() != "tree" || w.Mirrors[0] != "../../mirrors.yaml" || strings.Join(w.Extended, " ") != "../shared.yaml ../../base.yaml" {
				t.Errorf("%+v", w)
			}
			if got, want := w.At("spec.policy.failOn").String(), c.top+"base.yaml:3:40"; got != want {
				t.Errorf("failOn stands at %s, want %s", got, want)
			}
			_, err = c.root("envs/bad").ReadSettings()
			if want := strings.ReplaceAll(c.near, "ENV", "envs/bad") + `bad.yaml:3:17: spec.profile: "helm": must be one of argocd, flux, plain`; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			_, err = c.root("envs/prod").ReadSettings()
			if want := strings.ReplaceAll(c.near, "ENV", "envs/prod") + "quayside.yaml:3:17: spec.extends: "; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "none.yaml: ") {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			w, err = c.root(".").ReadSettings()
			check(t, err)
			if w.Mirrors[0] != "mirrors.yaml" || w.Extended[0] != "base.yaml" {
				t.Errorf("at the top: %+v", w)
			}
		})
	}
}

// TestExtendedByLinks checks that no link out of the repository is followed and, without a
// repository, no file above the workspace is read.
func TestExtendedByLinks(t *testing.T) {
	const head = "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n"
	for _, c := range []struct {
		target     string
		repository bool
		want       string // prefix of the error
	}{
		{"real.yaml", true, ""},
		{"../outside.yaml", true, "quayside.yaml:3:17: spec.extends: "},
		{"/OUT/outside.yaml", true, "quayside.yaml:3:17: spec.extends: "},
		{"real.yaml", false, `quayside.yaml:3:17: spec.extends: "../base.yaml" is outside of the workspace's Git repository, or of the workspace if there is none`},
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "repo")
		check(t, os.MkdirAll(filepath.Join(dir, "env"), 0o755))
		for name, text := range map[string]string{"outside.yaml": "", "repo/real.yaml": "", "repo/env/quayside.yaml": "spec: {extends: ../base.yaml}\n"} {
			check(t, os.WriteFile(filepath.Join(top, name), []byte(head+text), 0o644))
		}
		check(t, os.Symlink(strings.Replace(c.target, "/OUT", top, 1), filepath.Join(dir, "base.yaml")))
		if c.repository {
			gittest.Run(t, dir, "init", "-q")
		}
		_, err := workspace.Dir(filepath.Join(dir, "env")).ReadSettings()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s, repository %v: %v", c.target, c.repository, err)
		}
	}
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "quayside.yaml"), []byte(head+"spec: {extends: base.yaml}\n"), 0o644))
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	check(t, os.WriteFile(outside, []byte(head), 0o644))
	check(t, os.Symlink(outside, filepath.Join(dir, "base.yaml")))
	if _, err := workspace.Dir(dir).ReadSettings(); err == nil {
		t.Error("a link out of a workspace without a repository was followed")
	}
}
