package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
)

// worst returns the highest severity of the findings about an object of the given kind, or of all
// findings if the kind is empty.
func worst(r *Report, kind string) Severity {
	out := Off
	for _, f := range r.Findings {
		if kind == "" || f.Object.Kind == kind {
			out = max(out, f.Severity)
		}
	}
	return out
}

// definition returns a line for State.mutant that adds a CRD to the operator ops/demo.
func definition(plural, group, kind, scope string) string {
	return strings.NewReplacer("PLURAL", plural, "GROUP", group, "KIND", kind, "SCOPE", scope).Replace(
		"add {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: PLURAL.GROUP}, spec: {group: GROUP, scope: SCOPE, names: {kind: KIND, plural: PLURAL}, versions: [{name: v1, served: true, storage: true}]}}")
}

// TestKindsOfOthers adds a custom resource to the operator that ships its CRD. The operator owns the kind
// only if it owned the kind or its API group before. It never owns a kind in the table of powers.
func TestKindsOfOthers(t *testing.T) {
	for _, c := range []struct {
		want           Severity
		before, change string // separated by line breaks
	}{
		{High, "", definition("objects", "kubernetes.crossplane.io", "Object", "Cluster") + "\nadd {apiVersion: kubernetes.crossplane.io/v1, kind: Object, metadata: {name: x}}"},
		{Medium, "", definition("things", "things.example", "Thing", "Namespaced") + "\nadd {apiVersion: things.example/v1, kind: Thing, metadata: {name: x, namespace: ops}}"},
		{Info, definition("things", "things.example", "Thing", "Cluster"), "add {apiVersion: things.example/v1, kind: Thing, metadata: {name: x}}"},
		{Info, "", definition("gadgets", "demo.io", "Gadget", "Cluster") + "\nadd {apiVersion: demo.io/v1, kind: Gadget, metadata: {name: x}}"},
		{High, definition("machineconfigs", "machineconfiguration.openshift.io", "MachineConfig", "Cluster"), "add {apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: x}}"},
		{High, definition("kustomizations", "kustomize.toolkit.fluxcd.io", "Kustomization", "Namespaced"), "add {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x, namespace: ops}}"},
		{High, definition("clusterpolicies", "kyverno.io", "ClusterPolicy", "Cluster"), "add {apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: x}}"},
	} {
		before := mutantBase(t)
		for line := range strings.Lines(c.before) {
			before = before.mutant(t, strings.TrimSpace(line))
		}
		after := before
		for line := range strings.Lines(c.change) {
			after = after.mutant(t, strings.TrimSpace(line))
		}
		kind := c.change[strings.LastIndex(c.change, "kind: ")+len("kind: "):]
		kind, _, _ = strings.Cut(kind, ",")
		if got := worst(compare(t, before, after), kind); got != c.want {
			t.Errorf("%s\nis %s, want %s", c.change, got, c.want)
		}
	}
}

// TestKindsOfTheCSV adds a custom resource to the operator that ships its CRD. The kind belongs to the operator
// only if the pin in the old state provides it.
func TestKindsOfTheCSV(t *testing.T) {
	gvk := func(group, kind string) catalog.Property {
		return catalog.GVKProperty(catalog.GVK{Group: group, Version: "v1", Kind: kind})
	}
	for _, c := range []struct {
		want          Severity
		before, after []catalog.Property
	}{
		{Info, []catalog.Property{gvk("demo.io", "Widget"), gvk("things.example", "Thing")}, nil},
		{High, []catalog.Property{gvk("demo.io", "Widget")}, []catalog.Property{gvk("demo.io", "Widget"), gvk("things.example", "Thing")}},
		{High, []catalog.Property{gvk("demo.io", "Widget"), gvk("things.example", "Other")}, nil},
		{Info, nil, nil},
	} {
		before := mutantBase(t).mutant(t, definition("things", "things.example", "Thing", "Cluster"))
		after := before.mutant(t, "add {apiVersion: things.example/v1, kind: Thing, metadata: {name: x}}")
		before.Pins, after.Pins = slices.Clone(before.Pins), slices.Clone(after.Pins)
		before.Pins[0].Properties, after.Pins[0].Properties = c.before, c.after
		if got := worst(compare(t, before, after), "Thing"); got != c.want {
			t.Errorf("%s, %s: is %s, want %s", c.before, c.after, got, c.want)
		}
	}
}

// TestNamespacesOfOthers adds objects to namespaces that belong to their operator, the user, the cluster, and nobody.
func TestNamespacesOfOthers(t *testing.T) {
	const (
		object = "add {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS"
		thing  = ", labels: {quayside.dev/install-namespace: other, quayside.dev/package: thing}"
	)
	own := func(ns string) string { return strings.Replace(object, "NS", ns, 1) + "}}" }
	theirs := func(ns string) string { return strings.Replace(object, "NS", ns, 1) + thing + "}}" }
	declared := func(ns string) string {
		return "add {apiVersion: v1, kind: Namespace, metadata: {name: " + ns + "}} then\n"
	}
	edits{
		{Info, own("ops")},
		{High, own("elsewhere")},
		{High, own("kube-system")},
		{High, own("default")},
		{Info, declared("elsewhere") + own("elsewhere")},
		{High, declared("flux-system") + "add {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-public}}"},
		{High, "add {apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}\n" + own("elsewhere")},
		{Info, theirs("other")},
		{High, theirs("elsewhere")},
		{High, "add {apiVersion: v1, kind: Service, metadata: {name: metrics-server, namespace: kube-system}}"},
		{High, "add {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, namespace: ops, labels: {kubernetes.io/service-name: vault}}}"},
		{High, "add {apiVersion: v1, kind: Endpoints, metadata: {name: vault, namespace: ops}}"},
	}.check(t)
}

