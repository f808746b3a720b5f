package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

const (
	olm         = "operators.coreos.com"
	olmV1alpha1 = "operators.coreos.com/v1alpha1"
	rbacV1      = "rbac.authorization.k8s.io/v1"
	crdV1       = "apiextensions.k8s.io/v1"
	extensions  = "olm.operatorframework.io/v1"
)

// ownedBy returns o with the ownerReference that operator-controller would write.
func ownedBy(o, owner k8s.Object, controller bool) k8s.Object {
	by := map[string]any{"apiVersion": owner.APIVersion(), "kind": owner.Kind(), "name": owner.Name(), "uid": k8s.Text(owner, "metadata", "uid"), "controller": controller, "blockOwnerDeletion": true}
	return k8s.With(o, any(append(slices.Clone(k8s.List(o, "metadata", "ownerReferences")), by)), "metadata", "ownerReferences")
}

// newExtension returns the objects of a cluster with an operator that OLM v1 installed, and the operator's
// tree. The ClusterExtension owns the objects. If revisions is true, two ClusterObjectSets own them instead:
// the archived one still owns the CRD.
func newExtension(revisions bool) (live []k8s.Object, tree []render.Rendered) {
	withUID := func(o k8s.Object) k8s.Object { return k8s.With(o, any("u-"+o.Key().String()), "metadata", "uid") }
	put := func(o k8s.Object) k8s.Object {
		live = append(live, withUID(o))
		return live[len(live)-1]
	}
	for _, name := range []string{"kube-system", "olmv1-system", "widgets"} {
		put(k8s.New("v1", "Namespace", "", name))
	}
	controller := k8s.New("apps/v1", "Deployment", "olmv1-system", "operator-controller-controller-manager")
	put(k8s.With(controller, int64(1), "spec", "replicas"))
	ext := k8s.New(extensions, "ClusterExtension", "", "widget")
	ext = k8s.With(ext, k8s.Values("olm.operatorframework.io/cleanup-contentmanager-cache", "olm.operatorframework.io/cleanup-unpack-cache"), "metadata", "finalizers")
	ext["spec"] = map[string]any{"namespace": "widgets", "source": map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": "widget"}}}
	ext["status"] = map[string]any{
		"install":    map[string]any{"bundle": map[string]any{"name": "widget.v1", "version": "1.0.0"}},
		"conditions": []any{map[string]any{"type": "Installed", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "Succeeded"}},
	}
	owners := []k8s.Object{put(ext)}
	record := k8s.Label(k8s.New("v1", "Secret", "olmv1-system", "sh.helm.release.v1.widget.v1"), map[string]string{"owner": "operator-controller", "type": "index"})
	if revisions {
		owners = nil
		for n, state := range []string{"Archived", "Active"} {
			set := ownedBy(k8s.New(extensions, "ClusterObjectSet", "", fmt.Sprintf("widget-%d", n+1)), withUID(ext), true)
			if state == "Active" {
				set = k8s.With(set, k8s.Values("olm.operatorframework.io/teardown"), "metadata", "finalizers")
			}
			set["spec"] = map[string]any{"lifecycleState": state, "revision": int64(n + 1)}
			owners = append(owners, put(set))
		}
		record = k8s.Label(k8s.New("v1", "Secret", "olmv1-system", "widget-2-0a1b"), map[string]string{"olm.operatorframework.io/owner-name": "widget", "olm.operatorframework.io/revision-name": "widget-2"})
	}
	last := owners[len(owners)-1]
	put(ownedBy(record, last, true))

	widget := k8s.New(crdV1, "CustomResourceDefinition", "", "widgets.example.com")
	widget["spec"] = map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Widget", "plural": "widgets"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
	}
	deployment := k8s.New("apps/v1", "Deployment", "widgets", "widget-operator")
	deployment["spec"] = map[string]any{"replicas": int64(1), "selector": map[string]any{}, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}}
	role := func(name string) []k8s.Object {
		r, b := k8s.New(rbacV1, "ClusterRole", "", name), k8s.New(rbacV1, "ClusterRoleBinding", "", name)
		r["rules"] = []any{map[string]any{"apiGroups": k8s.Values("example.com"), "resources": k8s.Values("widgets"), "verbs": k8s.Values("get")}}
		b["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
		b["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": "widgets", "name": "widget"}}
		return []k8s.Object{r, b}
	}
	config := k8s.New("v1", "ConfigMap", "widgets", "widget-config")
	ours := []k8s.Object{widget, deployment, k8s.New("v1", "ServiceAccount", "widgets", "widget"), config}
	for _, o := range append(slices.Clone(ours), role("widget.v1-widget-4kd8")...) {
		o = k8s.Label(o, map[string]string{"olm.operatorframework.io/owner-kind": "ClusterExtension", "olm.operatorframework.io/owner-name": "widget"})
		if revisions && k8s.IsCRD(o) { // as in a cluster that is archiving the first revision
			o = ownedBy(o, owners[0], false)
		}
		put(ownedBy(o, last, true))
	}
	for _, o := range append(ours, role("widgets.widget.widget")...) {
		path := "operators/widgets.widget/" + o.Kind() + ".yaml"
		if k8s.IsCRD(o) {
			path = "crds/widget/widgets.yaml"
		}
		tree = append(tree, render.Rendered{Object: o, Path: path})
	}
	return live, tree
}

