package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/k8s"
)

func podRules() []Rule {
	const host = "a container with access to the host can reach everything on it"
	return []Rule{
		{"pods.host-network", High, "host network", "the pod uses the node's network and bypasses NetworkPolicies"},
		{"pods.host-pid", High, "host process namespace", host},
		{"pods.host-ipc", High, "host IPC namespace", host},
		{"pods.host-path", High, "host path mounted", host},
		{"pods.host-port", Medium, "host port", "the port is reachable from outside on every node that runs the pod"},
		{"pods.privileged", High, "privileged container", host},
		{"pods.capability", Medium, "Linux capability added", "the container gets privileges that containers normally lack"},
		{"pods.hardening-lost", Medium, "security setting loosened", "a compromised container can do more"},
		{"pods.account-changed", Low, "runs as another ServiceAccount", "it has the permissions of the other account"},
		{"pods.level-refused", High, "pod refused by Pod Security", "the namespace's pod-security.kubernetes.io/enforce label forbids this pod: the workload is created, but its pods never start"},
		{"pods.level-raised", Medium, "needs a less restrictive Pod Security level", "a namespace that enforces the old level refuses the pod"},
		{"pods.environment", Info, "environment changed", "operator behaviour may be switched on or off"},
		{"pods.arguments", Info, "arguments changed", "operator behaviour may be switched on or off"},
		{"pods.resources", Info, "resource requests or limits changed", "it may no longer be schedulable, or be killed for exceeding its limits"},
		{"pods.replicas", Info, "number of replicas changed", "availability during node maintenance changes"},
		{"pods.container", Low, "container added or removed", "another process runs in the operator's pod"},
		{"namespace.security-level", Medium, "Pod Security label of a namespace changed", "pods that were refused may be allowed, or allowed pods refused"},
		{"namespace.added", Info, "namespace added", "quotas, network policies and labels for it have to be created"},
		{"priority.class", Medium, "priority changed", "pods of higher priority preempt others on full nodes; a global default changes every pod without a priority class"},
	}
}

