package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// lies returns texts that want to be taken for what the program says itself, or
// do something to whoever shows them. "FORGED" must begin no line.
func lies() []string {
	return []string{
		"x\n### quayside: FORGED\n\n::error::FORGED\r\nFORGED\x1b[2J\x1b]8;;FORGED\x07\u202e\u200b\u2028FORGED\nSigned-off-by: FORGED",
		"x ::error::FORGED ##[error]FORGED @FORGED #1 </details><script>FORGED</script> ```FORGED` [FORGED](https://forged.example) [skip ci] | %%{init: {}}%% \"]; \\",
	}
}

// TestLies puts each lie in each field of a catalog, a bundle and a declaration
// in turn, alone where it is refused and together with others where it is not,
// and runs what prints any of it.
func TestLies(t *testing.T) {
	honest := t.TempDir()
	newWorld().write(t, honest)
	put(t, honest, "quayside.yaml", workspaceWith("dir:catalog"))
	check(t, os.CopyFS(filepath.Join(honest, "old"), os.DirFS(filepath.Join(honest, "catalog"))))
	mustRun(t, honest, "resolve", "--offline", "--upgrade=demo/demo@1.0.0")
	mustRun(t, honest, "render", "--offline")
	cache := t.TempDir()
	// told runs commands where these fields lie and returns whether the last went well.
	told := func(t *testing.T, lie string, fields []int, commands []string) (well bool) {
		w := newWorld()
		all := w.fields()
		for _, i := range fields {
			all[i].set(lie)
		}
		dir := t.TempDir()
		check(t, os.CopyFS(dir, os.DirFS(honest)))
		w.write(t, dir)
		for _, c := range commands {
			got := quaysideIn(t, dir, cache, strings.Fields(c)...)
			honestly(t, c, got.stdout)
			honestly(t, c, got.stderr)
			formatted(t, c, got)
			well = got.code == 0
		}
		return well
	}
	fields := newWorld().fields()
	for n, lie := range lies() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			var accepted []int
			for i, f := range fields {
				t.Run(f.path, func(t *testing.T) {
					if told(t, lie, []int{i}, []string{"catalog show demo --offline", "resolve --upgrade --offline", "render --offline"}) {
						accepted = append(accepted, i)
					}
				})
			}
			for some := range slices.Chunk(accepted, 12) {
				t.Run(fields[some[0]].path+" and more", func(t *testing.T) { told(t, lie, some, talkative()) })
			}
			if len(accepted) < len(fields)/4 {
				t.Errorf("%d of %d fields take the lie: the test is not about anything", len(accepted), len(fields))
			}
		})
	}
}

// talkative returns commands that show what catalogs, bundles, declarations and
// locks say, in every format.
func talkative() []string {
	return []string{
		"catalog list --offline", "catalog show demo --offline -o yaml", "catalog graph demo --offline", "catalog graph demo --offline -o dot", "catalog channels demo --offline",
		"catalog validate dir:catalog --offline", "catalog diff dir:old dir:catalog --offline", "outdated --offline", "why-not demo@2.0.0 --offline",
		"diff --upgrade --offline", "diff --upgrade --offline -o markdown", "diff --upgrade --offline -o sarif", "diff --upgrade --offline -o html", "diff --upgrade --offline -o yaml",
		"resolve --upgrade --offline -o json", "resolve --offline", "tree", "why dep", "images", "render --offline", "render --offline --stdout",
	}
}

// honestly fails where text shows what is not seen, begins a line with what was
// forged, or holds what a CI system takes for a command.
func honestly(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: no UTF-8: %q", what, text)
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("%s shows %U in %q", what, r, text)
			break
		}
	}
	html := strings.HasPrefix(text, "<!doctype html>") // where lines mean nothing
	for line := range strings.Lines(text) {
		begin := strings.TrimLeft(line, " \t#")
		forged := strings.HasPrefix(begin, "Signed-off-by:") || strings.HasPrefix(begin, "FORGED") || strings.HasPrefix(begin, "quayside: FORGED")
		if strings.HasPrefix(begin, "::") || strings.Contains(line, "##[") || forged && !html {
			t.Errorf("%s has the line %q", what, line)
		}
	}
}

