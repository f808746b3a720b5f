package render

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// rendering contains the arguments of All: a lock, options, and a function that opens bundles.
type rendering struct {
	name string
	lock *lockfile.File
	opt  Options
	open func(lockfile.Pin) (fs.FS, error)
}

func reporterOptions() *Reporter {
	return &Reporter{Image: "registry.example.com/quayside-report:1.0.0", Namespace: "quayside-system"}
}

// renderings returns the golden cases. If corpus is true, it also returns the bundles of the corpus, each alone
// in a cluster with mirrors and a config.
func renderings(t *testing.T, corpus bool) []rendering {
	t.Helper()
	var out []rendering
	for _, dir := range goldenCases(t) {
		lock, opt, open := goldenLock(t, dir)
		out = append(out, rendering{dir, lock, opt, open})
	}
	// The same bundle is installed twice, with a cluster for each install. The objects that both installs ship are
	// in the directory of one install.
	twice := newBundle("x", "1.0.0+b1", "v1",
		"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: first}\nvalue: 1\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: hush}\nstringData: {a: b}\n")
	lock := &lockfile.File{}
	for _, ns := range []string{"one", "two"} {
		lock.Pins = append(lock.Pins, lockfile.Pin{Namespace: ns, Package: "x", Version: "1.0.0+b1", Bundle: "x.v1.0.0+b1", WatchNamespaces: []string{ns}, InstallMode: catalog.OwnNamespace})
	}
	out = append(out, rendering{
		name: "twice",
		lock: lock,
		opt: Options{Clusters: []profile.Cluster{
			{Name: "both"},
			{Name: "first", Operators: []string{"one/*"}},
			{Name: "second", Operators: []string{"two/*"}},
			{Name: "none", Operators: []string{"x/y"}},
		}},
		open: func(lockfile.Pin) (fs.FS, error) { return twice, nil },
	})

	if !corpus || os.Getenv("QUAYSIDE_CORPUS") == "" || testing.Short() {
		t.Log("QUAYSIDE_CORPUS is not set: only golden cases")
		return out
	}
	for _, dir := range sampleBundles(t) {
		pin := pinOf(loadBundle(t, dir), "op-ns")
		out = append(out, rendering{
			dir, &lockfile.File{Pins: []lockfile.Pin{pin}},
			Options{
				Mirrors:  []Mirror{{Source: "quay.io", Mirror: "mirror.example.com/quay"}, {Source: "docker.io", Mirror: "mirror.example.com/hub"}},
				Clusters: []profile.Cluster{{Name: "b", Config: []byte(`{"env":[{"name":"A","value":"b"}]}`)}},
			},
			func(lockfile.Pin) (fs.FS, error) { return os.DirFS(dir), nil },
		})
	}
	return out
}

// clusterObjects parses the objects of a cluster from the files of the tree. operators includes the Namespaces,
// and reporter includes the Installations.
func clusterObjects(t *testing.T, res *Result, cluster string) (operators, reporter, crds []Object) {
	t.Helper()
	objects := func(docs []document) []Object {
		var out []Object
		for _, d := range docs {
			out = append(out, decodeObject(t, d.text))
		}
		return out
	}
	got := partsOf(t, res, nil, cluster)
	return objects(got.operators()), objects(got.reporter()), objects(got.definitions)
}

