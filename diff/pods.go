package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

func podRules() []RuleInfo {
	const host = "a container with access to the host can reach everything on it"
	return []RuleInfo{
		{"pods.host-network", High, "host network", "the pod uses the node's network and bypasses NetworkPolicies"},
		{"pods.host-pid", High, "host process namespace", host},
		{"pods.host-ipc", High, "host IPC namespace", host},
		{"pods.host-path", High, "host path mounted", host},
		{"pods.volume", High, "volume that reaches beyond the pod", "the driver of the volume runs on the node, or the volume contains data, certificates or tokens of others"},
		{"pods.host-port", Medium, "host port", "the port is reachable from outside on every node that runs the pod"},
		{"pods.privileged", High, "privileged container", host},
		{"pods.capability", High, "Linux capability added", "the container gets privileges that containers normally lack"},
		{"pods.capability-removed", Info, "Linux capability no longer added", "the container can do less"},
		{"pods.unconfined", High, "isolation from the node turned off", host},
		{"pods.hardening-lost", High, "security setting loosened", "a compromised container can do more"},
		{"pods.device", Medium, "device of the node requested", "the container reaches a device of the node, by a device plugin or driver"},
		{"pods.account-changed", High, "runs as another ServiceAccount", "the pod gets the permissions of the other account"},
		{"pods.secret", High, "Secret used", "the pod or its volume driver gets a credential, which may belong to another operator"},
		{"pods.level-refused", High, "pod refused by Pod Security", "the namespace's pod-security.kubernetes.io/enforce label forbids this pod: the workload is created, but its pods never start"},
		{"pods.level-raised", Medium, "needs a less restrictive Pod Security level", "a namespace that enforces the old level refuses the pod"},
		{"pods.code", High, "code that a container executes", "a shell, an interpreter or the loader executes it, without a new image"},
		{"pods.environment", Medium, "environment changed", "operator behaviour may be switched on or off; some variables direct the traffic or the trust of the program elsewhere"},
		{"pods.arguments", Info, "arguments changed", "operator behaviour may be switched on or off"},
		{"pods.resources", Info, "resource requests or limits changed", "the pod may no longer be schedulable, or be killed for exceeding its limits"},
		{"pods.replicas", Info, "number of replicas changed", "availability during node maintenance changes"},
		{"pods.container", Low, "container added or removed", "another process runs in the operator's pod"},
		{"namespace.security-level", High, "Pod Security label of a namespace changed", "pods that were refused may be allowed, or allowed pods refused"},
		{"namespace.added", Info, "namespace added", "quotas, network policies and labels for it have to be created"},
		{"priority.class", High, "priority changed", "pods of higher priority preempt others on full nodes; a global default changes every pod without a priority class"},
	}
}

// pod is a pod in an object: a Pod, or a pod template.
type pod struct {
	meta, spec map[string]any
	at         fieldPath // path of spec
}

// podsOf returns the pods in an object, which may be nil.
func podsOf(o *Object) []pod {
	if o == nil {
		return nil
	}
	var out []pod
	for _, t := range k8s.PodTemplates(o.Content) {
		out = append(out, pod{t.Metadata, t.Spec, fieldPathOf(o.Content, t.Path)})
	}
	return out
}

// podDiff compares a pod of an object before and after the change. old is nil if the pod is new.
type podDiff struct {
	c        *comparison
	p        pair
	old, now map[string]any // pod specs
	at       fieldPath      // path of the pod spec
}

// comparePods reports changes of pod specs.
func comparePods(c *comparison) {
	for _, p := range c.changed {
		old := podsOf(p.before)
		for _, now := range podsOf(p.after) {
			d := podDiff{c: c, p: p, now: now.spec, at: now.at}
			if i := slices.IndexFunc(old, func(o pod) bool { return slices.Equal(o.at, now.at) }); i >= 0 {
				d.old = old[i].spec
			}
			d.compareHostAccess()
			d.compareIsolation()
			d.compareContainers()
			d.compareVolumes()
			d.compareAccount()
		}
		if p.onBothSides() && len(old) > 0 {
			c.compareReplicas(p)
		}
	}
	compareReferencedCode(c)
}

// add adds a finding about the field at a path of the object. If the path is in a container, the
// finding has the name of the container. capped limits the severity.
func (d podDiff) add(rule, field string, at fieldPath, f Finding, capped ...Severity) {
	f.Field, f.path, f.Container = field, at, cmp.Or(f.Container, at.container())
	d.c.add(rule, d.p.after, f, capped...)
}