// TestAccountsOfOthers runs pods as accounts that another operator renders, uses or binds.
func TestAccountsOfOthers(t *testing.T) {
	const (
		thing = ", labels: {quayside.dev/install-namespace: other, quayside.dev/package: thing}"
		job   = "add {apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ops}, spec: {template: {spec: {serviceAccountName: ACCOUNT, containers: [{name: c, image: quay.io/demo/a}]}}}}"
	)
	run := func(account string) string { return strings.Replace(job, "ACCOUNT", account, 1) }
	account := func(name, labels string) string {
		return "add {apiVersion: v1, kind: ServiceAccount, metadata: {name: " + name + ", namespace: ops" + labels + "}}\n"
	}
	edits{
		{Low, run("demo")},
		{High, run("other")},
		{High, run("argocd-application-controller")},
		{Low, account("mine", "") + run("mine")},
		{High, account("theirs", thing) + run("theirs")},
		{High, "add {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: ops" + thing + "}, roleRef: {kind: Role, name: a}, subjects: [{kind: ServiceAccount, name: shared}]} then\n" +
			account("shared", "") + run("shared")},
		{High, podEdit + "serviceAccountName other"},
	}.check(t)
}

// TestAddedIsChangedFromNothing compares two changes: adding an object with a field, and adding the field to
// the existing object. Adding the object must not be rated lower.
func TestAddedIsChangedFromNothing(t *testing.T) {
	for _, c := range []struct{ object, name, set string }{
		{"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: ops}}", "ServiceAccount a", "metadata.annotations.eks.amazonaws.com/role-arn x"},
		{"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: ops}}", "ServiceAccount a", "secrets [{name: b}]"},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ops}}", "ConfigMap a", "metadata.finalizers [b]"},
		{"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: ops}, spec: {ports: [{port: 1}]}}", "Service a", "spec.externalIPs [8.8.8.8]"},
		{"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: ops}, spec: {ports: [{port: 1}]}}", "Service a", "spec.type NodePort"},
		{"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: ops}, spec: {template: {spec: {containers: [{name: c, image: x}]}}}}", "DaemonSet a", "spec.template.spec.hostAliases [{ip: 1.1.1.1}]"},
		{"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: ops}, spec: {template: {spec: {containers: [{name: c, image: x}]}}}}", "DaemonSet a", "spec.template.spec.priorityClassName system-node-critical"},
		{"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: ops}, spec: {template: {spec: {containers: [{name: c, image: x}]}}}}", "DaemonSet a", "spec.template.spec.containers.0.lifecycle {postStart: {exec: {command: [sh]}}}"},
		{"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: ops}, spec: {template: {spec: {containers: [{name: c, image: x}]}}}}", "DaemonSet a", "spec.template.spec.volumes [{name: v, hostPath: {path: /}}]"},
		{"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: ops}, spec: {template: {spec: {containers: [{name: c, image: x}]}}}}", "DaemonSet a", "spec.template.spec.containers.1 {name: d, image: x, securityContext: {seLinuxOptions: {type: spc_t}}}"},
	} {
		base := mutantBase(t)
		without := base.mutant(t, "add "+c.object)
		with := without.mutant(t, "set "+c.name+" "+c.set)
		kind, _, _ := strings.Cut(c.name, " ")
		if changed, added := worst(compare(t, without, with), kind), worst(compare(t, base, with), kind); added < changed || changed < Medium {
			t.Errorf("%s %s: changed is %s, added is %s", c.object, c.set, changed, added)
		}
	}
}

// TestEveryAddedField adds each object, and adds each of its fields to the object without the field. Adding a
// field must not be rated higher than adding the object.
func TestEveryAddedField(t *testing.T) {
	base := mutantBase(t)
	rated := func(r *Report, key k8s.Key) (out Severity) {
		for _, f := range r.Findings {
			if f.Object.Kind == key.Kind && f.Object.Name == key.Name && slices.Contains([]string{"pods", "objects", "priority"}, f.family()) {
				out = max(out, f.Severity)
			}
		}
		return out
	}
	for _, o := range base.Objects {
		key := o.Key()
		if slices.Contains([]string{k8s.CRDGroup, k8s.RBACGroup, k8s.AdmissionGroup}, key.Group) || key.Is("Namespace", "NetworkPolicy.networking.k8s.io", "PodDisruptionBudget.policy") {
			continue // other families rate it, or an added object can only restrict
		}
		without := base.with(key, nil)
		added := rated(compare(t, without, base), key)
		for _, path := range leafPaths(o.Content, nil) {
			if whole := strings.Join(path, "."); whole == "apiVersion" || whole == "kind" || strings.HasPrefix(whole, "metadata.name") || slices.Contains([]string{"name", "selector", "labels"}, path[len(path)-1]) || strings.Contains(whole, "selector.") {
				continue
			}
			reduced := base.with(key, edit(o.Content, path, nil, true).(map[string]any))
			if changed := rated(compare(t, reduced, base), key); changed > added && changed >= Medium {
				t.Errorf("%s %s: the field is %s, the object is %s", key, strings.Join(path, "."), changed, added)
			}
		}
	}
}
