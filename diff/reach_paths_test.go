package diff

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/k8s"
)

// every returns a function that reports whether to test the next generated change. With -whole it
// always returns true, otherwise at every nth call.
func every(n int) func() bool {
	i := -1
	return func() bool { i++; return *whole || i%n == 0 }
}

// podPower is a field that gives a pod power, in the pod spec or in a container.
type podPower struct {
	want      Severity
	pod, ctr  string // fields in YAML
	container bool
}

func podPowers() []podPower {
	pod := func(want Severity, fields string) podPower { return podPower{want: want, pod: fields} }
	ctr := func(want Severity, fields string) podPower {
		return podPower{want: want, ctr: fields, container: true}
	}
	return []podPower{
		pod(High, "hostNetwork: true"), pod(High, "hostPID: true"), pod(High, "hostIPC: true"),
		pod(High, "serviceAccountName: other"), pod(High, "serviceAccount: other"), pod(High, "serviceAccountName: nobody"),
		pod(High, "priorityClassName: system-node-critical"),
		pod(High, "volumes: [{name: v, hostPath: {path: /}}]"), pod(High, "volumes: [{name: v, csi: {driver: x.example}}]"), pod(High, "volumes: [{name: v, flexVolume: {driver: x/y}}]"),
		pod(High, "volumes: [{name: v, nfs: {server: a, path: /}}]"), pod(High, "volumes: [{name: v, unheard: {a: b}}]"),
		pod(High, "volumes: [{name: v, secret: {secretName: other}}]"), pod(High, "volumes: [{name: v, projected: {sources: [{secret: {name: other}}]}}]"),
		pod(High, "volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: a, audience: vault}}]}}]"), pod(High, "volumes: [{name: v, persistentVolumeClaim: {claimName: theirs}}]"),
		pod(High, "volumes: [{name: v, cephfs: {monitors: [a], secretRef: {name: other}}}]"), pod(High, "volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: a}}]}}]"),
		pod(High, "securityContext: {windowsOptions: {hostProcess: true}}"), pod(High, "securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}"),
		pod(High, "securityContext: {seccompProfile: {type: Unconfined}}"), pod(High, "securityContext: {appArmorProfile: {type: Unconfined}}"),
		pod(Medium, "runtimeClassName: x"), pod(Medium, "hostAliases: [{ip: 1.1.1.1, hostnames: [a]}]"), pod(Medium, "imagePullSecrets: [{name: other}]"), pod(Medium, "shareProcessNamespace: true"),
		ctr(High, "securityContext: {privileged: true}"), ctr(High, "securityContext: {capabilities: {add: [SYS_ADMIN]}}"), ctr(High, "securityContext: {capabilities: {add: [cap_sys_ptrace]}}"),
		ctr(High, "securityContext: {procMount: Unmasked}"), ctr(High, "securityContext: {seccompProfile: {type: Unconfined}}"), ctr(High, "securityContext: {appArmorProfile: {type: Unconfined}}"),
		ctr(High, "securityContext: {windowsOptions: {hostProcess: true}}"),
		ctr(High, "envFrom: [{secretRef: {name: other}}]"), ctr(High, "env: [{name: A, valueFrom: {secretKeyRef: {name: other, key: a}}}]"),
		ctr(High, "command: [sh, -c, evil]"), ctr(High, "env: [{name: LD_PRELOAD, value: /x}]"), ctr(High, "lifecycle: {postStart: {exec: {command: [sh]}}}"),
		ctr(High, "startupProbe: {exec: {command: [a]}}"), ctr(Medium, "ports: [{containerPort: 1, hostPort: 80}]"), ctr(Medium, "securityContext: {capabilities: {add: [NET_ADMIN]}}"),
		ctr(Medium, "securityContext: {seLinuxOptions: {type: spc_t}}"), ctr(Medium, "securityContext: {runAsUser: 0}"),
	}
}

