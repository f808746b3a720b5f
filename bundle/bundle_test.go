package bundle

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

const (
	annotations = `annotations:
  operators.operatorframework.io.bundle.package.v1: lamp
  operators.operatorframework.io.bundle.channels.v1: stable, fast,stable
  operators.operatorframework.io.bundle.channel.default.v1: fast
`
	csv = `kind: ClusterServiceVersion
apiVersion: operators.coreos.com/v1alpha1
metadata: {name: lamp.v1.0.0}
spec:
  version: 1.0.0
  installModes: [{type: OwnNamespace, supported: yes}, {type: AllNamespaces, supported: off}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: lamp
        spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: []}}}
`
)

// newBundleDir returns a valid bundle directory, changed by files: name → content, or "-" to remove the file.
func newBundleDir(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{"metadata/annotations.yaml": {Data: []byte(annotations)}, "manifests/csv.yaml": {Data: []byte(csv)}}
	for name, data := range files {
		if data == "-" {
			delete(out, name)
			continue
		}
		out[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return out
}

func TestLoad(t *testing.T) {
	b, err := Load(newBundleDir(map[string]string{
		"metadata/properties.yaml":   "properties:\n- {type: olm.maxOpenShiftVersion, value: '4.14'}\n",
		"metadata/dependencies.yaml": "dependencies:\n- {type: olm.package, value: {packageName: oil, version: '>=1'}}\n",
		"manifests/many.yaml":        "---\n---\napiVersion: v1\nkind: List\nitems:\n- {kind: ConfigMap, apiVersion: v1, metadata: {name: a}, data: {}}\n- {kind: ConfigMap, apiVersion: v1, metadata: {name: b}}\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: c}\n",
		"manifests/one.json":         `{"kind":"Beam","apiVersion":"lamp.io/v1","metadata":{"name":"d"},"spec":{"big":9223372036854775807,"bigger":18446744073709551616,"ratio":1.5,"whole":2.0,"empty":{},"text":""}}`,
		"manifests/README.md":        "read me",
		"manifests/.keep":            "",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range b.Objects {
		names = append(names, o.String())
	}
	if d := cmp.Diff([]string{"ConfigMap a", "ConfigMap b", "Secret c", "Beam d"}, names); d != "" {
		t.Error(d)
	}
	spec := map[string]any{"big": int64(9223372036854775807), "bigger": json.Number("18446744073709551616"), "ratio": 1.5, "whole": int64(2), "empty": map[string]any{}, "text": ""}
	if d := cmp.Diff(spec, b.Objects[3].Object["spec"]); d != "" {
		t.Error(d)
	}
	if b.Package != "lamp" || b.DefaultChannel != "fast" || !cmp.Equal(b.Channels, []string{"stable", "fast"}) {
		t.Errorf("got package %q, channels %q, default %q", b.Package, b.Channels, b.DefaultChannel)
	}
	if !cmp.Equal(b.CSV.Modes, []catalog.InstallMode{catalog.OwnNamespace}) {
		t.Errorf("got modes %v", b.CSV.Modes)
	}
	if len(b.Properties) != 1 || string(b.Properties[0].Value) != `"4.14"` || len(b.Dependencies) != 1 || string(b.Dependencies[0].Value) != `{"packageName":"oil","version":"\u003e=1"}` {
		t.Errorf("got properties %v, dependencies %v", b.Properties, b.Dependencies)
	}
	if len(b.Warnings) != 1 || b.Warnings[0].Pos.File != "manifests/README.md" {
		t.Errorf("got warnings %v", b.Warnings)
	}
}

// TestYAMLAsInAPIServer checks that YAML scalars get the same types as in the API server.
func TestYAMLAsInAPIServer(t *testing.T) {
	got, err := decodeDocuments("f.yaml", []byte("a: y\nb: 'y'\nc: =\nd: 0777\ne: 1e3\nf: 2001-01-01\ng: ~\nh: {1: x, true: y}\ni: 0x1F\nj: 1_000\nk: 12345678901234567890\nl: 5.0\nm: &x [1]\nz: *x\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{
		"a": true, "b": "y", "c": "=", "d": int64(511), "e": int64(1000), "f": "2001-01-01", "g": nil, "h": map[string]any{"1": "x", "true": true},
		"i": int64(31), "j": int64(1000), "k": json.Number("12345678901234567890"), "l": int64(5), "m": []any{int64(1)}, "z": []any{int64(1)},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLoadErrors(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [*" + p + strings.Repeat(",*"+p, 9) + "]\n"
	}
	cases := map[string]struct {
		files map[string]string
		want  []string
	}{
		"error/no metadata":             {map[string]string{"metadata/annotations.yaml": "-"}, []string{"metadata/annotations.yaml: missing"}},
		"error/no package":              {map[string]string{"metadata/annotations.yaml": "annotations: {a: b}"}, []string{"is missing: it must contain the package name"}},
		"error/manifests elsewhere":     {map[string]string{"metadata/annotations.yaml": annotations + "  operators.operatorframework.io.bundle.manifests.v1: ../x\n"}, []string{"is not a path inside the bundle"}},
		"error/media type":              {map[string]string{"metadata/annotations.yaml": annotations + "  operators.operatorframework.io.bundle.mediatype.v1: plain+v0\n"}, []string{"plain+v0"}},
		"error/no CSV":                  {map[string]string{"manifests/csv.yaml": "-", "manifests/a.yaml": "{kind: A, metadata: {name: a}}"}, []string{"manifests: no ClusterServiceVersion"}},
		"error/two CSVs":                {map[string]string{"manifests/d.yaml": csv}, []string{`manifests/d.yaml: second ClusterServiceVersion "lamp.v1.0.0"`}},
		"error/malformed":               {map[string]string{"manifests/a.yaml": "a: b\nc: [\n"}, []string{"manifests/a.yaml:"}},
		"error/not an object":           {map[string]string{"manifests/a.yaml": "- 1\n"}, []string{"manifests/a.yaml:1:1: expected a mapping, got a list"}},
		"error/item":                    {map[string]string{"manifests/a.yaml": "kind: List\nitems: [1]\n"}, []string{"manifests/a.yaml: document 1: items[0]: not an object"}},
		"error/no kind":                 {map[string]string{"manifests/a.yaml": "a: b\n"}, []string{"manifests/a.yaml: document 1: kind is missing"}},
		"error/file name":               {map[string]string{"manifests/a\n::error::x.yaml": "a: b\n"}, []string{`manifests/a ::error::x.yaml: file name "manifests/a\n::error::x.yaml" contains`}},
		"error/subdirectory":            {map[string]string{"manifests/sub/a.yaml": "a: b\n"}, []string{"manifests/sub: subdirectory not supported"}},
		"error/two files":               {map[string]string{"manifests/a.yaml": "[", "manifests/b.yaml": "{"}, []string{"manifests/a.yaml", "manifests/b.yaml"}},
		"error/two fields":              {map[string]string{"manifests/csv.yaml": "kind: ClusterServiceVersion\nmetadata: {name: [], labels: {a: [1]}}\nspec: {installModes: {}, replaces: 1}\n"}, []string{"metadata.name: expected a string", `metadata.labels["a"]`, "spec.installModes: expected a list", "spec.replaces: expected a string"}},
		"error/alias bomb":              {map[string]string{"manifests/a.yaml": bomb}, []string{"manifests/a.yaml"}},
		"error/deep":                    {map[string]string{"manifests/a.yaml": "a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200)}, []string{"manifests/a.yaml"}},
		"error/not a number":            {map[string]string{"manifests/a.yaml": "a: .nan"}, []string{"manifests/a.yaml:1:4: .nan cannot be represented in JSON"}},
		"error/property without a type": {map[string]string{"metadata/properties.yaml": "properties: [{value: 1}, 3]"}, []string{"properties[0].type is missing", "properties[1]: expected an object"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Load(newBundleDir(c.files))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to contain %q", err, want)
				}
			}
		})
	}
}

// TestCSVVersion checks that a single CSV with a wrong apiVersion is accepted with a warning, as in OLM v1.
// Next to a CSV with OLM's group, an object with a wrong group must not count as the CSV.
func TestCSVVersion(t *testing.T) {
	for version, warns := range map[string]bool{"operators.coreos.com/v1alpha1": false, "operators.coreos.com/v1": true, "operator.coreos.com/v1alpha1": true, "operators.coreos.io/v1alpha1": true} {
		b, err := Load(newBundleDir(map[string]string{"manifests/csv.yaml": strings.Replace(csv, "operators.coreos.com/v1alpha1", version, 1)}))
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if b.CSV.Name != "lamp.v1.0.0" || (len(b.Warnings) == 1) != warns || warns && !strings.Contains(b.Warnings[0].String(), "manifests/csv.yaml: ClusterServiceVersion lamp.v1.0.0 has apiVersion "+version) {
			t.Errorf("%s: got %v, warnings %v", version, b.CSV.Name, b.Warnings)
		}
	}
	b, err := Load(newBundleDir(map[string]string{"manifests/a.yaml": "{apiVersion: other.io/v1, kind: ClusterServiceVersion, metadata: {name: a}}"}))
	if err != nil || b.CSV.Name != "lamp.v1.0.0" || len(b.Warnings) != 0 {
		t.Errorf("in addition to a valid CSV: %v, %v", b, err)
	}
}

func TestDigestDoesNotDependOnNames(t *testing.T) {
	digest := func(fsys fs.FS) (string, error) {
		ms, err := Manifests(fsys)
		return string(DigestList(ms)), err
	}
	a, err := digest(newBundleDir(map[string]string{"manifests/x.yaml": "{kind: A}"}))
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := FSFromObjects([][]byte{[]byte("{kind: A}"), []byte(csv)}, "lamp")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := digest(fsys); err != nil || a != b {
		t.Errorf("got %s and %s, %v", a, b, err)
	}
	if c, err := digest(newBundleDir(nil)); err != nil || a == c {
		t.Errorf("other content has the same digest %s, %v", c, err)
	}
	if b, err := Load(fsys); err != nil || b.CSV.Name != "lamp.v1.0.0" || b.Package != "lamp" {
		t.Errorf("got %v, %v", b, err)
	}
}

// TestObjectNames checks that a file name contains the object's kind and name, unless they are unsafe in file names.
func TestObjectNames(t *testing.T) {
	fsys, err := FSFromObjects([][]byte{[]byte(`{"kind":"Service","metadata":{"name":"lamp.v1"}}`), []byte(`{"kind":"../x","metadata":{"name":"/etc"}}`), []byte(csv), []byte(`{"kind":"List"}`)}, "lamp")
	if err != nil {
		t.Fatal(err)
	}
	got, err := fs.Glob(fsys, "manifests/*")
	if d := cmp.Diff([]string{"manifests/00000-service-lamp.v1.yaml", "manifests/00001.yaml", "manifests/00002.yaml", "manifests/00003-list.yaml"}, got); d != "" || err != nil {
		t.Error(err, d)
	}
}

func TestValidate(t *testing.T) {
	replace := func(pairs ...string) map[string]string {
		return map[string]string{"manifests/csv.yaml": strings.NewReplacer(pairs...).Replace(csv)}
	}
	webhook := func(fields string) map[string]string {
		return replace("  version: 1.0.0\n", "  version: 1.0.0\n  webhookdefinitions: ["+fields+"]\n")
	}
	const ok = "type: ValidatingAdmissionWebhook, generateName: v.lamp.io, deploymentName: lamp"
	cases := map[string]struct {
		files map[string]string
		want  []string
	}{
		"ok/plain":                 {nil, nil},
		"ok/webhook":               {webhook("{" + ok + "}"), nil},
		"error/version":            {replace("version: 1.0.0", "version: one"), []string{"spec.version"}},
		"error/no version":         {replace("  version: 1.0.0\n", ""), []string{"spec.version is missing"}},
		"ok/min kube version":      {replace("version: 1.0.0", "version: 1.0.0\n  minKubeVersion: new"), nil},
		"ok/mode twice":            {replace("AllNamespaces", "OwnNamespace"), nil},
		"ok/mode unknown":          {replace("AllNamespaces", "Everywhere"), nil},
		"ok/object twice":          {map[string]string{"manifests/a.yaml": "{kind: Secret, apiVersion: v1, metadata: {name: a}}", "manifests/b.yaml": "{kind: Secret, apiVersion: v1, metadata: {name: a}}"}, nil},
		"error/no mode":            {replace("yes", "no"), []string{"no install mode is supported"}},
		"error/deployment name":    {replace("- name: lamp", "- name: Lamp_"), []string{"deployments[0].name"}},
		"error/selector":           {replace("matchLabels: {a: b}", "matchLabels: {a: c}"), []string{"does not match the labels of the pod template"}},
		"error/replaces itself":    {replace("version: 1.0.0", "version: 1.0.0\n  replaces: lamp.v1.0.0"), []string{"replaces itself"}},
		"error/owned missing":      {replace("version: 1.0.0", "version: 1.0.0\n  customresourcedefinitions: {owned: [{name: a.b, version: v1, kind: A}]}"), []string{`owned CRD "a.b" is not in the bundle`}},
		"error/object twice":       {map[string]string{"manifests/a.yaml": "{kind: Secret, apiVersion: v1, metadata: {name: a}}", "manifests/b.yaml": "{kind: Secret, apiVersion: v1, metadata: {name: a}, data: {}}"}, []string{"manifests/b.yaml: duplicate object Secret a: also in manifests/a.yaml"}},
		"error/webhook twice":      {webhook("{" + ok + "}, {" + ok + "}"), []string{"spec.webhookdefinitions[1].generateName"}},
		"error/webhook deployment": {webhook("{type: MutatingAdmissionWebhook, generateName: a, deploymentName: other}"), []string{`no deployment "other"`}},
		"error/webhook on all":     {webhook("{" + ok + ", rules: [{apiGroups: ['*'], resources: [pods]}]}"), []string{"rules[0].apiGroups"}},
		"error/webhook on hooks":   {webhook("{" + ok + ", rules: [{apiGroups: [admissionregistration.k8s.io], resources: ['*']}]}"), []string{"rules[0].resources"}},
		"error/conversion":         {webhook("{type: ConversionWebhook, generateName: c, deploymentName: lamp, conversionCRDs: [x]}"), []string{"must support only AllNamespaces", `does not own CRD "x"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := Load(newBundleDir(c.files))
			if err != nil {
				t.Fatal(err)
			}
			warnings, err := Validate(b)
			if c.want == nil && err != nil {
				t.Fatal(err)
			}
			if c.want == nil && strings.Count(name, " ") > 0 && len(warnings) == 0 {
				t.Error("no warning")
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "manifests/") {
					t.Errorf("got %v, want a fault with its file that contains %q", err, want)
				}
			}
		})
	}
}

// TestReleaseName checks that OLM's rules about names do not apply to charts.
func TestReleaseName(t *testing.T) {
	r := Release{Package: "lamp", Name: "lamp-1.0.0+build.1", Version: "1.0.0+build.1", File: "Chart.yaml"}
	b, err := Load(r.In(nil))
	if err != nil {
		t.Fatal(err)
	}
	if warnings, err := Validate(b); err != nil || len(warnings) > 0 {
		t.Errorf("got %v, %v, want no warning", warnings, err)
	}
}

// TestCheckServed checks that custom resources have a version that their CRD serves.
func TestCheckServed(t *testing.T) {
	b, err := Load(newBundleDir(map[string]string{
		"manifests/a.yaml": "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, metadata: {name: beams.lamp.io}, spec: {group: lamp.io, names: {kind: Beam, plural: beams}, versions: [{name: v1, storage: true}, {name: v2, served: true}]}}",
		"manifests/b.yaml": "{kind: Beam, apiVersion: lamp.io/v1, metadata: {name: a}}",
		"manifests/c.yaml": "{kind: Beam, apiVersion: lamp.io/v2, metadata: {name: b}}",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := `manifests/b.yaml: Beam a: CRD "beams.lamp.io" of the bundle does not serve version "v1"`, CheckServed(b); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCSVIsTyped checks that unknown fields in API objects inside a CSV are dropped with a warning. A value of
// a wrong type must be a fault that names its field.
func TestCSVIsTyped(t *testing.T) {
	typed := func(deployment, rule, webhook string) map[string]string {
		text := strings.Replace(csv, "containers: []", "containers: [{name: c, "+deployment+"}]", 1)
		text = strings.Replace(text, "      deployments:", "      permissions: [{serviceAccountName: a, rules: [{verbs: [get], "+rule+"}]}]\n      deployments:", 1)
		text = strings.Replace(text, "  version: 1.0.0\n", "  version: 1.0.0\n  webhookdefinitions: [{type: MutatingAdmissionWebhook, generateName: v.lamp.io, deploymentName: lamp, reinvocationPolicy: Never, "+webhook+"}]\n", 1)
		return map[string]string{"manifests/csv.yaml": text}
	}
	b, err := Load(newBundleDir(typed("arg: [a], env: []", "apiGroup: ['']", "sideEffect: None")))
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := Validate(b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.Pos.String()+": "+strings.TrimSuffix(w.Msg, " is dropped: neither the API nor OLM has this field"))
	}
	want := []string{
		"manifests/csv.yaml: spec.install.spec.deployments[0].spec.template.spec.containers[0].arg",
		"manifests/csv.yaml: spec.install.spec.permissions[0].rules[0].apiGroup",
		"manifests/csv.yaml: spec.webhookdefinitions[0].sideEffect",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	d, w := b.CSV.Deployments[0].Spec, b.CSV.Webhooks[0].Fields
	if d := cmp.Diff(map[string]any{"name": "c", "env": []any{}}, k8s.Items(d, "template", "spec", "containers")[0]); d != "" || w["sideEffect"] != nil || w["reinvocationPolicy"] != "Never" ||
		!cmp.Equal(b.CSV.Permissions[0].Rules, []any{map[string]any{"verbs": []any{"get"}}}) {
		t.Errorf("got %v, %v\n%s", w, b.CSV.Permissions, d)
	}
	_, err = Load(newBundleDir(typed("args: a", "apiGroups: x", "rules: {}, sideEffects: []")))
	wrong := `manifests/csv.yaml: spec.install.spec.deployments[0].spec.template.spec.containers[0].args: expected a list, got a string
manifests/csv.yaml: spec.install.spec.permissions[0].rules[0].apiGroups: expected a list, got a string
manifests/csv.yaml: spec.webhookdefinitions[0].rules: expected a list, got an object
manifests/csv.yaml: spec.webhookdefinitions[0].sideEffects: expected a string, got a list`
	if err == nil || err.Error() != wrong {
		t.Errorf("got %v", err)
	}
}

// TestUnmetReferences checks the warning about a Secret that the bundle does not contain.
func TestUnmetReferences(t *testing.T) {
	spec := "spec: {volumes: [{name: a, secret: {secretName: mine}}, {name: b, secret: {secretName: other, optional: true}}, {name: c, configMap: {name: there}}], containers: []"
	b, err := Load(newBundleDir(map[string]string{
		"manifests/csv.yaml": strings.Replace(csv, "spec: {containers: []", spec, 1),
		"manifests/c.yaml":   "{kind: ConfigMap, apiVersion: v1, metadata: {name: there}}",
	}))
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := Validate(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Msg, `Secret "mine"`) {
		t.Errorf("got %v", warnings)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(csv))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(`{"kind":"List","items":[{"kind":"A"}]}`))
	f.Add([]byte("? {a: b}\n: c\n--- !!binary x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Load(newBundleDir(map[string]string{"manifests/a.yaml": string(data)}))
		if err != nil {
			return
		}
		if _, err := json.Marshal(b.Objects); err != nil {
			t.Error(err)
		}
		_, _ = Validate(b)
	})
}

// TestHiddenObjects checks that lists of any kind are split. A manifest with an object that some decoders would
// not find must be rejected: the error names the file and the field.
func TestHiddenObjects(t *testing.T) {
	const secret = `{kind: Secret, apiVersion: v1, metadata: {name: s}}`
	for text, want := range map[string]string{
		`{kind: ConfigMapList, apiVersion: v1, metadata: {name: harmless}, items: [` + secret + `]}`:                                                           "Secret s",
		`{kind: AList, apiVersion: x/v1, metadata: {name: a}, items: [{kind: BList, apiVersion: x/v1, metadata: {name: b}, items: [` + secret + `]}]}`:         "Secret s",
		`{kind: AllowList, apiVersion: x/v1, metadata: {name: a}, spec: {}}`:                                                                                   "AllowList a",
		`{kind: Basket, apiVersion: x/v1, metadata: {name: a}, items: [` + secret + `]}`:                                                                       "Basket a",
		`{kind: AList, apiVersion: x/v1, metadata: {name: a}, items: {a: b}}`:                                                                                  "manifests/x.yaml: document 1: items: expected a list of objects, got an object",
		`{kind: AList, apiVersion: x/v1, items: [{kind: BList, apiVersion: x/v1, items: }]}`:                                                                   "manifests/x.yaml: document 1: items[0].items: expected a list of objects, got null",
		secret + "\n---\n" + `{kind: AList, apiVersion: x/v1, items: [` + secret + `, text]}`:                                                                  "manifests/x.yaml: document 2: items[1]: not an object",
		`{kind: List, apiVersion: v1, metadata: {name: l}, functionConfig: ` + secret + `}`:                                                                    "manifests/x.yaml: document 1: List is not a Kubernetes object",
		`{kind: Deployment, apiVersion: v1, metadata: {name: d}, spec: text}`:                                                                                  "manifests/x.yaml: document 1: spec: expected an object, got a string",
		`{kind: AList, apiVersion: x/v1, items: [{kind: CronJob, apiVersion: batch/v1, metadata: {name: d}, spec: {jobTemplate: []}}]}`:                        "manifests/x.yaml: document 1: items[0].spec.jobTemplate: expected an object, got a list",
		`{kind: ResourceList, apiVersion: config.kubernetes.io/v1, metadata: {name: l}, items: [` + secret + `]}`:                                              "manifests/x.yaml: document 1: ResourceList is not a Kubernetes object",
		`{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"<<": {"securityContext": {"privileged": true}}}], "<<": 1}}`: `manifests/x.yaml: document 1: spec.<<: key "<<" is a YAML merge key, which is not supported in manifests`,
	} {
		b, err := Load(newBundleDir(map[string]string{"manifests/x.yaml": text}))
		got := ""
		if err != nil {
			got = err.Error()
		} else if len(b.Objects) == 1 {
			got = b.Objects[0].String()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestDirectives checks that annotations and labels cause a warning if they control a tool that applies
// bundles.
func TestDirectives(t *testing.T) {
	b, err := Load(newBundleDir(map[string]string{
		"manifests/x.yaml": `{kind: Secret, apiVersion: v1, metadata: {name: s, annotations: {config.kubernetes.io/local-config: "true", Internal.config.kubernetes.io/needsHashSuffix: enabled, notconfig.kubernetes.io/a: b, config.kubernetes.io: c}, labels: {kustomize.config.k8s.io/behavior: merge, a: b}}}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := Validate(b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		if w.Code == "tool-directive" {
			got = append(got, w.String())
		}
	}
	want := []string{
		`manifests/x.yaml: Secret s: metadata.annotations: "Internal.config.kubernetes.io/needsHashSuffix" ignored: bundles must not control kustomize`,
		`manifests/x.yaml: Secret s: metadata.annotations: "config.kubernetes.io/local-config" ignored: bundles must not control kustomize`,
		`manifests/x.yaml: Secret s: metadata.labels: "kustomize.config.k8s.io/behavior" ignored: bundles must not control kustomize`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestReservedKeys checks the warnings about quayside's keys in an object, outside of the object's own metadata.
func TestReservedKeys(t *testing.T) {
	for text, want := range map[string]string{
		`{kind: Job, apiVersion: batch/v1, metadata: {name: j}, spec: {template: {metadata: {labels: {quayside.dev/package: x}}}}}`:                           `Job j: spec.template.metadata.labels: key "quayside.dev/package" is reserved for quayside`,
		`{kind: Service, apiVersion: v1, metadata: {name: s}, spec: {selector: {Quayside.dev/package: x}}}`:                                                   `Service s: spec.selector: key "Quayside.dev/package" is reserved for quayside`,
		`{kind: Thing, apiVersion: x.io/v1, metadata: {name: t}, spec: {of: [{annotations: {x.quayside.dev/stage: last}}]}}`:                                  `Thing t: spec.of[0].annotations: key "x.quayside.dev/stage" is reserved for quayside`,
		`{kind: Thing, apiVersion: x.io/v1, metadata: {name: t, labels: {quayside.dev/package: x}}, spec: {labels: {notquayside.dev/a: b, quayside.dev: c}}}`: "",
	} {
		b, err := Load(newBundleDir(map[string]string{"manifests/x.yaml": text}))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		warnings, err := Validate(b)
		if err != nil {
			t.Error(err)
		}
		for _, w := range warnings {
			if w.Code == "reserved-key" {
				got += w.Pos.String() + ": " + w.Msg
			}
		}
		if want == "" && got != "" || want != "" && got != "manifests/x.yaml: "+want+", which does not read it here" {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestDirectivesAreReportedOnce checks that a label that many objects have causes only one warning.
func TestDirectivesAreReportedOnce(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		files["manifests/"+name+".yaml"] = `{kind: Secret, apiVersion: v1, metadata: {name: ` + name + `, labels: {app.kubernetes.io/instance: x}, annotations: {helm.sh/hook: pre-install}}}`
	}
	b, err := Load(newBundleDir(files))
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := Validate(b)
	if err != nil {
		t.Fatal(err)
	}
	warnings = slices.DeleteFunc(warnings, func(w diag.Warning) bool { return w.Code != "tool-directive" })
	if len(warnings) != 2 {
		t.Fatalf("got %v", warnings)
	}
	for _, w := range warnings {
		if w.Pos.File != "manifests/a.yaml" || !strings.HasSuffix(w.Msg, " (also in 2 more places)") {
			t.Errorf("got %s", w)
		}
	}
}

// TestDroppedLabelsThatFind checks that a warning about a dropped label lists the objects whose selectors no
// longer match. It must not list selectors of pods, or selectors that did not match before.
func TestDroppedLabelsThatFind(t *testing.T) {
	const service = `{kind: Service, apiVersion: v1, metadata: {name: s, labels: {app.kubernetes.io/instance: x, a: b}}, spec: {selector: {app.kubernetes.io/instance: x}}}`
	at := `manifests/s.yaml: Service s: metadata.labels: "app.kubernetes.io/instance" ignored: bundles must not control Argo CD`
	for other, want := range map[string]string{
		`{kind: ServiceMonitor, apiVersion: monitoring.coreos.com/v1, metadata: {name: m}, spec: {selector: {matchLabels: {app.kubernetes.io/instance: x, a: b}}}}`:                                at + "; the selector of ServiceMonitor m uses this label, so the selector no longer matches the object",
		`{kind: Thing, apiVersion: x.io/v1, metadata: {name: t}, spec: {of: [{services: {matchExpressions: [{key: app.kubernetes.io/instance, operator: Exists}]}}]}}`:                             at + "; the selector of Thing t uses this label, so the selector no longer matches the object",
		`{kind: ServiceMonitor, apiVersion: monitoring.coreos.com/v1, metadata: {name: m}, spec: {selector: {matchLabels: {app.kubernetes.io/instance: y}}}}`:                                      at,
		`{kind: ServiceMonitor, apiVersion: monitoring.coreos.com/v1, metadata: {name: m}, spec: {selector: {matchLabels: {a: b}}}}`:                                                               at,
		`{kind: NetworkPolicy, apiVersion: networking.k8s.io/v1, metadata: {name: "n"}, spec: {podSelector: {matchLabels: {app.kubernetes.io/instance: x}}}}`:                                      at,
		`{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: p}, spec: {selector: {matchLabels: {app.kubernetes.io/instance: x}}}}`:                                                at,
		`{kind: ClusterRole, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {app.kubernetes.io/instance: x}}]}, rules: []}`: at,
	} {
		b, err := Load(newBundleDir(map[string]string{"manifests/s.yaml": service, "manifests/z.yaml": other}))
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := Validate(b)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(warnings, func(w diag.Warning) bool { return w.Code == "tool-directive" })
		if got := warnings[i].String(); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", other, got, want)
		}
	}
}
