package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff/internal/podlevel"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
)

func podRules() []Rule {
	const host = "a container that reaches the host can reach everything that runs on it"
	return []Rule{
		{"pods.host-network", High, "host network", "the pod sees and uses the node's network, past NetworkPolicies"},
		{"pods.host-pid", High, "host process namespace", host},
		{"pods.host-ipc", High, "host IPC namespace", host},
		{"pods.host-path", High, "host path mounted", host},
		{"pods.host-port", Medium, "host port", "the port is taken on every node the pod runs on, reachable from outside"},
		{"pods.privileged", High, "privileged container", host},
		{"pods.capability", Medium, "Linux capability added", "the container may do what containers normally may not"},
		{"pods.hardening-lost", Medium, "security setting loosened", "a container that is broken into can do more"},
		{"pods.account-changed", Low, "runs as another ServiceAccount", "its permissions are another account's"},
		{"pods.level-refused", High, "Pod Security refuses the pod", "the namespace's pod-security.kubernetes.io/enforce label forbids this pod: the workload is made, but no pod of it ever starts"},
		{"pods.level-raised", Medium, "needs a weaker Pod Security level", "a namespace that enforces the old level would refuse the pod"},
		{"pods.environment", Info, "environment changed", "another behaviour of the operator may be switched on or off"},
		{"pods.arguments", Info, "arguments changed", "another behaviour of the operator may be switched on or off"},
		{"pods.resources", Info, "resource requests or limits changed", "it may no longer fit on the nodes, or be killed where it lived before"},
		{"pods.replicas", Info, "number of replicas changed", "availability during node maintenance changes"},
		{"pods.container", Low, "container added or removed", "something else runs beside the operator"},
		{"namespace.security-level", Medium, "Pod Security label of a namespace changed", "pods that were refused are allowed, or the other way round"},
		{"namespace.added", Info, "namespace added", "quotas, network policies and labels for it are somebody's to make"},
		{"priority.class", Medium, "priority changed", "pods of a higher priority push others from full nodes; a global default changes every pod that names none"},
	}
}

// podTemplate returns the pod metadata and spec in an object and the steps to
// the spec; nil where it makes no pods.
func podTemplate(o map[string]any) (meta, spec map[string]any, to []step) {
	group, _ := splitAPIVersion(kobj.Text(o, "apiVersion"))
	var where []string
	switch groupKind(group, kobj.Text(o, "kind")) {
	case "Pod":
		where = nil
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "ReplicationController", "Job.batch":
		where = []string{"spec", "template"}
	case "CronJob.batch":
		where = []string{"spec", "jobTemplate", "spec", "template"}
	default:
		return nil, nil, nil
	}
	of := func(field string) []string { return append(slices.Clone(where), field) }
	return kobj.Map(o, of("metadata")...), kobj.Map(o, of("spec")...), path(of("spec")...)
}

// podDiff is one object that makes pods; old is nil where it is new.
type podDiff struct {
	c        *comparison
	p        pair
	old, now map[string]any // pod specs
	to       []step
}

func comparePods(c *comparison) {
	for _, p := range c.changed {
		if p.after == nil {
			continue
		}
		_, spec, to := podTemplate(p.after.Content)
		if spec == nil {
			continue
		}
		d := podDiff{c: c, p: p, now: spec, to: to}
		if p.before != nil {
			_, d.old, _ = podTemplate(p.before.Content)
		}
		d.host()
		d.containers()
		d.account()
		if p.before != nil {
			d.replicas()
		}
	}
}

// add adds a finding, about a container where the steps lead into one.
func (d podDiff) add(rule, field string, f Finding, steps ...step) {
	if len(steps) > 1 && slices.Contains(kobj.ContainerLists(), steps[0].key) {
		f.Container = steps[1].key
	}
	f.Field, f.steps = field, append(slices.Clone(d.to), steps...)
	d.c.add(rule, d.p.after, f)
}