// podCarriers returns objects of the kinds with pods. POD stands for the pod spec.
func podCarriers() []string {
	workload := func(version, kind, spec string) string {
		return "{apiVersion: " + version + ", kind: " + kind + ", metadata: {name: x, namespace: ops}, spec: " + spec + "}"
	}
	const template = "{template: {metadata: {labels: {a: b}}, spec: POD}}"
	out := []string{
		workload("v1", "Pod", "POD"),
		"{apiVersion: v1, kind: PodTemplate, metadata: {name: x, namespace: ops}, template: {spec: POD}}",
		workload("batch/v1", "CronJob", "{jobTemplate: {spec: "+template+"}}"),
		workload("demo.io/v1", "Widget", "{parts: [{name: p, workload: {spec: POD}}]}"),
		workload("demo.io/v1", "Widget", "{podTemplate: {spec: POD}, size: 1}"),
		workload("things.example/v1", "Thing", template),
	}
	for _, kind := range []string{"v1 ReplicationController", "apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "apps/v1 ReplicaSet", "batch/v1 Job", "argoproj.io/v1alpha1 Rollout", "apps.kruise.io/v1alpha1 CloneSet"} {
		version, kind, _ := strings.Cut(kind, " ")
		out = append(out, workload(version, kind, template))
	}
	return out
}

// TestEveryPodWithPower sets each field in podPowers in each kind of object and each kind of container: in
// an added object, in a changed object, and in an added container.
func TestEveryPodWithPower(t *testing.T) {
	base := mutantBase(t)
	plain := "{name: c, image: a}"
	spec := func(pod, container, list string) string {
		if pod != "" {
			pod += ", "
		}
		if list == "containers" {
			return "{" + pod + "containers: [" + container + "]}"
		}
		return "{" + pod + "containers: [{name: main, image: a}], " + list + ": [" + container + "]}"
	}
	tried, chosen := 0, every(7)
	check := func(want Severity, before, after State, what string) {
		if !chosen() {
			return
		}
		tried++
		r := compare(t, before, after)
		if got := worst(r, ""); got < want || r.Mergeable(Low) {
			t.Errorf("%s: %s, want at least %s; merged without a review: %t", what, got, want, r.Mergeable(Low))
		}
	}
	for _, carrier := range podCarriers() {
		object := func(spec string) string { return "add " + strings.Replace(carrier, "POD", spec, 1) }
		for _, p := range podPowers() {
			if !p.container {
				with := base.mutant(t, object(spec(p.pod, plain, "containers")))
				check(p.want, base, with, "added: "+object(p.pod))
				check(p.want, base.mutant(t, object(spec("", plain, "containers"))), with, "changed: "+object(p.pod))
				continue
			}
			for _, list := range k8s.ContainerLists() {
				with := base.mutant(t, object(spec("", "{name: c, image: a, "+p.ctr+"}", list)))
				check(p.want, base, with, "added: "+list+" "+object(p.ctr))
				check(p.want, base.mutant(t, object(spec("", plain, list))), with, "changed: "+list+" "+object(p.ctr))
				check(p.want, base.mutant(t, object(spec("", "{name: main, image: a}", "containers"))), with, "container added: "+list+" "+object(p.ctr))
			}
		}
	}
	t.Logf("%d changes", tried)
}

