package cli_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/testing/gittest"
	"github.com/quayside/quayside/lockfile"
)

// forgeries returns texts that imitate output of the program, or inject control sequences or markup.
// No line of output may start with "FORGED".
func forgeries() []string {
	return []string{
		"x\n### quayside: FORGED\n\n::error::FORGED\r\nFORGED\x1b[2J\x1b]8;;FORGED\x07\u202e\u200b\u2028FORGED\nSigned-off-by: FORGED",
		"x ::error::FORGED ##[error]FORGED @FORGED #1 </details><script>FORGED</script> ```FORGED` [FORGED](https://forged.example) [skip ci] | %%{init: {}}%% \"]; \\",
	}
}

// TestLies puts a forgery, a text that imitates output of quayside, into each field of a catalog, a bundle and a
// declaration. No command may print it as output of its own. Fields that reject the forgery are tested alone,
// others together. With -whole, each field gets every forgery.
func TestLies(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command for every field of a bundle")
	}
	honest := t.TempDir()
	newWorld().write(t, honest)
	check(t, os.CopyFS(filepath.Join(honest, "old"), os.DirFS(filepath.Join(honest, "catalog"))))
	mustRun(t, honest, "resolve", "--offline", "--upgrade=demo/demo@1.0.0")
	mustRun(t, honest, "render", "--offline")
	cache := t.TempDir()
	// runAll runs commands in a workspace with a forgery in fields. It returns whether all succeeded,
	// and the workspace.
	runAll := func(t *testing.T, lie string, fields []int, commands []string) (succeeded bool, dir string) {
		w := newWorld()
		all := w.fields()
		for _, i := range fields {
			all[i].set(lie)
		}
		succeeded, dir = true, t.TempDir()
		check(t, os.CopyFS(dir, os.DirFS(honest)))
		w.write(t, dir)
		for _, c := range commands {
			got := quaysideIn(t, dir, cache, strings.Fields(c)...)
			checkHarmless(t, c, got.stdout)
			checkHarmless(t, c, got.stderr)
			checkFormat(t, c, got)
			succeeded = succeeded && got.code == 0
		}
		return succeeded, dir
	}
	fields := newWorld().fields()
	for n, lie := range forgeries() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			var accepted []int
			proposals := 0
			for i, f := range fields {
				if !*wholeCorpus && i%2 != n {
					continue
				}
				t.Run(f.path, func(t *testing.T) {
					if well, _ := runAll(t, lie, []int{i}, []string{"resolve --upgrade --offline", "render --offline"}); well {
						accepted = append(accepted, i)
					}
				})
			}
			for some := range slices.Chunk(accepted, 24) {
				t.Run(fields[some[0]].path+" and more", func(t *testing.T) {
					runAll(t, lie, some, printingCommands())
					_, dir := runAll(t, lie, some, nil)
					proposals += checkProposal(t, dir, cache)
				})
			}
			if len(accepted) < len(fields)/8 || proposals == 0 {
				t.Errorf("%d of %d fields accept the forgery, %d upgrades are proposed: the test covers too little", len(accepted), len(fields), proposals)
			}
		})
	}
}

// checkProposal proposes the upgrade of the workspace, and checks the commit and the text of the pull
// request. It returns the number of branches, 0 or 1.
func checkProposal(t *testing.T, dir, cache string) int {
	t.Helper()
	git := func(args ...string) string { return gittest.Run(t, dir, args...) }
	git("init", "-q")
	git("config", "user.name", "a")
	git("config", "user.email", "a@example.com")
	git("add", "-A")
	git("commit", "-qm", "all")
	body := filepath.Join(dir, "body.md")
	got := quaysideIn(t, dir, cache, "propose", "--offline", "--one-branch", "--branch=next", "--pr-body="+body)
	if _, err := os.Stat(body); got.code != 0 || err != nil {
		return 0
	}
	text := read(t, dir, "body.md")
	checkHarmless(t, "the pull request", text)
	checkMarkdown(t, text)
	message := git("log", "-1", "--format=%B", "next")
	checkHarmless(t, "the commit", message)
	_, lines, _ := strings.Cut(strings.TrimSpace(message), "\n\n")
	for line := range strings.Lines(lines) {
		if !strings.ContainsAny(line[:1], "+-~") || strings.ContainsAny(line, "@#[*") {
			t.Errorf("the commit has the line %q", line)
		}
	}
	return 1
}

