package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/yamltest"
	"github.com/quayside/quayside/lockfile"
)

// conformanceCase is one line of bundles.tsv.
type conformanceCase struct {
	pkg, version string
	watch        []string // nil: all
}

func (c conformanceCase) name() string { return c.pkg + "_" + c.version }

func conformanceCases(t *testing.T) (root string, cases []conformanceCase) {
	t.Helper()
	root = os.Getenv("QUAYSIDE_CONFORMANCE")
	if root == "" || os.Getenv("QUAYSIDE_CORPUS") == "" {
		t.Skip("QUAYSIDE_CONFORMANCE and QUAYSIDE_CORPUS are not both set")
	}
	root = filepath.Join(root, "render")
	data, err := os.ReadFile(filepath.Join(root, "bundles.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Split(line, "\t")
		if i == 0 || len(f) < 5 {
			continue
		}
		c := conformanceCase{pkg: f[0], version: f[1]}
		if f[4] != "ALL" {
			c.watch = strings.Split(f[4], ",")
		}
		cases = append(cases, c)
	}
	return root, cases
}

const conformanceNamespace = "op-ns"

// pin returns the pin that installs the bundle in the same way as the reference did.
func (c conformanceCase) pin(b *bundle.Bundle, group string) lockfile.Pin {
	return lockfile.Pin{
		Namespace: conformanceNamespace, Package: b.Package, Version: b.CSV.Version, Bundle: b.CSV.Name, OperatorGroup: group,
		InstallMode: catalog.ModeFor(conformanceNamespace, c.watch), WatchNamespaces: c.watch,
	}
}

// readObjects decodes a multi-document file.
func readObjects(t testing.TB, file string) []Object {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []Object
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		if doc = bytes.TrimPrefix(doc, []byte("---\n")); len(bytes.TrimSpace(doc)) > 0 {
			out = append(out, decodeOne(t, doc))
		}
	}
	return out
}

func decodeOne(t testing.TB, doc []byte) Object {
	t.Helper()
	v, err := yamltest.Decode(doc)
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, doc)
	}
	return v.(map[string]any)
}

// normalise prepares objects for the comparison with a reference. It removes the intended differences below.
// The files testdata/conformance/*.tsv use the same rule numbers.
//
//	rule 1  objects that only one side generates are compared in other tests:
//	        OperatorConditions, roles of provided APIs and of OperatorGroups
//	rule 1  a manifest of a known kind without apiVersion gets the apiVersion that v0 assumes
//	rule 2  a missing protocol of a container port is TCP; zero, false and empty values
//	        and the status of a CRD remain if they are in the file, although the types
//	        of the reference drop them
//	rule 3  generated roles and webhook configurations have other names: roles are
//	        compared by their permissions, configurations by their webhooks; a
//	        ServiceAccount that only a Deployment refers to is generated
//	rule 4  the variable OPERATOR_CONDITION_NAME
//	rule 5  a shipped object and a generated one with the same name are merged
//	rule 6  a cluster-scoped object has no namespace
//	rule 7  subjects with the bundle's own accounts are in the install namespace
//
// It also removes owner labels, and null and empty values of typed objects (Deployments, webhook
// configurations, generated Services), which the API server treats as absent.
func normalise(objects []Object) map[Key]Object {
	accounts := map[string]bool{}
	for _, o := range objects {
		if o.Is("", "ServiceAccount") {
			accounts[o.Name()] = true
		}
	}
	out := map[Key]Object{}
	for _, o := range objects {
		o = plainMetadata(k8s.Copy(o)) // removes annotations that control a tool (rule 16)
		o = k8s.Without(withoutOwner(o), "metadata", "creationTimestamp")
		if k8s.Text(o, "metadata", "labels", k8s.LabelManagedBy) == "quayside" {
			o = k8s.Without(o, "metadata", "labels", k8s.LabelManagedBy)
		}
		dropNulls(o)
		for _, field := range []string{"labels", "annotations"} {
			if len(k8s.Map(o, "metadata", field)) == 0 {
				o = k8s.Without(o, "metadata", field)
			}
		}
		if clusterScopedObject(o) {
			o = k8s.Without(o, "metadata", "namespace")
		}
		if o.APIVersion() == "" {
			o["apiVersion"] = olmKinds()[o.Kind()]
		}
		if k8s.IsCRD(o) {
			delete(o, "status")
		}
		switch {
		case o.Is("apps", "Deployment"):
			normaliseDeployment(o)
		case o.Group() == "admissionregistration.k8s.io":
			if hooks := k8s.Items(o, "webhooks"); len(hooks) == 1 {
				o = k8s.With(o, k8s.Text(hooks[0], "name"), "metadata", "name")
			}
			dropEmpty(o)
		case o.Is("", "Service"):
			dropEmpty(o)
		case o.Is(k8s.RBACGroup, "RoleBinding"), o.Is(k8s.RBACGroup, "ClusterRoleBinding"):
			for _, s := range k8s.Items(o, "subjects") {
				if k8s.Text(s, "kind") == "ServiceAccount" && accounts[k8s.Text(s, "name")] {
					delete(s, "namespace")
				}
			}
		}
		if have, ok := out[o.Key()]; ok && o.Is("", "Service") {
			o = mergeObject(o, have) // v1 lists shipped objects before the Service of webhooks, whose fields do not override theirs (rule 5)
		} else if ok {
			o = mergeObject(have, o)
		}
		out[o.Key()] = o
	}
	return out
}

