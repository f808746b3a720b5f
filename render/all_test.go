package render

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/testing/yamltest"
	"github.com/quayside/quayside/lockfile"
)

// newBundle returns a bundle with one CRD, one deployment and the given manifests.
func newBundle(pkg, version, crdVersion string, files ...string) fstest.MapFS {
	out := fstest.MapFS{
		"metadata/annotations.yaml": {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: " + pkg + "}")},
		"manifests/csv.yaml": {Data: fmt.Appendf(nil, `kind: ClusterServiceVersion
apiVersion: operators.coreos.com/v1alpha1
metadata: {name: %[1]s.v%[2]s}
spec:
  version: %[2]s
  installModes: [{type: OwnNamespace, supported: true}, {type: SingleNamespace, supported: true}, {type: MultiNamespace, supported: true}, {type: AllNamespaces, supported: true}]
  customresourcedefinitions: {owned: [{name: things.%[1]s.io, kind: Thing, version: %[3]s}]}
  install:
    strategy: deployment
    spec:
      permissions: [{serviceAccountName: sa, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}]
      clusterPermissions: [{serviceAccountName: sa, rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}]
      deployments: [{name: d, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: other, containers: [{name: c, image: i}]}}}}]
`, pkg, version, crdVersion)},
		"manifests/crd.yaml": {Data: fmt.Appendf(nil, `kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
metadata: {name: things.%[1]s.io}
spec: {group: %[1]s.io, scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: %[2]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}
`, pkg, crdVersion)},
	}
	for i, f := range files {
		out[fmt.Sprintf("manifests/x%d.yaml", i)] = &fstest.MapFile{Data: []byte(f)}
	}
	return out
}

// renderBundles renders bundles. The keys of bundles and watch are "namespace/package". An operator watches the
// namespaces in watch or, without an entry there, its own namespace.
func renderBundles(bundles map[string]fstest.MapFS, watch map[string][]string, opt Options, declared ...lockfile.Namespace) (*Result, error) {
	return All(newLock(bundles, watch, declared), opt, openBundles(bundles))
}

// renderRequiring is like renderBundles. needs maps the key of a bundle to the keys of the bundles that it requires.
func renderRequiring(bundles map[string]fstest.MapFS, needs map[string][]string, opt Options) (*Result, error) {
	lock := newLock(bundles, nil, nil)
	for i := range lock.Pins {
		p := &lock.Pins[i]
		for _, other := range needs[p.Key()] {
			p.Requires = append(p.Requires, lockfile.Requirement{Pin: other, Requirement: "olm.package.required"})
		}
	}
	return All(lock, opt, openBundles(bundles))
}

func newLock(bundles map[string]fstest.MapFS, watch map[string][]string, declared []lockfile.Namespace) *lockfile.File {
	lock := &lockfile.File{Namespaces: declared}
	for name, fsys := range bundles {
		ns, pkg, _ := strings.Cut(name, "/")
		w, ok := watch[name]
		if !ok {
			w = []string{ns}
		}
		_, version, _ := strings.Cut(string(fsys["manifests/csv.yaml"].Data), "\n  version: ")
		version, _, _ = strings.Cut(version, "\n")
		lock.Pins = append(lock.Pins, lockfile.Pin{
			Namespace: ns, Package: pkg, Bundle: pkg + ".v" + version, Version: version, WatchNamespaces: w, InstallMode: catalog.ModeFor(ns, w),
		})
	}
	return lock
}

func openBundles(bundles map[string]fstest.MapFS) func(lockfile.Pin) (fs.FS, error) {
	return func(p lockfile.Pin) (fs.FS, error) {
		fsys := bundles[p.Namespace+"/"+p.Package]
		if len(fsys) == 0 {
			return nil, errors.New("no such bundle")
		}
		return fsys, nil
	}
}

