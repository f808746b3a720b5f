package overlay_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/overlay"
)

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"

// files returns files in memory: the common files of all cases, and those in more.
func files(more map[string]string) *overlay.Files {
	all := map[string]string{
		"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": object,
		"top/c/generated/kustomization.yaml": "resources: [../../../base]\n",
	}
	for name, text := range more {
		all[name] = text
	}
	return overlay.New(source{func(name string) ([]byte, error) {
		for at := name; at != "."; at = path.Dir(at) {
			if strings.HasPrefix(all[at], "-> ") {
				panic(name + " is read through a link")
			}
		}
		if text, ok := all[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}, func(name string) (string, bool) {
		target, is := strings.CutPrefix(all[name], "-> ")
		return target, is
	}})
}

// source implements overlay.Source with functions.
type source struct {
	read func(name string) ([]byte, error)
	link func(name string) (string, bool)
}

func (s source) ReadFile(name string) ([]byte, error) { return s.read(name) }

func (s source) ReadLink(name string) (string, error) {
	target, is := s.link(name)
	if !is {
		return "", fs.ErrInvalid
	}
	return target, nil
}

// TestRefused pins the errors for invalid kustomizations and their positions.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"resources: [generated, 'https://example.com/x.yaml']\n":                                                                                           ":1:24: \"https://example.com/x.yaml\" is not a local file: remote resources are not fetched",
		"resources: [generated, 'HTTP:example.com']\n":                                                                                                     "is not a local file: remote resources are not fetched",
		"resources: [generated]\ncomponents: ['git::https://example.com/a//b?ref=x']\n":                                                                    ":2:14: ",
		"resources: [generated, 'github.com/a/b']\n":                                                                                                       "is not a local file: remote resources are not fetched",
		"resources: [generated, 'GitHub.com:a/b']\n":                                                                                                       "is not a local file: remote resources are not fetched",
		"resources: [generated, 'git@example.com:a/b']\n":                                                                                                  "is not a local file: remote resources are not fetched",
		"resources: [generated, 'ssh://example.com/a/b']\n":                                                                                                "is not a local file: remote resources are not fetched",
		"resources: [generated, 'file:///etc']\n":                                                                                                          "is not a local file: remote resources are not fetched",
		"resources: [generated, /etc/passwd]\n":                                                                                                            "is outside of the repository",
		"resources: [generated, ../../../x]\n":                                                                                                             "is outside of the repository",
		"resources: [generated, .]\n":                                                                                                                      "includes itself",
		"resources: [generated, none.yaml]\n":                                                                                                              "\"none.yaml\": file does not exist",
		"resources: [generated]\nopenapi: {path: 'http://example.com/'}\n":                                                                                 ":2:17: ",
		"resources: [generated]\npatches: [{path: 'https://example.com/p.yaml'}]\n":                                                                        ":2:18: ",
		"resources: [generated]\npatchesStrategicMerge: ['https://example.com/p.yaml']\n":                                                                  ":2:25: ",
		"resources: [generated]\nreplacements: [{path: 'https://example.com/p.yaml'}]\n":                                                                   ":2:23: ",
		"resources: [generated]\ncrds: ['https://example.com/p.yaml']\n":                                                                                   ":2:8: ",
		"resources: [generated]\nconfigurations: ['https://example.com/p.yaml']\n":                                                                         ":2:18: ",
		"resources: [generated]\nconfigMapGenerator: [{name: x, files: [a=https://e.com/]}]\n":                                                             "is not a local file: remote resources are not fetched",
		"resources: [generated]\nsecretGenerator: [{name: x, envs: ['https://e.com/']}]\n":                                                                 "is not a local file: remote resources are not fetched",
		"resources: [generated]\nhelmCharts: [{name: x, repo: 'https://example.com'}]\n":                                                                   ":2:14: Helm chart \"x\" is not supported",
		"resources: [generated]\ntransformers: [exec.yaml]\n":                                                                                              ":2:16: plugin Do of example.com/v1 is not supported, because it runs a program",
		"resources: [generated]\ngenerators: [\"apiVersion: builtin\\nkind: HelmChartInflationGenerator\\nmetadata: {name: x}\\n\"]\n":                     "HelmChartInflationGenerator is not supported: Helm charts are not rendered",
		"resources: [generated]\ntransformers: [\"git@example.com:a/b: 1\\napiVersion: builtin\\nkind: X\\n\"]\n":                                          "is not a local file: remote resources are not fetched",
		"resources: [generated]\ntransformers: [\"apiVersion: builtin\\nkind: PatchTransformer\\n\"]\n":                                                    "metadata.name is missing",
		"resources: [generated]\ntransformers: [\"apiVersion: builtin\\nkind: PatchTransformer\\nmetadata: {name: x}\\npath: https://example.com/\\n\"]\n": "is not a local file: remote resources are not fetched",
		"resources: [generated, bomb.yaml]\n":                                                                                                              "more than 2000000 values",
		"resources: [twice/0]\n":                                                                                                                           "the input of the build exceeds the limit of 64 MiB",
		"nonsense: 1\n":                                                                                                                                    "unknown field",
	} {
		more := map[string]string{
			"top/c/kustomization.yaml": text,
			"top/c/exec.yaml":          "apiVersion: example.com/v1\nkind: Do\nmetadata: {name: x, annotations: {config.kubernetes.io/function: 'exec: {path: ./x}'}}\n",
			"top/c/bomb.yaml":          "a: &a [" + strings.Repeat("x,", 4000) + "]\nb: &b [" + strings.Repeat("*a,", 4000) + "]\nc: [" + strings.Repeat("*b,", 400) + "]\n",
		}
		level := func(i int) string { return strings.Repeat("d", i) }
		for i := range 24 {
			more["top/c/twice/"+level(i)+"0/kustomization.yaml"] = "resources: [../" + level(i+1) + "a, ../" + level(i+1) + "b]\n"
			for _, side := range []string{"a", "b"} {
				more["top/c/twice/"+level(i+1)+side+"/kustomization.yaml"] = "namePrefix: " + side + "\nresources: [../" + level(i+1) + "0]\n"
			}
		}
		more["top/c/twice/"+level(24)+"0/kustomization.yaml"] = "resources: [../../../../base]\n"
		_, err := files(more).Open("top/c")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\ngot %v, want %s", text, err, want)
		}
	}
}