func clusterScopedObject(o Object) bool { return !k8s.Namespaced(o.Group(), o.Kind()) }

func normaliseDeployment(o Object) {
	pod := k8s.Map(o, "spec", "template", "spec")
	for _, c := range slices.Concat(k8s.Items(pod, "containers"), k8s.Items(pod, "initContainers")) {
		for _, p := range k8s.Items(c, "ports") {
			if p["protocol"] == "TCP" {
				delete(p, "protocol")
			}
		}
		env, _ := c["env"].([]any)
		c["env"] = slices.DeleteFunc(env, func(v any) bool { return k8s.Text(v.(map[string]any), "name") == conditionVariable })
	}
	dropEmpty(o)
}

// dropNulls removes nulls from objects.
func dropNulls(m map[string]any) {
	maps.DeleteFunc(m, func(_ string, v any) bool {
		switch v := v.(type) {
		case map[string]any:
			dropNulls(v)
		case []any:
			for _, e := range v {
				if e, ok := e.(map[string]any); ok {
					dropNulls(e)
				}
			}
		}
		return v == nil
	})
}

// dropEmpty removes empty objects, lists and strings, innermost first.
func dropEmpty(m map[string]any) {
	maps.DeleteFunc(m, func(_ string, v any) bool {
		switch v := v.(type) {
		case map[string]any:
			dropEmpty(v)
			return len(v) == 0
		case []any:
			for _, e := range v {
				if e, ok := e.(map[string]any); ok {
					dropEmpty(e)
				}
			}
			return len(v) == 0
		case string:
			return v == ""
		}
		return v == nil
	})
}

// hasGeneratedName reports whether a role or binding is generated for the CSV: no file ships it.
func hasGeneratedName(o Object, shipped map[string]bool) bool {
	return o.Group() == k8s.RBACGroup && !shipped[o.Kind()+" "+o.Name()]
}

// compareObjects compares two sets of objects field by field. It returns descriptions of the differences, keyed
// by "object<TAB>field".
func compareObjects(got, want map[Key]Object) map[string]string {
	out := map[string]string{}
	keys := map[Key]bool{}
	for k := range got {
		keys[k] = true
	}
	for k := range want {
		keys[k] = true
	}
	for k := range keys {
		g, gotIt := got[k]
		w, wantIt := want[k]
		switch {
		case !gotIt:
			out[k.String()+"\t"] = "missing"
		case !wantIt:
			out[k.String()+"\t"] = "extra"
		default:
			compareValues(out, k.String(), "", map[string]any(g), map[string]any(w))
		}
	}
	return out
}

