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

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/render/needs"
)

// newRule returns a rule of a role.
func newRule(group, resources, verbs string) map[string]any {
	return map[string]any{"apiGroups": k8s.Values(group), "resources": k8s.Values(strings.Fields(resources)...), "verbs": k8s.Values(strings.Fields(verbs)...)}
}

// newBoundRole returns a Role with rules, and its binding to the ServiceAccount sa of a namespace.
func newBoundRole(namespace string, rules ...map[string]any) []k8s.Object {
	role := k8s.New("rbac.authorization.k8s.io/v1", "ClusterRole", "", "r")
	role["rules"] = asList(rules)
	binding := k8s.New("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "r")
	binding["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "r"}
	binding["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": "sa"}}
	return []k8s.Object{role, binding}
}

func asList(rules []map[string]any) []any {
	var out []any
	for _, r := range rules {
		out = append(out, r)
	}
	return out
}

// diagnoseTree returns the diagnosis of the operator a/x if the tree has these objects.
func diagnoseTree(objects ...k8s.Object) adopt.Dependence {
	var rendered []render.Rendered
	for i, o := range objects {
		rendered = append(rendered, render.Rendered{Object: o, Path: fmt.Sprintf("operators/a.x/%d.yaml", i)})
	}
	lock := (&lockfile.File{}).With([]lockfile.Pin{newPin("a")})
	return adopt.DiagnoseTree(lock, rendered).Operators[0]
}

func summarize(d adopt.Dependence) string {
	var out []string
	for _, s := range d.Signals {
		out = append(out, s.Code+": "+s.What)
	}
	return string(d.NeedsOLM) + " [" + strings.Join(out, "; ") + "] " + strings.Join(d.Definitions, " ")
}

func TestDiagnosis(t *testing.T) {
	workload := func(container map[string]any) k8s.Object {
		o := k8s.New("apps/v1", "Deployment", "a", "d")
		return k8s.With(o, any([]any{container}), "spec", "template", "spec", "containers")
	}
	env := func(name, value string) k8s.Object {
		return workload(map[string]any{"name": "c", "env": []any{map[string]any{"name": name, "value": value}}})
	}
	reads := func(key string) k8s.Object {
		return workload(map[string]any{"name": "c", "env": []any{map[string]any{"name": "E", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.annotations['" + key + "']"}}}}})
	}
	hook := k8s.New("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "h")
	hook["webhooks"] = []any{map[string]any{"rules": []any{map[string]any{"apiGroups": k8s.Values(olm), "resources": k8s.Values("subscriptions")}}}}
	text := k8s.New("v1", "ConfigMap", "a", "c")
	text["data"] = map[string]any{"template": "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\n"}
	admin := newBoundRole("a")[1]
	admin["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "admin"}
	root := newBoundRole("a")[1]
	root["roleRef"] = map[string]any{"kind": "ClusterRole", "name": "cluster-admin"}
	people := newBoundRole("a", newRule(olm, "subscriptions", "*"))
	people[1]["subjects"] = []any{map[string]any{"kind": "Group", "name": "admins"}}
	unbound := newBoundRole("a", newRule(olm, "subscriptions", "*"))[:1]

	for name, c := range map[string]struct {
		objects []k8s.Object
		want    string
	}{
		"nothing":               {nil, "no [] "},
		"permissions of others": {newBoundRole("a", newRule("apps", "subscriptions", "*")), "no [] "},
		"its condition":         {newBoundRole("a", newRule(olm, "operatorconditions operatorconditions/status", "get list watch update")), "no [] "},
		"not bound":             {unbound, "no [] "},
		"bound to people":       {people, "no [] "},
		"subscribes":            {newBoundRole("a", newRule(olm, "subscriptions", "create get")), "yes [installs: may create subscriptions] "},
		"approves":              {newBoundRole("a", newRule(olm, "installplans", "patch")), "yes [installs: may patch installplans] "},
		"installs with v1":      {newBoundRole("a", newRule("olm.operatorframework.io", "clusterextensions", "create")), "yes [installs: may create clusterextensions] "},
		"removes":               {newBoundRole("a", newRule(olm, "clusterserviceversions", "delete update list")), "yes [installs: may delete clusterserviceversions] "},
		"all of OLM's": {
			newBoundRole("a", newRule(olm, "*", "*")),
			"yes [installs: may all verbs on clusterserviceversions, all verbs on installplans, all verbs on subscriptions] " +
				"catalogsources.operators.coreos.com clusterserviceversions.operators.coreos.com installplans.operators.coreos.com olmconfigs.operators.coreos.com operatorgroups.operators.coreos.com operators.operators.coreos.com subscriptions.operators.coreos.com",
		},
		"changes": {
			newBoundRole("a", newRule(olm, "clusterserviceversions", "get watch patch update")),
			"partly [changes-csv: may patch and update clusterserviceversions; reads: may get and watch clusterserviceversions] clusterserviceversions.operators.coreos.com",
		},
		"prepares":            {newBoundRole("a", newRule(olm, "operatorgroups", "create")), "partly [prepares: may create operatorgroups] "},
		"looks for packages":  {newBoundRole("a", newRule("packages.operators.coreos.com", "packagemanifests", "get")), "partly [packages: may get packagemanifests] "},
		"may all":             {newBoundRole("a", newRule("*", "*", "*")), "unknown [everything: may all verbs on all objects] "},
		"all API groups":      {newBoundRole("a", newRule("*", "deployments", "*")), "no [] "},
		"cluster-admin":       {[]k8s.Object{root}, "unknown [everything: may all verbs on all objects] "},
		"admin":               {[]k8s.Object{admin}, "unknown [everything: may all verbs on the permissions of ClusterRole admin, which OLM extends with its own kinds] "},
		"ships":               {[]k8s.Object{k8s.New(olm+"/v1alpha1", "Subscription", "a", "s")}, "yes [ships: uses OLM's API] "},
		"ships its condition": {[]k8s.Object{k8s.New(olm+"/v2", "OperatorCondition", "a", "x")}, "no [] "},
		"webhook":             {[]k8s.Object{hook}, "partly [webhook: is queried about subscriptions of operators.coreos.com] "},
		"has a template":      {[]k8s.Object{text}, "unknown [mentions: embeds an object of OLM in template] "},
		"setting":             {[]k8s.Object{env("USE_OLM", "true")}, "unknown [mentions: sets USE_OLM] "},
		"empty setting":       {[]k8s.Object{env("USE_OLM", "")}, "no [] "},
		"its condition's":     {[]k8s.Object{env("OPERATOR_CONDITION_NAME", "x")}, "no [] "},
		"similar names":       {[]k8s.Object{env("AZURE_SUBSCRIPTION_ID", "x"), env("COLMAR", "x")}, "no [] "},
		"has a flag":          {[]k8s.Object{workload(map[string]any{"name": "c", "args": k8s.Values("--olm-deployment=true")})}, "unknown [mentions: runs with --olm-deployment] "},
		"its namespaces":      {[]k8s.Object{reads("olm.targetNamespaces")}, "no [] "},
		"its certificate":     {[]k8s.Object{k8s.With(reads("olmcahash"), any("x"), "spec", "template", "metadata", "annotations", "olmcahash")}, "partly [annotation: reads the annotation olmcahash of its pods] "},
	} {
		t.Run(name, func(t *testing.T) {
			got := diagnoseTree(c.objects...)
			if d := cmp.Diff(c.want, summarize(got)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			for _, s := range got.Signals {
				if s.Loses == "" || s.Do == "" || s.Object == "" {
					t.Errorf("%s is incomplete: %+v", s.Code, s)
				}
			}
		})
	}
}

// TestDiagnosesAgree draws permissions of an operator. The diagnosis must be the same for rendered roles and
// for a ClusterServiceVersion, because some dumps contain only the latter. More permissions must never weaken
// the need for OLM. Inspect must refuse to adopt an operator exactly if the diagnosis is that it needs OLM.
func TestDiagnosesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) []map[string]any {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) map[string]any {
				return newRule(
					rapid.SampledFrom([]string{olm, "olm.operatorframework.io", "packages.operators.coreos.com", "*", "apps", ""}).Draw(t, "group"),
					rapid.SampledFrom([]string{"subscriptions", "installplans", "clusterserviceversions", "clusterserviceversions/status", "operatorgroups", "clusterextensions", "operatorconditions", "*", "pods subscriptions"}).Draw(t, "resource"),
					rapid.SampledFrom([]string{"get", "list watch", "update", "create delete", "*"}).Draw(t, "verb"))
			}), 0, 4).Draw(t, label)
		}
		some, more := draw("some"), draw("more")

		live := newInstalled("a", "Succeeded")
		permission := map[string]any{"serviceAccountName": "sa", "rules": asList(some)}
		live[0] = k8s.With(live[0], any([]any{permission}), "spec", "install", "spec", "clusterPermissions")
		seen := newSnapshot(t, live...)
		there, here := adopt.DiagnoseCluster(seen).Operators[0], diagnoseTree(newBoundRole("a", some...)...)
		if d := cmp.Diff(here, there); d != "" {
			t.Fatalf("the tree and the cluster differ (-tree +cluster):\n%s", d)
		}

		order := map[needs.OLMNeed]int{needs.NeedsNone: 0, needs.MayNeed: 1, needs.InPart: 2, needs.NeedsOLM: 3}
		if with := diagnoseTree(newBoundRole("a", append(some, more...)...)...); order[with.NeedsOLM] < order[here.NeedsOLM] {
			t.Fatalf("%s with more permissions, %s without", summarize(with), summarize(here))
		}

		var rendered []render.Rendered
		for i, o := range newBoundRole("a", some...) {
			rendered = append(rendered, render.Rendered{Object: o, Path: fmt.Sprintf("operators/a.x/%d.yaml", i)})
		}
		lock := (&lockfile.File{}).With([]lockfile.Pin{newPin("a")})
		refused := false
		for _, r := range adopt.Inspect(adopt.Input{Snapshot: seen, Lock: lock, Rendered: rendered}).Operators[0].Reasons {
			refused = refused || r.Code == "drives-olm"
		}
		if refused != (here.NeedsOLM == needs.NeedsOLM) {
			t.Fatalf("%s, but inspect blocks: %v", summarize(here), refused)
		}
	})
}

// TestPackageserver checks that the packageserver is neither diagnosed nor offered for adoption, because it is
// part of OLM.
func TestPackageserver(t *testing.T) {
	csv := k8s.With(newInstalled("a", "Succeeded")[0], any("packageserver"), "metadata", "name")
	if got := adopt.DiagnoseCluster(newSnapshot(t, csv)).Operators; len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	rep := adopt.Inspect(adopt.Input{Snapshot: newSnapshot(t, csv), Lock: lockfile.New(nil)})
	if len(rep.Operators)+len(rep.Shared) != 0 {
		t.Errorf("got %+v", rep)
	}
}

// TestNotSelected checks that an operator that cannot leave OLM counts as blocked only if it is in the tree.
func TestNotSelected(t *testing.T) {
	for state, want := range map[adopt.State]int{
		adopt.Adoptable: 0, adopt.NotSelected: 0, adopt.AlreadyAdopted: 0, adopt.CannotLeave: 1, adopt.NeedsDecision: 1, adopt.MustWait: 1,
	} {
		rep := adopt.Inspection{Operators: []adopt.Operator{{State: state}}}
		if got := len(rep.Blocked()); got != want {
			t.Errorf("%s: %d blocked", state, got)
		}
	}
}

// TestDiagnosisOfCorpus lists the published operators that need OLM.
func TestDiagnosisOfCorpus(t *testing.T) {
	dir := os.Getenv("QUAYSIDE_CORPUS")
	if dir == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to test with")
	}
	files, err := filepath.Glob(filepath.Join(dir, "bundles", "*", "*", "manifests", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var csvs []k8s.Object
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var o k8s.Object
		if err := yaml.Unmarshal(text, &o); err != nil || o.Kind() != "ClusterServiceVersion" {
			continue
		}
		pkg := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(file))))
		csvs = append(csvs, k8s.With(o, any(pkg), "metadata", "namespace"))
	}
	got := map[needs.OLMNeed][]string{}
	for _, op := range adopt.DiagnoseCluster(newSnapshot(t, csvs...)).Operators {
		got[op.NeedsOLM] = append(got[op.NeedsOLM], op.Namespace)
	}
	if len(got[needs.NeedsNone]) < 30 {
		t.Errorf("only %d of %d operators do not need OLM", len(got[needs.NeedsNone]), len(csvs))
	}
	delete(got, needs.NeedsNone)
	want := map[needs.OLMNeed][]string{
		needs.NeedsOLM: {"cluster-aas-operator", "dbaas-operator", "multicluster-global-hub-operator", "pelorus-operator", "special-resource-operator"},
		needs.InPart:   {"community-kubevirt-hyperconverged", "opentelemetry-operator", "socmmd"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
