package needs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/render"
)

// OLMNeed is the degree to which a running operator needs OLM.
type OLMNeed string

// The values of OLMNeed, strongest first.
const (
	NeedsOLM  OLMNeed = "yes"     // its main function is performed by OLM
	InPart    OLMNeed = "partly"  // it runs without OLM, but loses some functions
	MayNeed   OLMNeed = "unknown" // it may use OLM; whether it does cannot be observed
	NeedsNone OLMNeed = "no"
)

// Signal is evidence that an operator uses OLM.
type Signal struct {
	Code   string  `json:"code" form:"enum=installs|ships|changes-csv|prepares|reads|packages|webhook|annotation|mentions|everything" doc:"As in the documentation."`
	Need   OLMNeed `json:"need" form:"enum=yes|partly|unknown" doc:"Whether it needs OLM for this."`
	Object string  `json:"object" doc:"Owner: a ServiceAccount, a Deployment or another object."`
	What   string  `json:"description" doc:"Actions, performed or allowed."`
	Loses  string  `json:"impact" doc:"Features that are lost without OLM."`
	Do     string  `json:"hint" doc:"Possible remedy."`
}

// signalCategory is a category of signals, with the texts for users.
type signalCategory struct {
	code      string
	need      OLMNeed
	loses, do string
}

// signalCategories returns all categories of signals, most important first.
func signalCategories() []signalCategory {
	const declareHint = "declare in Git the operators that this operator installed, or leave all of them to OLM"
	const disableHint = "set OPERATOR_CONDITION_NAME to an empty value in spec.config.env of the operator's Subscription: most operators then work without OLM"
	return []signalCategory{
		{"installs", NeedsOLM, "OLM no longer processes this operator's requests to install, upgrade or remove other operators", declareHint},
		{"ships", NeedsOLM, "the object has no effect, and a cluster without OLM's CRDs rejects it", declareHint},
		{"changes-csv", InPart, "without OLM, nothing copies these settings to the operator's Deployments, and its ClusterServiceVersion is missing", "move these settings to spec.config of the operator's Subscription, or to a patch in the cluster's overlay; " + disableHint},
		{"prepares", InPart, "the catalogs and OperatorGroups that this operator creates have no effect", "declare them in Git if other operators need them"},
		{"reads", InPart, "this operator no longer finds the OLM objects of adopted operators: it cannot read their version, owner or channel", "check the operator's documentation for its behaviour without OLM; " + disableHint},
		{"packages", InPart, "OLM's packageserver serves this API: without the packageserver, requests fail", "keep the packageserver running, or check the operator's documentation for its behaviour without this API"},
		{"webhook", InPart, "the API server has no objects of this kind to validate", "check it in pull requests instead"},
		{"annotation", InPart, "the annotation is no longer set, and the operator reads an empty value", "if the operator's documentation requires the annotation, set it in a patch in the cluster's overlay"},
		{"mentions", MayNeed, "it may assume that OLM is installed", "check its documentation for the purpose; " + disableHint},
		{"everything", MayNeed, "use of OLM's objects unknown", "check the operator's documentation: does it install other operators through OLM?"},
	}
}

// packagesGroup is the API group of OLM's packageserver.
const packagesGroup = "packages." + k8s.OLMGroup

// olmAccess is the signal code for permissions to change an OLM resource with certain verbs.
type olmAccess struct {
	resource string
	verbs    []string // verbs with this code; nil: all except get, list and watch
	code     string
}

// olmAccesses returns the signal codes for permissions to change OLM resources. The first match counts. For OLM
// resources that are not in this list, only the permission to read is a signal.
func olmAccesses() []olmAccess {
	return []olmAccess{
		{"subscriptions", nil, "installs"},
		{"installplans", nil, "installs"},
		{"clusterextensions", nil, "installs"},
		{"clusterserviceversions", []string{"create", "delete", "deletecollection", "*"}, "installs"},
		{"clusterserviceversions", nil, "changes-csv"},
		{"catalogsources", nil, "prepares"},
		{"clustercatalogs", nil, "prepares"},
		{"operatorgroups", nil, "prepares"},
		{"olmconfigs", nil, "prepares"},
	}
}

// olmResources returns, by group, the resources of OLM whose use is evidence that an operator uses OLM. It
// omits OperatorConditions, because every tree has them.
func olmResources() map[string][]string {
	return map[string][]string{
		k8s.OLMGroup:   {"catalogsources", "clusterserviceversions", "installplans", "olmconfigs", "operatorgroups", "operators", "subscriptions"},
		k8s.OLMv1Group: {"clustercatalogs", "clusterextensions"},
	}
}