// TestEveryKindWithPower adds and changes an object of each kind in the table of powers. The object's
// operator has the CRD of the kind, or adds it together with the object, or the CRD is missing.
func TestEveryKindWithPower(t *testing.T) {
	base := mutantBase(t)
	tried := 0
	for _, p := range powers() {
		for _, kind := range strings.Fields(p.kinds) {
			name, group, _ := strings.Cut(kind, ".")
			if name == "*" {
				name = "Anything"
			}
			if p.added < High || k8s.IsBuiltinGroup(group) || kind == fileKind {
				continue
			}
			for _, group := range []string{group, "sub." + group} {
				if group != kind[strings.Index(kind, ".")+1:] && !strings.HasPrefix(kind, "*.") {
					continue
				}
				for _, scope := range []string{"Cluster", "Namespaced"} {
					crd := base.mutant(t, definition("anythings", group, name, scope))
					namespace := ""
					if scope == "Namespaced" {
						namespace = ", namespace: ops"
					}
					object := func(spec string) string {
						return "add {apiVersion: " + group + "/v1, kind: " + name + ", metadata: {name: x" + namespace + "}, spec: " + spec + "}"
					}
					with := crd.mutant(t, object("{a: b}"))
					for what, c := range map[string][2]State{"added": {crd, with}, "added with its CRD": {base, with}, "without a CRD": {base, base.mutant(t, object("{a: b}"))}} {
						tried++
						if got := worst(compare(t, c[0], c[1]), name); got < p.added {
							t.Errorf("%s, %s, %s: %s, want %s", kind, scope, what, got, p.added)
						}
					}
					if got := worst(compare(t, with, crd.mutant(t, object("{a: c}"))), name); got < p.changed {
						t.Errorf("%s, %s, changed: %s, want %s", kind, scope, got, p.changed)
					}
				}
			}
		}
	}
	t.Logf("%d changes", tried)
}

// TestEveryPermissionWithPower grants each permission in the table of powers in several ways. If it has at least high
// severity as a rule in the role of an account, it must have at least high severity in every other way.
func TestEveryPermissionWithPower(t *testing.T) {
	base := mutantBase(t)
	const meta = "{apiVersion: rbac.authorization.k8s.io/v1, kind: "
	role := func(name, labels, rules string) string {
		return "\nadd " + meta + "ClusterRole, metadata: {name: " + name + ", labels: {" + labels + "}}, rules: " + rules + "}"
	}
	binding := func(name, to, subject string) string {
		return "\nadd " + meta + "ClusterRoleBinding, metadata: {name: " + name + "}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + to + "}, subjects: [" + subject + "]}"
	}
	account := "{kind: ServiceAccount, name: demo, namespace: ops}"
	aggregated := "\nadd " + meta + "ClusterRole, metadata: {name: whole}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}"
	apply := func(s State, lines string) State {
		for line := range strings.Lines(lines) {
			if line = strings.TrimSpace(line); line != "" {
				s = s.mutant(t, line)
			}
		}
		return s
	}
	tried, chosen := 0, every(37)
	for _, d := range dangers(func(group, kind string) string { return k8s.Resource(group, kind) }) {
		for _, verb := range strings.Fields(d.verbs) {
			resource := d.resource
			if resource == "" {
				resource = "anythings"
			}
			rule := func(verb string) string {
				return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%q]}", d.group, resource, verb)
			}
			direct := Off
			paths := map[string][2]string{
				"another role":                      {"", role("more", "", "["+rule(verb)+"]") + binding("more", "more", account)},
				"a binding of a role":               {role("more", "", "["+rule(verb)+"]"), binding("more", "more", account)},
				"a rule with other verbs":           {"", "set ClusterRole demo rules [{apiGroups: ['', " + fmt.Sprintf("%q", d.group) + "], resources: [configmaps, " + fmt.Sprintf("%q", resource) + "], verbs: [get, '*']}]"},
				"the group of the accounts":         {"", role("more", "", "["+rule(verb)+"]") + binding("more", "more", "{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccounts:ops'}")},
				"the user of the account":           {"", role("more", "", "["+rule(verb)+"]") + binding("more", "more", "{kind: User, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccount:ops:demo'}")},
				"every account":                     {"", role("more", "", "["+rule(verb)+"]") + binding("more", "more", "{kind: Group, name: 'system:serviceaccounts'}")},
				"an aggregated role":                {aggregated + binding("whole", "whole", account), role("part", "a: b", "["+rule(verb)+"]")},
				"a label of a role":                 {aggregated + binding("whole", "whole", account) + role("part", "", "["+rule(verb)+"]"), "set ClusterRole part metadata.labels {a: b}"},
				"a selector of an aggregated role":  {aggregated + binding("whole", "whole", account) + role("part", "c: d", "["+rule(verb)+"]"), "set ClusterRole whole aggregationRule.clusterRoleSelectors [{matchExpressions: [{key: c, operator: Exists}]}]"},
				"a built-in role":                   {"", role("part", "rbac.authorization.k8s.io/aggregate-to-view: 'true'", "["+rule(verb)+"]")},
				"a role that is not bound":          {"", role("more", "", "["+rule(verb)+"]")},
				"another subject of a bound role":   {role("more", "", "["+rule(verb)+"]") + binding("more", "more", "{kind: User, name: admin}"), "set ClusterRoleBinding more subjects [{kind: User, name: admin}, " + account + "]"},
				"a role in the namespace of an API": {"", role("more", "", "["+rule(verb)+"]") + "\nadd " + meta + "RoleBinding, metadata: {name: more, namespace: kube-system}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: more}, subjects: [" + account + "]}"},
			}
			for _, what := range sortedKeys(paths) {
				if !chosen() {
					continue
				}
				if direct == Off {
					direct = worst(compare(t, base, base.mutant(t, "set ClusterRole demo rules ["+rule(verb)+"]")), "")
				}
				if direct < High {
					continue
				}
				tried++
				c := paths[what]
				before := apply(base, c[0])
				if got := worst(compare(t, before, apply(before, c[1])), ""); got < High {
					t.Errorf("%s %s.%s by %s: %s, directly %s", verb, resource, d.group, what, got, direct)
				}
			}
		}
	}
	t.Logf("%d changes", tried)
}