// compareIsolation reports settings of the pod or its containers that weaken their isolation from
// the node.
func (d podDiff) compareIsolation() {
	look := func(old, now map[string]any, at fieldPath) {
		for _, s := range []struct {
			is    func(map[string]any) string
			field []string
		}{
			{func(m map[string]any) string { return ifEqual(k8s.Text(m, "seccompProfile", "type"), "Unconfined") }, []string{"seccompProfile", "type"}},
			{func(m map[string]any) string { return ifEqual(k8s.Text(m, "appArmorProfile", "type"), "Unconfined") }, []string{"appArmorProfile", "type"}},
			{func(m map[string]any) string { return ifEqual(k8s.Text(m, "procMount"), "Unmasked") }, []string{"procMount"}},
			{func(m map[string]any) string {
				return ifEqual(formatValue(k8s.At(m, "windowsOptions", "hostProcess")), "true")
			}, []string{"windowsOptions", "hostProcess"}},
			{func(m map[string]any) string { return formatValue(m["sysctls"]) }, []string{"sysctls"}},
		} {
			a, b := s.is(old), s.is(now)
			if b != "" && a != b {
				name := strings.Join(s.field, ".")
				d.add("pods.unconfined", "securityContext."+name, at.field(s.field...), Finding{Before: formatValue(k8s.At(old, s.field...)), After: b, Message: name + " is " + b})
			}
		}
	}
	look(k8s.Map(d.old, "securityContext"), k8s.Map(d.now, "securityContext"), d.at.field("securityContext"))
	for _, list := range k8s.ContainerLists() {
		for _, ctr := range k8s.Items(d.now, list) {
			name := k8s.Text(ctr, "name")
			var was map[string]any
			for _, old := range k8s.Items(d.old, list) {
				if k8s.Text(old, "name") == name {
					was = old
				}
			}
			look(k8s.Map(was, "securityContext"), k8s.Map(ctr, "securityContext"), d.at.field(list).named(name).field("securityContext"))
		}
	}
}

// ifEqual returns s if it equals dangerous, otherwise "".
func ifEqual(s, dangerous string) string {
	if s == dangerous {
		return s
	}
	return ""
}

// compareHostAccess reports changes of the pod's access to the node, its priority class and its
// security context.
func (d podDiff) compareHostAccess() {
	for field, r := range map[string]struct{ rule, resource string }{
		"hostNetwork": {"pods.host-network", "network"}, "hostPID": {"pods.host-pid", "process namespace"}, "hostIPC": {"pods.host-ipc", "IPC namespace"},
	} {
		if k8s.True(d.now, field) && !k8s.True(d.old, field) {
			d.add(r.rule, field, d.at.field(field), Finding{After: "true", Message: "the pod uses the node's " + r.resource})
		}
	}
	if a, b := k8s.Text(d.old, "priorityClassName"), k8s.Text(d.now, "priorityClassName"); a != b {
		limit := Medium
		if strings.HasPrefix(b, "system-") {
			limit = High
		}
		d.add("priority.class", "priorityClassName", d.at.field("priorityClassName"), Finding{Before: a, After: b, Message: fmt.Sprintf("priority class is %q, was %q", b, a)}, limit)
	}
	d.compareHardening("", k8s.Map(d.old, "securityContext"), k8s.Map(d.now, "securityContext"), d.at.field("securityContext"))
}

// compareAccount reports a change of the ServiceAccount.
func (d podDiff) compareAccount() {
	a, b := k8s.Text(d.old, "serviceAccountName"), k8s.Text(d.now, "serviceAccountName")
	namespace, operator := d.p.after.Key().Namespace, d.p.after.Operator
	others := d.c.accountOwners(operator, namespace, cmp.Or(b, "default"))
	limit, ownerText := Low, ""
	switch {
	case len(others) > 0:
		limit, ownerText = High, " of "+strings.Join(others, " and ")
	case d.c.after.byKey[k8s.Key{Kind: "ServiceAccount", Namespace: namespace, Name: b}] == nil && b != "" && b != "default":
		limit, ownerText = High, ", which is not in the tree"
	}
	if d.old != nil && cmp.Or(a, "default") == cmp.Or(b, "default") || d.old == nil && limit == Low {
		return
	}
	d.add("pods.account-changed", "serviceAccountName", d.at.field("serviceAccountName"), Finding{
		Before: cmp.Or(a, "default"), After: cmp.Or(b, "default"), Message: fmt.Sprintf("runs as ServiceAccount %s%s, was %s", cmp.Or(b, "default"), ownerText, cmp.Or(a, "default")),
	}, limit)
}