// host compares what the pod as a whole takes of the node.
func (d podDiff) host() {
	for field, rule := range map[string]string{"hostNetwork": "pods.host-network", "hostPID": "pods.host-pid", "hostIPC": "pods.host-ipc"} {
		if kobj.True(d.now, field) && !kobj.True(d.old, field) {
			d.add(rule, field, Finding{After: "true", Message: "the pod uses the node's " + strings.TrimPrefix(field, "host")}, step{key: field})
		}
	}
	var had []string
	for _, v := range kobj.Items(d.old, "volumes") {
		had = append(had, kobj.Text(v, "hostPath", "path"))
	}
	for _, v := range kobj.Items(d.now, "volumes") {
		if p := kobj.Text(v, "hostPath", "path"); p != "" && !slices.Contains(had, p) {
			name := kobj.Text(v, "name")
			d.add("pods.host-path", "volumes."+name, Finding{After: p, Message: "the node's " + p + " is mounted"}, step{key: "volumes"}, step{by: "name", key: name})
		}
	}
	if a, b := kobj.Text(d.old, "priorityClassName"), kobj.Text(d.now, "priorityClassName"); a != b && (a != "" || strings.HasPrefix(b, "system-")) {
		d.add("priority.class", "priorityClassName", Finding{Before: a, After: b, Message: fmt.Sprintf("priority class is %q, was %q", b, a)}, step{key: "priorityClassName"})
	}
	d.pinned("pods.hardening-lost", "", kobj.Map(d.old, "securityContext"), kobj.Map(d.now, "securityContext"), step{key: "securityContext"})
}

func (d podDiff) account() {
	a, b := cmp.Or(kobj.Text(d.old, "serviceAccountName"), "default"), cmp.Or(kobj.Text(d.now, "serviceAccountName"), "default")
	if d.old != nil && a != b {
		d.add("pods.account-changed", "serviceAccountName", Finding{Before: a, After: b, Message: fmt.Sprintf("runs as ServiceAccount %s, was %s", b, a)}, step{key: "serviceAccountName"})
	}
}

func (d podDiff) replicas() {
	a, b := kobj.At(d.p.before.Content, "spec", "replicas"), kobj.At(d.p.after.Content, "spec", "replicas")
	if !reflect.DeepEqual(a, b) {
		d.c.add("pods.replicas", d.p.after, Finding{Field: "spec.replicas", Before: show(a), After: show(b), Message: fmt.Sprintf("%s replicas, was %s", cmp.Or(show(b), "1"), cmp.Or(show(a), "1")), steps: path("spec", "replicas")})
	}
}

// containers compares container by container, by name.
func (d podDiff) containers() {
	for _, list := range slices.Backward(kobj.ContainerLists()) {
		old := map[string]map[string]any{}
		for _, ctr := range kobj.Items(d.old, list) {
			old[kobj.Text(ctr, "name")] = ctr
		}
		seen := map[string]bool{}
		for _, ctr := range kobj.Items(d.now, list) {
			name := kobj.Text(ctr, "name")
			seen[name] = true
			was, had := old[name]
			at := []step{{key: list}, {by: "name", key: name}}
			if !had && d.old != nil {
				d.add("pods.container", list+"."+name, Finding{After: kobj.Text(ctr, "image"), Message: fmt.Sprintf("container %s is new", name)}, at...)
			}
			d.power(name, was, ctr, at)
			if had {
				d.settings(name, was, ctr, at)
			}
		}
		for _, name := range names(old) {
			if !seen[name] {
				d.add("pods.container", list+"."+name, Finding{Container: name, Before: kobj.Text(old[name], "image"), Message: fmt.Sprintf("container %s is gone", name)}, step{key: list})
			}
		}
	}
}

// power compares what a container may do to its node.
func (d podDiff) power(name string, old, now map[string]any, to []step) {
	in := func(more ...string) []step { return append(slices.Clone(to), path(more...)...) }
	was, is := kobj.Map(old, "securityContext"), kobj.Map(now, "securityContext")
	if kobj.True(is, "privileged") && !kobj.True(was, "privileged") {
		d.add("pods.privileged", name+" securityContext.privileged", Finding{After: "true", Message: fmt.Sprintf("container %s is privileged", name)}, in("securityContext", "privileged")...)
	}
	for _, capability := range kobj.Texts(is, "capabilities", "add") {
		if !slices.Contains(kobj.Texts(was, "capabilities", "add"), capability) {
			d.add("pods.capability", name+" securityContext.capabilities.add", Finding{After: capability, Message: fmt.Sprintf("container %s has capability %s", name, capability)}, in("securityContext", "capabilities", "add")...)
		}
	}
	var ports []string
	for _, p := range kobj.Items(old, "ports") {
		ports = append(ports, show(p["hostPort"]))
	}
	for _, p := range kobj.Items(now, "ports") {
		if port := show(p["hostPort"]); port != "" && port != "0" && !slices.Contains(ports, port) {
			d.add("pods.host-port", name+" ports", Finding{After: port, Message: fmt.Sprintf("container %s takes port %s of the node", name, port)}, in("ports")...)
		}
	}
	if old != nil {
		d.pinned("pods.hardening-lost", name+" ", was, is, in("securityContext")...)
	}
}