// inspectExtension returns the input of a plan for a cluster with operators of OLM v1.
func inspectExtension(t interface{ Fatal(args ...any) }, live []k8s.Object, tree []render.Rendered, pins ...lockfile.Pin) plan.Input {
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": live})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := snapshot.Read("dump", strings.NewReader(string(text)), snapshot.Selection{ManagedFields: true})
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Snapshot: seen, Manager: "m", Rendered: tree}
	in.Lock = (&lockfile.File{}).With(append(pins, lockfile.Pin{Namespace: "widgets", Package: "widget", Bundle: "widget.v1", Version: "1.0.0"}))
	in.Report = adopt.Inspect(adopt.Input{Snapshot: seen, Lock: in.Lock, Rendered: tree})
	return in
}

// kubectl executes a command that a plan prints for an action.
func kubectl(t *testing.T, c *runtest.Cluster, p *plan.Plan, a plan.Action, object k8s.Object) {
	t.Helper()
	command, ctx := p.Kubectl(a, object), context.Background()
	verb, patch, isPatch := strings.Cut(command, " --patch ")
	var err error
	switch {
	case isPatch:
		patch = strings.Trim(patch, "'")
		if strings.Contains(verb, "--type=json") {
			var ops []cluster.Operation
			if err := utiljson.Unmarshal([]byte(patch), &ops); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			_, err = c.Patch(ctx, a.Object, cluster.Patch{JSON: ops}, false)
			break
		}
		var merge map[string]any
		if err := utiljson.Unmarshal([]byte(patch), &merge); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		_, err = c.Patch(ctx, a.Object, cluster.Patch{Merge: merge}, false)
	case strings.HasPrefix(command, "kubectl apply --server-side --field-manager=m"):
		_, err = c.Apply(ctx, a.Applied(object), "m", strings.Contains(command, "--force-conflicts"), false)
	case strings.HasPrefix(command, "kubectl delete "):
		err = c.Delete(ctx, a.Object, cluster.DeleteOptions{Orphan: strings.HasSuffix(command, " --cascade=orphan")}, false)
	case strings.HasPrefix(command, "kubectl scale "):
		_, err = c.Patch(ctx, a.Object, cluster.Patch{Merge: map[string]any{"spec": map[string]any{"replicas": a.To}}}, false)
	case strings.HasPrefix(command, "kubectl get "), strings.HasPrefix(command, "kubectl rollout restart "):
	default:
		t.Fatalf("unknown command: %s", command)
	}
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	c.Settle()
}