// compareReplicas reports a change of spec.replicas.
func (c *comparison) compareReplicas(p pair) {
	a, b := k8s.At(p.before.Content, "spec", "replicas"), k8s.At(p.after.Content, "spec", "replicas")
	if !reflect.DeepEqual(a, b) {
		c.add("pods.replicas", p.after, Finding{
			Field: "spec.replicas", Before: formatValue(a), After: formatValue(b), path: fieldAt("spec", "replicas"),
			Message: fmt.Sprintf("%s replicas, was %s", cmp.Or(formatValue(b), "1"), cmp.Or(formatValue(a), "1")),
		})
	}
}

// compareContainers compares the containers of the pod by name.
func (d podDiff) compareContainers() {
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
			at := d.at.field(list).named(name)
			if !had && d.old != nil {
				d.add("pods.container", list+"."+name, at, Finding{After: k8s.Text(ctr, "image"), Message: fmt.Sprintf("container %s added", name), explains: identityFields(at)})
			}
			d.compareContainerAccess(name, was, ctr, at)
			d.compareCode(name, was, ctr, at)
			if had {
				d.compareSettings(name, was, ctr, at)
			}
		}
		for _, name := range sortedKeys(old) {
			if !seen[name] {
				d.add("pods.container", list+"."+name, d.at.field(list), Finding{Container: name, Before: k8s.Text(old[name], "image"), Message: fmt.Sprintf("container %s removed", name), explains: []fieldPath{d.at.field(list).named(name)}})
			}
		}
	}
}

// identityFields returns the fields of an added container that the finding about the container covers. The
// other fields of the container are rated like fields that are added to an existing container.
func identityFields(at fieldPath) []fieldPath {
	var out []fieldPath
	for _, name := range []string{"name", "image", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"} {
		out = append(out, at.field(name))
	}
	return out
}

// compareContainerAccess reports changes of a container's access to the node and of its security
// context.
func (d podDiff) compareContainerAccess(name string, old, now map[string]any, at fieldPath) {
	was, is := k8s.Map(old, "securityContext"), k8s.Map(now, "securityContext")
	if k8s.True(is, "privileged") && !k8s.True(was, "privileged") {
		d.add("pods.privileged", name+" securityContext.privileged", at.field("securityContext", "privileged"), Finding{After: "true", Message: fmt.Sprintf("container %s is privileged", name)})
	}
	for _, capability := range k8s.Texts(is, "capabilities", "add") {
		if !slices.Contains(k8s.Texts(was, "capabilities", "add"), capability) {
			limit := Medium
			if slices.Contains(strongCapabilities(), strings.TrimPrefix(capability, "CAP_")) {
				limit = High
			}
			d.add("pods.capability", name+" securityContext.capabilities.add", at.field("securityContext", "capabilities", "add"), Finding{After: capability, Message: fmt.Sprintf("container %s has capability %s", name, capability)}, limit)
		}
	}
	for _, capability := range k8s.Texts(was, "capabilities", "add") {
		if !slices.Contains(k8s.Texts(is, "capabilities", "add"), capability) {
			d.add("pods.capability-removed", name+" securityContext.capabilities.add", at.field("securityContext", "capabilities", "add"), Finding{Before: capability, Message: fmt.Sprintf("container %s no longer has capability %s", name, capability)})
		}
	}
	for _, p := range k8s.Items(now, "ports") {
		if port := formatValue(p["hostPort"]); port != "" && port != "0" && !slices.ContainsFunc(k8s.Items(old, "ports"), func(q map[string]any) bool { return coversHostPort(q, p) }) {
			port = strings.TrimPrefix(k8s.Text(p, "hostIP")+":"+port, ":")
			d.add("pods.host-port", name+" ports", at.field("ports"), Finding{After: port, Message: fmt.Sprintf("container %s uses host port %s", name, port), explains: noField()})
		}
	}
	for _, device := range devicesOf(now) {
		if !slices.Contains(devicesOf(old), device) {
			d.add("pods.device", name+" resources", at.field("resources"), Finding{After: device, Message: fmt.Sprintf("container %s requests %s", name, device), explains: noField()})
		}
	}
	if old != nil {
		d.compareHardening(name+" ", was, is, at.field("securityContext"))
	}
}