// podTemplate returns the metadata and spec of an object's pods, and the steps to the
// spec; nil if the object creates no pods.
func podTemplate(o map[string]any) (meta, spec map[string]any, to []step) {
	var where []string
	switch k8s.Object(o).Key().GroupKind() {
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
	return k8s.Map(o, of("metadata")...), k8s.Map(o, of("spec")...), stepPath(of("spec")...)
}

// podDiff is one object that creates pods; old is nil if it is new.
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

// addInPod adds a finding about a field of the pod, or of a container if the steps lead into one.
// The steps start at the spec of the pod; comparison.add takes those of another field of the object.
func (d podDiff) addInPod(rule, field string, f Finding, steps ...step) {
	if len(steps) > 1 && slices.Contains(k8s.ContainerLists(), steps[0].key) {
		f.Container = steps[1].key
	}
	f.Field, f.steps = field, append(slices.Clone(d.to), steps...)
	d.c.add(rule, d.p.after, f)
}

// host compares the pod's access to the node, its priority class and its security context.
func (d podDiff) host() {
	for field, rule := range map[string]string{"hostNetwork": "pods.host-network", "hostPID": "pods.host-pid", "hostIPC": "pods.host-ipc"} {
		if k8s.True(d.now, field) && !k8s.True(d.old, field) {
			d.addInPod(rule, field, Finding{After: "true", Message: "the pod uses the node's " + strings.TrimPrefix(field, "host")}, step{key: field})
		}
	}
	var had []string
	for _, v := range k8s.Items(d.old, "volumes") {
		had = append(had, k8s.Text(v, "hostPath", "path"))
	}
	for _, v := range k8s.Items(d.now, "volumes") {
		if p := k8s.Text(v, "hostPath", "path"); p != "" && !slices.Contains(had, p) {
			name := k8s.Text(v, "name")
			d.addInPod("pods.host-path", "volumes."+name, Finding{After: p, Message: "the node's " + p + " is mounted"}, step{key: "volumes"}, step{by: "name", key: name})
		}
	}
	if a, b := k8s.Text(d.old, "priorityClassName"), k8s.Text(d.now, "priorityClassName"); a != b && (a != "" || strings.HasPrefix(b, "system-")) {
		d.addInPod("priority.class", "priorityClassName", Finding{Before: a, After: b, Message: fmt.Sprintf("priority class is %q, was %q", b, a)}, step{key: "priorityClassName"})
	}
	d.pinned("pods.hardening-lost", "", k8s.Map(d.old, "securityContext"), k8s.Map(d.now, "securityContext"), step{key: "securityContext"})
}

func (d podDiff) account() {
	a, b := cmp.Or(k8s.Text(d.old, "serviceAccountName"), "default"), cmp.Or(k8s.Text(d.now, "serviceAccountName"), "default")
	if d.old != nil && a != b {
		d.addInPod("pods.account-changed", "serviceAccountName", Finding{Before: a, After: b, Message: fmt.Sprintf("runs as ServiceAccount %s, was %s", b, a)}, step{key: "serviceAccountName"})
	}
}

func (d podDiff) replicas() {
	a, b := k8s.At(d.p.before.Content, "spec", "replicas"), k8s.At(d.p.after.Content, "spec", "replicas")
	if !reflect.DeepEqual(a, b) {
		d.c.add("pods.replicas", d.p.after, Finding{Field: "spec.replicas", Before: formatValue(a), After: formatValue(b), Message: fmt.Sprintf("%s replicas, was %s", cmp.Or(formatValue(b), "1"), cmp.Or(formatValue(a), "1")), steps: stepPath("spec", "replicas")})
	}
}

// containers compares the containers by name.
func (d podDiff) containers() {
	for _, list := range slices.Backward(k8s.ContainerLists()) {
		old := map[string]map[string]any{}
		for _, ctr := range k8s.Items(d.old, list) {
			old[k8s.Text(ctr, "name")] = ctr
		}
		seen := map[string]bool{}
		for _, ctr := range k8s.Items(d.now, list) {
			name := k8s.Text(ctr, "name")
			seen[name] = true
			was, had := old[name]
			at := []step{{key: list}, {by: "name", key: name}}
			if !had && d.old != nil {
				d.addInPod("pods.container", list+"."+name, Finding{After: k8s.Text(ctr, "image"), Message: fmt.Sprintf("container %s added", name)}, at...)
			}
			d.power(name, was, ctr, at)
			if had {
				d.settings(name, was, ctr, at)
			}
		}
		for _, name := range names(old) {
			if !seen[name] {
				d.addInPod("pods.container", list+"."+name, Finding{Container: name, Before: k8s.Text(old[name], "image"), Message: fmt.Sprintf("container %s removed", name)}, step{key: list})
			}
		}
	}
}

// power compares the access of a container to its node, and its security context.
func (d podDiff) power(name string, old, now map[string]any, to []step) {
	in := func(more ...string) []step { return append(slices.Clone(to), stepPath(more...)...) }
	was, is := k8s.Map(old, "securityContext"), k8s.Map(now, "securityContext")
	if k8s.True(is, "privileged") && !k8s.True(was, "privileged") {
		d.addInPod("pods.privileged", name+" securityContext.privileged", Finding{After: "true", Message: fmt.Sprintf("container %s is privileged", name)}, in("securityContext", "privileged")...)
	}
	for _, capability := range k8s.Texts(is, "capabilities", "add") {
		if !slices.Contains(k8s.Texts(was, "capabilities", "add"), capability) {
			d.addInPod("pods.capability", name+" securityContext.capabilities.add", Finding{After: capability, Message: fmt.Sprintf("container %s has capability %s", name, capability)}, in("securityContext", "capabilities", "add")...)
		}
	}
	var ports []string
	for _, p := range k8s.Items(old, "ports") {
		ports = append(ports, formatValue(p["hostPort"]))
	}
	for _, p := range k8s.Items(now, "ports") {
		if port := formatValue(p["hostPort"]); port != "" && port != "0" && !slices.Contains(ports, port) {
			d.addInPod("pods.host-port", name+" ports", Finding{After: port, Message: fmt.Sprintf("container %s uses host port %s", name, port)}, in("ports")...)
		}
	}
	if old != nil {
		d.pinned("pods.hardening-lost", name+" ", was, is, in("securityContext")...)
	}
}

// pinned reports settings of a security context that were loosened.
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
			d.addInPod(rule, prefix+"securityContext."+t.name, Finding{Before: formatValue(a), After: formatValue(b), Message: t.name + " is no longer " + formatValue(a)}, to...)
		}
	}
	if a, b := k8s.Text(old, "seccompProfile", "type"), k8s.Text(now, "seccompProfile", "type"); a != b && (a == "RuntimeDefault" || a == "Localhost") && b != "Localhost" {
		d.addInPod(rule, prefix+"securityContext.seccompProfile", Finding{Before: a, After: b, Message: "seccomp profile is no longer " + a}, to...)
	}
	dropped := k8s.Texts(now, "capabilities", "drop")
	for _, capability := range k8s.Texts(old, "capabilities", "drop") {
		if !slices.Contains(dropped, capability) && !slices.Contains(dropped, "ALL") {
			d.addInPod(rule, prefix+"securityContext.capabilities.drop", Finding{Before: capability, Message: "capability " + capability + " is no longer dropped"}, to...)
		}
	}
}

