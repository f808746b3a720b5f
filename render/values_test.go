package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// openValues returns a bundle that behaves like a chart: for each value with the key "Kind/name", it has an
// object with this kind and name that contains the value.
func openValues(pin lockfile.Pin) (fs.FS, error) {
	values := map[string]any{}
	if pin.Template != nil && len(pin.Template.Values) > 0 {
		if err := json.Unmarshal(pin.Template.Values, &values); err != nil {
			return nil, err
		}
	}
	r := bundle.Release{Package: pin.Package, Name: pin.Bundle, Version: pin.Version, File: "Chart.yaml"}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		kind, name, _ := strings.Cut(key, "/")
		value, isMap := values[key].(map[string]any)
		if !isMap {
			continue // null: no object
		}
		o := k8s.New("v1", kind, "", name)
		switch kind {
		case "ConfigMap":
			o["data"] = map[string]any{}
			for k, v := range value {
				o["data"].(map[string]any)[k] = fmt.Sprint(v)
			}
		case "ClusterRole":
			o = k8s.New(k8s.RBACGroup+"/v1", kind, "", name)
			o["rules"] = []any{}
			for _, k := range slices.Sorted(maps.Keys(value)) {
				o["rules"] = append(o["rules"].([]any), map[string]any{"apiGroups": k8s.Values(""), "resources": k8s.Values("pods"), "verbs": k8s.Values(k)})
			}
		case "Deployment":
			pod := map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": fmt.Sprintf("registry.example.com/i:v%x", fmt.Sprint(value["a"]))}}}}
			o = k8s.New("apps/v1", kind, "", name)
			o["spec"] = map[string]any{"replicas": int64(len(value)), "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "template": pod}
		case "CustomResourceDefinition":
			o = k8s.New("apiextensions.k8s.io/v1", kind, "", name+".example.com")
			o["spec"] = map[string]any{
				"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Thing", "plural": name},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": fmt.Sprint(value["a"])}}}},
			}
		}
		if value["wave"] != nil {
			o = k8s.Annotate(o, map[string]string{"example.com/wave": fmt.Sprint(value["wave"])})
		}
		object := bundle.ReleaseObject{File: "templates/all.yaml", Object: o, Kept: value["kept"] != nil}
		if value["hook"] != nil {
			object.Hook = &bundle.Hook{Events: []string{"pre-install"}}
		}
		r.Objects = append(r.Objects, object)
	}
	return r.In(nil), nil
}

func chartPin(name, values string) lockfile.Pin {
	ns, pkg, _ := strings.Cut(name, "/")
	return lockfile.Pin{
		Namespace: ns, Package: pkg, Bundle: pkg + "-1.0.0", Version: "1.0.0", InstallMode: catalog.AllNamespaces, Format: "helm",
		Template: &lockfile.Template{Release: pkg, Values: json.RawMessage(values)},
	}
}

