package extend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/olmexit/snapshot"
)

// Operator is an operator installed by a Subscription or ClusterExtension.
type Operator struct {
	Kind      string // "Subscription", "ClusterExtension"
	Namespace string // install namespace
	Name      string // of the object
	Package   string
	Bundle    string // the installed one
	Version   string
	Channels  []string // allowed channels; nil: any
	Catalog   model.ID // zero if a ClusterExtension names none
	Image     string   // of the bundle, as fetched by the InstallPlan; empty if unknown
	Watch     []string // namespaces watched under OLM, sorted; nil: unknown, only "": all
	Generated bool     // OLM created the Subscription, for a dependency
	ByImage   bool     // it is declared by its image, not from a catalog
	Notes     []string // unexpected facts

	object *snapshot.Object
}

// Key returns "namespace/name".
func (o Operator) Key() string { return o.Namespace + "/" + o.Name }

// Skip returns the operator as an object that is not declared, with the reason.
func (o Operator) Skip(reason string) Skipped { return newSkipped(o.object, true, "%s", reason) }

// Skipped is an object that is not declared.
type Skipped struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Operator  bool   `json:"operator"` // an installed operator is then missing
}

// Catalog is a catalog of the cluster.
type Catalog struct {
	model.ID
	Priority int32
}

// Cluster lists the installations found in a cluster.
type Cluster struct {
	Operators []Operator        // by namespace and name
	Left      []Skipped         // objects that are not installed or cannot be declared; unordered
	Catalogs  []Catalog         // catalogs in the cluster and those named by its Subscriptions
	Total     int               // objects that describe installations: each is declared or left
	Unread    []snapshot.Unread // kinds that could not be read from the cluster

	s      *snapshot.Snapshot
	groups map[string]snapshot.OperatorGroup // by namespace: the effective one
}