// settings compares environment, arguments and resources.
func (d podDiff) settings(name string, old, now map[string]any, to []step) {
	in := func(field string) []step { return append(slices.Clone(to), step{key: field}) }
	env := func(m map[string]any) map[string]string {
		out := map[string]string{}
		for _, e := range k8s.Items(m, "env") {
			v := k8s.Text(e, "value")
			if from := e["valueFrom"]; from != nil {
				v = formatValue(from)
			}
			if !strings.HasPrefix(k8s.Text(e, "name"), "RELATED_IMAGE_") && !looksLikeImage(v) {
				out[k8s.Text(e, "name")] = v
			}
		}
		return out
	}
	if gone, come := splitChanges(env(old), env(now)); gone != "" || come != "" {
		d.addInPod("pods.environment", name+" env", Finding{Before: gone, After: come, Message: fmt.Sprintf("environment of container %s changed", name)}, in("env")...)
	}
	args := func(m map[string]any) map[string]string {
		out := map[string]string{}
		for _, a := range parseFlags(m) {
			if !looksLikeImage(a.value) {
				out[a.name] = a.value
			}
		}
		return out
	}
	if gone, come := splitChanges(args(old), args(now)); gone != "" || come != "" {
		d.addInPod("pods.arguments", name+" args", Finding{Before: gone, After: come, Message: fmt.Sprintf("arguments of container %s changed", name)}, in("args")...)
	}
	if a, b := old["resources"], now["resources"]; !reflect.DeepEqual(a, b) {
		d.addInPod("pods.resources", name+" resources", Finding{Before: formatValue(a), After: formatValue(b), Message: fmt.Sprintf("resources of container %s changed", name)}, in("resources")...)
	}
}

// splitChanges returns the settings that differ, before and after.
func splitChanges(old, now map[string]string) (was, is string) {
	var gone, come []string
	for _, k := range union(old, now) {
		a, had := old[k]
		b, has := now[k]
		if had && has && a == b {
			continue
		}
		if had {
			gone = append(gone, settingHint(k, a))
		}
		if has {
			come = append(come, settingHint(k, b))
		}
	}
	return strings.Join(gone, " "), strings.Join(come, " ")
}