// TestAllReportsEveryMissingBundle checks that the error names all bundles that cannot be opened.
func TestAllReportsEveryMissingBundle(t *testing.T) {
	lock := &lockfile.File{Pins: []lockfile.Pin{{Namespace: "a", Package: "x", Bundle: "x.v1"}, {Namespace: "b", Package: "y", Bundle: "y.v2"}}}
	_, err := All(lock, Options{}, func(lockfile.Pin) (fs.FS, error) { return nil, fs.ErrNotExist })
	if err == nil || !strings.Contains(err.Error(), `"x.v1" of a/x`) || !strings.Contains(err.Error(), `"y.v2" of b/y`) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestAllErrors checks the errors of All for invalid bundles and options.
func TestAllErrors(t *testing.T) {
	config := func(v string) string {
		return "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: p}, value: " + v + "}"
	}
	cases := map[string]struct {
		bundles map[string]fstest.MapFS
		opt     Options
		want    []string
	}{
		"error/same object in two bundles": {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1", config("1")), "b/y": newBundle("y", "1.0.0", "v1", config("2"))}, Options{}, []string{"a/x and b/y both contain PriorityClass.scheduling.k8s.io p"}},
		"error/old version needed":         {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1alpha1"), "b/x": newBundle("x", "2.0.0", "v1")}, Options{}, []string{"a/x (x.v1.0.0) needs version v1alpha1 of CustomResourceDefinition things.x.io, but b/x (x.v2.0.0) provides the CRD without this version"}},
		"error/removed API":                {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1", "{kind: PodSecurityPolicy, apiVersion: policy/v1beta1, metadata: {name: p}}")}, Options{}, []string{"manifests/x0.yaml", "policy/v1beta1", "1.25"}},
		"error/no apiVersion":              {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1", "{kind: Widget, metadata: {name: w}}")}, Options{}, []string{"manifests/x0.yaml", `Widget "w": apiVersion is missing`}},
		"error/all bundles at once":        {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1", "{kind: Widget, metadata: {name: w}}"), "b/y": newBundle("y", "1.0.0", "v9", "{kind: Secret, apiVersion: v1, metadata: {name: A_}}")}, Options{}, []string{"a/x", "b/y"}},
		"error/cluster name":               {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1")}, Options{Clusters: []profile.Cluster{{Name: "../up"}}}, []string{`"../up"`}},
		"error/glob":                       {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1")}, Options{Clusters: []profile.Cluster{{Name: "c", Operators: []string{"["}}}}, []string{`cluster "c"`, `"["`}},
		"error/gitops":                     {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1")}, Options{Profile: profile.ArgoCD, GitOps: &profile.GitOps{Path: "p"}}, []string{"gitops.repoURL", "gitops.project"}},
		"error/flux gitops":                {map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1")}, Options{Profile: profile.Flux, GitOps: &profile.GitOps{Path: "p"}}, []string{"gitops.sourceRef.kind"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := renderBundles(c.bundles, nil, c.opt)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to contain %q", err, want)
				}
			}
		})
	}
}

func TestEqualObjectsAreRenderedOnce(t *testing.T) {
	p := "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: p}, value: 1}"
	res, err := renderBundles(map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1", p), "b/y": newBundle("y", "1.0.0", "v1", p)}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, r := range res.Objects {
		if r.Object.Kind() == "PriorityClass" {
			paths = append(paths, r.Path)
		}
	}
	if !slices.Equal(paths, []string{"operators/a.x/priorityclass-p.yaml"}) {
		t.Errorf("got %v", paths)
	}
}

// TestBindingsOfOnePackageAreJoined installs a package several times. Its ClusterRoleBinding must have the
// accounts of all installs. In a cluster with one install, it must have only the account of this install.
// Bindings with equal names are an error if the packages or the roles differ.
func TestBindingsOfOnePackageAreJoined(t *testing.T) {
	binding := func(role string) string {
		return "{kind: ClusterRoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + role +
			"}, subjects: [{kind: ServiceAccount, name: sa, namespace: x}, {kind: Group, name: g, apiGroup: rbac.authorization.k8s.io}]}"
	}
	opt := Options{Clusters: []profile.Cluster{{Name: "all"}, {Name: "second", Operators: []string{"b/*"}}}}
	res, err := renderBundles(map[string]fstest.MapFS{
		"a/x": newBundle("x", "1.0.0", "v1", binding("view")), "b/x": newBundle("x", "1.1.0", "v1", binding("view")), "c/x": newBundle("x", "1.1.0", "v1", binding("view")),
	}, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) []string {
		data, _ := res.Tree.Get(path)
		v, err := yamltest.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		m, _ := v.(map[string]any)
		var out []string
		for _, s := range k8s.Items(m, "subjects") {
			out = append(out, k8s.Text(s, "namespace")+"/"+k8s.Text(s, "name"))
		}
		return out
	}
	if got := at("operators/a.x/clusterrolebinding-b.yaml"); !slices.Equal(got, []string{"a/sa", "/g", "b/sa", "c/sa"}) {
		t.Errorf("got %v", got)
	}
	if got := at("clusters/second/operators/b.x/clusterrolebinding-b.yaml"); !slices.Equal(got, []string{"b/sa", "/g"}) {
		t.Errorf("in a cluster with only the second install: got %v", got)
	}
	for name, other := range map[string]map[string]fstest.MapFS{
		"a/x and b/y": {"a/x": newBundle("x", "1.0.0", "v1", binding("view")), "b/y": newBundle("y", "1.0.0", "v1", binding("view"))},
		"a/x and b/x": {"a/x": newBundle("x", "1.0.0", "v1", binding("view")), "b/x": newBundle("x", "1.0.0", "v1", binding("edit"))},
	} {
		if _, err := renderBundles(other, nil, opt); err == nil || !strings.Contains(err.Error(), name+" both contain ClusterRoleBinding") {
			t.Errorf("got %v", err)
		}
	}
}

// TestShippedServiceKeepsItsSelector ships a Service with the name of a generated Service: its selector must remain.
func TestShippedServiceKeepsItsSelector(t *testing.T) {
	b := newBundle("x", "1.0.0", "v1", "{kind: Service, apiVersion: v1, metadata: {name: d-service, labels: {mine: yes}}, spec: {type: NodePort, selector: {app: hooks}, ports: [{port: 80}]}}")
	csv := string(b["manifests/csv.yaml"].Data)
	b["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte(csv + "  webhookdefinitions: [{type: ValidatingAdmissionWebhook, generateName: v.x.io, deploymentName: d, containerPort: 443, sideEffects: None, admissionReviewVersions: [v1]}]\n")}
	res, err := renderBundles(map[string]fstest.MapFS{"a/x": b}, nil, Options{Certificates: "openshift-service-ca"})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(res.Objects, func(r Rendered) bool { return r.Object.Is("", "Service") })
	want := map[string]any{
		"type": "NodePort", "selector": map[string]any{"app": "hooks"},
		"ports": []any{map[string]any{"name": "80-tcp", "port": int64(80)}, map[string]any{"name": "443", "port": int64(443), "targetPort": int64(443)}},
	}
	if d := cmp.Diff(want, k8s.Map(res.Objects[i].Object, "spec")); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if k8s.Text(res.Objects[i].Object, "metadata", "annotations", "service.beta.openshift.io/serving-cert-secret-name") == "" {
		t.Errorf("the Service lacks the annotation for its certificate: %v", res.Objects[i].Object)
	}
}

// TestSecondInstall renders a package in two namespaces. The CRD is rendered once, from the newer bundle. The
// objects of the first install keep their names, and the objects of the second install have other names.
func TestSecondInstall(t *testing.T) {
	one, err := renderBundles(map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1")}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	two, err := renderBundles(map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1"), "b/x": newBundle("x", "1.1.0", "v1")}, map[string][]string{"b/x": {"a", "b"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Key]bool{}
	for _, r := range two.Objects {
		if seen[r.Object.Key()] {
			t.Errorf("%s appears twice", r.Object.Key())
		}
		seen[r.Object.Key()] = true
		if k8s.IsCRD(r.Object) && k8s.Text(r.Object, "metadata", "labels", k8s.LabelPackage) == "x" && k8s.Text(r.Object, "metadata", "labels", k8s.LabelVersion) != "1.1.0" {
			t.Errorf("the CRD is from %v", k8s.Map(r.Object, "metadata", "labels"))
		}
	}
	for _, r := range one.Objects {
		if !seen[r.Object.Key()] {
			t.Errorf("%s is missing with the second install", r.Object.Key())
		}
	}
	for _, want := range []Key{
		{Group: k8s.RBACGroup, Kind: "Role", Namespace: "a", Name: "x.sa"},
		{Group: k8s.RBACGroup, Kind: "Role", Namespace: "b", Name: "x.sa"},
		{Group: k8s.RBACGroup, Kind: "Role", Namespace: "a", Name: "b.x.sa"},
		{Group: k8s.RBACGroup, Kind: "ClusterRole", Namespace: "", Name: "a.x.sa"},
		{Group: k8s.RBACGroup, Kind: "ClusterRole", Namespace: "", Name: "b.x.sa"},
		{Group: "", Kind: "ServiceAccount", Namespace: "a", Name: "other"},
	} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestNoPins(t *testing.T) {
	res, err := All(&lockfile.File{}, Options{}, nil)
	if err != nil || len(res.Objects) != 0 {
		t.Errorf("got %d objects, %v", len(res.Objects), err)
	}
}

// TestLastOperatorRemoved removes the last operator: every directory to which a GitOps tool or the
// user's kustomization refers must still exist, without objects.
func TestLastOperatorRemoved(t *testing.T) {
	for name, dir := range map[profile.Name]string{profile.Plain: ".", profile.Flux: "flux/lab", profile.ArgoCD: "argocd"} {
		for _, granularity := range []string{profile.PerOperator, profile.PerCluster} {
			opt := Options{Profile: name, HealthChecks: true, Clusters: []profile.Cluster{{Name: "lab"}}, GitOps: &profile.GitOps{
				Name: "quayside", RepoURL: "https://git.example.com/fleet.git", Revision: "main", Path: "rendered", Namespace: "gitops", ArgoCDSettings: profile.ArgoCDSettings{Project: "default"},
				FluxSettings: profile.FluxSettings{SourceRef: profile.SourceRef{Kind: "GitRepository", Name: "fleet"}}, Granularity: granularity,
			}}
			res, err := All(&lockfile.File{}, opt, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			files := filesOf(res.Tree, nil)
			whole := granularity == profile.PerCluster
			for kept, want := range map[string]bool{
				"crds": name != profile.Plain && whole, "pieces": name == profile.ArgoCD && !whole, "pieces/_shared": name == profile.Flux && !whole,
			} {
				if _, there := files[kept+"/README.md"]; there != want {
					t.Errorf("%s by %s: %s exists: %v", name, granularity, kept, there)
				}
			}
			built := []string{"all"}
			switch {
			case name == profile.Plain:
				built = append(built, ".")
			case !whole:
				built = nil
			}
			for _, level := range built {
				if docs, err := build(files, level); err != nil || len(docs) > 0 {
					t.Errorf("%s: %s builds %d objects, %v; want none", name, level, len(docs), err)
				}
			}
			docs, err := build(files, dir)
			want := map[profile.Name]int{profile.Flux: 1, profile.ArgoCD: 1}[name]
			if name == profile.Flux && whole {
				want = 4
			}
			if err != nil || len(docs) != want {
				t.Errorf("%s by %s: %s builds %d objects, %v; want %d", name, granularity, dir, len(docs), err, want)
			}
			for _, d := range docs {
				if bytes.Contains(d.text, []byte("null")) {
					t.Errorf("%s: an empty field:\n%s", name, d.text)
				}
			}
			if stream, err := StreamOverlay(res, builder(res, nil), "lab"); err != nil || len(stream) > 0 {
				t.Errorf("%s: got stream %q, %v", name, stream, err)
			}
			opt.Reporter = &Reporter{Image: "registry.example.com/quayside-report:v1", Namespace: "quayside-system"}
			if res, err = All(&lockfile.File{}, opt, nil); err != nil {
				t.Fatalf("%s: with the reporter: %v", name, err)
			}
			if docs, err := build(filesOf(res.Tree, nil), layout.Reporter); err != nil || len(docs) == 0 {
				t.Errorf("%s: with the reporter: %d objects, %v", name, len(docs), err)
			}
		}
	}
}

// TestArgumentsAreUnmodified renders golden cases and checks that All does not modify the bundles.
func TestArgumentsAreUnmodified(t *testing.T) {
	for _, dir := range goldenCases(t) {
		lock, opt, _ := goldenLock(t, dir)
		content := filepath.Join(filepath.Dir(dir), "bundle")
		b, fresh := loadBundle(t, content), loadBundle(t, content)
		for _, pin := range lock.Pins {
			if _, _, err := Manifests(b, pin, opt); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(b.CSV, fresh.CSV) {
			t.Errorf("%s: the CSV was modified", dir)
		}
		for i := range b.Objects {
			if !k8s.Equal(b.Objects[i].Object, fresh.Objects[i].Object) {
				t.Errorf("%s: %s was modified", dir, b.Objects[i])
			}
		}
	}
}

// TestObjectsOnly checks that Options.ObjectsOnly changes only the content of files.
func TestObjectsOnly(t *testing.T) {
	bundles := map[string]fstest.MapFS{"a/p": newBundle("p", "1.0.0", "v1"), "b/p": newBundle("p", "1.1.0", "v1"), "c/q": newBundle("q", "1.0.0", "v1")}
	whole, err := renderBundles(bundles, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	only, err := renderBundles(bundles, nil, Options{ObjectsOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole.Objects, only.Objects, cmpopts.IgnoreUnexported(Rendered{})); d != "" {
		t.Error(d)
	}
	for name, text := range whole.Tree.All() {
		got, there := only.Tree.Get(name)
		if object := slices.ContainsFunc(whole.Objects, func(r Rendered) bool { return r.Path == name }); !there || object != (len(got) == 0) {
			t.Errorf("%s has %d bytes, and %d with ObjectsOnly", name, len(text), len(got))
		}
	}
}