func readVerbs() []string { return []string{"get", "list", "watch"} }

// permission is the permission to use a verb on a resource.
type permission struct{ verb, group, resource string }

// crdName returns the name of the CRD that defines the resource.
func (r permission) crdName() string { return r.resource + "." + r.group }

// signalCodes returns the codes of the signals for a permission on an OLM resource.
func (r permission) signalCodes() []string {
	var out []string
	for _, a := range olmAccesses() {
		if a.resource == r.resource && (slices.Contains(a.verbs, r.verb) || a.verbs == nil && !slices.Contains(readVerbs(), r.verb)) {
			out = append(out, a.code)
			break
		}
	}
	if r.verb == "*" || slices.Contains(readVerbs(), r.verb) {
		out = append(out, "reads")
	}
	return out
}

// olmPermissions returns the permissions on OLM resources that a grant contains.
func olmPermissions(g k8s.Grant) []permission {
	of, _, _ := strings.Cut(g.Resource, "/")
	var out []permission
	for _, r := range olmResources()[g.Group] {
		if of == "*" || of == r {
			out = append(out, permission{g.Verb, g.Group, r})
		}
	}
	return out
}

// isWildcard reports whether a grant includes OLM resources only because it applies to all groups.
func isWildcard(g k8s.Grant) bool {
	if g.Group != "*" {
		return false
	}
	for _, list := range olmResources() {
		if g.Resource == "*" || slices.Contains(list, g.Resource) {
			return true
		}
	}
	return false
}

// aggregatedRoles returns the default roles of Kubernetes that OLM extends by aggregation.
func aggregatedRoles() []string {
	return []string{"ClusterRole admin", "ClusterRole edit", "ClusterRole view"}
}

// permissionIndex contains the permissions of accounts on OLM resources.
type permissionIndex struct {
	verbs   map[[3]string][]string // verbs by signal code, account and resource
	watched []string               // names of OLM's CRDs whose objects the accounts may watch
}

func (h *permissionIndex) add(code, account, resource, verb string) {
	at := [3]string{code, account, resource}
	h.verbs[at] = append(h.verbs[at], verb)
}

// addGrant records one permission of an account.
func (h *permissionIndex) addGrant(account string, g k8s.Grant) {
	for _, r := range olmPermissions(g) {
		for _, code := range r.signalCodes() {
			h.add(code, account, r.resource, r.verb)
		}
		if r.verb == "watch" || r.verb == "*" {
			h.watched = append(h.watched, r.crdName())
		}
	}
	switch {
	case g.Group == packagesGroup:
		h.add("packages", account, g.Resource, g.Verb)
	case isWildcard(g):
		h.add("everything", account, strings.ReplaceAll(g.Resource, "*", "all objects"), g.Verb)
	case slices.Contains(aggregatedRoles(), g.Role):
		h.add("everything", account, "the permissions of "+g.Role+", which OLM extends with its own kinds", "*")
	}
}

// FindOLM returns the degree to which an operator with these objects needs OLM. signals is the evidence,
// strongest first. definitions are OLM's CRDs whose objects the operator may watch. If shipped is true, each of
// the objects that has a kind of OLM is also evidence.
func FindOLM(objects []k8s.Object, shipped bool) (need OLMNeed, signals []Signal, definitions []string) {
	signals, definitions = PermissionSignals(objects)
	if shipped {
		signals = append(signals, bundleSignals(objects)...)
	}
	for _, o := range objects {
		signals = append(signals, webhookSignals(o)...)
		signals = append(signals, textSignals(o)...)
	}
	rank := map[string]int{}
	for i, s := range signalCategories() {
		rank[s.code] = i
	}
	slices.SortFunc(signals, func(a, b Signal) int {
		return cmp.Or(rank[a.Code]-rank[b.Code], strings.Compare(a.Object, b.Object), strings.Compare(a.What, b.What))
	})
	if signals = slices.Compact(signals); len(signals) == 0 {
		return NeedsNone, nil, definitions
	}
	return signals[0].Need, signals, definitions
}