// TestExtensionLeaves executes the printed commands of a plan for OLM v1. The operator must keep its CRD,
// custom resources, Deployment and account. The objects of OLM v1 must be deleted.
func TestExtensionLeaves(t *testing.T) {
	for _, revisions := range []bool{false, true} {
		live, tree := newExtension(revisions)
		live = append(live, newWidgets()...)
		c := runtest.New(live...)
		c.Settle()
		p, err := plan.Make(inspectExtension(t, c.Objects(), tree))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Operators) != 1 || p.Operators[0].Extension != "widget" {
			t.Fatalf("operators %+v, skipped %+v", p.Operators, p.Skipped)
		}
		check := newVerifier(t, c, p)
		rendered := map[k8s.Key]k8s.Object{}
		for _, r := range tree {
			rendered[r.Object.Key()] = r.Object
		}
		for _, s := range p.Steps {
			for _, a := range s.Actions {
				if a.Do == plan.Orphan || a.Do == plan.Delete {
					for _, o := range c.Objects() {
						if rendered[o.Key()] != nil && isOwnedBy(o, a.UID) {
							t.Errorf("step %d deletes %s, which still owns %s", s.Number, a.Object, o.Key())
						}
					}
				}
				kubectl(t, c, p, a, rendered[a.Object.Key()])
			}
			if found := check(); len(found) > 0 {
				t.Errorf("revisions %v: step %d (%s): %v", revisions, s.Number, s.Name, found)
			}
		}
		for _, was := range live {
			o := c.Object(k8s.RefTo(was))
			isOLM := was.Group() == "olm.operatorframework.io" || was.Is("", "Secret") || strings.HasPrefix(was.Name(), "widget.v1-")
			if isOLM != (o == nil) || o != nil && k8s.Text(o, "metadata", "uid") != k8s.Text(was, "metadata", "uid") {
				t.Errorf("revisions %v: %s is now %v", revisions, was.Key(), o)
			}
			if owners := k8s.Items(o, "metadata", "ownerReferences"); len(owners) > 0 {
				t.Errorf("revisions %v: %s has the owners %v", revisions, was.Key(), owners)
			}
		}
	}
}

// newWidgets returns custom resources of the operator.
func newWidgets() []k8s.Object {
	var out []k8s.Object
	for n := range 3 {
		o := k8s.New("example.com/v1", "Widget", "widgets", fmt.Sprintf("w%d", n))
		out = append(out, k8s.With(o, any("u-"+o.Name()), "metadata", "uid"))
	}
	return out
}

// newVerifier records the state of a cluster. It returns a function that returns the findings of 'adopt
// verify'.
func newVerifier(t *testing.T, c *runtest.Cluster, p *plan.Plan) func() []string {
	t.Helper()
	before, err := verify.Capture(context.Background(), c, p, "widgets")
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		rep, err := verify.Verify(context.Background(), c, p, verify.KnownProgress{Before: map[string]*verify.Evidence{"widgets": before}})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, v := range rep.Namespaces[0].Verdicts {
			for _, f := range v.Findings {
				if v.State == verify.Failed {
					out = append(out, string(v.Check)+" "+f.Message)
				}
			}
		}
		return out
	}
}

// TestLostResourcesAreFound deletes a ClusterExtension as kubectl does by default. This also deletes everything
// that OLM v1 installed, and all custom resources. adopt verify must report the loss.
func TestLostResourcesAreFound(t *testing.T) {
	live, tree := newExtension(true)
	c := runtest.New(append(live, newWidgets()...)...)
	c.Settle()
	p, err := plan.Make(inspectExtension(t, c.Objects(), tree))
	if err != nil {
		t.Fatal(err)
	}
	check := newVerifier(t, c, p)
	if found := check(); len(found) > 0 {
		t.Fatal(found)
	}
	c.Edit(k8s.Ref{APIVersion: extensions, Kind: "ClusterExtension", Name: "widget"}, func(o k8s.Object) { k8s.Items(o, "status", "conditions")[0]["status"] = "False" })
	if found := check(); len(found) != 1 || found[0] != "installed ClusterExtension.olm.operatorframework.io widget is not installed" {
		t.Errorf("got %v", found)
	}
	for _, o := range live {
		if o.Group() == "olm.operatorframework.io" {
			c.Edit(k8s.RefTo(o), func(o k8s.Object) { delete(k8s.Map(o, "metadata"), "finalizers") })
		}
	}
	if err := c.Delete(context.Background(), k8s.Ref{APIVersion: extensions, Kind: "ClusterExtension", Name: "widget"}, cluster.DeleteOptions{}, false); err != nil {
		t.Fatal(err)
	}
	c.Settle()
	found := strings.Join(check(), "\n")
	for _, want := range []string{"CustomResourceDefinition.apiextensions.k8s.io widgets.example.com no longer exists", "Widget.example.com widgets/w0 no longer exists", "Deployment.apps widgets/widget-operator no longer exists"} {
		if !strings.Contains(found, "uid "+want) {
			t.Errorf("%s: not found in\n%s", want, found)
		}
	}
}