// devicesOf returns the extended resources and the device claims that a container requests, sorted.
func devicesOf(ctr map[string]any) []string {
	var out []string
	for _, field := range []string{"limits", "requests"} {
		for name := range k8s.Map(ctr, "resources", field) {
			if !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "storage"}, name) && !strings.HasPrefix(name, "hugepages-") {
				out = append(out, name)
			}
		}
	}
	for _, claim := range k8s.Items(ctr, "resources", "claims") {
		out = append(out, "claim "+k8s.Text(claim, "name")+" "+k8s.Text(claim, "request"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// coversHostPort reports whether the container port have already opens the host port of the container port now. The
// host ports and protocols must be equal. The host addresses must be equal, unless have listens on all addresses.
func coversHostPort(have, now map[string]any) bool {
	all := func(ip string) bool { return slices.Contains([]string{"", "0.0.0.0", "::"}, ip) }
	a, b := k8s.Text(have, "hostIP"), k8s.Text(now, "hostIP")
	return have["hostPort"] == now["hostPort"] && have["protocol"] == now["protocol"] && (a == b || all(a))
}

// compareHardening reports settings of a security context that became less strict.
func (d podDiff) compareHardening(prefix string, old, now map[string]any, at fieldPath) {
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
			d.addLoosened(prefix+"securityContext."+t.name, at, fieldAt(t.name), Finding{Before: formatValue(a), After: formatValue(b), Message: t.name + " is no longer " + formatValue(a)})
		}
	}
	if a, b := k8s.Text(old, "seccompProfile", "type"), k8s.Text(now, "seccompProfile", "type"); a != b && (a == "RuntimeDefault" || a == "Localhost") && b != "Localhost" {
		d.addLoosened(prefix+"securityContext.seccompProfile", at, fieldAt("seccompProfile", "type"), Finding{Before: a, After: b, Message: "seccomp profile is no longer " + a})
	}
	dropped := k8s.Texts(now, "capabilities", "drop")
	for _, capability := range k8s.Texts(old, "capabilities", "drop") {
		if !slices.Contains(dropped, capability) && !slices.Contains(dropped, "ALL") {
			d.addLoosened(prefix+"securityContext.capabilities.drop", at, fieldAt("capabilities", "drop"), Finding{Before: capability, Message: "capability " + capability + " is no longer dropped"})
		}
	}
}

// addLoosened adds a finding, of at most medium severity, about a setting of a security context. at
// is the path of the security context; loosened is the path of the setting in it.
func (d podDiff) addLoosened(field string, at, loosened fieldPath, f Finding) {
	f.explains = []fieldPath{at.join(loosened)}
	d.add("pods.hardening-lost", field, at, f, Medium)
}

// strongCapabilities returns the Linux capabilities that allow a container to take control of its
// node.
func strongCapabilities() []string {
	return []string{"ALL", "SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "SYS_RAWIO", "SYS_BOOT", "DAC_READ_SEARCH", "BPF", "MAC_ADMIN", "MAC_OVERRIDE", "PERFMON"}
}

// compareSettings compares environment, arguments and resources of a container. It ignores images,
// which compareImages reports.
func (d podDiff) compareSettings(name string, old, now map[string]any, at fieldPath) {
	env := func(m map[string]any) (map[string]string, []fieldPath) {
		out := map[string]string{}
		var explains []fieldPath
		for _, e := range k8s.Items(m, "env") {
			n, v := k8s.Text(e, "name"), k8s.Text(e, "value")
			if from := e["valueFrom"]; from != nil {
				v = formatValue(from)
			}
			variable := at.field("env").named(n)
			if !looksLikeImage(v) || !d.c.claimed.cover(d.p.after, variable.field("value")) {
				out[n] = v
			}
			explains = append(explains, variable.field("value"), variable.field("valueFrom"))
		}
		return out, explains
	}
	was, explains := env(old)
	is, more := env(now)
	if removed, added := splitChanges(was, is); removed != "" || added != "" {
		for _, n := range unionKeys(was, is) {
			if _, had := was[n]; !had || was[n] != is[n] {
				if _, has := is[n]; !had || !has { // the whole variable was added or removed
					explains = append(explains, at.field("env").named(n))
				}
			}
		}
		limit := Info
		for n, value := range is {
			if slices.Contains(trustVariables(), strings.ToUpper(n)) && was[n] != value {
				limit = Medium
			}
		}
		d.add("pods.environment", name+" env", at.field("env"), Finding{Before: removed, After: added, Message: fmt.Sprintf("environment of container %s changed", name), explains: append(explains, more...)}, limit)
	}
	d.compareArguments(name, old, now, at)
	if a, b := old["resources"], now["resources"]; !reflect.DeepEqual(a, b) {
		d.add("pods.resources", name+" resources", at.field("resources"), Finding{Before: formatValue(a), After: formatValue(b), Message: fmt.Sprintf("resources of container %s changed", name)})
	}
}

// compareArguments compares command and args. It reports the flags that differ. If flags are
// repeated or reordered, it reports all arguments.
func (d podDiff) compareArguments(name string, old, now map[string]any, at fieldPath) {
	explains := []fieldPath{at.field("command"), at.field("args")}
	flags := func(m map[string]any) (of map[string]string, order []string, repeats bool) {
		of = map[string]string{}
		for _, a := range parseFlags(m) {
			if _, twice := of[a.name]; twice {
				repeats = true
			}
			of[a.name], order = a.value, append(order, a.list+" "+a.name)
		}
		return of, order, repeats
	}
	a, was, twice := flags(old)
	b, is, repeats := flags(now)
	images := false
	for _, arg := range append(parseFlags(old), parseFlags(now)...) {
		if d.c.claimed.cover(d.p.after, at.field(arg.list).flag(arg.name)) {
			images = true // compareImages reports images
			delete(a, arg.name)
			delete(b, arg.name)
		}
	}
	words := func(m map[string]any) any { return []any{m["command"], m["args"]} }
	removed, added := splitChanges(a, b)
	if reflect.DeepEqual(words(old), words(now)) {
		return
	}
	common := func(list, of []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !slices.Contains(of, s) })
	}
	if twice || repeats || !slices.Equal(common(was, is), common(is, was)) || movedBetweenLists(was, is) {
		removed, added = formatValue(words(old)), formatValue(words(now))
	}
	if removed == "" && added == "" && !images {
		removed, added = formatValue(words(old)), formatValue(words(now))
	}
	if removed == "" && added == "" {
		d.c.claimed.add(d.p.after.Key(), explains...) // only images changed, which compareImages reports
		return
	}
	d.add("pods.arguments", name+" args", at.field("args"), Finding{Before: removed, After: added, Message: fmt.Sprintf("arguments of container %s changed", name), explains: explains})
}