// drawValues draws values of a chart. If nulls is true, some values may be null, as in the values of a cluster.
func drawValues(t *rapid.T, label string, nulls bool) string {
	values := map[string]any{}
	for _, key := range []string{"ConfigMap/a", "ConfigMap/b", "ClusterRole/shared", "Deployment/d", "Deployment/e"} {
		switch rapid.IntRange(0, 3).Draw(t, label+" "+key) {
		case 0:
			if nulls {
				values[key] = nil
			}
		case 1:
		default:
			fields := map[string]any{}
			for _, field := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "kept", "hook", "wave"}), rapid.ID[string]).Draw(t, label+" "+key+" fields") {
				fields[field] = rapid.SampledFrom([]any{"x", "y", "long\ntext: {}", true}).Draw(t, label+" "+key+" "+field)
			}
			values[key] = fields
		}
	}
	if rapid.Bool().Draw(t, label+" crd") || nulls {
		delete(values, "CustomResourceDefinition/things")
	} else {
		values["CustomResourceDefinition/things"] = map[string]any{"a": "x"}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestValuesOfClusterProperty checks that a cluster with its own values gets the same objects as with a
// Subscription that has the merged values, and that kustomize builds these objects.
func TestValuesOfClusterProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opt := Options{Profile: rapid.SampledFrom([]profile.Name{profile.ArgoCD, profile.Flux, profile.Plain}).Draw(t, "profile")}
		if opt.Profile == profile.ArgoCD && rapid.Bool().Draw(t, "pieces") {
			opt.GitOps = &profile.GitOps{Name: "g", Path: "p", RepoURL: "https://example.com/r.git", ArgoCDSettings: profile.ArgoCDSettings{Project: "default"}}
		}
		c := profile.Cluster{Name: "c", HelmValues: map[string]json.RawMessage{}}
		if rapid.Bool().Draw(t, "config") {
			c.Config = json.RawMessage(`{"nodeSelector":{"a":"b"},"annotations":{"x":"y"}}`)
		}
		if rapid.Bool().Draw(t, "fewer operators") {
			c.Operators = []string{"a/x", "b/y"}
		}
		opt.Clusters = []profile.Cluster{c, {Name: "other"}}
		lock, merged := &lockfile.File{}, &lockfile.File{}
		for _, name := range []string{"a/x", "b/y", "c/z"} {
			pin := chartPin(name, drawValues(t, name, false))
			lock.Pins = append(lock.Pins, pin)
			if name != "c/z" && rapid.IntRange(0, 3).Draw(t, name+" has values") > 0 {
				over := json.RawMessage(drawValues(t, "cluster "+name, true))
				c.HelmValues[name] = over
				template := *pin.Template
				var err error
				if template.Values, err = mergeValues(template.Values, over); err != nil {
					t.Fatal(err)
				}
				pin.Template = &template
			}
			merged.Pins = append(merged.Pins, pin)
		}
		opt.Reporter = rapid.SampledFrom([]*Reporter{nil, {Image: "registry.example.com/r:1", Namespace: "reporter"}}).Draw(t, "reporter")
		plain := opt
		plain.Clusters = slices.Clone(opt.Clusters)
		plain.Clusters[0].HelmValues = nil
		plain.Clusters = plain.Clusters[:1] // other would have the merged values, too
		want, err1 := All(merged, plain, openValues)
		_, errOther := All(lock, Options{Clusters: []profile.Cluster{{Name: "other"}}}, openValues)
		got, err2 := All(lock, opt, openValues)
		if (err1 != nil || errOther != nil) != (err2 != nil) {
			t.Fatalf("merged: %v; base: %v; values of the cluster: %v", err1, errOther, err2)
		}
		if err2 != nil {
			t.Skip("two charts with one object")
		}
		checkBuiltIsRendered(t, got)
		checkClusterBuilds(t, got)
		if d := cmp.Diff(canonicals(t, partsOf(t, want, nil, "c").operators()), canonicals(t, partsOf(t, got, nil, "c").operators())); d != "" {
			t.Errorf("the cluster gets other objects (-merged +values of the cluster):\n%s", d)
		}
		if d := cmp.Diff(expectedIn(t, want), expectedIn(t, got)); d != "" {
			t.Errorf("other Installations (-merged +values of the cluster):\n%s", d)
		}
	})
}

// expectedIn returns the Installations and the objects of cluster c as text.
func expectedIn(t *rapid.T, res *Result) []string {
	var out []string
	installations, err := res.Installations("c")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range installations {
		in.Spec.Pin = "" // the lock differs
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	operators, _, err := res.ClusterObjects("c")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range operators {
		for _, o := range in.Objects {
			out = append(out, in.Pin.Key()+" "+canonical(t, o))
		}
	}
	slices.Sort(out)
	return out
}

// TestValuesOfClusterErrors checks the errors about values of a cluster.
func TestValuesOfClusterErrors(t *testing.T) {
	const crd = `{"CustomResourceDefinition/things":{"a":"x"},"ConfigMap/a":{}}`
	at := diag.Pos{File: "quayside.yaml", Line: 9, Col: 3}
	for name, c := range map[string]struct {
		operator, values string
		want             string
	}{
		"changed CRD":  {"a/x", `{"CustomResourceDefinition/things":{"a":"y"}}`, `quayside.yaml:9:3: values of a/x in cluster "c": they change CustomResourceDefinition things.example.com`},
		"removed CRD":  {"a/x", `{"CustomResourceDefinition/things":null}`, "they remove CustomResourceDefinition things.example.com"},
		"added CRD":    {"a/x", `{"CustomResourceDefinition/others":{}}`, "they add CustomResourceDefinition others.example.com"},
		"unknown":      {"a/xx", `{}`, `quayside.yaml:9:3: values of an unknown operator: cluster "c" has no chart a/xx (did you mean "a/x"?)`},
		"no chart":     {"b/y", `{}`, `values of an operator that is not a Helm chart: b/y in cluster "c"`},
		"not rendered": {"a/x", `{"ConfigMap/A_":{}}`, `quayside.yaml:9:3: values of a/x in cluster "c": templates/all.yaml: ConfigMap a/A_: metadata.name: Invalid value`},
		"two owners":   {"a/x", `{"ClusterRole/r":{"get":1}}`, `rendering cluster c with its values: a/x and d/z both contain ClusterRole.rbac.authorization.k8s.io r, with different content`},
	} {
		other := chartPin("b/y", `{}`)
		other.Template = nil
		lock := &lockfile.File{Pins: []lockfile.Pin{chartPin("a/x", crd), other, chartPin("d/z", `{"ClusterRole/r":{"list":1}}`)}}
		cluster := profile.Cluster{Name: "c", HelmValues: map[string]json.RawMessage{c.operator: json.RawMessage(c.values)}, ValuesAt: map[string]diag.Pos{c.operator: at}}
		_, err := All(lock, Options{Clusters: []profile.Cluster{cluster}}, openValues)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if _, hasHint := errors.AsType[*diag.Error](err); !hasHint && name != "two owners" {
			t.Errorf("%s: no position", name)
		}
	}
}
