package adopt

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/rbac"
)

// Need says whether an operator needs OLM while it runs.
type Need string

// The needs, the strongest first.
const (
	NeedsOLM  Need = "yes"     // what it is there for is done by OLM
	InPart    Need = "partly"  // it goes on without OLM, and loses something
	MayNeed   Need = "unknown" // it could use OLM, and whether it does cannot be seen
	NeedsNone Need = "no"
)

// Dependence is what one operator needs OLM for while it runs.
type Dependence struct {
	Namespace   string   `json:"namespace" doc:"Install namespace."`
	Package     string   `json:"package" doc:"Name of the package."`
	Bundle      string   `json:"bundle,omitempty" doc:"Name of the bundle: of the ClusterServiceVersion in a cluster."`
	NeedsOLM    Need     `json:"needsOLM" form:"enum=yes|partly|unknown|no" doc:"yes: what it is there for is done by OLM; partly: it goes on without OLM, and loses what is told; unknown: it could use OLM, and whether it does cannot be seen; no: nothing points to OLM."`
	Signals     []Signal `json:"signals" doc:"What points to OLM, the weightiest first."`
	Definitions []string `json:"definitions" doc:"CustomResourceDefinitions of OLM that it watches objects of: they have to stay where OLM is uninstalled."`
}

// Signal is one thing that points to OLM.
type Signal struct {
	Code   string `json:"code" form:"enum=installs|ships|changes-csv|prepares|reads|packages|webhook|annotation|mentions|everything" doc:"As in the documentation."`
	Need   Need   `json:"need" form:"enum=yes|partly|unknown" doc:"How much it needs OLM for that."`
	Object string `json:"object" doc:"Whose it is: a ServiceAccount, a Deployment, another object."`
	What   string `json:"what" doc:"What it does, or may do."`
	Loses  string `json:"loses" doc:"What is lost without OLM."`
	Do     string `json:"do" doc:"What can be done."`
}

// sign is a sort of signal: all about it but whose it is and what it does.
type sign struct {
	code      string
	need      Need
	loses, do string
}

// signs returns every sort of signal, the weightiest first.
func signs() []sign {
	const declare = "declare in Git what it has installed so far, and pin it; or leave this operator, and all that it installs, to OLM"
	const tell = "OPERATOR_CONDITION_NAME with an empty value in spec.config.env of its Subscription tells most operators that OLM is not there"
	return []sign{
		{"installs", NeedsOLM, "operators that it installs, upgrades or removes through OLM stay as they are: nobody carries out what it asks for", declare},
		{"ships", NeedsOLM, "nobody carries it out, and a cluster without OLM's definitions refuses it", declare},
		{"changes-csv", InPart, "OLM no longer brings what it writes there to its Deployments, and finds no ClusterServiceVersion of its own to write to", "set in spec.config of its Subscription, or in a patch of the cluster's overlay, what it set there; " + tell},
		{"prepares", InPart, "nobody reads the catalogs and OperatorGroups that it makes", "declare them in Git, where other operators need them"},
		{"reads", InPart, "it finds none for what has left OLM, and no version, owner or channel there", "see in its documentation what it does where OLM is not; " + tell},
		{"packages", InPart, "this API is served by OLM's packageserver: every request fails once that is gone", "leave the packageserver running, or see in its documentation what it does without"},
		{"webhook", InPart, "the API server has nothing of the kind to ask it about", "hold pull requests to what it checked"},
		{"annotation", InPart, "nobody sets this annotation, and it reads an empty text", "set the annotation in a patch of the cluster's overlay, if its documentation wants it"},
		{"mentions", MayNeed, "it may take OLM to be there", "see in its documentation what that is for; " + tell},
		{"everything", MayNeed, "what it does with OLM's objects, if anything", "see in its documentation whether it installs operators through OLM"},
	}
}

// packagesGroup is the API group of OLM's packageserver.
const packagesGroup = "packages.operators.coreos.com"

// asked is what an operator asks of OLM by writing to a resource.
type asked struct {
	resource string
	verbs    []string // those that count; nil: all that write
	code     string
}

