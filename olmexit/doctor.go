package olmexit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/olmexit/snapshot"
	"github.com/quayside/quayside/render"
)

// Diagnosis lists how running operators depend on OLM.
type Diagnosis struct {
	Operators []Dependence      `json:"operators" doc:"By namespace and package."`
	Unread    []snapshot.Unread `json:"unreadable" doc:"Kinds whose objects could not be read; the result is incomplete."`
}

// DiagnoseTree returns the dependences on OLM of the operators in a lock, derived from the
// rendered tree. Nothing is modified.
func DiagnoseTree(lock *lockfile.File, rendered []render.Rendered) *Diagnosis {
	own := map[string][]k8s.Object{}
	for _, r := range rendered {
		own[operatorOf(r)] = append(own[operatorOf(r)], r.Object)
	}
	d := &Diagnosis{Operators: []Dependence{}, Unread: []snapshot.Unread{}}
	for _, p := range lock.Pins {
		objects := own[p.Key()]
		d.add(Dependence{OperatorKey: OperatorKey{p.Namespace, p.Package}, Bundle: p.Bundle, Signals: bundleSignals(objects)}, objects)
	}
	return d
}

// DiagnoseCluster returns the dependences on OLM of the operators that OLM installed in a
// cluster. Nothing is modified.
func DiagnoseCluster(s *snapshot.Snapshot) *Diagnosis {
	c := newCluster(s, &lockfile.File{})
	d := &Diagnosis{Operators: []Dependence{}, Unread: append([]snapshot.Unread{}, s.Unread...)}
	for _, op := range c.operators {
		csv := op.csv()
		if csv == nil || csv.Name == snapshot.Packageserver {
			continue
		}
		objects := objectsOfCSV(csv.Body())
		for _, o := range op.members {
			if IsRelevant(o.Group, o.Kind) && o.Group != snapshot.OLM && !c.unpacks[o.Key] {
				objects = append(objects, o.Body())
			}
		}
		d.add(Dependence{OperatorKey: op.OperatorKey, Bundle: csv.Name}, objects)
	}
	return d
}

// IsRelevant reports whether a diagnosis of dependences on OLM needs the objects of a kind. A
// snapshot can omit all other kinds.
func IsRelevant(group, kind string) bool {
	switch group {
	case "":
		return kind == "ConfigMap" || kind == "ServiceAccount"
	case "apps":
		return kind == "Deployment"
	case rbacGroup, snapshot.OLM, snapshot.OLMv1:
		return true
	case "admissionregistration.k8s.io":
		return kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration"
	}
	return false
}

// add completes the diagnosis of an operator from its objects, and inserts it in order.
func (d *Diagnosis) add(one Dependence, objects []k8s.Object) {
	granted, watched := rbacSignals(objects)
	one.Signals = append(append([]Signal{}, one.Signals...), granted...)
	one.Definitions = append([]string{}, watched...)
	for _, o := range objects {
		one.Signals = append(one.Signals, webhookSignals(o)...)
		one.Signals = append(one.Signals, textSignals(o)...)
	}
	rank := map[string]int{}
	for i, s := range signalKinds() {
		rank[s.code] = i
	}
	slices.SortFunc(one.Signals, func(a, b Signal) int {
		return cmp.Or(rank[a.Code]-rank[b.Code], strings.Compare(a.Object, b.Object), strings.Compare(a.What, b.What))
	})
	one.Signals = slices.Compact(one.Signals)
	one.NeedsOLM = NeedsNone
	if len(one.Signals) > 0 {
		one.NeedsOLM = one.Signals[0].Need // signals are sorted by need
	}
	at, _ := slices.BinarySearchFunc(d.Operators, one.Key(), func(have Dependence, key string) int { return strings.Compare(have.Key(), key) })
	d.Operators = slices.Insert(d.Operators, at, one)
}