// TestLiesInTheLock puts each forgery into each field of a lock with valid checksums, and runs the
// commands that print these fields.
func TestLiesInTheLock(t *testing.T) {
	if testing.Short() {
		t.Skip("renders for every field of a lock")
	}
	honest := t.TempDir()
	newWorld().write(t, honest)
	mustRun(t, honest, "resolve", "--offline")
	cache := t.TempDir()
	text := []byte(read(t, honest, "quayside.lock"))
	for n, lie := range forgeries() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			for i, more := 0, true; more; i++ {
				lock, err := lockfile.Parse("quayside.lock", text)
				check(t, err)
				left := i
				path := setString(reflect.ValueOf(lock), "", lie, &left)
				if more = path != ""; !more {
					continue
				}
				t.Run(path, func(t *testing.T) {
					put(t, honest, fmt.Sprintf("%d/quayside.lock", n), string(lockfile.Format(lock)))
					w := newWorld()
					w.write(t, filepath.Join(honest, fmt.Sprint(n)))
					for _, c := range []string{"tree", "why dep", "images", "outdated --offline", "resolve --check --offline", "render --offline --stdout"} {
						got := quaysideIn(t, filepath.Join(honest, fmt.Sprint(n)), cache, strings.Fields(c)...)
						checkHarmless(t, c, got.stdout)
						checkHarmless(t, c, got.stderr)
						checkFormat(t, c, got)
					}
				})
			}
		})
	}
}

// setString replaces the string with index *number in v by lie. It returns the path of the string, or "" if not found.
func setString(v reflect.Value, path, lie string, number *int) (found string) {
	each := func(v reflect.Value, step string) bool {
		if found == "" {
			found = setString(v, path+"."+step, lie, number)
		}
		return found != ""
	}
	switch v.Kind() { //nolint:exhaustive // the rest holds no text
	case reflect.Pointer:
		if !v.IsNil() {
			return setString(v.Elem(), path, lie, number)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Pos" && v.Field(i).CanSet() && each(v.Field(i), name) {
				return found
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if each(v.Index(i), fmt.Sprint(i)) {
				return found
			}
		}
	case reflect.String:
		if *number--; *number < 0 && v.String() != "" {
			v.SetString(lie)
			return path
		} else if v.String() == "" {
			*number++
		}
	}
	return ""
}

// printingCommands returns commands that print texts of catalogs, bundles, declarations and locks, in
// every format.
func printingCommands() []string {
	return []string{
		"catalog list --offline", "catalog show demo --offline", "catalog show demo --offline -o yaml", "catalog graph demo --offline", "catalog graph demo --offline -o dot", "catalog graph demo --offline -o svg", "catalog graph demo --offline -o html",
		"catalog validate dir:catalog --offline", "catalog diff dir:old dir:catalog --offline", "outdated --offline", "why-not demo@2.0.0 --offline",
		"diff --upgrade --offline", "diff --upgrade --offline --release-notes", "diff --upgrade --offline --release-notes -o markdown", "diff --upgrade --offline --release-notes -o html", "diff --upgrade --offline -o markdown", "diff --upgrade --offline -o sarif", "diff --upgrade --offline -o codequality", "diff --upgrade --offline -o html", "diff --upgrade --offline -o yaml",
		"resolve --upgrade --offline -o json", "resolve --offline", "tree", "tree -o svg", "tree -o html", "why dep", "images", "render --offline", "render --offline --stdout",
	}
}

// checkHarmless fails the test if text has invisible characters, a line that starts with a forgery, or a
// command for a CI system.
func checkHarmless(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: invalid UTF-8: %q", what, text)
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("%s shows %U in %q", what, r, text)
			break
		}
	}
	html := strings.HasPrefix(text, "<!doctype html>") || strings.HasPrefix(text, "<svg ") // line breaks have no meaning
	for line := range strings.Lines(text) {
		begin := strings.TrimLeft(line, " \t#")
		forged := strings.HasPrefix(begin, "Signed-off-by:") || strings.HasPrefix(begin, "FORGED") || strings.HasPrefix(begin, "quayside: FORGED")
		if strings.HasPrefix(begin, "::") || strings.Contains(line, "##[") || forged && !html {
			t.Errorf("%s contains the line %q", what, line)
		}
	}
}