func settingHint(name, value string) string {
	if value == "" {
		return name
	}
	return name + "=" + inert.Cut(value, 120)
}

// compareSecurityLevels compares the Pod Security level of each pod template with the
// enforced level of its namespace, and with its level before.
func compareSecurityLevels(c *comparison) {
	for _, o := range c.after.order {
		meta, spec, to := podTemplate(o.Content)
		if spec == nil {
			continue
		}
		was := c.before.byKey[o.Key()]
		wasEnforced, _ := enforcedIn(c.before, o.Key().Namespace)
		isEnforced, named := enforcedIn(c.after, o.Key().Namespace)
		if was != nil && wasEnforced == isEnforced && isSameObject(was, o) {
			continue
		}
		need, why, err := k8s.PodSecurityLevel(meta, spec)
		if err != nil {
			c.note("Pod Security of %s was not checked: %v", o.Ref(), err)
			continue
		}
		f := Finding{Field: "spec", After: need, steps: to}
		if was != nil {
			m, s, _ := podTemplate(was.Content)
			if f.Before, _, err = k8s.PodSecurityLevel(m, s); err != nil {
				f.Before = ""
			}
		}
		if isEnforced != "" && k8s.WeakerPodSecurity(need, isEnforced) && !(was != nil && f.Before == need && wasEnforced == isEnforced) {
			f.Message = fmt.Sprintf("needs level %s, and namespace %s enforces %s: %s", need, o.Key().Namespace, isEnforced, diag.Some(why, 4))
			c.add("pods.level-refused", o, f)
			continue
		}
		if f.Before != "" && k8s.WeakerPodSecurity(need, f.Before) {
			f.Message = fmt.Sprintf("needs Pod Security level %s, was %s: %s", need, f.Before, diag.Some(why, 4))
			c.add("pods.level-raised", o, f)
		}
		if was == nil && !named && need == k8s.Privileged {
			f.Message = fmt.Sprintf("needs Pod Security level privileged: %s", diag.Some(why, 4))
			c.add("pods.level-raised", o, f)
		}
	}
}

const securityLabel = "pod-security.kubernetes.io/"

// enforcedIn returns the level that a namespace enforces, and whether the state contains
// the namespace.
func enforcedIn(v *view, namespace string) (level string, known bool) {
	ns := v.namespace(namespace)
	if ns == nil {
		return "", false
	}
	return k8s.Text(ns.Content, "metadata", "labels", securityLabel+"enforce"), true
}

func compareNamespaces(c *comparison) {
	c.each(func(p pair) {
		if p.before == nil {
			c.add("namespace.added", p.after, Finding{Message: fmt.Sprintf("namespace %s added", p.after.Key().Name)})
			return
		}
		if p.after == nil {
			return
		}
		for _, mode := range []string{"enforce", "enforce-version"} {
			a, b := k8s.Text(p.before.Content, "metadata", "labels", securityLabel+mode), k8s.Text(p.after.Content, "metadata", "labels", securityLabel+mode)
			if a != b {
				c.add("namespace.security-level", p.after, Finding{
					Field: "metadata.labels." + securityLabel + mode, Before: a, After: b, steps: stepPath("metadata", "labels", securityLabel+mode),
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
			c.add("priority.class", p.before, Finding{Before: formatValue(p.before.Content["value"]), Message: "priority class removed: pods that use it are refused"})
		case p.before == nil:
			capped := Low
			if k8s.True(p.after.Content, "globalDefault") {
				capped = High
			}
			c.add("priority.class", p.after, Finding{After: formatValue(p.after.Content["value"]), Message: "priority class added", steps: stepPath("value")}, capped)
		case k8s.True(p.after.Content, "globalDefault") != k8s.True(p.before.Content, "globalDefault"):
			c.add("priority.class", p.after, Finding{Field: "globalDefault", Message: "global default priority changed", steps: stepPath("globalDefault")})
		}
	}, "PriorityClass.scheduling.k8s.io")
}