// objectsOfCSV returns the objects that OLM creates from a ClusterServiceVersion: its
// Deployments and its permissions, regardless of their namespace.
func objectsOfCSV(csv k8s.Object) []k8s.Object {
	var out []k8s.Object
	strategy := k8s.Map(csv, "spec", "install", "spec")
	for _, d := range k8s.Items(strategy, "deployments") {
		o := k8s.New("apps/v1", "Deployment", csv.Namespace(), k8s.Text(d, "name"))
		o = k8s.With(o, k8s.At(d, "spec"), "spec")
		out = append(out, k8s.With(o, k8s.At(csv, "metadata", "annotations"), "spec", "template", "metadata", "annotations"))
	}
	for i, p := range append(k8s.Items(strategy, "permissions"), k8s.Items(strategy, "clusterPermissions")...) {
		account := k8s.Text(p, "serviceAccountName")
		role := k8s.New(rbacGroup+"/v1", "Role", csv.Namespace(), csv.Name()+":"+strconv.Itoa(i))
		role["rules"] = k8s.List(p, "rules")
		binding := k8s.New(rbacGroup+"/v1", "RoleBinding", csv.Namespace(), role.Name())
		binding["roleRef"] = map[string]any{"kind": "Role", "name": role.Name()}
		binding["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": account}}
		out = append(out, role, binding)
	}
	return out
}

// bundleSignals returns a signal for each object of an OLM kind, except OperatorConditions, which every
// tree has.
func bundleSignals(objects []k8s.Object) []Signal {
	var out []Signal
	for _, o := range objects {
		if _, theirs := olmResources()[o.Group()]; theirs && o.Kind() != "OperatorCondition" {
			out = append(out, newSignal("ships", o.Key().String(), "uses OLM's API"))
		}
	}
	return out
}

// webhookSignals returns a signal for each webhook with rules for OLM objects.
func webhookSignals(o k8s.Object) []Signal {
	var out []Signal
	for _, hook := range k8s.Items(o, "webhooks") {
		for _, rule := range k8s.Items(hook, "rules") {
			for group := range olmResources() {
				if slices.Contains(k8s.Texts(rule, "apiGroups"), group) {
					out = append(out, newSignal("webhook", o.Key().String(), "is queried about "+strings.Join(k8s.Texts(rule, "resources"), ", ")+" of "+group))
				}
			}
		}
	}
	return out
}

// textSignals returns a signal for each text in an object that refers to OLM.
func textSignals(o k8s.Object) []Signal {
	var out []Signal
	note := func(code, what string) { out = append(out, newSignal(code, o.Key().String(), what)) }
	if o.Is("", "ConfigMap") {
		for key, text := range k8s.TextMap(o, "data") {
			if mentionsOLM(text) {
				note("mentions", "embeds an object of OLM in "+key)
			}
		}
		return out
	}
	set := k8s.TextMap(o, "spec", "template", "metadata", "annotations")
	for key := range render.ReadAnnotations(k8s.PodSpec(o)) {
		if _, there := set[key]; strings.HasPrefix(key, "olm") && (!there && !isCommonAnnotation(key) || key == "olmcahash") {
			note("annotation", "reads the annotation "+key+" of its pods")
		}
	}
	for _, c := range k8s.Containers(k8s.PodSpec(o)) {
		for _, e := range k8s.Items(c, "env") {
			name, value := k8s.Text(e, "name"), k8s.Text(e, "value")
			if value != "" && (isOLMName(name) || mentionsOLM(value)) {
				note("mentions", "sets "+name)
			}
		}
		for _, arg := range append(k8s.Texts(c, "command"), k8s.Texts(c, "args")...) {
			if flag, _, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "-") && isOLMName(flag) {
				note("mentions", "runs with "+flag)
			}
		}
	}
	return out
}

// isCommonAnnotation reports whether quayside sets a pod annotation to the same value as OLM.
func isCommonAnnotation(key string) bool {
	return slices.Contains([]string{"olm.operatorGroup", "olm.operatorNamespace", "olm.properties", "olm.targetNamespaces"}, key)
}

// mentionsOLM reports whether a text contains the group and version of an OLM kind.
func mentionsOLM(text string) bool {
	for group := range olmResources() {
		if strings.Contains(text, group+"/v") {
			return true
		}
	}
	return false
}

// isOLMName reports whether a name refers to OLM or its kinds.
func isOLMName(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	joined := strings.Join(parts, "")
	return slices.Contains(parts, "olm") || slices.ContainsFunc([]string{"clusterserviceversion", "installplan", "operatorgroup"}, func(kind string) bool { return strings.Contains(joined, kind) })
}