// checkFormat fails the test if the output of a command does not have the requested format.
func checkFormat(t *testing.T, c string, got outcome) {
	t.Helper()
	var v any
	switch _, format, _ := strings.Cut(c, " -o "); {
	case got.stdout == "":
	case format == "json", format == "sarif", format == "codequality":
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
			t.Errorf("%s: %v\n%s", c, err, got.stdout)
		}
		for _, m := range regexp.MustCompile(`"(?:text|description)": ("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(got.stdout, -1) {
			var message string
			check(t, json.Unmarshal([]byte(m[1]), &message))
			if checkHarmless(t, c, message); format != "json" && (strings.ContainsAny(message, "\n\t") || strings.Contains(message, "](")) {
				t.Errorf("%s: the message %q", c, message)
			}
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
		checkMarkdown(t, got.stdout)
	case format == "html", format == "svg":
		policy, rest, _ := strings.Cut(got.stdout, "<script>")
		script, _, _ := strings.Cut(rest, "</script>")
		sum := sha256.Sum256([]byte(script))
		if n := strings.Count(strings.ToLower(got.stdout), "<script"); n > 1 || n == 1 && (format == "svg" || !strings.Contains(policy, "; script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'\"")) {
			t.Errorf("%s: the content security policy of the page does not list a script\n%s", c, got.stdout)
		}
	}
}

// checkMarkdown fails the test if a Markdown report has markup from input. Text outside of code spans
// must be escaped.
func checkMarkdown(t *testing.T, text string) {
	t.Helper()
	spans := regexp.MustCompile("(?s)(`+)[^`].*?[^`]?(`+)")
	if n := strings.Count(text, "\n#"); n != 1 || !strings.Contains(text, "\n### quayside: ") {
		t.Errorf("%d headings:\n%s", n, text)
	}
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(spans.ReplaceAllString(line, ""), "&#8203;", "\x00")
		line = regexp.MustCompile(`\[(?:\\.|[^]\\[])*\]\(https://(?:demo\.example\.com|github\.com/demo/demo)[^ )]*\)|</?(?:details|summary|b)(?: open)?>|<!-- quayside:diff -->|\\.`).ReplaceAllString(line, "")
		if regexp.MustCompile(`[<\[]|[@#]\w|://|skip ci\]`).MatchString(line) {
			t.Errorf("unescaped Markdown in %q", line)
		}
	}
}

// world is a workspace with a catalog, in which TestLies changes fields.
type world struct {
	catalog   []any // objects of a file-based catalog; "manifests" of a bundle becomes properties
	declared  map[string]any
	workspace map[string]any
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
	walk("workspace", w.workspace, nil)
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
	data, err := json.Marshal(w.workspace)
	check(t, err)
	put(t, dir, "quayside.yaml", string(data))
	if w.extraName != "" {
		put(t, dir, "subscriptions/"+w.extraName+".yaml", "kind: [")
		put(t, dir, "catalog/"+w.extraName, "{")
	}
}

// newWorld returns a world with a subscription to a package, and with a catalog that has an upgrade
// of the package and another package that it requires.
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
  {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "demo.v2.0.0", "annotations": {"capabilities": "Basic Install", "repository": "https://github.com/demo/demo", "support": "https://demo.example.com/help", "operatorframework.io/suggested-namespace": "demo"}},
   "spec": {"version": "2.0.0", "displayName": "Demo", "description": "Shows more.", "links": [{"name": "Pages", "url": "https://demo.example.com"}], "keywords": ["demo"], "maturity": "alpha", "provider": {"name": "Someone"}, "minKubeVersion": "1.20.0",
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
	if check == nil {
		check = json.Unmarshal([]byte(`{"apiVersion": "quayside.dev/v1alpha1", "kind": "Workspace", "spec": {"catalogs": [{"name": "test", "namespace": "olm", "source": "dir:catalog"}],
 "policy": {"failOn": "critical", "waivers": [{"rule": "images.changed", "operator": "demo/demo", "reason": "known", "expires": "2999-01-01"}]}}}`), &w.workspace)
	}
	if check != nil {
		panic(check) // a text above is not valid JSON
	}
	return &w
}