// movedBetweenLists reports whether a flag moved between command and args.
func movedBetweenLists(was, is []string) bool {
	return slices.ContainsFunc(was, func(s string) bool {
		list, name, _ := strings.Cut(s, " ")
		other := map[string]string{"command": "args", "args": "command"}[list]
		return !slices.Contains(is, s) && slices.Contains(is, other+" "+name)
	})
}

// splitChanges formats the settings that differ, first with their old values, then with their new values.
func splitChanges(old, now map[string]string) (was, is string) {
	var removed, added []string
	for _, k := range unionKeys(old, now) {
		a, had := old[k]
		b, has := now[k]
		if had && has && a == b {
			continue
		}
		if had {
			removed = append(removed, formatSetting(k, a))
		}
		if has {
			added = append(added, formatSetting(k, b))
		}
	}
	return strings.Join(removed, " "), strings.Join(added, " ")
}

// formatSetting formats a setting as name=value, or only its name if the value is empty.
func formatSetting(name, value string) string {
	if value == "" {
		return name
	}
	return name + "=" + value
}

// compareSecurityLevels compares the Pod Security level that each pod template needs with the level that it
// needed before, and with the level that its namespace enforces.
func compareSecurityLevels(c *comparison) {
	for _, o := range c.after.order {
		pods := podsOf(o)
		if len(pods) == 0 {
			continue
		}
		was := c.before.byKey[o.Key()]
		oldLevel, _ := enforcedLevel(c.before, o.Key().Namespace)
		newLevel, _ := enforcedLevel(c.after, o.Key().Namespace)
		if was != nil && oldLevel == newLevel && isSameObject(c.before, c.after, was, o) {
			continue
		}
		old := podsOf(was)
		for _, p := range pods {
			c.compareSecurityLevel(o, p, slices.DeleteFunc(slices.Clone(old), func(q pod) bool { return !slices.Equal(p.at, q.at) }))
		}
	}
}

