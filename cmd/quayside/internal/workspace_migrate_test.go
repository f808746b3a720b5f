package internal_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
)

const (
	ownObject = "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: team}, data: {a: b}}\n"
	etcdPatch = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: etcd-operator, namespace: my-etcd}, spec: {minReadySeconds: 3}}"
)

// earlierFiles returns files that kustomizations of the earlier layout refer to.
func earlierFiles() map[string]string {
	return map[string]string{
		"rendered/clusters/prod/own.yaml":                   ownObject,
		"rendered/clusters/prod/etcd.yaml":                  etcdPatch,
		"rendered/clusters/prod/label.yaml":                 `[{"op": "add", "path": "/metadata/labels/patched", "value": "yes"}]`,
		"rendered/clusters/prod/extra/kustomization.yaml":   "# mine\nresources: [../base, a.yaml]\n",
		"rendered/clusters/prod/extra/a.yaml":               strings.ReplaceAll(ownObject, "mine", "extra"),
		"rendered/clusters/prod/base/kustomization.yaml":    "resources: [b.yaml]\n",
		"rendered/clusters/prod/base/b.yaml":                strings.ReplaceAll(ownObject, "mine", "base"),
		"rendered/clusters/prod/common/kustomization.yaml":  "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {of: us}}]\n",
		"rendered/clusters/prod/one/kustomization.yaml":     "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplicas: [{name: at-operator, count: 3}]\n",
		"shared/kustomization.yaml":                         "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {shared: us}}]\n",
		"rendered/clusters/prod/notes.md":                   "mine\n",
		"rendered/clusters/prod/generated/old.yaml":         "",
		"rendered/" + filetree.Index:                        "# Files that quayside wrote.\nclusters/prod/generated/old.yaml\n",
		"rendered/clusters/prod/reporter/some/notes.md":     "mine\n",
		"rendered/clusters/stage/kustomization.yaml":        "resources: [generated]\n",
		"rendered/clusters/stage/reporter/notes.md":         "mine\n",
		"rendered/clusters/other/README.md":                 "mine\n",
		"rendered/clusters/prod/generated/not-listed.patch": "mine\n",
	}
}

// earlierItems returns items of a kustomization of the earlier layout, by field.
func earlierItems() map[string][]string {
	return map[string][]string{
		"resources":             {"own.yaml", "./extra"},
		"components":            {"common", "../../../shared", "one"},
		"patches":               {"{path: label.yaml, target: {kind: Deployment}}", "{path: etcd.yaml}", "{target: {kind: ConfigMap, name: mine}, patch: '[{\"op\": \"add\", \"path\": \"/data/c\", \"value\": \"d\"}]'}"},
		"patchesStrategicMerge": {"'" + strings.ReplaceAll(etcdPatch, "minReadySeconds", "revisionHistoryLimit") + "'"},
		"images":                {"{name: quay.io/coreos/etcd-operator, newName: mirror.example.com/etcd}"},
		"replicas":              {"{name: vault-operator, count: 3}"},
		"labels":                {"{pairs: {a: b}, includeTemplates: true}"},
		"configMapGenerator":    {"{name: settings, namespace: vault, files: [text=notes.md]}", "{name: alone, namespace: team, literals: [a=b]}"},
		"replacements": {"{source: {kind: Deployment, name: vault-operator, fieldPath: metadata.name}, targets: [{select: {kind: Deployment, name: vault-operator}, " +
			"fieldPaths: [metadata.annotations.from], options: {create: true}}]}"},
	}
}