// formatted fails where the output of a command is not of the format that was
// asked for.
func formatted(t *testing.T, c string, got outcome) {
	t.Helper()
	var v any
	switch _, format, _ := strings.Cut(c, " -o "); {
	case got.stdout == "":
	case format == "json", format == "sarif":
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
			t.Errorf("%s: %v\n%s", c, err, got.stdout)
		}
	case format == "yaml", strings.HasSuffix(c, "--stdout"):
		for d := yaml.NewDecoder(strings.NewReader(got.stdout)); ; {
			if err := d.Decode(&v); err != nil {
				if err.Error() != "EOF" {
					t.Errorf("%s: %v\n%s", c, err, got.stdout)
				}
				break
			}
		}
	case format == "markdown":
		marked(t, got.stdout)
	case format == "html":
		if strings.Contains(got.stdout, "<script") {
			t.Errorf("%s: a script\n%s", c, got.stdout)
		}
	}
}

// marked fails where a report in Markdown has more than the program's own
// markup: outside code spans all of it is spelt out.
func marked(t *testing.T, text string) {
	t.Helper()
	spans := regexp.MustCompile("(?s)(`+)[^`].*?[^`]?(`+)")
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") != (i == 1) {
			t.Errorf("line %d is a heading, or should be: %q", i+1, line)
		}
		line = strings.ReplaceAll(spans.ReplaceAllString(line, ""), "&#8203;", "\x00")
		line = regexp.MustCompile(`</?(?:details|summary|b)(?: open)?>|<!-- quayside:diff -->|\\.`).ReplaceAllString(line, "")
		if regexp.MustCompile(`[<\[]|[@#]\w|://|skip ci\]`).MatchString(line) {
			t.Errorf("Markdown is left in %q", line)
		}
	}
}

// world is what TestLies changes one field of.
type world struct {
	catalog   []any // objects of a file-based catalog; "manifests" of a bundle becomes properties
	declared  map[string]any
	extraName string
}

// field is one string somewhere in a world.
type field struct {
	path string
	set  func(string)
}

// fields returns the strings of a world, in a stable order.
func (w *world) fields() []field {
	var out []field
	var walk func(path string, v any, set func(string))
	walk = func(path string, v any, set func(string)) {
		switch v := v.(type) {
		case string:
			out = append(out, field{path, func(s string) { set(s) }})
		case []any:
			for i := range v {
				walk(fmt.Sprintf("%s.%d", path, i), v[i], func(s string) { v[i] = s })
			}
		case map[string]any:
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			for _, k := range keys {
				walk(path+"."+k, v[k], func(s string) { v[k] = s })
			}
		}
	}
	walk("catalog", w.catalog, nil)
	walk("declared", w.declared, nil)
	out = append(out, field{"file", func(s string) { w.extraName = strings.ReplaceAll(s, "/", "_") }})
	return slices.DeleteFunc(out, func(f field) bool { return strings.HasSuffix(f.path, "schema") })
}

// write writes the world as files of a workspace.
func (w *world) write(t *testing.T, dir string) {
	t.Helper()
	var text strings.Builder
	enc := json.NewEncoder(&text)
	for _, o := range w.catalog {
		object := o.(map[string]any)
		out := map[string]any{}
		for k, v := range object {
			out[k] = v
		}
		if manifests, ok := out["manifests"].([]any); ok {
			delete(out, "manifests")
			properties := slices.Clone(out["properties"].([]any))
			for _, m := range manifests {
				data, err := json.Marshal(m)
				check(t, err)
				properties = append(properties, map[string]any{"type": "olm.bundle.object", "value": map[string]any{"data": base64.StdEncoding.EncodeToString(data)}})
			}
			out["properties"] = properties
		}
		check(t, enc.Encode(out))
	}
	put(t, dir, "catalog/catalog.json", text.String())
	for name, v := range w.declared {
		data, err := json.Marshal(v)
		check(t, err)
		put(t, dir, "subscriptions/"+name+".json", string(data))
	}
	if w.extraName != "" {
		put(t, dir, "subscriptions/"+w.extraName+".yaml", "kind: [")
		put(t, dir, "catalog/"+w.extraName, "{")
	}
}