// TestEveryMetadataWithPower sets each key of metadataTable in each place.
func TestEveryMetadataWithPower(t *testing.T) {
	base := mutantBase(t)
	places := []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: ops, annotations: META}}",
		"{apiVersion: v1, kind: Service, metadata: {name: x, namespace: ops, labels: META}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: ops}, spec: {template: {metadata: {annotations: META}, spec: {containers: []}}}}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: x, namespace: ops}, spec: {jobTemplate: {metadata: {annotations: META}, spec: {template: {metadata: {}, spec: {containers: []}}}}}}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: x, namespace: ops}, spec: {jobTemplate: {spec: {template: {metadata: {labels: META}, spec: {containers: []}}}}}}",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, namespace: ops}, spec: {volumeClaimTemplates: [{metadata: {name: d, annotations: META}}]}}",
		"{apiVersion: demo.io/v1, kind: Widget, metadata: {name: x, namespace: ops}, spec: {parts: [{podAnnotations: META}]}}",
		"{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: x, namespace: ops}, spec: {secretTemplate: {annotations: META}}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: x, annotations: META}}",
	}
	tried, chosen := 0, every(29)
	for _, r := range metadataTable() {
		if r.severity < Medium {
			continue
		}
		keys := strings.Fields(strings.ReplaceAll(r.keys, "*", "x"))
		for _, domain := range strings.Fields(r.domains) {
			keys = append(keys, domain+"/x", "sub."+domain+"/x")
		}
		for _, key := range keys {
			if found, _, _ := readerOf(key); found != r || key == instanceLabel {
				continue
			}
			for _, place := range places {
				if !chosen() {
					continue
				}
				object := func(meta string) string { return "add " + strings.Replace(place, "META", meta, 1) }
				entry := fmt.Sprintf("{%q: x}", key)
				with := base.mutant(t, object(entry))
				for what, before := range map[string]State{"added object": base, "added key": base.mutant(t, object("{}")), "changed value": base.mutant(t, object(fmt.Sprintf("{%q: y}", key)))} {
					tried++
					if got := worst(compare(t, before, with), ""); got < r.severity {
						t.Errorf("%s, %s: %s: %s, want %s", key, what, place, got, r.severity)
					}
				}
			}
		}
	}
	t.Logf("%d changes", tried)
}

