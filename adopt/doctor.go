package adopt

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Diagnosis is what operators need OLM for while they run.
type Diagnosis struct {
	Operators []Dependence      `json:"operators" doc:"By namespace and package."`
	Unread    []snapshot.Unread `json:"unread" doc:"Kinds of which the cluster would not hand out the objects: what is said is incomplete."`
}

// DiagnoseTree says what the operators of a lock need OLM for, by what it renders
// to. Nothing is modified.
func DiagnoseTree(lock *lockfile.File, rendered []render.Rendered) *Diagnosis {
	own := map[string][]kobj.Object{}
	for _, r := range rendered {
		own[operatorOf(r)] = append(own[operatorOf(r)], r.Object)
	}
	d := &Diagnosis{Operators: []Dependence{}, Unread: []snapshot.Unread{}}
	for _, p := range lock.Pins {
		objects := own[p.Key()]
		d.add(Dependence{Namespace: p.Namespace, Package: p.Package, Bundle: p.Bundle, Signals: ships(objects)}, objects)
	}
	return d
}

// DiagnoseCluster says what the operators need OLM for that OLM installed in a
// cluster. Nothing is modified.
func DiagnoseCluster(s *snapshot.Snapshot) *Diagnosis {
	c := find(s, &lockfile.File{})
	d := &Diagnosis{Operators: []Dependence{}, Unread: append([]snapshot.Unread{}, s.Unread...)}
	for _, op := range c.operators {
		csv := op.csv()
		if csv == nil || csv.Name == snapshot.Packageserver {
			continue
		}
		objects := promised(csv.Body())
		for _, o := range op.members {
			if Tells(o.Group, o.Kind) && o.Group != snapshot.OLM && !c.unpacks[o.Key] {
				objects = append(objects, o.Body())
			}
		}
		d.add(Dependence{Namespace: op.namespace, Package: op.pkg, Bundle: csv.Name}, objects)
	}
	return d
}

// Tells reports whether objects of a kind say what an operator needs OLM for, or
// whose they are: for a snapshot that leaves out the rest.
func Tells(group, kind string) bool {
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

// add puts in an operator that has these objects, at its place.
func (d *Diagnosis) add(one Dependence, objects []kobj.Object) {
	granted, watched := rights(objects)
	one.Signals = append(append([]Signal{}, one.Signals...), granted...)
	one.Definitions = append([]string{}, watched...)
	for _, o := range objects {
		one.Signals = append(one.Signals, intercepts(o)...)
		one.Signals = append(one.Signals, speaks(o)...)
	}
	rank := map[string]int{}
	for i, s := range signs() {
		rank[s.code] = i
	}
	slices.SortFunc(one.Signals, func(a, b Signal) int {
		return cmp.Or(rank[a.Code]-rank[b.Code], strings.Compare(a.Object, b.Object), strings.Compare(a.What, b.What))
	})
	one.Signals = slices.Compact(one.Signals)
	one.NeedsOLM = NeedsNone
	if len(one.Signals) > 0 {
		one.NeedsOLM = one.Signals[0].Need // signs are in the order of needs
	}
	key := func(d Dependence) string { return d.Namespace + "/" + d.Package }
	at, _ := slices.BinarySearchFunc(d.Operators, key(one), func(have Dependence, k string) int { return strings.Compare(key(have), k) })
	d.Operators = slices.Insert(d.Operators, at, one)
}

// promised returns what OLM makes of a ClusterServiceVersion: its Deployments,
// and its rights, in whatever namespace.
func promised(csv kobj.Object) []kobj.Object {
	var out []kobj.Object
	strategy := kobj.Map(csv, "spec", "install", "spec")
	for _, d := range kobj.Items(strategy, "deployments") {
		o := kobj.New("apps/v1", "Deployment", csv.Namespace(), kobj.Text(d, "name"))
		o = kobj.With(o, kobj.At(d, "spec"), "spec")
		out = append(out, kobj.With(o, kobj.At(csv, "metadata", "annotations"), "spec", "template", "metadata", "annotations"))
	}
	for i, p := range append(kobj.Items(strategy, "permissions"), kobj.Items(strategy, "clusterPermissions")...) {
		account := kobj.Text(p, "serviceAccountName")
		role := kobj.New(rbacGroup+"/v1", "Role", csv.Namespace(), csv.Name()+":"+strconv.Itoa(i))
		role["rules"] = kobj.List(p, "rules")
		binding := kobj.New(rbacGroup+"/v1", "RoleBinding", csv.Namespace(), role.Name())
		binding["roleRef"] = map[string]any{"kind": "Role", "name": role.Name()}
		binding["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": account}}
		out = append(out, role, binding)
	}
	return out
}