// newWorld returns a catalog with an upgrade of a package that another depends
// on, and a subscription to it.
func newWorld() *world {
	var w world
	check := json.Unmarshal([]byte(`[
 {"schema": "olm.package", "name": "demo", "defaultChannel": "stable", "description": "Shows."},
 {"schema": "olm.channel", "package": "demo", "name": "stable", "entries": [
  {"name": "demo.v1.0.0"}, {"name": "demo.v2.0.0", "replaces": "demo.v1.0.0", "skips": ["demo.v1.5.0"], "skipRange": ">=1.1.0 <2.0.0"}, {"name": "demo.v1.5.0"}]},
 {"schema": "olm.deprecations", "package": "demo", "entries": [{"reference": {"schema": "olm.bundle", "name": "demo.v1.0.0"}, "message": "Too old."}]},
 {"schema": "olm.bundle", "package": "demo", "name": "demo.v1.0.0", "properties": [
  {"type": "olm.package", "value": {"packageName": "demo", "version": "1.0.0"}}], "manifests": [
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "demo.v1.0.0"}, "spec": {"version": "1.0.0",
   "installModes": [{"type": "AllNamespaces", "supported": true}], "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "demo", "spec": {
    "selector": {"matchLabels": {"app": "demo"}}, "template": {"metadata": {"labels": {"app": "demo"}}, "spec": {"containers": [{"name": "demo", "image": "quay.io/demo/demo:v1"}]}}}}]}}}}]},
 {"schema": "olm.bundle", "package": "demo", "name": "demo.v2.0.0", "properties": [
  {"type": "olm.package", "value": {"packageName": "demo", "version": "2.0.0"}},
  {"type": "olm.gvk", "value": {"group": "demo.example.com", "version": "v1", "kind": "Demo"}},
  {"type": "olm.package.required", "value": {"packageName": "dep", "versionRange": ">=1.0.0"}},
  {"type": "olm.constraint", "value": {"failureMessage": "needs dep", "package": {"packageName": "dep", "versionRange": ">=1.0.0"}}}],
  "relatedImages": [{"name": "demo", "image": "quay.io/demo/demo:v2"}], "manifests": [
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "demo.v2.0.0", "annotations": {"capabilities": "Basic Install", "operatorframework.io/suggested-namespace": "demo"}},
   "spec": {"version": "2.0.0", "displayName": "Demo", "description": "Shows more.", "keywords": ["demo"], "maturity": "alpha", "provider": {"name": "Someone"}, "minKubeVersion": "1.20.0",
   "customresourcedefinitions": {"owned": [{"name": "demos.demo.example.com", "version": "v1", "kind": "Demo"}]},
   "installModes": [{"type": "AllNamespaces", "supported": true}], "install": {"strategy": "deployment", "spec": {
    "clusterPermissions": [{"serviceAccountName": "demo", "rules": [{"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["one"], "verbs": ["delete"]}]}],
    "deployments": [{"name": "demo", "spec": {"selector": {"matchLabels": {"app": "demo"}}, "template": {"metadata": {"labels": {"app": "demo"}}, "spec": {
     "serviceAccountName": "demo", "containers": [{"name": "demo", "image": "quay.io/demo/demo:v2", "args": ["--all"], "env": [{"name": "A", "value": "b"}]}]}}}}]}}}},
  {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "demos.demo.example.com"}, "spec": {"group": "demo.example.com", "scope": "Namespaced",
   "names": {"kind": "Demo", "plural": "demos", "singular": "demo", "listKind": "DemoList"}, "versions": [{"name": "v1", "served": true, "storage": true, "deprecated": true, "deprecationWarning": "old", "schema": {"openAPIV3Schema": {
    "type": "object", "description": "A demo.", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "string", "enum": ["small"], "pattern": "^s"}}}}}}}]}},
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo"}, "data": {"key": "value"}}]},
 {"schema": "olm.bundle", "package": "demo", "name": "demo.v1.5.0", "image": "quay.io/demo/demo@sha256:`+strings.Repeat("5", 64)+`", "properties": [
  {"type": "olm.package", "value": {"packageName": "demo", "version": "1.5.0"}}]},
 {"schema": "olm.package", "name": "dep", "defaultChannel": "beta"},
 {"schema": "olm.channel", "package": "dep", "name": "beta", "entries": [{"name": "dep.v1.0.0"}]},
 {"schema": "olm.bundle", "package": "dep", "name": "dep.v1.0.0", "properties": [
  {"type": "olm.package", "value": {"packageName": "dep", "version": "1.0.0"}}], "manifests": [
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "dep.v1.0.0"}, "spec": {"version": "1.0.0",
   "installModes": [{"type": "AllNamespaces", "supported": true}], "install": {"strategy": "deployment", "spec": {"deployments": []}}}}]}]`), &w.catalog)
	if check == nil {
		check = json.Unmarshal([]byte(`{"demo": {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "demo", "namespace": "demo"},
 "spec": {"name": "demo", "channel": "stable", "source": "test", "sourceNamespace": "olm", "startingCSV": "demo.v1.0.0", "config": {"env": [{"name": "A", "value": "b"}]}}},
 "group": {"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "demo", "namespace": "demo"}, "spec": {}}}`), &w.declared)
	}
	if check != nil {
		panic(check) // the texts above are no JSON
	}
	return &w
}
