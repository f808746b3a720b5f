package adopt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// rule returns one rule of a role.
func rule(group, resources, verbs string) map[string]any {
	return map[string]any{"apiGroups": kobj.Values(group), "resources": kobj.Values(strings.Fields(resources)...), "verbs": kobj.Values(strings.Fields(verbs)...)}
}

// bound returns a role with rules, bound to the ServiceAccount sa of a namespace.
func bound(namespace string, rules ...map[string]any) []kobj.Object {
	role := kobj.New("rbac.authorization.k8s.io/v1", "ClusterRole", "", "r")
	role["rules"] = listed(rules)
	binding := kobj.New("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "r")
	binding["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "r"}
	binding["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": "sa"}}
	return []kobj.Object{role, binding}
}

func listed(rules []map[string]any) []any {
	var out []any
	for _, r := range rules {
		out = append(out, r)
	}
	return out
}

// inTree returns the diagnosis of an operator a/x whose tree has these objects.
func inTree(objects ...kobj.Object) adopt.Dependence {
	var rendered []render.Rendered
	for i, o := range objects {
		rendered = append(rendered, render.Rendered{Object: o, Path: fmt.Sprintf("operators/a.x/%d.yaml", i)})
	}
	lock := (&lockfile.File{}).With([]lockfile.Pin{pin("a")})
	return adopt.DiagnoseTree(lock, rendered).Operators[0]
}

func told(d adopt.Dependence) string {
	var out []string
	for _, s := range d.Signals {
		out = append(out, s.Code+": "+s.What)
	}
	return string(d.NeedsOLM) + " [" + strings.Join(out, "; ") + "] " + strings.Join(d.Definitions, " ")
}

func TestDiagnosis(t *testing.T) {
	workload := func(container map[string]any) kobj.Object {
		o := kobj.New("apps/v1", "Deployment", "a", "d")
		return kobj.With(o, any([]any{container}), "spec", "template", "spec", "containers")
	}
	env := func(name, value string) kobj.Object {
		return workload(map[string]any{"name": "c", "env": []any{map[string]any{"name": name, "value": value}}})
	}
	reads := func(key string) kobj.Object {
		return workload(map[string]any{"name": "c", "env": []any{map[string]any{"name": "E", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.annotations['" + key + "']"}}}}})
	}
	hook := kobj.New("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "h")
	hook["webhooks"] = []any{map[string]any{"rules": []any{map[string]any{"apiGroups": kobj.Values(olm), "resources": kobj.Values("subscriptions")}}}}
	text := kobj.New("v1", "ConfigMap", "a", "c")
	text["data"] = map[string]any{"template": "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\n"}
	admin := bound("a")[1]
	admin["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "admin"}
	root := bound("a")[1]
	root["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "cluster-admin"}
	people := bound("a", rule(olm, "subscriptions", "*"))
	people[1]["subjects"] = []any{map[string]any{"kind": "Group", "name": "admins"}}
	unbound := bound("a", rule(olm, "subscriptions", "*"))[:1]

	for name, c := range map[string]struct {
		objects []kobj.Object
		want    string
	}{
		"nothing":          {nil, "no [] "},
		"others' rights":   {bound("a", rule("apps", "subscriptions", "*")), "no [] "},
		"its condition":    {bound("a", rule(olm, "operatorconditions operatorconditions/status", "get list watch update")), "no [] "},
		"not bound":        {unbound, "no [] "},
		"bound to people":  {people, "no [] "},
		"subscribes":       {bound("a", rule(olm, "subscriptions", "create get")), "yes [installs: may create subscriptions] "},
		"approves":         {bound("a", rule(olm, "installplans", "patch")), "yes [installs: may patch installplans] "},
		"installs with v1": {bound("a", rule("olm.operatorframework.io", "clusterextensions", "create")), "yes [installs: may create clusterextensions] "},
		"removes":          {bound("a", rule(olm, "clusterserviceversions", "delete update list")), "yes [installs: may delete clusterserviceversions] "},
		"all of OLM's": {
			bound("a", rule(olm, "*", "*")),
			"yes [installs: may do everything with clusterserviceversions, do everything with installplans, do everything with subscriptions] " +
				"catalogsources.operators.coreos.com clusterserviceversions.operators.coreos.com installplans.operators.coreos.com olmconfigs.operators.coreos.com operatorgroups.operators.coreos.com operators.operators.coreos.com subscriptions.operators.coreos.com",
		},
		"changes": {
			bound("a", rule(olm, "clusterserviceversions", "get watch patch update")),
			"partly [changes-csv: may patch and update clusterserviceversions; reads: may get and watch clusterserviceversions] clusterserviceversions.operators.coreos.com",
		},
		"prepares":            {bound("a", rule(olm, "operatorgroups", "create")), "partly [prepares: may create operatorgroups] "},
		"looks for packages":  {bound("a", rule("packages.operators.coreos.com", "packagemanifests", "get")), "partly [packages: may get packagemanifests] "},
		"may all":             {bound("a", rule("*", "*", "*")), "unknown [everything: may do everything with all objects] "},
		"may all of a name":   {bound("a", rule("*", "deployments", "*")), "no [] "},
		"cluster-admin":       {[]kobj.Object{root}, "unknown [everything: may do everything with all objects] "},
		"admin":               {[]kobj.Object{admin}, "unknown [everything: may do everything with what ClusterRole admin permits, to which OLM adds its own kinds] "},
		"ships":               {[]kobj.Object{kobj.New(olm+"/v1alpha1", "Subscription", "a", "s")}, "yes [ships: asks OLM for something] "},
		"ships its condition": {[]kobj.Object{kobj.New(olm+"/v2", "OperatorCondition", "a", "x")}, "no [] "},
		"is asked":            {[]kobj.Object{hook}, "partly [webhook: is asked about subscriptions of operators.coreos.com] "},
		"has a template":      {[]kobj.Object{text}, "unknown [mentions: holds an object of OLM's in template] "},
		"is told":             {[]kobj.Object{env("USE_OLM", "true")}, "unknown [mentions: sets USE_OLM] "},
		"is told nothing":     {[]kobj.Object{env("USE_OLM", "")}, "no [] "},
		"its condition's":     {[]kobj.Object{env("OPERATOR_CONDITION_NAME", "x")}, "no [] "},
		"another word":        {[]kobj.Object{env("AZURE_SUBSCRIPTION_ID", "x"), env("COLMAR", "x")}, "no [] "},
		"has a flag":          {[]kobj.Object{workload(map[string]any{"name": "c", "args": kobj.Values("--olm-deployment=true")})}, "unknown [mentions: runs with --olm-deployment] "},
		"its namespaces":      {[]kobj.Object{reads("olm.targetNamespaces")}, "no [] "},
		"its certificate":     {[]kobj.Object{kobj.With(reads("olmcahash"), any("x"), "spec", "template", "metadata", "annotations", "olmcahash")}, "partly [annotation: reads the annotation olmcahash of its pods] "},
	} {
		t.Run(name, func(t *testing.T) {
			got := inTree(c.objects...)
			if d := cmp.Diff(c.want, told(got)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			for _, s := range got.Signals {
				if s.Loses == "" || s.Do == "" || s.Object == "" {
					t.Errorf("%s does not say all: %+v", s.Code, s)
				}
			}
		})
	}
}

// TestDiagnosesAgree draws rights, and holds that they mean the same in a
// ClusterServiceVersion, which is all that some dumps have, and in a tree; that
// more rights never mean less need; and that inspect refuses who installs.
func TestDiagnosesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) []map[string]any {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) map[string]any {
				return rule(
					rapid.SampledFrom([]string{olm, "olm.operatorframework.io", "packages.operators.coreos.com", "*", "apps", ""}).Draw(t, "group"),
					rapid.SampledFrom([]string{"subscriptions", "installplans", "clusterserviceversions", "clusterserviceversions/status", "operatorgroups", "clusterextensions", "operatorconditions", "*", "pods subscriptions"}).Draw(t, "resource"),
					rapid.SampledFrom([]string{"get", "list watch", "update", "create delete", "*"}).Draw(t, "verb"))
			}), 0, 4).Draw(t, label)
		}
		some, more := draw("some"), draw("more")

		live := installed("a", "Succeeded")
		permission := map[string]any{"serviceAccountName": "sa", "rules": listed(some)}
		live[0] = kobj.With(live[0], any([]any{permission}), "spec", "install", "spec", "clusterPermissions")
		seen := cluster(t, live...)
		there, here := adopt.DiagnoseCluster(seen).Operators[0], inTree(bound("a", some...)...)
		if d := cmp.Diff(here, there); d != "" {
			t.Fatalf("the tree and the cluster differ (-tree +cluster):\n%s", d)
		}

		order := map[adopt.Need]int{adopt.NeedsNone: 0, adopt.MayNeed: 1, adopt.InPart: 2, adopt.NeedsOLM: 3}
		if with := inTree(bound("a", append(some, more...)...)...); order[with.NeedsOLM] < order[here.NeedsOLM] {
			t.Fatalf("%s with more rights, %s without", told(with), told(here))
		}

		var rendered []render.Rendered
		for i, o := range bound("a", some...) {
			rendered = append(rendered, render.Rendered{Object: o, Path: fmt.Sprintf("operators/a.x/%d.yaml", i)})
		}
		lock := (&lockfile.File{}).With([]lockfile.Pin{pin("a")})
		refused := false
		for _, r := range adopt.Inspect(adopt.Input{Snapshot: seen, Lock: lock, Rendered: rendered}).Operators[0].Reasons {
			refused = refused || r.Code == "drives-olm"
		}
		if refused != (here.NeedsOLM == adopt.NeedsOLM) {
			t.Fatalf("%s, and inspect refuses: %v", told(here), refused)
		}
	})
}

// TestPackageserver is no operator that needs OLM: it is a part of it.
func TestPackageserver(t *testing.T) {
	csv := kobj.With(installed("a", "Succeeded")[0], any("packageserver"), "metadata", "name")
	if got := adopt.DiagnoseCluster(cluster(t, csv)).Operators; len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestDiagnosisOfCorpus names which of the published operators need OLM.
func TestDiagnosisOfCorpus(t *testing.T) {
	dir := os.Getenv("QUAYSIDE_CORPUS")
	if dir == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to test with")
	}
	files, err := filepath.Glob(filepath.Join(dir, "bundles", "*", "*", "manifests", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var csvs []kobj.Object
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var o kobj.Object
		if err := yaml.Unmarshal(text, &o); err != nil || o.Kind() != "ClusterServiceVersion" {
			continue
		}
		pkg := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(file))))
		csvs = append(csvs, kobj.With(o, any(pkg), "metadata", "namespace"))
	}
	got := map[adopt.Need][]string{}
	for _, op := range adopt.DiagnoseCluster(cluster(t, csvs...)).Operators {
		got[op.NeedsOLM] = append(got[op.NeedsOLM], op.Namespace)
	}
	if len(got[adopt.NeedsNone]) < 30 {
		t.Errorf("only %d of %d operators do without OLM", len(got[adopt.NeedsNone]), len(csvs))
	}
	delete(got, adopt.NeedsNone)
	want := map[adopt.Need][]string{
		adopt.NeedsOLM: {"cluster-aas-operator", "dbaas-operator", "multicluster-global-hub-operator", "pelorus-operator", "special-resource-operator"},
		adopt.InPart:   {"community-kubevirt-hyperconverged", "opentelemetry-operator", "socmmd"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