func decodeObject(t *testing.T, text []byte) Object {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func clusterNames(opt Options) []string {
	var names []string
	opt, _ = opt.defaults()
	for _, c := range opt.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// clusterResult holds the objects of one cluster.
type clusterResult struct {
	rendering
	res                       *Result
	cluster                   string
	operators, reporter, crds []Object
}

// TestReporter compares the Installations and the permissions of the reporter with the objects of each
// cluster.
func TestReporter(t *testing.T) {
	for _, r := range renderings(t, true) {
		if r.opt.Reporter == nil {
			r.opt.Reporter = reporterOptions()
		}
		res, err := All(r.lock, r.opt, r.open)
		if err != nil {
			t.Fatal(err)
		}
		for _, cluster := range clusterNames(r.opt) {
			t.Run(strings.TrimPrefix(r.name, "testdata/")+"/"+cluster, func(t *testing.T) {
				got := clusterResult{rendering: r, res: res, cluster: cluster}
				got.operators, got.reporter, got.crds = clusterObjects(t, res, cluster)
				checkExpected(t, got)
				checkWritten(t, got)
				checkPermissions(t, got)
			})
		}
		if _, err := res.Installations("nowhere"); err == nil || !strings.Contains(err.Error(), `no cluster "nowhere" (available: `) {
			t.Errorf("got %v", err)
		}
	}
}

// checkExpected compares the Installations with the objects that kustomize builds for the cluster. It selects
// the objects by their owner labels, and the CRDs by the bundle's list of CRDs.
func checkExpected(t *testing.T, r clusterResult) {
	all, err := r.res.Installations(r.cluster)
	if err != nil {
		t.Fatal(err)
	}
	covered := map[Key]bool{}
	for _, in := range all {
		i := slices.IndexFunc(r.lock.Pins, func(p lockfile.Pin) bool { return p.Namespace == in.Namespace && p.Package == in.Spec.Package })
		if i < 0 {
			t.Fatalf("Installation %s/%s has no pin", in.Namespace, in.Spec.Package)
		}
		pin := r.lock.Pins[i]
		content, err := r.open(pin)
		if err != nil {
			t.Fatal(err)
		}
		b, err := bundle.Load(content)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, ref := range in.Spec.Objects {
			o := Object{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": map[string]any{"namespace": ref.Namespace, "name": ref.Name}}
			covered[o.Key()] = true
			got[o.Key().String()] = fmt.Sprint(ref.APIVersion, " ", ref.Version, " ", ref.Images)
		}
		if d := cmp.Diff(expectedObjects(b, pin, r.operators, r.crds), got); d != "" {
			t.Errorf("%s/%s (-want +got):\n%s", pin.Namespace, pin.Package, d)
		}
		if in.Spec.Pin != string(pin.Checksum()) || in.Spec.Bundle != pin.Bundle || in.Spec.Version != pin.Version || in.Name != pin.Package {
			t.Errorf("%+v", in)
		}
		if !slices.IsSortedFunc(in.Spec.Objects, compareReferences) {
			t.Errorf("%s/%s: not sorted", pin.Namespace, pin.Package)
		}
	}
	for _, n := range r.lock.Namespaces { // without an operator, hence in no Installation
		if !slices.ContainsFunc(r.lock.Pins, func(p lockfile.Pin) bool { return p.Namespace == n.Name }) {
			covered[k8s.New("v1", "Namespace", "", n.Name).Key()] = true
		}
	}
	for _, o := range r.operators {
		if !covered[o.Key()] {
			t.Errorf("no Installation expects %s", o.Key())
		}
	}
}

// expectedObjects returns the API version, version and images of each object of a pin in a cluster, as text by
// the object's key. The version is empty unless the object belongs only to this pin.
func expectedObjects(b *bundle.Bundle, pin lockfile.Pin, operators, crds []Object) map[string]string {
	out := map[string]string{}
	put := func(o Object) {
		labels := k8s.Map(o, "metadata", "labels")
		version := k8s.Text(labels, "quayside.dev/version")
		if k8s.Text(labels, "quayside.dev/package") != pin.Package || version != strings.ReplaceAll(pin.Version, "+", "_") ||
			!o.Is("apiextensions.k8s.io", "CustomResourceDefinition") && k8s.Text(labels, "quayside.dev/install-namespace") != pin.Namespace {
			version = ""
		}
		var images []v1alpha1.ContainerImage
		pod := k8s.Map(o, "spec", "template", "spec")
		for _, list := range []string{"initContainers", "containers"} {
			for _, c := range k8s.Items(pod, list) {
				images = append(images, v1alpha1.ContainerImage{Container: k8s.Text(c, "name"), Image: k8s.Text(c, "image")})
			}
		}
		out[o.Key().String()] = fmt.Sprint(o.APIVersion(), " ", version, " ", images)
	}
	shipped := map[Key]bool{}
	ownCRDs := map[string]bool{"operatorconditions.operators.coreos.com": true}
	for _, o := range b.Objects {
		shipped[o.Key()] = true
		if o.Kind() == "CustomResourceDefinition" {
			ownCRDs[o.Name()] = true
		}
	}
	for _, o := range operators {
		labels := k8s.Map(o, "metadata", "labels")
		own := k8s.Text(labels, "quayside.dev/package") == pin.Package && k8s.Text(labels, "quayside.dev/install-namespace") == pin.Namespace
		if own || o.Is("", "Namespace") && o.Name() == pin.Namespace || shipped[o.Key()] {
			put(o)
		}
	}
	for _, o := range crds {
		if ownCRDs[o.Name()] {
			put(o)
		}
	}
	return out
}

// resourceNames maps kinds to their resource names. It does not use the tested code.
func resourceNames() map[string]string {
	return map[string]string{
		"/ConfigMap": "configmaps", "/Namespace": "namespaces", "/Service": "services", "/ServiceAccount": "serviceaccounts",
		"admissionregistration.k8s.io/MutatingWebhookConfiguration":   "mutatingwebhookconfigurations",
		"admissionregistration.k8s.io/ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
		"apiextensions.k8s.io/CustomResourceDefinition":               "customresourcedefinitions",
		"apiregistration.k8s.io/APIService":                           "apiservices",
		"apps/Deployment":                                             "deployments",
		"beacon.example.com/Beacon":                                   "beacons",
		"cert-manager.io/Certificate":                                 "certificates",
		"cert-manager.io/Issuer":                                      "issuers",
		"ecr.mobb.redhat.com/Secret":                                  "secrets",
		"ecs.services.k8s.aws/Service":                                "services",
		"monitoring.coreos.com/PrometheusRule":                        "prometheusrules",
		"monitoring.coreos.com/ServiceMonitor":                        "servicemonitors",
		"operators.coreos.com/OperatorCondition":                      "operatorconditions",
		"policy/PodDisruptionBudget":                                  "poddisruptionbudgets",
		"rbac.authorization.k8s.io/ClusterRole":                       "clusterroles",
		"rbac.authorization.k8s.io/ClusterRoleBinding":                "clusterrolebindings",
		"rbac.authorization.k8s.io/Role":                              "roles",
		"rbac.authorization.k8s.io/RoleBinding":                       "rolebindings",
		"scheduling.k8s.io/PriorityClass":                             "priorityclasses",
		"services.example.com/Service":                                "services",
	}
}

// checkPermissions compares all permissions of the reporter with the expected permissions.
func checkPermissions(t *testing.T, r clusterResult) {
	want := map[string]bool{
		"get /pods": true, "list /pods": true, "watch /pods": true,
		"create /events": true, "patch /events": true, "create events.k8s.io/events": true, "patch events.k8s.io/events": true,
		"get quayside.dev/installations": true, "list quayside.dev/installations": true, "watch quayside.dev/installations": true,
		"update quayside.dev/installations/status": true, "patch quayside.dev/installations/status": true,
	}
	objects := r.operators
	if len(objects) > 0 {
		objects = append(objects, k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "x"))
	}
	for _, o := range objects {
		if o.Is("", "Secret") {
			continue
		}
		resource, known := resourceNames()[o.Group()+"/"+o.Kind()]
		if !known {
			t.Errorf("unknown resource of %s: add it to resourceNames", o.Key())
		}
		for _, verb := range []string{"get", "list", "watch"} {
			want[verb+" "+o.Group()+"/"+resource] = true
		}
	}
	got := map[string]bool{}
	for _, o := range r.reporter {
		if o.Is("rbac.authorization.k8s.io", "ClusterRole") {
			addPermissions(t, o, got)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("permissions (-want +got):\n%s", d)
	}
}

// addPermissions adds "verb group/resource" for every permission of a role.
func addPermissions(t *testing.T, role Object, into map[string]bool) {
	t.Helper()
	for _, rule := range k8s.Items(role, "rules") {
		for key := range rule {
			if !slices.Contains([]string{"apiGroups", "resources", "verbs"}, key) {
				t.Errorf("unexpected field %s in a rule", key)
			}
		}
		for _, group := range rule["apiGroups"].([]any) {
			for _, resource := range rule["resources"].([]any) {
				for _, verb := range rule["verbs"].([]any) {
					into[fmt.Sprintf("%s %s/%s", verb, group, resource)] = true
				}
			}
		}
	}
}

// TestReporterChangesNothingElse renders with and without the reporter, which may only add files and
// entries of kustomizations.
func TestReporterChangesNothingElse(t *testing.T) {
	for _, r := range renderings(t, false) {
		r.opt.Reporter = nil
		without, err := All(r.lock, r.opt, r.open)
		if err != nil {
			t.Fatal(err)
		}
		r.opt.Reporter = reporterOptions()
		with, err := All(r.lock, r.opt, r.open)
		if err != nil {
			t.Fatal(err)
		}
		before, after := contents(without.Tree), contents(with.Tree)
		for _, name := range slices.Sorted(maps.Keys(before)) {
			old, now := before[name], after[name]
			delete(after, name)
			list := path.Base(name) == layout.Kustomization && !strings.HasPrefix(name, layout.Operators+"/")
			if list && slices.Equal(strings.Split(old, "\n"), slices.DeleteFunc(strings.Split(now, "\n"), func(line string) bool {
				return strings.HasPrefix(line, "- ") && (strings.Contains(line, "reporter") || strings.Contains(line, "installations"))
			})) {
				continue
			}
			if old != now {
				t.Errorf("%s: %s changed:\n%s", r.name, name, cmp.Diff(old, now))
			}
		}
		for name := range after {
			if !strings.Contains(name, "reporter") && !strings.Contains(name, "installations") {
				t.Errorf("%s: the reporter adds %s", r.name, name)
			}
		}
	}
}

// checkWritten compares the Installations in the cluster's files with the result of the method Installations.
// Only that result contains Secrets.
func checkWritten(t *testing.T, r clusterResult) {
	all, err := r.res.Installations(r.cluster)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]v1alpha1.InstallationSpec{}
	for _, in := range all {
		in.Spec.Objects = slices.DeleteFunc(in.Spec.Objects, func(ref v1alpha1.ObjectReference) bool { return ref.APIVersion == "v1" && ref.Kind == "Secret" })
		want[in.Namespace+"/"+in.Name] = in.Spec
	}
	got := map[string]v1alpha1.InstallationSpec{}
	for _, o := range r.reporter {
		if !o.Is("quayside.dev", "Installation") {
			continue
		}
		var in v1alpha1.Installation
		if err := yaml.UnmarshalStrict(yamlnode.Encode(o), &in); err != nil {
			t.Fatal(err)
		}
		got[in.Namespace+"/"+in.Name] = in.Spec
		if in.Labels["quayside.dev/package"] != in.Spec.Package || in.Labels["quayside.dev/install-namespace"] != in.Namespace {
			t.Errorf("labels %v", in.Labels)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Installations in the files (-want +got):\n%s", d)
	}
}

// TestSpecFields converts a spec in which every field is set, and reads it back.
func TestSpecFields(t *testing.T) {
	want := v1alpha1.InstallationSpec{Objects: []v1alpha1.ObjectReference{{Images: []v1alpha1.ContainerImage{{}}}}}
	for _, v := range []reflect.Value{reflect.ValueOf(&want).Elem(), reflect.ValueOf(&want.Objects[0]).Elem(), reflect.ValueOf(&want.Objects[0].Images[0]).Elem()} {
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.String {
				f.SetString(v.Type().Field(i).Name)
			} else if f.IsNil() {
				t.Fatalf("%s: set the field %s in this test", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
	var got v1alpha1.InstallationSpec
	if err := yaml.UnmarshalStrict(yamlnode.Encode(specFields(want)), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestReporterIsRefused checks the errors for an invalid configuration of the reporter.
func TestReporterIsRefused(t *testing.T) {
	lock, opt, open := goldenLock(t, filepath.Join("testdata", "lantern", "own-plain"))
	for want, r := range map[string]Reporter{
		"spec.reporter: image and namespace are required":                                                             {Namespace: "x"},
		`spec.reporter.namespace: "my-lantern" is an operator's namespace: the reporter needs a namespace for itself`: {Image: "x", Namespace: "my-lantern"},
	} {
		opt.Reporter = &r
		if _, err := All(lock, opt, open); fmt.Sprint(err) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	opt.Reporter = reporterOptions()
	for _, ns := range []string{"kube-system", "given"} {
		opt.Reporter.Namespace, lock.Namespaces = ns, []lockfile.Namespace{{Name: "given"}}
		res, err := All(lock, opt, open)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := res.Tree.Get("reporter/namespace-" + ns + ".yaml"); ok {
			t.Errorf("the unmanaged Namespace %s is rendered", ns)
		}
	}
}
