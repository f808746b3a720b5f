package settings_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
)

const head = "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n"

// load loads envs/dev/quayside.yaml of a repository. To files without apiVersion and kind, it adds these two
// lines.
func load(files map[string]string) (*settings.Workspace, error) {
	text := func(name string) ([]byte, error) {
		data, ok := files[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		if !strings.HasPrefix(data, "apiVersion") {
			data = head + data
		}
		return []byte(data), nil
	}
	main, err := text("envs/dev/quayside.yaml")
	if err != nil {
		return nil, err
	}
	return settings.Load("quayside.yaml", main, settings.Repository{Dir: "envs/dev", Read: func(name string) (string, []byte, error) {
		data, err := text(name)
		return name, data, err
	}})
}

func archive(text string) map[string]string {
	files := map[string]string{}
	for _, f := range txtar.Parse([]byte(text)).Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

// TestExtends checks merged settings and their positions.
func TestExtends(t *testing.T) {
	w, err := load(archive(`
-- base.yaml --
metadata: {name: base, team: a}
spec:
  declarations: [operators, {path: patches, overrides: true}]
  catalogs:
  - {name: a, namespace: olm, source: "oci:catalogs/a:v1"}
  - {name: b, source: "image:quay.io/org/b:v1", priority: 2}
  kubernetesVersion: "1.33"
  openshiftVersion: "4.20"
  allowNames: [ClusterRole/cluster-admin]
  mirrors: [mirrors.yaml, envs/dev/own.yaml]
  trust: [{match: quay.io/*, keys: [keys/cosign.pub]}]
  follows: envs/stage
  output: out
  proxy: {httpProxy: "http://a", noProxy: .svc}
  gitops: {repoURL: "https://git.example.com/fleet.git", path: deploy}
  clusters:
  - {name: one, destination: one, config: {nodeSelector: {a: b}, tolerations: []}}
  policy:
    failOn: medium
    rules: [{name: own, expression: "true"}]
    waivers: [{rule: rbac.wildcard, reason: r, expires: 2027-01-01}]
    severity: {images.tag: high, images.registry: low}
-- envs/shared.yaml --
spec:
  extends: ../base.yaml
  openshiftVersion: ~
  policy: {severity: {images.tag: ~}, waivers: [{rule: images.tag, reason: r, expires: 2027-01-01}]}
  provides: {apis: [a.example.com/v1]}
-- envs/dev/quayside.yaml --
metadata: {name: dev}
spec:
  extends: ../shared.yaml
  catalogs:
  - {name: c, source: "dir:c"}
  - {name: a, namespace: olm, priority: 7}
  kubernetesVersion: "1.34"
  allowNames: [ClusterRole/view]
  proxy: {noProxy: .local}
  clusters:
  - {name: two, destination: two}
  - {name: one, config: {nodeSelector: {c: d}}}
  policy: {rules: [{name: mine, expression: "false"}]}
  provides: {apis: [b.example.com/v1]}
`))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(map[string]any{
		"name": w.Name, "extends": w.Extends, "extended": w.Extended, "declarations": w.Declarations, "catalogs": w.Catalogs, "versions": w.KubernetesVersion + " " + w.OpenShiftVersion,
		"allowNames": w.AllowNames, "mirrors": w.Mirrors, "trust": w.Trust[0].Keys, "follows": w.Follows, "output": w.OutputDir(), "proxy": w.Proxy, "path": w.GitOps.Path, "environment": w.GitOps.Name, "provides": w.Provides.APIs,
		"policy": []any{w.Policy.FailOn, len(w.Policy.Rules), len(w.Policy.Waivers), w.Policy.Severity},
	})
	want := `{"allowNames":["ClusterRole/view"],"catalogs":[{"name":"a","namespace":"olm","source":"oci:../../catalogs/a:v1","helm":"","manifests":null,"priority":7},{"name":"b","namespace":"","source":"image:quay.io/org/b:v1","helm":"","manifests":null,"priority":2},{"name":"c","namespace":"","source":"dir:c","helm":"","manifests":null,"priority":0}],"declarations":[{"path":"../../operators","cluster":"","overrides":false,"values":null,"valuesFiles":null,"releaseName":"","namespace":""},{"path":"../../patches","cluster":"","overrides":true,"values":null,"valuesFiles":null,"releaseName":"","namespace":""}],"environment":"dev","extended":["../shared.yaml","../../base.yaml"],"extends":"../shared.yaml","follows":"../stage","mirrors":["../../mirrors.yaml","own.yaml"],"name":"dev","output":"out","path":"deploy","policy":["medium",2,2,{"images.registry":"low"}],"provides":["a.example.com/v1","b.example.com/v1"],"proxy":{"httpProxy":"http://a","httpsProxy":"","noProxy":".local"},"trust":["../../keys/cosign.pub"],"versions":"1.34 "}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := fmt.Sprintf("%s %s %s", w.Clusters[0].Name, w.Clusters[0].Config, w.Clusters[1].Name); got != `one {"nodeSelector":{"a":"b","c":"d"},"tolerations":[]} two` {
		t.Errorf("clusters: %s", got)
	}
	for field, want := range map[string]string{
		"spec.extends":                           "quayside.yaml:5:12",
		"spec.catalogs[0].source":                "base.yaml:7:39",
		"spec.catalogs[0].priority":              "quayside.yaml:8:41",
		"spec.catalogs[2].name":                  "quayside.yaml:7:12",
		"spec.declarations[1].path":              "base.yaml:5:36",
		"spec.kubernetesVersion":                 "quayside.yaml:9:22",
		"spec.proxy.httpProxy":                   "base.yaml:16:22",
		"spec.proxy.noProxy":                     "quayside.yaml:11:20",
		"spec.policy.rules[1].name":              "quayside.yaml:15:27",
		"spec.policy.waivers[1].rule":            "envs/shared.yaml:6:56",
		"spec.clusters[0].config.tolerations":    "base.yaml:19:79",
		"spec.clusters[0].config.nodeSelector":   "quayside.yaml:14:40",
		"spec.clusters[0].config.nodeSelector.a": "base.yaml:19:62",
		"metadata.name":                          "quayside.yaml:3:18",
	} {
		if got := w.Fields[field].String(); got != want {
			t.Errorf("position of %s: got %s, want %s", field, got, want)
		}
	}
	if _, set := w.Fields["spec.openshiftVersion"]; set {
		t.Error("a field that null removes has a position")
	}
}

// TestExtendsFaults checks the message and the position of each fault.
func TestExtendsFaults(t *testing.T) {
	for name, c := range map[string]struct{ files, want string }{
		"missing": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: ../base.yaml}\n",
			"quayside.yaml:3:17: spec.extends: open envs/base.yaml: file does not exist",
		},
		"absolute": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: /base.yaml}\n",
			`quayside.yaml:3:17: spec.extends: "/base.yaml" is not a relative path with forward slashes`,
		},
		"backslash": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: '..\\base.yaml'}\n",
			`quayside.yaml:3:17: spec.extends: "..\\base.yaml" is not a relative path with forward slashes`,
		},
		"empty": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: ''}\n",
			`quayside.yaml:3:17: spec.extends: "" is not a relative path with forward slashes`,
		},
		"outside": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: ../../../base.yaml}\n",
			`quayside.yaml:3:17: spec.extends: "../../../base.yaml" is outside of the workspace's Git repository, or of the workspace if there is none`,
		},
		"type": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: [a]}\n",
			"quayside.yaml:3:17: spec.extends: expected a scalar, got a list",
		},
		"circle": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: ../a.yaml}\n-- envs/a.yaml --\nspec: {extends: b.yaml}\n-- envs/b.yaml --\nspec:\n  extends: ../envs/a.yaml\n",
			"envs/b.yaml:4:12: spec.extends: forms a cycle: envs/a.yaml extends envs/b.yaml extends envs/a.yaml",
		},
		"itself": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: quayside.yaml}\n",
			"quayside.yaml:3:17: spec.extends: forms a cycle: quayside.yaml extends quayside.yaml",
		},
		"base": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: base.yaml, profile: argo}\n-- envs/dev/base.yaml --\nspce: {}\nspec: {outptu: a, kubernetesVersion: 1.30, clusters: [{name: a}, {name: a}], trust: [{match: a, keys: [/x]}]}\n",
			"envs/dev/base.yaml:3:1: unknown field \"spce\" (did you mean \"spec\"?)\n" +
				"envs/dev/base.yaml:4:8: unknown field \"outptu\" in spec (did you mean \"output\"?)\n" +
				"envs/dev/base.yaml:4:38: spec.kubernetesVersion: expected a string, got the number 1.30 (put it in quotes)\n" +
				"envs/dev/base.yaml:4:73: spec.clusters[1].name: duplicate cluster \"a\": first at envs/dev/base.yaml:4:62\n" +
				"envs/dev/base.yaml:4:94: spec.trust[0].match: \"a\" has no registry: write it in full, such as docker.io/library/a, or * for all\n" +
				"envs/dev/base.yaml:4:104: spec.trust[0].keys[0]: \"/x\" is not a relative path with forward slashes\n" +
				"quayside.yaml:3:37: spec.profile: \"argo\": must be one of " + strings.Join(profile.Names(), ", ") + " (did you mean \"argocd\"?)",
		},
		"twice": {
			"-- envs/dev/quayside.yaml --\nspec:\n  extends: base.yaml\n  policy: {rules: [{name: r, expression: \"true\"}]}\n  clusters: [{name: a}, {name: a}]\n-- envs/dev/base.yaml --\nspec:\n  policy: {rules: [{name: r, expression: \"true\"}]}\n  clusters: [{name: a}]\n",
			"quayside.yaml:5:27: spec.policy.rules[1].name: duplicate rule \"r\": first at envs/dev/base.yaml:4:27\n" +
				"quayside.yaml:6:32: spec.clusters[1].name: duplicate cluster \"a\": first at quayside.yaml:6:21",
		},
		"new declarations": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: ../../base.yaml, declarations: [../../operators]}\n-- base.yaml --\nspec: {declarations: [operatros], newDeclarations: operators/x}\n",
			`base.yaml:3:52: spec.newDeclarations: "../../operators/x" is not one of spec.declarations (../../operators) (did you mean "../../operators"?)`,
		},
		"newer": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: base.yaml}\n-- envs/dev/base.yaml --\napiVersion: quayside.dev/v1alpha2\nkind: Workspace\nspec: {new: 1}\n",
			"envs/dev/base.yaml:1:13: written by a newer quayside (schema quayside.dev/v1alpha2; this version supports quayside.dev/v1alpha1)",
		},
		"kind": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: base.yaml}\n-- envs/dev/base.yaml --\napiVersion: v1\nkind: Service\n",
			"envs/dev/base.yaml:1:13: apiVersion: \"v1\": must be quayside.dev/v1alpha1\nenvs/dev/base.yaml:2:7: kind: \"Service\": must be Workspace",
		},
		"malformed": {
			"-- envs/dev/quayside.yaml --\nspec: {extends: base.yaml}\n-- envs/dev/base.yaml --\nspec: [\n",
			"envs/dev/base.yaml:4: malformed YAML: did not find expected node content",
		},
	} {
		_, err := load(archive(c.files))
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// TestLongChain checks the limit of ten files in a chain.
func TestLongChain(t *testing.T) {
	for n, want := range map[int]string{9: "", 10: "spec.extends: more than 10 levels: quayside.yaml extends envs/dev/1.yaml extends"} {
		files := map[string]string{"envs/dev/quayside.yaml": "spec: {extends: 1.yaml}\n"}
		for i := 1; i < n; i++ {
			files[fmt.Sprintf("envs/dev/%d.yaml", i)] = fmt.Sprintf("spec: {extends: %d.yaml}\n", i+1)
		}
		files[fmt.Sprintf("envs/dev/%d.yaml", n)] = "spec: {output: far}\n"
		w, err := load(files)
		if want == "" && (err != nil || w.OutputDir() != "far") || want != "" && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%d files: %v", n+1, err)
		}
	}
}