func compareValues(out map[string]string, object, at string, got, want any) {
	g, gotMap := got.(map[string]any)
	w, wantMap := want.(map[string]any)
	if gotMap && wantMap {
		for _, key := range slices.Sorted(maps.Keys(k8s.Merge(g, w))) {
			compareValues(out, object, strings.TrimPrefix(at+"."+key, "."), g[key], w[key])
		}
		return
	}
	gl, gotList := got.([]any)
	wl, wantList := want.([]any)
	if gotList && wantList && len(gl) == len(wl) {
		for i := range gl {
			compareValues(out, object, fmt.Sprintf("%s[%d]", at, i), gl[i], wl[i])
		}
		return
	}
	if !k8s.Equal(got, want) && !(want == nil && isZero(got)) {
		out[object+"\t"+at] = fmt.Sprintf("got %.200s, want %.200s", mustJSON(got), mustJSON(want))
	}
}

// isZero reports whether v is a zero or empty value. Encoding with Go types would omit v.
func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return v == int64(0) || v == false || v == ""
	}
}

func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// expectedDifferences returns the permitted differences by bundle and "object<TAB>field". It reads them from
// testdata/conformance/<reference>.tsv with the columns bundle, object, field, rule and reason.
func expectedDifferences(t *testing.T, reference string) map[string]map[string]bool {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "conformance", reference+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]map[string]bool{}
	scan := bufio.NewScanner(f)
	for line := 1; scan.Scan(); line++ {
		if strings.HasPrefix(scan.Text(), "#") || scan.Text() == "" {
			continue
		}
		c := strings.Split(scan.Text(), "\t")
		if len(c) != 5 || !strings.HasPrefix(c[3], "rule ") || c[4] == "" {
			t.Fatalf("%s.tsv:%d: want bundle, object, field, rule, reason", reference, line)
		}
		if out[c[0]] == nil {
			out[c[0]] = map[string]bool{}
		}
		out[c[0]][c[1]+"\t"+c[2]] = true
	}
	return out
}