func isOwnedBy(o k8s.Object, uid string) bool {
	return slices.ContainsFunc(k8s.Items(o, "metadata", "ownerReferences"), func(by map[string]any) bool { return k8s.Text(by, "uid") == uid })
}

// TestExtensionsInAnyOrder checks that the plan does not depend on the order of the objects. Before it deletes
// an owner, it must remove the references to this owner from all kept objects, and first from CRDs.
func TestExtensionsInAnyOrder(t *testing.T) {
	for _, revisions := range []bool{false, true} {
		live, tree := newExtension(revisions)
		first, err := plan.Make(inspectExtension(t, live, tree))
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			in := inspectExtension(t, rapid.Permutation(live).Draw(t, "live"), rapid.Permutation(tree).Draw(t, "tree"))
			p, err := plan.Make(in)
			if err != nil {
				t.Fatal(err)
			}
			if string(plan.Format(p)) != string(plan.Format(first)) {
				t.Fatalf("the plan depends on the order:\n%s\n%s", plan.Format(first), plan.Format(p))
			}
		})
		checkOwners(t, first, live, tree)
	}
}

// checkOwners checks that a plan removes references to owners before it deletes the owners.
func checkOwners(t *testing.T, p *plan.Plan, live []k8s.Object, tree []render.Rendered) {
	t.Helper()
	kept := map[k8s.Key]bool{}
	for _, r := range tree {
		kept[r.Object.Key()] = true
	}
	owners := map[k8s.Key][]string{}
	for _, o := range live {
		for _, by := range k8s.Items(o, "metadata", "ownerReferences") {
			owners[o.Key()] = append(owners[o.Key()], k8s.Text(by, "uid"))
		}
	}
	others, deleted := false, 0
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			key := a.Object.Key()
			switch {
			case a.Do == plan.Disown:
				if key.Kind == "CustomResourceDefinition" && others {
					t.Errorf("%s is not among the first", key)
				}
				others = others || key.Kind != "CustomResourceDefinition"
				if int(a.Index) >= len(owners[key]) || owners[key][a.Index] != a.Owner {
					t.Fatalf("%s has the owners %v: %+v", key, owners[key], a)
				}
				owners[key] = slices.Delete(owners[key], int(a.Index), int(a.Index)+1)
			case a.Do == plan.Orphan || a.Do == plan.Delete:
				deleted++
				if kept[key] {
					t.Errorf("step %d deletes %s, which the tree has", s.Number, key)
				}
				for o, by := range owners {
					if kept[o] && slices.Contains(by, a.UID) {
						t.Errorf("step %d deletes %s, which still owns %s", s.Number, key, o)
					}
				}
				if a.Do == plan.Delete && (key.Group == "olm.operatorframework.io" || key.Kind == "CustomResourceDefinition") {
					t.Errorf("step %d deletes %s with its dependents", s.Number, key)
				}
			}
		}
	}
	if deleted < 4 {
		t.Errorf("only %d objects are deleted", deleted)
	}
}