// TestSources checks that Load rebases the path in each kind of catalog source.
func TestSources(t *testing.T) {
	for _, s := range source.Schemes() {
		in, want := s.Name+":a/b", s.Name+":../../a/b"
		if source.Ref(in).IsRemote() || source.Ref(in).IsServed() {
			want = in
		}
		w, err := load(map[string]string{"base.yaml": "spec: {catalogs: [{name: a, source: '" + in + "'}]}\n", "envs/dev/quayside.yaml": "spec: {extends: ../../base.yaml}\n"})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(w.Catalogs[0].Source); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

// TestRelativeFieldsAreRebased compares the fields that the schema describes as relative with the fields that
// Load rebases.
func TestRelativeFieldsAreRebased(t *testing.T) {
	var schema any
	if err := json.Unmarshal(settings.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	moved := []string{"spec.catalogs[].source", "spec.certificateSecret.caFile", "spec.declarations[].path", "spec.declarations[].valuesFiles", "spec.follows", "spec.mirrors", "spec.trust[].keys", "spec.trust[].trustRoot"}
	stay := []string{"spec.extends", "spec.output", "spec.output.path"} // resolved before merging; different for each workspace
	var found []string
	var walk func(field string, node any)
	walk = func(field string, node any) {
		m, _ := node.(map[string]any)
		if doc, _ := m["description"].(string); strings.Contains(doc, "relative to this file") {
			found = append(found, field)
		}
		properties, _ := m["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			walk(strings.TrimPrefix(field+"."+name, "."), properties[name])
		}
		if items, ok := m["items"]; ok {
			walk(field+"[]", items)
		}
	}
	walk("", schema)
	want := slices.Concat(moved, stay)
	slices.Sort(want)
	if d := cmp.Diff(want, found); d != "" {
		t.Errorf("-table +schema\n%s", d)
	}
	base := "spec:\n  declarations: [p/a, {path: p/b, valuesFiles: [p/i]}]\n  catalogs: [{name: a, source: 'dir:p/c'}]\n  certificates: secret\n  certificateSecret: {caFile: p/d}\n  follows: p/e\n  mirrors: [p/f]\n" +
		"  trust: [{match: 'a.io/*', keys: [p/g]}, {match: '*', identity: a, issuer: b, trustRoot: p/h}]\n"
	w, err := load(map[string]string{"x/base.yaml": base, "envs/dev/quayside.yaml": "spec: {extends: ../../x/base.yaml}\n"})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(w)
	for _, c := range "abcdefghi" {
		if want := path.Join("../../x/p", string(c)); !strings.Contains(string(got), want+`"`) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// TestEmptyBase checks that an extended file must not be empty.
func TestEmptyBase(t *testing.T) {
	read := func(name string) (string, []byte, error) { return name, []byte("# nothing\n"), nil }
	_, err := settings.Load("quayside.yaml", []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec: {extends: none.yaml}\n"), settings.Repository{Dir: ".", Read: read})
	if want := "none.yaml:1:1: no apiVersion (expected quayside.dev/v1alpha1): the file is empty"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestWindowsAreAdded checks that an environment adds its windows to the inherited windows, and that it can end
// an inherited freeze.
func TestWindowsAreAdded(t *testing.T) {
	w, err := load(archive(`
-- base.yaml --
spec:
  windows: [{kind: deny, schedule: "0 0 * * 6", duration: 2d}]
  freeze: {until: 2027-01-04T08:00:00Z, reason: r}
-- envs/dev/quayside.yaml --
spec:
  extends: ../../base.yaml
  windows: [{kind: allow, schedule: "0 22 * * *", duration: 4h, timeZone: Europe/Zurich}]
  freeze: null
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range w.ChangeWindows() {
		got = append(got, c.Name+" "+c.Pos.String())
	}
	if d := cmp.Diff([]string{"spec.windows[0] base.yaml:4:13", "spec.windows[1] quayside.yaml:5:13"}, got); d != "" || w.Freeze != nil || w.Windows[0].TimeZone != "UTC" {
		t.Errorf("-want +got\n%s\nfreeze %v, windows %v", d, w.Freeze, w.Windows)
	}
}