// pinned reports settings of a security context that were tight and are no longer.
func (d podDiff) pinned(rule, prefix string, old, now map[string]any, to ...step) {
	tight := []struct {
		name string
		want any
	}{
		{"runAsNonRoot", true},
		{"allowPrivilegeEscalation", false},
		{"readOnlyRootFilesystem", true},
	}
	for _, t := range tight {
		if a, b := old[t.name], now[t.name]; reflect.DeepEqual(a, t.want) && !reflect.DeepEqual(b, t.want) {
			d.add(rule, prefix+"securityContext."+t.name, Finding{Before: show(a), After: show(b), Message: t.name + " is no longer " + show(a)}, to...)
		}
	}
	if a, b := kobj.Text(old, "seccompProfile", "type"), kobj.Text(now, "seccompProfile", "type"); a != b && (a == "RuntimeDefault" || a == "Localhost") && b != "Localhost" {
		d.add(rule, prefix+"securityContext.seccompProfile", Finding{Before: a, After: b, Message: "seccomp profile is no longer " + a}, to...)
	}
	dropped := kobj.Texts(now, "capabilities", "drop")
	for _, capability := range kobj.Texts(old, "capabilities", "drop") {
		if !slices.Contains(dropped, capability) && !slices.Contains(dropped, "ALL") {
			d.add(rule, prefix+"securityContext.capabilities.drop", Finding{Before: capability, Message: "capability " + capability + " is no longer dropped"}, to...)
		}
	}
}

// settings compares what a reviewer skims: environment, arguments, resources.
func (d podDiff) settings(name string, old, now map[string]any, to []step) {
	in := func(field string) []step { return append(slices.Clone(to), step{key: field}) }
	env := func(m map[string]any) map[string]string {
		out := map[string]string{}
		for _, e := range kobj.Items(m, "env") {
			v := kobj.Text(e, "value")
			if from := e["valueFrom"]; from != nil {
				v = show(from)
			}
			if !strings.HasPrefix(kobj.Text(e, "name"), "RELATED_IMAGE_") && !looksLikeImage(v) {
				out[kobj.Text(e, "name")] = v
			}
		}
		return out
	}
	if gone, come := changes(env(old), env(now)); gone != "" || come != "" {
		d.add("pods.environment", name+" env", Finding{Before: gone, After: come, Message: fmt.Sprintf("environment of container %s changed", name)}, in("env")...)
	}
	args := func(m map[string]any) map[string]string {
		out := map[string]string{}
		for _, a := range flags(m) {
			if !looksLikeImage(a.value) {
				out[a.name] = a.value
			}
		}
		return out
	}
	if gone, come := changes(args(old), args(now)); gone != "" || come != "" {
		d.add("pods.arguments", name+" args", Finding{Before: gone, After: come, Message: fmt.Sprintf("arguments of container %s changed", name)}, in("args")...)
	}
	if a, b := old["resources"], now["resources"]; !reflect.DeepEqual(a, b) {
		d.add("pods.resources", name+" resources", Finding{Before: show(a), After: show(b), Message: fmt.Sprintf("resources of container %s changed", name)}, in("resources")...)
	}
}

// changes returns the settings that differ, as they were and as they are.
func changes(old, now map[string]string) (was, is string) {
	var gone, come []string
	for _, k := range union(old, now) {
		a, had := old[k]
		b, has := now[k]
		if had && has && a == b {
			continue
		}
		if had {
			gone = append(gone, setting(k, a))
		}
		if has {
			come = append(come, setting(k, b))
		}
	}
	return strings.Join(gone, " "), strings.Join(come, " ")
}