// TestExtensionWebhooks checks that a plan lists the webhooks of the tree that have no CA at first.
func TestExtensionWebhooks(t *testing.T) {
	live, tree := newExtension(false)
	hook := k8s.New("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "widgets.widget.v")
	hook["webhooks"] = []any{map[string]any{"name": "v.example.com", "clientConfig": map[string]any{"service": map[string]any{"namespace": "widgets", "name": "widget-operator-service"}}}}
	p, err := plan.Make(inspectExtension(t, live, append(tree, render.Rendered{Object: hook, Path: "operators/widgets.widget/webhook.yaml"})))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Operators[0].Losses; len(got) != 1 || !strings.Contains(got[0], "widgets.widget.v") {
		t.Errorf("got %v, skipped %+v", got, p.Skipped)
	}
}

// TestExtensionsAreNotRun checks that adopt run refuses a plan for OLM v1 before it writes anything.
func TestExtensionsAreNotRun(t *testing.T) {
	live, tree := newExtension(true)
	p, err := plan.Make(inspectExtension(t, live, tree))
	if err != nil {
		t.Fatal(err)
	}
	if p, err = plan.Parse("plan.yaml", plan.Format(p)); err != nil {
		t.Fatal(err)
	}
	c := runtest.New(live...)
	c.Before = func(call runtest.Call) error {
		if call.Writes() {
			t.Errorf("written: %v", call)
		}
		return nil
	}
	journal, err := run.OpenJournal(&runtest.Files{}, p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.Run(context.Background(), run.Input{Plan: p, Cluster: c, Journal: journal, Clock: &runtest.Clock{Cluster: c}, Prompter: yes{}, CleanUp: true})
	if err == nil || !strings.Contains(err.Error(), "quayside adopt plan --namespace widgets --kubectl") {
		t.Errorf("got %v", err)
	}
}

// TestExtensionsStay checks the reasons why an operator of OLM v1 is not in a plan.
func TestExtensionsStay(t *testing.T) {
	edit := func(kind, name string, v any, path ...string) func([]k8s.Object) []k8s.Object {
		return func(live []k8s.Object) []k8s.Object {
			for i, o := range live {
				if o.Kind() == kind && (name == "" || o.Name() == name) {
					live[i] = k8s.With(o, v, path...)
				}
			}
			return live
		}
	}
	conditions := []any{map[string]any{"type": "Progressing", "reason": "RollingOut", "message": "revision 3"}}
	for name, c := range map[string]struct {
		edit func([]k8s.Object) []k8s.Object
		mode plan.Mode
		want string
	}{
		"not installed":   {edit("ClusterExtension", "", map[string]any{}, "status"), plan.Stopped, "has no installed version"},
		"another version": {edit("ClusterExtension", "", "widget.v2", "status", "install", "bundle", "name"), plan.Stopped, "the lock pins widget.v1, but widget.v2 is installed"},
		"rolling out":     {edit("ClusterExtension", "", conditions, "status", "conditions"), plan.Stopped, "is being rolled out: revision 3"},
		"OLM runs":        {slices.Clone[[]k8s.Object], plan.Live, "without --mode live"},
		"OpenShift": {func(live []k8s.Object) []k8s.Object {
			return append(live, k8s.New("config.openshift.io/v1", "ClusterVersion", "", "version"))
		}, plan.Stopped, "not possible on OpenShift"},
		"operators of OLM v0": {func(live []k8s.Object) []k8s.Object { return append(live, withUIDs(newInstallation("a"))[:4]...) }, plan.Stopped, "this plan is for OLM v0"},
	} {
		live, tree := newExtension(true)
		in := inspectExtension(t, c.edit(live), append(tree, render.Rendered{Object: k8s.New("v1", "ServiceAccount", "a", "x"), Path: "operators/a.x/sa.yaml"}), lockfile.Pin{Namespace: "a", Package: "x", Bundle: "x.v1", Version: "1.0.0"})
		in.Mode = c.mode
		p, err := plan.Make(in)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(p.Skipped, func(s plan.SkippedOperator) bool { return s.Package == "widget" })
		if i < 0 || !strings.Contains(strings.Join(p.Skipped[i].Reasons, "\n"), c.want) {
			t.Errorf("%s: skipped %+v", name, p.Skipped)
		}
		if p.IsForExtensions() {
			t.Errorf("%s: %+v", name, p.Operators)
		}
	}
}