// reportDifferences reports each unlisted difference, and each listed difference that does not exist.
func reportDifferences(t *testing.T, got map[string]string, listed map[string]bool) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if !listed[key] {
			t.Errorf("%s: %s", key, got[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		if _, ok := got[key]; !ok {
			t.Errorf("%s: listed as a difference, but equal", key)
		}
	}
}

// TestConformsToV1 compares rendered objects with those of OLM v1.
func TestConformsToV1(t *testing.T) {
	root, cases := conformanceCases(t)
	listed := expectedDifferences(t, "v1")
	for _, c := range cases {
		t.Run(c.name(), func(t *testing.T) {
			b := loadBundle(t, filepath.Join(os.Getenv("QUAYSIDE_CORPUS"), "bundles", c.pkg, c.version))
			got, _, err := Manifests(b, c.pin(b, ""), Options{CSVAnnotations: true})
			if err != nil {
				t.Fatal(err)
			}
			want := readObjects(t, filepath.Join(root, "v1", c.name()+".yaml"))
			shipped := map[string]bool{}
			for _, o := range b.Objects {
				shipped[o.Kind()+" "+o.Name()] = true
			}
			for _, p := range slices.Concat(b.CSV.Permissions, b.CSV.ClusterPerms) {
				shipped["ServiceAccount "+p.Account()] = true
			}
			beside := func(o Object) bool {
				return o.Is(k8s.OLMGroup, "OperatorCondition") || hasGeneratedName(o, shipped) || o.Is("", "ServiceAccount") && !shipped["ServiceAccount "+o.Name()]
			}
			reportDifferences(t, compareObjects(
				normalise(slices.DeleteFunc(slices.Clone(got), beside)),
				normalise(slices.DeleteFunc(slices.Clone(want), beside))), listed[c.name()])
			compareGrants(t, conformanceNamespace, got, want)
		})
	}
}

// TestConformsToV0WhereV1IsSilent compares the objects that only OLM v0 generates.
func TestConformsToV0WhereV1IsSilent(t *testing.T) {
	root, cases := conformanceCases(t)
	listed := expectedDifferences(t, "v0")
	for _, c := range cases {
		t.Run(c.name(), func(t *testing.T) {
			b := loadBundle(t, filepath.Join(os.Getenv("QUAYSIDE_CORPUS"), "bundles", c.pkg, c.version))
			got, _, err := Manifests(b, c.pin(b, "og"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := readObjects(t, filepath.Join(root, "v0", c.name()+".yaml"))
			reportDifferences(t, compareObjects(v0Silent(b, got), v0Silent(b, want)), listed[c.name()])
			g := grants(got)
			for _, x := range slices.SortedFunc(maps.Keys(grants(withoutServing(want))), grant.compare) {
				everywhere := x
				everywhere.namespace = ""
				if !g[x] && !g[everywhere] && x.group != k8s.OLMGroup {
					t.Errorf("not granted: %+v", x)
				}
			}
		})
	}
}

// v0Silent returns the objects that v0 renders and v1 does not: OperatorConditions, roles of provided APIs and
// of the OperatorGroup, and APIServices. It renames them as in v0. It removes the accounts of
// OperatorConditions, because quayside lists each account once, and also lists accounts without permissions.
func v0Silent(b *bundle.Bundle, objects []Object) map[Key]Object {
	out := map[Key]Object{}
	for _, o := range objects {
		o = k8s.Copy(o)
		dropNulls(o)
		o = k8s.Without(o, "metadata", "annotations")
		labels := k8s.Map(o, "metadata", "labels")
		maps.DeleteFunc(labels, func(k string, _ any) bool {
			return strings.HasPrefix(k, "olm.managed") || strings.HasPrefix(k, "olm.owner") || strings.HasPrefix(k, "operators.coreos.com/") ||
				strings.HasPrefix(k, "quayside.dev/") || k == k8s.LabelManagedBy
		})
		name := strings.TrimPrefix(o.Name(), conformanceNamespace+".")
		switch {
		case o.Is(k8s.OLMGroup, "OperatorCondition"):
			name = "condition"
			delete(k8s.Map(o, "spec"), "serviceAccounts")
		case o.Is(k8s.RBACGroup, "ClusterRole") && strings.HasPrefix(name, b.Package+".og.og."):
			name = "og-" + strings.TrimPrefix(name, b.Package+".og.og.")
		case o.Is(k8s.RBACGroup, "ClusterRole") && strings.HasPrefix(name, "olm.og.og."):
			name, _, _ = strings.Cut("og-"+strings.TrimPrefix(name, "olm.og.og."), "-6")
			name = strings.Join(strings.SplitN(name, "-", 3)[:2], "-")
		case o.Is(k8s.RBACGroup, "ClusterRole") && isAPIRole(labels):
		case o.Is("apiregistration.k8s.io", "APIService"):
		default:
			continue
		}
		dropEmpty(o)
		o = k8s.With(o, name, "metadata", "name")
		out[o.Key()] = o
	}
	return out
}

func isAPIRole(labels map[string]any) bool {
	for key := range labels {
		if strings.HasPrefix(key, "olm.opgroup.permissions/") {
			return true
		}
	}
	return false
}

// withoutServing returns the objects without the roles that v0 generates for its own certificates. It keeps the
// roles for API services.
func withoutServing(objects []Object) []Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o Object) bool {
		return strings.HasSuffix(o.Name(), "-service-cert") || strings.HasSuffix(o.Name(), "-service-auth-reader") || strings.HasSuffix(o.Name(), "-service-system:auth-delegator")
	})
}