// TestDigest checks that each change to an input of a build changes the digest.
func TestDigest(t *testing.T) {
	whole := map[string]string{
		"top/c/kustomization.yaml": "resources: [generated]\ncomponents: [../../shared]\npatches: [{path: p.yaml}]\n" +
			"configMapGenerator: [{name: m, files: [k=deep/f.txt], envs: [e.env]}]\ntransformers: [t.yaml]\n",
		"top/c/p.yaml":              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: w}\n",
		"top/c/deep/f.txt":          "text",
		"top/c/e.env":               "E=1\n",
		"top/c/t.yaml":              "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: q.yaml\ntarget: {kind: ConfigMap}\n",
		"top/c/q.yaml":              "- {op: add, path: /data/q, value: q}\n",
		"shared/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: x-\n",
	}
	digest := func(changed string) ([32]byte, string) {
		t.Helper()
		all := map[string]string{"top/c/generated/kustomization.yaml": "resources: [../../../base]\n", "base/a.yaml": object}
		for name, text := range whole {
			all[name] = text
		}
		if changed != "" {
			all[changed] += "#\n"
		}
		o, err := files(all).Open("top/c")
		if err != nil {
			t.Fatal(err)
		}
		built, err := o.Build()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, object := range built {
			out.Write(object)
		}
		return o.Digest, out.String()
	}
	want, built := digest("")
	for _, part := range []string{`"name":"x-a"`, `"k":"w"`, `"q":"q"`, `"k":"text"`, `"E":"1"`, `"x-m-`} {
		if !strings.Contains(built, part) {
			t.Errorf("%s is not in %s", part, built)
		}
	}
	if again, _ := digest(""); again != want {
		t.Error("opening the same files again gives another digest")
	}
	for _, name := range []string{"base/a.yaml", "top/c/generated/kustomization.yaml"} {
		whole[name] = map[string]string{"base/a.yaml": object, "top/c/generated/kustomization.yaml": "resources: [../../../base]\n"}[name]
	}
	for name := range whole {
		if got, _ := digest(name); got == want {
			t.Errorf("the digest does not depend on %s", name)
		}
	}
}

// TestNone checks the error for a directory without a kustomization.
func TestNone(t *testing.T) {
	if _, err := files(nil).Open("top/none"); !errors.Is(err, overlay.ErrNone) {
		t.Errorf("got %v", err)
	}
}