// TestRealKindsWithPower changes custom resources of published CRDs. If the operator owns the kind, the
// resource gets a pod with power at a random place. Otherwise, the operator gets a resource or write permission.
func TestRealKindsWithPower(t *testing.T) {
	type kind struct{ group, version, name, plural, scope string }
	seen := map[string]bool{}
	var kinds []kind
	for _, h := range honestVersions(t) {
		for _, o := range h.objects {
			if !k8s.IsCRD(o) {
				continue
			}
			crd := k8s.ParseCRD(o)
			k := kind{crd.Group, "v1", crd.Kind, k8s.Text(o, "spec", "names", "plural"), k8s.Text(o, "spec", "scope")}
			if served := crd.Served(); len(served) > 0 {
				k.version = served[0]
			}
			if !seen[k.group+k.name] && k.plural != "" {
				seen[k.group+k.name] = true
				kinds = append(kinds, k)
			}
		}
	}
	base := mutantBase(t)
	pods, tried, seeds := podPowers(), 0, uint64(3)
	if *whole {
		seeds = 30
	}
	c := &comparison{powers: powers(), powerIndex: map[k8s.Key]int{}}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		for range 60 {
			k := kinds[random.IntN(len(kinds))]
			namespace := ""
			if k.scope == "Namespaced" {
				namespace = ", namespace: ops"
			}
			object := func(spec string) string {
				return "add {apiVersion: " + k.group + "/" + k.version + ", kind: " + k.name + ", metadata: {name: x" + namespace + "}, spec: " + spec + "}"
			}
			own := base.mutant(t, definition(k.plural, k.group, k.name, k.scope))
			p := pods[random.IntN(len(pods))]
			nest := func(v any) any {
				for range random.IntN(5) {
					switch name := []string{"template", "pods", "workload", "x"}[random.IntN(4)]; random.IntN(3) {
					case 0:
						v = map[string]any{name: []any{v}}
					case 1:
						v = map[string]any{name: []any{map[string]any{"name": "n", "spec": v}}}
					default:
						v = map[string]any{name: v, "size": 1}
					}
				}
				return v
			}
			depth := random.Uint64()
			at := func(pod string) string {
				random = rand.New(rand.NewPCG(depth, 2))
				data, err := json.Marshal(nest(value(t, pod)))
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			strong, weak := "{containers: [{name: c, image: a"+strings.TrimSuffix(", "+p.ctr, ", ")+"}]"+strings.TrimSuffix(", "+p.pod, ", ")+"}", "{containers: [{name: c, image: a}]}"
			with := own.mutant(t, object(at(strong)))
			added := Medium
			if row, listed := c.powerOf(k8s.Key{Group: k.group, Kind: k.name}); listed {
				added = row.added
			}
			for what, c := range map[string]struct {
				want   Severity
				before State
				after  State
			}{
				"added":             {p.want, own, with},
				"changed":           {p.want, own.mutant(t, object(at(weak))), with},
				"of nobody's kind":  {added, base, base.mutant(t, object("{a: b}"))},
				"of its new kind":   {added, base, own.mutant(t, object("{a: b}"))},
				"write permission":  {Medium, base, base.mutant(t, fmt.Sprintf("set ClusterRole demo rules [{apiGroups: [%s], resources: [%s], verbs: [create]}]", k.group, k.plural))},
				"write permissions": {High, base, base.mutant(t, fmt.Sprintf("set ClusterRole demo rules [{apiGroups: [%s], resources: ['*'], verbs: ['*']}]", k.group))},
			} {
				tried++
				if what == "of its new kind" && slices.ContainsFunc(base.Objects, func(o Object) bool { return k8s.IsCRD(o.Content) && o.definedKind().Group == k.group }) {
					continue
				}
				if got := worst(compare(t, c.before, c.after), ""); got < c.want {
					t.Errorf("seed %d: %s, %s: %s, want at least %s: %s", seed, k.name+"."+k.group, what, got, c.want, p.pod+p.ctr)
				}
			}
		}
	}
	t.Logf("%d kinds, %d changes", len(kinds), tried)
}
