package render

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
)

// TestPatchFiles checks that file names of patches are readable if the limit allows it, and never too
// long.
func TestPatchFiles(t *testing.T) {
	for _, c := range []struct {
		room            int
		namespace, name string
		want            string
	}{
		{60, "ns", "web", "patch-web.yaml"},
		{60, "ns", "pkg-controller-manager", "patch_controller-manager.yaml"},
		{60, "ns", "pkg-", "patch-pkg-.yaml"},
		{60, "other", "web", "patch-web_other.yaml"},
		{29, "ns", "pkg-controller-manager", "patch_controller-manager.yaml"},
		{28, "ns", "pkg-controller-manager", "patch_controll-614e5683.yaml"},
		{minName, "ns", "pkg-controller-manager", "patch-6aa26a.yaml"},
	} {
		n := naming{maxLength: c.room, namespace: "ns", pkg: "pkg"}
		if got := n.patchFile(k8s.New("apps/v1", "Deployment", c.namespace, c.name)); got != c.want || len(got) > c.room {
			t.Errorf("%s/%s, at most %d bytes: %s, want %s", c.namespace, c.name, c.room, got, c.want)
		}
	}
}

// TestFileNames checks the file names of an operator's objects. A name omits parts that are already in the path
// of the directory, and contains all other parts that distinguish the object.
func TestFileNames(t *testing.T) {
	of := func(apiVersion, kind, namespace, name string) Object {
		return k8s.New(apiVersion, kind, namespace, name)
	}
	objects := []Object{
		of("rbac.authorization.k8s.io/v1", "ClusterRole", "", "ns.pkg.manager"), of("rbac.authorization.k8s.io/v1", "ClusterRole", "", "manager"),
		of("rbac.authorization.k8s.io/v1", "ClusterRole", "", "pkg.manager"), of("rbac.authorization.k8s.io/v1", "ClusterRole", "", "sys:Manager"),
		of("rbac.authorization.k8s.io/v1", "Role", "ns", "pkg.leader"), of("rbac.authorization.k8s.io/v1", "Role", "other", "ns.pkg.leader"),
		of("v1", "ConfigMap", "ns", "a.other"), of("v1", "ConfigMap", "other", "a"), of("v1", "Service", "ns", "ns.pkg."),
		of("serving.knative.dev/v1", "Service", "ns", "s"), of("v1", "Service", "ns", "s"), of("example.com/v1", "Thing", "other", "t"),
		of("cert-manager.io/v1", "Certificate", "ns", "c"), of("example.com/v1", "Certificate", "ns", "c"),
		of("v1", "ConfigMap", "ns", strings.Repeat("long", 30)), of("example.com/v1", "AThing", "ns", "t"), of("example.com/v1", "ATHING", "ns", "t"),
	}
	want := []string{
		"clusterrole_manager.yaml", "clusterrole-manager.yaml", "clusterrole-pkg.manager.yaml", "clusterrole-sys-manager-?.yaml",
		"role_leader.yaml", "role_leader_other.yaml", "configmap-a.other.yaml", "configmap-a_other.yaml", "service-ns.pkg..yaml",
		"service-s__serving.knative.dev.yaml", "service-s.yaml", "thing-t_other__example.com.yaml", "certificate-c.yaml", "certificate-c__example.com.yaml",
		"configmap-longlo-?.yaml", "?.yaml", "?.yaml",
	}
	got := fileNames(naming{maxLength: 30, namespace: "ns", pkg: "pkg"}, objects)
	for i, name := range fileNames(naming{maxLength: 40, namespace: "ns", pkg: "pkg"}, objects) {
		if i < len(objects)-3 {
			got[i] = name
		}
	}
	for i := range want {
		before, after, digest := strings.Cut(want[i], "?")
		if digest && (!strings.HasPrefix(got[i], before) || !strings.HasSuffix(got[i], after)) || !digest && got[i] != want[i] {
			t.Errorf("%s: %q, want %q", objects[i].Key(), got[i], want[i])
		}
	}
	if got[len(got)-1] == got[len(got)-2] {
		t.Errorf("duplicate file name %q", got[len(got)-1])
	}
}

// TestFileNamesProperties draws objects and directories. Names must differ even if case is ignored. Paths must
// be within the limit. A name must not depend on other objects.
func TestFileNamesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?`)
		n := naming{namespace: label.Draw(t, "namespace"), pkg: label.Draw(t, "package")}
		dir := path.Join(layout.Operators, n.namespace+"."+n.pkg)
		n.maxLength = maxFileName(dir)
		name := rapid.OneOf(
			rapid.SampledFrom([]string{"a", "A", "a.b", "a-b", "a_b", "a:b", "a__b", "b"}),
			rapid.StringMatching(`[a-zA-Z0-9:._-]{1,253}`),
		)
		prefixed := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"", n.pkg + ".", n.namespace + ".", n.namespace + "." + n.pkg + "."}).Draw(t, "prefix") + name.Draw(t, "name")
		})
		object := rapid.Custom(func(t *rapid.T) Object {
			kind := rapid.SampledFrom([]string{"v1 ConfigMap", "v1 Event", "events.k8s.io/v1 Event", "rbac.authorization.k8s.io/v1 Role", "example.com/v1 Role", "b/v1 Thing", "b.io/v1 Thing"}).Draw(t, "kind")
			apiVersion, kind, _ := strings.Cut(kind, " ")
			return k8s.New(apiVersion, kind, rapid.SampledFrom([]string{"", n.namespace, "b", "b.io", "other"}).Draw(t, "in"), prefixed.Draw(t, "named"))
		})
		objects := rapid.SliceOfDistinct(object, Object.Key).Draw(t, "objects")
		seen := map[string]Key{aggregatedFile(n.maxLength): {}, layout.Kustomization: {}}
		names := fileNames(n, objects)
		for i, o := range objects {
			folded := strings.ToLower(names[i])
			if other, twice := seen[folded]; twice {
				t.Errorf("%s and %s have the same file name %s", other, o.Key(), folded)
			}
			seen[folded] = o.Key()
			if at := path.Join(dir, names[i]); len(at) > maxPath || fileName(strings.ReplaceAll(names[i], "_", "-")) != strings.ReplaceAll(names[i], "_", "-") {
				t.Errorf("%s: %d bytes: %s", o.Key(), len(at), at)
			}
			if alone := fileNames(n, []Object{o}); alone[0] != names[i] {
				t.Errorf("the file name of %s is %s, but without the other objects %s", o.Key(), names[i], alone[0])
			}
		}
	})
}