// openEarlier writes and opens a workspace of two clusters with files of an earlier layout.
func openEarlier(t *testing.T, granularity string, files map[string]string) *workspace.Project {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(quickstart)))
	check(t, os.RemoveAll(filepath.Join(dir, "rendered")))
	writeFile(t, dir, "quayside.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: quickstart, namespace: olm, source: "oci:catalog"}]
  profile: argocd
  clusters: [{name: stage}, {name: prod, server: "https://b"}]
  gitops: {repoURL: "https://git.example.com/x.git", path: rendered, granularity: `+granularity+"}\n")
	for name, text := range files {
		writeFile(t, dir, name, text)
	}
	p, err := workspace.Open(workspace.Dir(dir), env(t))
	check(t, err)
	return p
}

// kustomizeBuild returns the objects that stock kustomize builds from directories, by ID.
func kustomizeBuild(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		check(t, err)
		for _, r := range built.Resources() {
			out[r.CurId().String()] += r.MustYaml()
		}
	}
	return out
}

// buildPieces renders a workspace, calls edit with the tree and the pieces of the cluster prod,
// and returns the directories of the pieces on disk.
func buildPieces(t *testing.T, p *workspace.Project, edit func(tree *filetree.Tree, pieces []string)) (dirs []string) {
	t.Helper()
	lock, err := p.NeedLock()
	check(t, err)
	res, err := p.Render(t.Context(), lock)
	check(t, err)
	tree, err := layout.Read(res.Tree.Names(), res.Tree.Get)
	check(t, err)
	prod, _ := tree.Cluster("prod")
	edit(res.Tree, tree.Pieces(prod))
	for _, dir := range tree.Pieces(prod) {
		dirs = append(dirs, p.Path(path.Join("rendered", dir)))
	}
	return dirs
}

// TestMigrateBuildsTheSame migrates random overlays of the earlier layout, and checks that stock
// kustomize builds the same objects before and after.
func TestMigrateBuildsTheSame(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 2 // every item, with each granularity
	}
	for seed := range seeds {
		granularity := []string{profile.PerOperator, profile.PerCluster}[seed%2]
		random := rand.New(rand.NewPCG(seed, 0))
		text := "resources: [generated]\n"
		for _, field := range slices.Sorted(maps.Keys(earlierItems())) {
			var some []string
			for _, item := range earlierItems()[field] {
				if seed < 2 || random.IntN(2) == 0 {
					some = append(some, item)
				}
			}
			if field == "resources" {
				text = "resources: [" + strings.Join(append([]string{"generated"}, some...), ", ") + "]\n" + text[len("resources: [generated]\n"):]
			} else if len(some) > 0 {
				text += field + ": [" + strings.Join(some, ", ") + "]\n"
			}
		}
		files := earlierFiles()
		files["rendered/clusters/prod/kustomization.yaml"] = text
		p := openEarlier(t, granularity, files)
		old := t.TempDir()
		check(t, os.CopyFS(filepath.Join(old, "rendered"), os.DirFS(p.Path("rendered"))))
		check(t, os.CopyFS(filepath.Join(old, "shared"), os.DirFS(p.Path("shared"))))
		buildPieces(t, p, func(tree *filetree.Tree, pieces []string) {
			for name, data := range tree.All() {
				writeFile(t, old, "rendered/"+name, string(data))
			}
			writeFile(t, old, "rendered/clusters/prod/generated/kustomization.yaml", "resources: [../../../"+strings.Join(pieces, ", ../../../")+"]\n")
		})
		want := kustomizeBuild(t, filepath.Join(old, "rendered/clusters/prod"))

		m, err := p.Migrate(t.Context())
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		check(t, m.Write())
		_, err = p.WriteTree(t.Context(), false)
		check(t, err)
		dirs := buildPieces(t, p, func(*filetree.Tree, []string) {})
		if d := cmp.Diff(want, kustomizeBuild(t, dirs...)); d != "" {
			t.Errorf("seed %d, granularity %s:\n%s\n%s", seed, granularity, text, d)
		}
	}
}

// TestMigrate checks the new place of each change, and the error if a change has none.
func TestMigrate(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string // below rendered/clusters/prod, in place of those of earlierFiles
		want  map[string]string // below overlays/prod
		fault string
	}{
		{
			name: "comments and paths",
			files: map[string]string{"kustomization.yaml": `# This file is yours: quayside wrote it once and leaves it alone from now on.
# Ask ops before changing this.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- generated
- extra # more of ours
- ../../../shared/objects
# restarts
patches:
- path: label.yaml
  target: {kind: Deployment}
- path: etcd.yaml # only here
`},
			want: map[string]string{
				"kustomization.yaml":                 "# Ask ops before changing this.\napiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n# restarts\npatches:\n- path: label.yaml\n  target: {kind: Deployment}\n",
				"my-etcd.etcd/kustomization.yaml":    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n# restarts\npatches:\n- path: etcd.yaml # only here\n",
				"resources/kustomization.yaml":       "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- extra # more of ours\n- ../../../shared/objects\n",
				"resources/extra/kustomization.yaml": "# mine\nresources: [../../base, a.yaml]\n", "resources/extra/a.yaml": strings.ReplaceAll(ownObject, "mine", "extra"),
				"label.yaml": earlierFiles()["rendered/clusters/prod/label.yaml"], "my-etcd.etcd/etcd.yaml": etcdPatch, "notes.md": "mine\n",
			},
		},
		{
			name: "the reporter, and files where this version renders some",
			files: map[string]string{
				"../../../quayside.yaml": "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  catalogs: [{name: quickstart, namespace: olm, source: \"oci:catalog\"}]\n" +
					"  clusters: [{name: stage}, {name: prod, config: {env: [{name: A, value: b}]}}]\n  reporter: {enabled: true, image: \"example.com/r@sha256:" + strings.Repeat("0", 64) + "\"}\n",
				"kustomization.yaml":          "resources: [generated]\nnamePrefix: a-\n",
				"reporter/kustomization.yaml": "resources: [generated]\npatches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: quayside-reporter, namespace: quayside-system}, spec: {minReadySeconds: 3}}'}]\n",
			},
			want: map[string]string{
				"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: a-\n",
				"reporter/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n" +
					"- {patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: quayside-reporter, namespace: quayside-system}, spec: {minReadySeconds: 3}}'}\n",
				"reporter/some/notes.md": "mine\n",
			},
		},
		{name: "nothing of its own", files: map[string]string{"kustomization.yaml": "resources: [generated]\n"}, want: map[string]string{"notes.md": "mine\n"}},
		{name: "comments only", files: map[string]string{"kustomization.yaml": "# mine\nresources: [generated]\n"}, fault: "rendered/clusters/prod/kustomization.yaml: cannot move overlay: comments only"},
		{
			name: "several operators", files: map[string]string{"kustomization.yaml": "resources: [generated]\nreplicas:\n- {name: etcd-operator, count: 2}\n"},
			fault: "rendered/clusters/prod/kustomization.yaml:3:3: cannot move replicas[0]: objects of several pieces change: my-etcd.etcd, vault.etcd\n  hint: ",
		},
		{
			name: "a Namespace", files: map[string]string{"kustomization.yaml": "resources: [generated]\npatches:\n- patch: '{apiVersion: v1, kind: Namespace, metadata: {name: vault, labels: {a: b}}}'\n"},
			fault: "kustomization.yaml:3:3: cannot move patches[0]: piece without an overlay of its own: namespaces/vault",
		},
		{
			name: "order", files: map[string]string{"kustomization.yaml": "resources: [generated]\npatches:\n- {target: {kind: Deployment}, patch: '[{\"op\": \"add\", \"path\": \"/spec/minReadySeconds\", \"value\": 9}]'}\n- path: etcd.yaml\n"},
			fault: "rendered/clusters/prod/kustomization.yaml: cannot move overlay: 1 object would change, such as Deployment.apps my-etcd/etcd-operator",
		},
		{name: "without the rendered files", files: map[string]string{"kustomization.yaml": "resources: [own.yaml]\n"}, fault: "would change"},
		{name: "missing file", files: map[string]string{"kustomization.yaml": "resources: [generated, gone.yaml]\n"}, fault: `rendered/clusters/prod/kustomization.yaml:1:24: "gone.yaml": file does not exist`},
		{name: "remote", files: map[string]string{"kustomization.yaml": "resources: [generated, https://example.com/a.yaml]\n"}, fault: "remote resources are not fetched"},
		{name: "outside", files: map[string]string{"kustomization.yaml": "resources: [generated, ../../../../../../etc]\n"}, fault: "outside of the repository"},
		{name: "unknown cluster", files: map[string]string{"../prd/kustomization.yaml": "resources: [generated]\n"}, fault: `rendered/clusters/prd: cannot move overlay: unknown cluster "prd" (did you mean "prod"?)`},
		{
			name: "new place taken", files: map[string]string{"kustomization.yaml": "resources: [generated]\nlabels: [{pairs: {a: b}}]\n", "../../../overlays/prod/kustomization.yaml": "kind: Component\n"},
			fault: "overlays/prod/kustomization.yaml: cannot move overlay: file exists in the new place",
		},
		{name: "symbolic link", files: map[string]string{"kustomization.yaml": "resources: [generated]\n", "link": "-> /etc/passwd"}, fault: "rendered/clusters/prod/link: cannot move files: symbolic link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := earlierFiles()
			files["shared/objects/kustomization.yaml"] = "resources: [o.yaml]\n"
			files["shared/objects/o.yaml"] = strings.ReplaceAll(ownObject, "mine", "shared")
			delete(files, "rendered/clusters/stage/kustomization.yaml")
			for name, text := range c.files {
				files[path.Join("rendered/clusters/prod", name)] = text
			}
			p := openEarlier(t, profile.PerOperator, files)
			for name, text := range files {
				if to, is := strings.CutPrefix(text, "-> "); is {
					check(t, os.Remove(p.Path(name)))
					check(t, os.Symlink(to, p.Path(name)))
				}
			}
			m, err := p.Migrate(t.Context())
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("want %q in\n%v", c.fault, err)
				}
				return
			}
			check(t, err)
			check(t, m.Write())
			for name, want := range c.want {
				if got, err := os.ReadFile(p.Path("overlays/prod/" + name)); err != nil || string(got) != want {
					t.Errorf("%s: %v\n%s", name, err, cmp.Diff(want, string(got)))
				}
			}
			for _, move := range m.Moves {
				if _, err := os.Lstat(p.Path(move.From)); err == nil {
					t.Errorf("%s still exists", move.From)
				}
			}
			if again, err := p.Migrate(t.Context()); err != nil || len(again.Moves) > 0 {
				t.Errorf("again: %v, %v", again, err)
			}
		})
	}
}

// TestMigrateAllOrNothing checks that all moves are undone if the target of one exists.
func TestMigrateAllOrNothing(t *testing.T) {
	files := earlierFiles()
	files["rendered/clusters/prod/kustomization.yaml"] = "resources: [generated, own.yaml]\n"
	p := openEarlier(t, profile.PerOperator, files)
	m, err := p.Migrate(t.Context())
	check(t, err)
	writeFile(t, p.Name(), "overlays/prod/resources/own.yaml", "theirs\n")
	if err := m.Write(); err == nil || m.Written {
		t.Errorf("written over a file: %v", err)
	}
	files["overlays/prod/resources/own.yaml"] = "theirs\n"
	for _, dir := range []string{"rendered", "overlays"} {
		tree, err := p.Tree(dir)
		check(t, err)
		for name, data := range tree.All() {
			if want, known := files[path.Join(dir, name)]; !known || want != string(data) {
				t.Errorf("%s/%s: %q", dir, name, data)
			}
			delete(files, path.Join(dir, name))
		}
	}
	delete(files, "shared/kustomization.yaml")
	if len(files) > 0 {
		t.Errorf("lost: %q", slices.Sorted(maps.Keys(files)))
	}
}