// TestSelectors counts the objects that each selector of a kustomization selects.
func TestSelectors(t *testing.T) {
	const top, pod = "top/c/kustomization.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {a: b}}\nspec: {containers: [{name: c, image: 'example.com/app:v1', env: [{name: X, value: example.com/operand}]}]}\n"
	o, err := files(map[string]string{
		top: "resources: [generated, pod.yaml]\nnamePrefix: x-\npatches:\n" +
			"- target: {kind: ConfigMap, name: a}\n  patch: '[{\"op\": \"add\", \"path\": \"/data/x\", \"value\": \"y\"}]'\n" +
			"- target: {kind: ConfigMap, name: gone}\n  path: p.yaml\n" +
			"- target: {kind: ConfigMap}\n  patch: |-\n    $patch: delete\n    kind: ConfigMap\n    metadata: {name: any}\n" +
			"replacements:\n" +
			"- sourceValue: v\n  targets:\n  - select: {kind: Pod, name: p}\n    fieldPaths: [metadata.labels.a]\n  - select: {kind: Pod, name: q}\n    fieldPaths: [metadata.labels.a]\n" +
			"- path: one.yaml\n- path: list.yaml\n" +
			"images:\n- {name: example.com/app, newName: example.org/app}\n- {name: example.org/app, newTag: v2}\n" +
			"- {name: example.com/operand, newName: example.org/operand}\n- {name: example.com/ap, newTag: v2}\n",
		"top/c/p.yaml":    "- {op: add, path: /data/x, value: y}\n",
		"top/c/pod.yaml":  pod,
		"top/c/one.yaml":  "sourceValue: v\ntargets:\n- select: {kind: Pod}\n  reject: [{name: p}]\n  fieldPaths: [metadata.labels.a]\n",
		"top/c/list.yaml": "- sourceValue: v\n  targets:\n  - select: {labelSelector: a=v}\n    fieldPaths: [metadata.labels.a]\n",
	}).Open("top/c")
	if err != nil {
		t.Fatal(err)
	}
	built, err := o.Build()
	if err != nil {
		t.Fatal(err)
	}
	selectors, err := o.Selectors(func(string) bool { return true }, built)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range selectors {
		got = append(got, fmt.Sprintf("%d %d", s.Pos.Line, s.Hits))
		if s.Hits == 0 {
			got[len(got)-1] += " " + s.Unmatched(built)
		}
	}
	want := []string{
		"4 1",
		`6 0 the target of this patch does not exist: kind "ConfigMap", name "gone"`,
		"8 1",
		"16 1",
		`18 0 the target of this replacement does not exist: kind "Pod", name "q"`,
		`20 0 the target of this replacement does not exist: kind "Pod"`,
		"21 1",
		"23 1",
		"24 1",
		`25 0 no container has the image "example.com/operand" of this entry (available: example.org/app)`,
		`26 0 no container has the image "example.com/ap" of this entry (did you mean "example.org/app"?)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("selectors (-want +got):\n%s", diff)
	}
	pods := []k8s.Key{{Kind: "Pod", Name: "p"}}
	single, err := files(map[string]string{"top/c/kustomization.yaml": "resources: [pod.yaml]\nreplacements: [{sourceValue: v, targets: [{select: {kind: Pod}, fieldPaths: [metadata.labels.a]}]}]\nimages: [{name: example.com/app, newTag: v2}]\n", "top/c/pod.yaml": pod}).Open("top/c")
	if err != nil {
		t.Fatal(err)
	}
	always := func(string) bool { return true }
	if !single.HasTargets(always, pods, []string{"example.com/app@sha256:12"}) || single.HasTargets(always, pods, []string{"example.com/apps"}) || single.HasTargets(always, nil, []string{"example.com/app"}) {
		t.Error("HasTargets judges images or replacements wrongly")
	}
	objects, err := single.Build()
	if err != nil || !single.HasBuiltTargets(always, objects) || single.HasBuiltTargets(always, nil) {
		t.Errorf("HasBuiltTargets judges a build wrongly: %v", err)
	}
}

// TestBuiltScalars checks that built objects have the values of kustomize's own JSON, for scalars of
// all types in all styles.
func TestBuiltScalars(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: example.com/v1\nkind: Lamp\nmetadata: {name: a}\nspec:\n")
	for i, value := range []string{
		"yes", "no", "on", "true", "True", "~", "null", "''", "'~'", "12", "'12'", "!!str 12", "!!int '12'", "0x1F", "0o17", "017", "1_000", "1e3", "1.0", "-0.0",
		"9223372036854775808", "18446744073709551615", "0.1", "1e400", "2001-01-01", "'2001-01-01'", "2001-01-01T00:00:00Z", "1:30", "=", "!!binary YQ==", "|-\n    a\n    b",
		">\n    a\n    b", "\"\\u2028\\x00\"", "<b>&", "[1, [a, {b: c}]]", "{}", "[]", "{x: 1, y: ~}", "{k: }", "[{k: }, a]", "!!set {a, b}", "", "&a {n: 1}", "*a", "{<<: *a, m: 2}", "é",
	} {
		fmt.Fprintf(&text, "  f%02d: %s\n", i, value)
	}
	o, err := files(map[string]string{"s/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n", "s/a.yaml": text.String()}).Open("s")
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.Build()
	if err != nil {
		t.Fatal(err)
	}
	disk := filesys.MakeFsInMemory()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(disk.WriteFile("/kustomization.yaml", []byte("resources: [a.yaml]\nnamePrefix: x-\n")))
	check(disk.WriteFile("/a.yaml", []byte(text.String())))
	want, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/")
	check(err)
	data, err := want.Resources()[0].MarshalJSON()
	check(err)
	if d := cmp.Diff(string(data), string(got[0])); d != "" {
		t.Error(d)
	}
}