// asks returns what writing to OLM's resources means; the first that fits counts.
// What is not listed is read alone, but for OperatorConditions, which a tree has.
func asks() []asked {
	return []asked{
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

// resources returns all of OLM's that an operator can do without, by group.
func resources() map[string][]string {
	return map[string][]string{
		snapshot.OLM:   {"catalogsources", "clusterserviceversions", "installplans", "olmconfigs", "operatorgroups", "operators", "subscriptions"},
		snapshot.OLMv1: {"clustercatalogs", "clusterextensions"},
	}
}

func reading() []string { return []string{"get", "list", "watch"} }

// right is what an account may do with a resource.
type right struct{ verb, group, resource string }

// definition returns the name of the resource's CustomResourceDefinition.
func (r right) definition() string { return r.resource + "." + r.group }

// codes returns which signals a right to one of OLM's resources is.
func (r right) codes() []string {
	var out []string
	for _, a := range asks() {
		if a.resource == r.resource && (slices.Contains(a.verbs, r.verb) || a.verbs == nil && !slices.Contains(reading(), r.verb)) {
			out = append(out, a.code)
			break
		}
	}
	if r.verb == "*" || slices.Contains(reading(), r.verb) {
		out = append(out, "reads")
	}
	return out
}

// theirs returns OLM's resources that a grant is for, as rights to each.
func theirs(g rbac.Grant) []right {
	of, _, _ := strings.Cut(g.Resource, "/")
	var out []right
	for _, r := range resources()[g.Group] {
		if of == "*" || of == r {
			out = append(out, right{g.Verb, g.Group, r})
		}
	}
	return out
}

// anything reports whether a grant is to OLM's resources without naming them.
func anything(g rbac.Grant) bool {
	if g.Group != "*" {
		return false
	}
	for _, list := range resources() {
		if g.Resource == "*" || slices.Contains(list, g.Resource) {
			return true
		}
	}
	return false
}

// aggregated returns the roles of every cluster into which OLM adds its own.
func aggregated() []string {
	return []string{"ClusterRole admin", "ClusterRole edit", "ClusterRole view"}
}

// held is what accounts may do with OLM's resources.
type held struct {
	may     map[[3]string][]string // verbs, by code, account and resource
	watched []string               // definitions
}

func (h *held) note(code, account, resource, verb string) {
	at := [3]string{code, account, resource}
	h.may[at] = append(h.may[at], verb)
}

// grant takes in one permission of an account.
func (h *held) grant(account string, g rbac.Grant) {
	for _, r := range theirs(g) {
		for _, code := range r.codes() {
			h.note(code, account, r.resource, r.verb)
		}
		if r.verb == "watch" || r.verb == "*" {
			h.watched = append(h.watched, r.definition())
		}
	}
	switch {
	case g.Group == packagesGroup:
		h.note("packages", account, g.Resource, g.Verb)
	case anything(g):
		h.note("everything", account, strings.ReplaceAll(g.Resource, "*", "all objects"), g.Verb)
	case slices.Contains(aggregated(), g.Role):
		h.note("everything", account, "what "+g.Role+" permits, to which OLM adds its own kinds", "*")
	}
}

// rights returns what the accounts of objects may do with OLM's resources, as
// signals, and the definitions of what they watch. What an operator that installs
// others reads and changes meanwhile is no signal of its own.
func rights(objects []kobj.Object) ([]Signal, []string) {
	list := make([]map[string]any, len(objects))
	for i, o := range objects {
		list[i] = o
	}
	model, err := rbac.New(list)
	if err != nil {
		return []Signal{signal("everything", "its roles", "hold more permissions than are looked through")}, nil
	}
	h := held{may: map[[3]string][]string{}}
	for _, gift := range model.Gifts() {
		if gift.To.Kind != "ServiceAccount" && !strings.HasPrefix(gift.To.Name, "system:serviceaccount") {
			continue // people
		}
		for _, g := range gift.Grants {
			h.grant(gift.To.String(), g)
		}
	}
	out := h.signals()
	if slices.ContainsFunc(out, func(s Signal) bool { return s.Code == "installs" }) {
		out = slices.DeleteFunc(out, func(s Signal) bool { return slices.Contains([]string{"changes-csv", "prepares", "reads"}, s.Code) })
	}
	slices.Sort(h.watched)
	return out, slices.Compact(h.watched)
}

// signals puts rights into words.
func (h *held) signals() []Signal {
	parts := map[[2]string][]string{}
	for at, verbs := range h.may {
		of := [2]string{at[0], at[1]}
		parts[of] = append(parts[of], does(at[0], verbs)+" "+at[2])
	}
	var out []Signal
	for of, list := range parts {
		slices.Sort(list)
		out = append(out, signal(of[0], of[1], "may "+strings.Join(list, ", ")))
	}
	return out
}

// does returns the verbs that make a signal, in words.
func does(code string, verbs []string) string {
	var out []string
	for _, v := range verbs {
		switch {
		case v == "*":
			return "do everything with"
		case code != "reads" || slices.Contains(reading(), v):
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

// signal returns a signal of one of the sorts.
func signal(code, object, what string) Signal {
	all := signs()
	s := all[slices.IndexFunc(all, func(s sign) bool { return s.code == code })]
	return Signal{Code: code, Need: s.need, Object: object, What: what, Loses: s.loses, Do: s.do}
}