// ships returns a signal for each object of OLM's kinds, but for the
// OperatorCondition, which every tree has.
func ships(objects []kobj.Object) []Signal {
	var out []Signal
	for _, o := range objects {
		if _, theirs := resources()[o.Group()]; theirs && o.Kind() != "OperatorCondition" {
			out = append(out, signal("ships", o.Key().String(), "asks OLM for something"))
		}
	}
	return out
}

// intercepts returns a signal for each webhook that is asked about OLM's objects.
func intercepts(o kobj.Object) []Signal {
	var out []Signal
	for _, hook := range kobj.Items(o, "webhooks") {
		for _, rule := range kobj.Items(hook, "rules") {
			for group := range resources() {
				if slices.Contains(kobj.Texts(rule, "apiGroups"), group) {
					out = append(out, signal("webhook", o.Key().String(), "is asked about "+strings.Join(kobj.Texts(rule, "resources"), ", ")+" of "+group))
				}
			}
		}
	}
	return out
}

// speaks returns a signal for each text by which an object speaks of OLM.
func speaks(o kobj.Object) []Signal {
	var out []Signal
	note := func(code, what string) { out = append(out, signal(code, o.Key().String(), what)) }
	if o.Is("", "ConfigMap") {
		for key, text := range kobj.TextMap(o, "data") {
			if quotes(text) {
				note("mentions", "holds an object of OLM's in "+key)
			}
		}
		return out
	}
	set := kobj.TextMap(o, "spec", "template", "metadata", "annotations")
	for key := range render.ReadAnnotations(kobj.PodSpec(o)) {
		if _, there := set[key]; strings.HasPrefix(key, "olm") && (!there && !given(key) || key == "olmcahash") {
			note("annotation", "reads the annotation "+key+" of its pods")
		}
	}
	for _, c := range kobj.Containers(kobj.PodSpec(o)) {
		for _, e := range kobj.Items(c, "env") {
			name, value := kobj.Text(e, "name"), kobj.Text(e, "value")
			if value != "" && (mentions(name) || quotes(value)) {
				note("mentions", "sets "+name)
			}
		}
		for _, arg := range append(kobj.Texts(c, "command"), kobj.Texts(c, "args")...) {
			if flag, _, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "-") && mentions(flag) {
				note("mentions", "runs with "+flag)
			}
		}
	}
	return out
}

// given reports whether every tree sets an annotation of pods as OLM does.
func given(key string) bool {
	return slices.Contains([]string{"olm.operatorGroup", "olm.operatorNamespace", "olm.properties", "olm.targetNamespaces"}, key)
}

// quotes reports whether a text names a version of OLM's kinds.
func quotes(text string) bool {
	for group := range resources() {
		if strings.Contains(text, group+"/v") {
			return true
		}
	}
	return false
}

// mentions reports whether a name speaks of OLM or of its kinds.
func mentions(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	joined := strings.Join(parts, "")
	return slices.Contains(parts, "olm") || slices.ContainsFunc([]string{"clusterserviceversion", "installplan", "operatorgroup"}, func(kind string) bool { return strings.Contains(joined, kind) })
}