// PermissionSignals returns signals for the permissions of service accounts on OLM resources, and the names of
// the OLM CRDs whose objects these accounts may watch. If the accounts may install operators through OLM, it
// omits the signals for changing and reading OLM objects.
func PermissionSignals(objects []k8s.Object) ([]Signal, []string) {
	list := make([]map[string]any, len(objects))
	for i, o := range objects {
		list[i] = o
	}
	model, err := k8s.NewPermissions(list)
	if err != nil {
		return []Signal{newSignal("everything", "its roles", "contain more permissions than the limit")}, nil
	}
	h := permissionIndex{verbs: map[[3]string][]string{}}
	for _, granted := range model.ObjectGrants() {
		if granted.To.Kind != "ServiceAccount" && !strings.HasPrefix(granted.To.Name, "system:serviceaccount") {
			continue // a user or group
		}
		for _, g := range granted.Grants {
			h.addGrant(granted.To.String(), g)
		}
	}
	out := h.signals()
	if slices.ContainsFunc(out, func(s Signal) bool { return s.Code == "installs" }) {
		out = slices.DeleteFunc(out, func(s Signal) bool { return slices.Contains([]string{"changes-csv", "prepares", "reads"}, s.Code) })
	}
	slices.Sort(h.watched)
	return out, slices.Compact(h.watched)
}

// signals returns a signal for each code and account.
func (h *permissionIndex) signals() []Signal {
	parts := map[[2]string][]string{}
	for at, verbs := range h.verbs {
		of := [2]string{at[0], at[1]}
		parts[of] = append(parts[of], describeVerbs(at[0], verbs)+" "+at[2])
	}
	var out []Signal
	for of, list := range parts {
		slices.Sort(list)
		out = append(out, newSignal(of[0], of[1], "may "+strings.Join(list, ", ")))
	}
	return out
}

// describeVerbs returns the verbs of a signal as text.
func describeVerbs(code string, verbs []string) string {
	var out []string
	for _, v := range verbs {
		switch {
		case v == "*":
			return "all verbs on"
		case code != "reads" || slices.Contains(readVerbs(), v):
			out = append(out, v)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	last := len(out) - 1
	if last == 0 {
		return out[0]
	}
	return strings.Join(out[:last], ", ") + " and " + out[last]
}

// newSignal returns a signal with the texts of its category.
func newSignal(code, object, what string) Signal {
	all := signalCategories()
	s := all[slices.IndexFunc(all, func(s signalCategory) bool { return s.code == code })]
	return Signal{Code: code, Need: s.need, Object: object, What: what, Loses: s.loses, Do: s.do}
}

// isOLMKind reports whether a kind belongs to OLM. It returns false for OperatorCondition, which every tree
// contains.
func isOLMKind(group, kind string) bool {
	return (group == k8s.OLMGroup || group == k8s.OLMv1Group) && kind != "OperatorCondition"
}

// olmEvidence returns the reasons why an operator cannot run without OLM: the texts of the signals whose need is
// NeedsOLM.
func olmEvidence(objects []k8s.Object) []string {
	var out []string
	signals := bundleSignals(objects)
	if slices.ContainsFunc(objects, mayInstall) { // computing all permissions is slow: do so only if necessary
		granted, _ := PermissionSignals(objects)
		signals = append(signals, granted...)
	}
	for _, s := range signals {
		if s.Need == NeedsOLM {
			out = append(out, s.Object+" "+s.What)
		}
	}
	return out
}

// mayInstall reports whether a role may permit installing operators through OLM.
func mayInstall(o k8s.Object) bool {
	for _, rule := range k8s.Items(o, "rules") {
		for _, group := range k8s.Texts(rule, "apiGroups") {
			for _, resource := range k8s.Texts(rule, "resources") {
				for _, verb := range k8s.Texts(rule, "verbs") {
					for _, r := range olmPermissions(k8s.Grant{Verb: verb, Group: group, Resource: resource}) {
						if slices.Contains(r.signalCodes(), "installs") {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

// bundleSignals returns a signal for each object of an OLM kind. OperatorConditions do not count,
// because every tree has them.
func bundleSignals(objects []k8s.Object) []Signal {
	var out []Signal
	for _, o := range objects {
		if isOLMKind(o.Group(), o.Kind()) {
			out = append(out, newSignal("ships", o.Key().String(), "uses OLM's API"))
		}
	}
	return out
}

// webhookSignals returns a signal for each webhook whose rules apply to OLM objects.
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

// textSignals returns a signal for each text in an object that mentions OLM.
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

// mentionsOLM reports whether a text contains the group and version of an OLM API.
func mentionsOLM(text string) bool {
	for group := range olmResources() {
		if strings.Contains(text, group+"/v") {
			return true
		}
	}
	return false
}

// isOLMName reports whether a name is the name of OLM or of one of OLM's kinds.
func isOLMName(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	joined := strings.Join(parts, "")
	return slices.Contains(parts, "olm") || slices.ContainsFunc([]string{"clusterserviceversion", "installplan", "operatorgroup"}, func(kind string) bool { return strings.Contains(joined, kind) })
}