// compareSecurityLevel does the work of compareSecurityLevels for one pod of o. old contains the pod before the
// change, or is empty.
func (c *comparison) compareSecurityLevel(o *Object, p pod, old []pod) {
	oldLevel, _ := enforcedLevel(c.before, o.Key().Namespace)
	newLevel, known := enforcedLevel(c.after, o.Key().Namespace)
	need, why, err := k8s.PodSecurityLevel(p.meta, p.spec)
	if err != nil {
		c.note("Pod Security of %s was not checked: %v", o.Ref(), err)
		return
	}
	f := Finding{Field: "spec", After: need, path: p.at, explains: noField()}
	if len(old) > 0 {
		if f.Before, _, err = k8s.PodSecurityLevel(old[0].meta, old[0].spec); err != nil {
			f.Before = ""
		}
	}
	if newLevel != "" && k8s.RejectsPodLevel(need, newLevel) && !(len(old) > 0 && f.Before == need && oldLevel == newLevel) {
		f.Message = fmt.Sprintf("needs level %s, and namespace %s enforces %s: %s", need, o.Key().Namespace, newLevel, diag.Some(why, 4))
		c.add("pods.level-refused", o, f)
		return
	}
	if f.Before != "" && k8s.RejectsPodLevel(need, f.Before) {
		f.Message = fmt.Sprintf("needs Pod Security level %s, was %s: %s", need, f.Before, diag.Some(why, 4))
		c.add("pods.level-raised", o, f)
	}
	if len(old) == 0 && !known && need == k8s.Privileged {
		f.Message = fmt.Sprintf("needs Pod Security level privileged: %s", diag.Some(why, 4))
		c.add("pods.level-raised", o, f)
	}
}

const securityLabel = "pod-security.kubernetes.io/"

// enforcedLevel returns the Pod Security level that a namespace enforces. It returns false if the
// state does not contain the Namespace.
func enforcedLevel(v *view, namespace string) (level string, known bool) {
	ns := v.namespace(namespace)
	if ns == nil {
		return "", false
	}
	return k8s.Text(ns.Content, "metadata", "labels", securityLabel+"enforce"), true
}

// compareNamespaces reports added Namespaces and changes of the Pod Security level that they
// enforce.
func compareNamespaces(c *comparison) {
	c.each(func(p pair) {
		if p.before == nil {
			c.add("namespace.added", p.after, Finding{Message: fmt.Sprintf("namespace %s added", p.after.Key().Name), explains: wholeObject()})
			return
		}
		if p.after == nil {
			return
		}
		for _, mode := range []string{"enforce", "enforce-version"} {
			a, b := k8s.Text(p.before.Content, "metadata", "labels", securityLabel+mode), k8s.Text(p.after.Content, "metadata", "labels", securityLabel+mode)
			if a != b {
				limit := Medium
				if mode == "enforce" && a != "" && (b == "" || k8s.RejectsPodLevel(b, a)) {
					limit = High
				}
				c.add("namespace.security-level", p.after, Finding{
					Field: "metadata.labels." + securityLabel + mode, Before: a, After: b, path: fieldAt("metadata", "labels", securityLabel+mode),
					Message: fmt.Sprintf("%s is %q, was %q", mode, b, a),
				}, limit)
			}
		}
	}, "Namespace")
}

// comparePriorities reports changes of PriorityClasses.
func comparePriorities(c *comparison) {
	c.each(func(p pair) {
		switch {
		case p.after == nil:
			c.add("priority.class", p.before, Finding{Before: formatValue(p.before.Content["value"]), Message: "priority class removed: pods that use it are refused", explains: wholeObject()}, Medium)
		case p.before == nil:
			capped := Low
			switch value, _ := p.after.Content["value"].(int64); {
			case k8s.True(p.after.Content, "globalDefault"):
				capped = High
			case value > 0: // pods without a class have priority 0
				capped = Medium
			}
			c.add("priority.class", p.after, Finding{After: formatValue(p.after.Content["value"]), Message: "priority class added", path: fieldAt("value"), explains: wholeObject()}, capped)
		case k8s.True(p.after.Content, "globalDefault") != k8s.True(p.before.Content, "globalDefault"):
			c.add("priority.class", p.after, Finding{Field: "globalDefault", Message: "global default priority changed", path: fieldAt("globalDefault")}, Medium)
		}
	}, "PriorityClass.scheduling.k8s.io")
}