func setting(name, value string) string {
	if value == "" {
		return name
	}
	return name + "=" + inert.Cut(value, 120)
}

// compareSecurityLevels asks which Pod Security level each pod template needs
// and holds it against the label of its namespace.
func compareSecurityLevels(c *comparison) {
	for _, o := range c.after.order {
		meta, spec, to := podTemplate(o.Content)
		if spec == nil {
			continue
		}
		was := c.before.byKey[o.Ref().key()]
		wasEnforced, _ := enforcedIn(c.before, o.Ref().Namespace)
		isEnforced, named := enforcedIn(c.after, o.Ref().Namespace)
		if was != nil && wasEnforced == isEnforced && same(was, o) {
			continue
		}
		need, why, err := podlevel.Needed(meta, spec)
		if err != nil {
			c.note("Pod Security of %s was not checked: %v", o.Ref(), err)
			continue
		}
		f := Finding{Field: "spec", After: need, steps: to}
		if was != nil {
			m, s, _ := podTemplate(was.Content)
			if f.Before, _, err = podlevel.Needed(m, s); err != nil {
				f.Before = ""
			}
		}
		if isEnforced != "" && podlevel.Weaker(need, isEnforced) && !(was != nil && f.Before == need && wasEnforced == isEnforced) {
			f.Message = fmt.Sprintf("needs level %s, and namespace %s enforces %s: %s", need, o.Ref().Namespace, isEnforced, some(why, 4))
			c.add("pods.level-refused", o, f)
			continue
		}
		if f.Before != "" && podlevel.Weaker(need, f.Before) {
			f.Message = fmt.Sprintf("needs Pod Security level %s, was %s: %s", need, f.Before, some(why, 4))
			c.add("pods.level-raised", o, f)
		}
		if was == nil && !named && need == podlevel.Privileged {
			f.Message = fmt.Sprintf("needs Pod Security level privileged: %s", some(why, 4))
			c.add("pods.level-raised", o, f)
		}
	}
}

const securityLabel = "pod-security.kubernetes.io/"

// enforcedIn returns the level that a namespace enforces, and whether the state
// holds the namespace at all.
func enforcedIn(v *view, namespace string) (level string, known bool) {
	ns := v.namespace(namespace)
	if ns == nil {
		return "", false
	}
	return kobj.Text(ns.Content, "metadata", "labels", securityLabel+"enforce"), true
}

func compareNamespaces(c *comparison) {
	c.each(func(p pair) {
		if p.before == nil {
			c.add("namespace.added", p.after, Finding{Message: fmt.Sprintf("namespace %s is new", p.after.Ref().Name)})
			return
		}
		if p.after == nil {
			return
		}
		for _, mode := range []string{"enforce", "enforce-version"} {
			a, b := kobj.Text(p.before.Content, "metadata", "labels", securityLabel+mode), kobj.Text(p.after.Content, "metadata", "labels", securityLabel+mode)
			if a != b {
				c.add("namespace.security-level", p.after, Finding{
					Field: "metadata.labels." + securityLabel + mode, Before: a, After: b, steps: path("metadata", "labels", securityLabel+mode),
					Message: fmt.Sprintf("%s is %q, was %q", mode, b, a),
				})
			}
		}
	}, "Namespace")
}

func comparePriorities(c *comparison) {
	c.each(func(p pair) {
		switch {
		case p.after == nil:
			c.add("priority.class", p.before, Finding{Before: show(p.before.Content["value"]), Message: "priority class is removed: pods that name it are refused"})
		case p.before == nil:
			capped := Low
			if kobj.True(p.after.Content, "globalDefault") {
				capped = High
			}
			c.add("priority.class", p.after, Finding{After: show(p.after.Content["value"]), Message: "priority class is new", steps: path("value")}, capped)
		case kobj.True(p.after.Content, "globalDefault") != kobj.True(p.before.Content, "globalDefault"):
			c.add("priority.class", p.after, Finding{Field: "globalDefault", Message: "global default priority changed", steps: path("globalDefault")})
		}
	}, "PriorityClass.scheduling.k8s.io")
}