// Read returns the installations of a cluster.
func Read(s *snapshot.Snapshot) *Cluster {
	c := &Cluster{Catalogs: listCatalogs(s), Unread: s.Unread, s: s, groups: map[string]snapshot.OperatorGroup{}}
	r := reader{Cluster: c, originals: map[k8s.Key]snapshot.CSV{}, copies: map[k8s.Key]bool{}, images: catalogImages(s)}
	for _, csv := range s.CSVs() {
		if csv.CopiedFrom == "" {
			r.originals[csv.Key] = csv
		} else {
			r.copies[csv.Key] = true
		}
	}
	crowded := r.chooseGroups()
	owned := map[k8s.Key]bool{}
	for _, sub := range s.Subscriptions() {
		csv := csvKey(sub.Namespace, sub.InstalledCSV)
		owned[csv] = true
		r.subscription(sub, crowded[sub.Namespace])
	}
	for _, o := range s.Kind(snapshot.OLMv1, "ClusterExtension") {
		r.extension(o)
	}
	c.Total = len(s.Subscriptions()) + len(s.Kind(snapshot.OLMv1, "ClusterExtension")) + len(s.OperatorGroups()) +
		len(s.CatalogSources()) + len(s.Kind(snapshot.OLMv1, "ClusterCatalog")) + r.addUnowned(owned)
	slices.SortFunc(c.Operators, func(a, b Operator) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	return c
}

// Compare orders entries by kind, namespace and name.
func (l Skipped) Compare(m Skipped) int {
	return cmp.Or(strings.Compare(l.Kind, m.Kind), strings.Compare(l.Namespace, m.Namespace), strings.Compare(l.Name, m.Name))
}

func newSkipped(o *snapshot.Object, operator bool, format string, args ...any) Skipped {
	return Skipped{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Operator: operator, Reason: fmt.Sprintf(format, args...)}
}

// listCatalogs returns the catalogs in a cluster and those named by its Subscriptions.
func listCatalogs(s *snapshot.Snapshot) []Catalog {
	var out []Catalog
	for _, c := range s.CatalogSources() {
		out = append(out, Catalog{model.ID{Namespace: c.Namespace, Name: c.Name}, c.Priority})
	}
	for _, o := range s.Kind(snapshot.OLMv1, "ClusterCatalog") {
		out = append(out, Catalog{ID: model.ID{Name: o.Name}})
	}
	for _, sub := range s.Subscriptions() {
		if sub.Catalog.Name != "" && !slices.ContainsFunc(out, func(c Catalog) bool { return c.ID == sub.Catalog }) {
			out = append(out, Catalog{ID: sub.Catalog})
		}
	}
	return out
}

func csvKey(namespace, name string) k8s.Key {
	return k8s.Key{Group: snapshot.OLM, Kind: "ClusterServiceVersion", Namespace: namespace, Name: name}
}

// catalogImages returns the image of each bundle that an InstallPlan fetched, by namespace and
// name of its ClusterServiceVersion. Images with a digest take precedence, and otherwise those of
// the last plan.
func catalogImages(s *snapshot.Snapshot) map[k8s.Key]string {
	out := map[k8s.Key]string{}
	for _, p := range s.InstallPlans() {
		for _, l := range p.Lookups {
			key := csvKey(p.Namespace, l.CSV)
			if l.Image != "" && (isPinned(l.Image) || !isPinned(out[key])) {
				out[key] = l.Image
			}
		}
	}
	return out
}

func isPinned(image string) bool { return strings.Contains(image, "@sha256:") }

// reader collects the operators of a cluster.
type reader struct {
	*Cluster
	originals map[k8s.Key]snapshot.CSV
	copies    map[k8s.Key]bool
	images    map[k8s.Key]string
}

func (r *reader) leave(o *snapshot.Object, operator bool, format string, args ...any) {
	r.Left = append(r.Left, newSkipped(o, operator, format, args...))
}

// chooseGroups selects the effective OperatorGroup of each namespace, and returns a reason
// for each namespace without one. OLM is inactive in a namespace with several groups; the
// group of earlier installations is the effective one.
func (r *reader) chooseGroups() map[string]string {
	in := map[string][]snapshot.OperatorGroup{}
	for _, g := range r.s.OperatorGroups() {
		in[g.Namespace] = append(in[g.Namespace], g)
	}
	crowded := map[string]string{}
	for ns, groups := range in {
		i := 0
		if len(groups) > 1 {
			i = slices.IndexFunc(groups, func(g snapshot.OperatorGroup) bool { return g.Name == r.governing(ns) })
		}
		if i >= 0 {
			r.groups[ns] = groups[i]
			continue
		}
		var names []string
		for _, g := range groups {
			names = append(names, g.Name)
		}
		crowded[ns] = fmt.Sprintf("its namespace has %d OperatorGroups (%s), but OLM supports only one: delete all but one", len(groups), strings.Join(names, ", "))
	}
	return crowded
}

// governing returns the OperatorGroup under which all ClusterServiceVersions of a namespace
// were installed, or "".
func (r *reader) governing(namespace string) string {
	var names []string
	for key, csv := range r.originals {
		if key.Namespace == namespace {
			names = append(names, k8s.Text(csv.Body(), "metadata", "annotations", "olm.operatorGroup"))
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 1 {
		return names[0]
	}
	return ""
}

// subscription adds the operator that a Subscription installed, or the reason to leave it
// out.
func (r *reader) subscription(sub snapshot.Subscription, crowded string) {
	key := csvKey(sub.Namespace, sub.InstalledCSV)
	csv, there := r.originals[key]
	switch {
	case sub.InstalledCSV == "" && sub.State == "":
		r.leave(sub.Object, false, "it has no installed version")
	case sub.InstalledCSV == "":
		r.leave(sub.Object, false, "it has no installed version (state %s)", sub.State)
	case !there && r.copies[key]:
		r.leave(sub.Object, true, "status.installedCSV is %s, a copy of one in another namespace", sub.InstalledCSV)
	case !there:
		r.leave(sub.Object, true, "status.installedCSV is %s, which is not in the cluster", sub.InstalledCSV)
	case crowded != "":
		r.leave(sub.Object, true, "%s", crowded)
	default:
		op := Operator{
			Kind: sub.Kind, Namespace: sub.Namespace, Name: sub.Name, Package: sub.Package, Bundle: sub.InstalledCSV, Version: csv.Version,
			Catalog: sub.Catalog, Image: r.images[key], Generated: sub.GeneratedBy != "", Notes: subscriptionNotes(sub, csv), object: sub.Object,
		}
		if sub.Channel != "" {
			op.Channels = []string{sub.Channel}
		}
		if g, ok := r.groups[sub.Namespace]; ok {
			op.Watch = g.Namespaces
		}
		r.Operators = append(r.Operators, op)
	}
}

// subscriptionNotes returns remarks on the state of an imported operator.
func subscriptionNotes(sub snapshot.Subscription, csv snapshot.CSV) []string {
	var out []string
	if csv.Phase != "Succeeded" {
		text := "its ClusterServiceVersion is " + cmp.Or(csv.Phase, "without a phase")
		if csv.Message != "" {
			text += ": " + csv.Message
		}
		out = append(out, text)
	}
	if sub.CurrentCSV != "" && sub.CurrentCSV != sub.InstalledCSV {
		out = append(out, "an upgrade to "+sub.CurrentCSV+" is pending in the cluster and ignored")
	}
	return out
}

// extension adds the operator that a ClusterExtension of OLM v1 installed.
func (r *reader) extension(o *snapshot.Object) {
	body := o.Body()
	filter := k8s.Map(body, "spec", "source", "catalog")
	op := Operator{
		Kind: o.Kind, Namespace: k8s.Text(body, "spec", "namespace"), Name: o.Name, Package: k8s.Text(filter, "packageName"),
		Bundle: k8s.Text(body, "status", "install", "bundle", "name"), Version: k8s.Text(body, "status", "install", "bundle", "version"),
		Channels: k8s.Texts(filter, "channels"), Image: k8s.Text(body, "spec", "source", "ociImage", "ref"), object: o,
	}
	if op.Bundle == "" {
		r.leave(o, false, "it has no installed version")
		return
	}
	op.ByImage = op.Image != ""
	if ns := k8s.Text(body, "spec", "config", "inline", "watchNamespace"); ns != "" {
		op.Watch = []string{ns}
	}
	r.Operators = append(r.Operators, op)
}

// addUnowned adds an entry to Left for each ClusterServiceVersion that no Subscription lists as
// installed, and returns their number.
func (r *reader) addUnowned(owned map[k8s.Key]bool) int {
	before := len(r.Left)
	next := map[k8s.Key]string{}
	for _, sub := range r.s.Subscriptions() {
		next[csvKey(sub.Namespace, sub.CurrentCSV)] = sub.Name
	}
	for key, csv := range r.originals {
		switch {
		case owned[key]:
		case next[key] != "":
			r.leave(csv.Object, false, "Subscription %s is being upgraded to it; its installedCSV is imported", next[key])
		case csv.Phase == "Replacing" || csv.Phase == "Deleting":
			r.leave(csv.Object, false, "it is being deleted (%s)", csv.Phase)
		case csv.Name == snapshot.Packageserver:
			r.leave(csv.Object, false, "it is part of OLM itself")
		default:
			r.leave(csv.Object, true, "it has no Subscription: create one with startingCSV, and import again")
		}
	}
	return len(r.Left) - before
}
