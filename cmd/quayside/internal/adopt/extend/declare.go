package extend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// Operator is an operator installed by a Subscription or ClusterExtension.
type Operator struct {
	Kind      string // "Subscription", "ClusterExtension"
	Namespace string // install namespace
	Name      string // of the object
	Package   string
	Bundle    string // installed bundle
	Version   string
	Channels  []string   // allowed channels; nil: any
	Catalog   catalog.ID // zero if a ClusterExtension names none
	Image     string     // bundle image that the InstallPlan fetched; empty: unknown
	Watch     []string   // namespaces that it watches under OLM, sorted; nil: unknown; a single "": all
	Generated bool       // OLM created the Subscription, for a dependency
	ByImage   bool       // it is declared by its image, not from a catalog
	Notes     []string   // remarks for the user

	object *snapshot.Object
}

// Key returns "namespace/name".
func (o Operator) Key() string { return o.Namespace + "/" + o.Name }

// AsSkipped returns the operator as an object that is not declared, with the reason.
func (o Operator) AsSkipped(reason string) Skipped { return newSkipped(o.object, true, "%s", reason) }

// Skipped is an object that is not declared.
type Skipped struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Operator  bool   `json:"operator"` // an installed operator is missing without it
}

// Catalog is a catalog of the cluster.
type Catalog struct {
	catalog.ID
	Priority int32
}

// Installations lists the installations found in a cluster.
type Installations struct {
	Operators []Operator        // by namespace and name
	Skipped   []Skipped         // objects that are not imported; unordered
	Catalogs  []Catalog         // catalogs in the cluster and those named by its Subscriptions
	Total     int               // number of objects that describe installations: each is declared or in Skipped
	Unread    []snapshot.Unread // kinds that could not be read from the cluster

	s      *snapshot.Snapshot
	groups map[string]snapshot.OperatorGroup // by namespace: the effective one
}

// Read returns the installations of a cluster.
func Read(s *snapshot.Snapshot) *Installations {
	c := &Installations{Catalogs: listCatalogs(s), Unread: s.Unread, s: s, groups: map[string]snapshot.OperatorGroup{}}
	r := clusterReader{Installations: c, originals: map[k8s.Key]snapshot.CSV{}, copies: map[k8s.Key]bool{}, images: bundleImages(s)}
	for _, csv := range s.CSVs() {
		if csv.CopiedFrom == "" {
			r.originals[csv.Key] = csv
		} else {
			r.copies[csv.Key] = true
		}
	}
	ambiguous := r.chooseGroups()
	owned := map[k8s.Key]bool{}
	for _, sub := range s.Subscriptions() {
		csv := csvKey(sub.Namespace, sub.InstalledCSV)
		owned[csv] = true
		r.addSubscription(sub, ambiguous[sub.Namespace])
	}
	for _, o := range s.Kind(k8s.OLMv1Group, "ClusterExtension") {
		r.addExtension(o)
	}
	c.Total = len(s.Subscriptions()) + len(s.Kind(k8s.OLMv1Group, "ClusterExtension")) + len(s.OperatorGroups()) +
		len(s.CatalogSources()) + len(s.Kind(k8s.OLMv1Group, "ClusterCatalog")) + r.addUnowned(owned)
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
		out = append(out, Catalog{catalog.ID{Namespace: c.Namespace, Name: c.Name}, c.Priority})
	}
	for _, o := range s.Kind(k8s.OLMv1Group, "ClusterCatalog") {
		out = append(out, Catalog{ID: catalog.ID{Name: o.Name}})
	}
	for _, sub := range s.Subscriptions() {
		if sub.Catalog.Name != "" && !slices.ContainsFunc(out, func(c Catalog) bool { return c.ID == sub.Catalog }) {
			out = append(out, Catalog{ID: sub.Catalog})
		}
	}
	return out
}

// globalCatalogNamespaces returns the namespaces with catalogs from which OLM installed operators
// in other namespaces, sorted. OLM does that only from its global catalog namespace.
func (c *Installations) globalCatalogNamespaces() []string {
	var out []string
	for _, op := range c.Operators {
		if op.Kind == "Subscription" && op.Catalog.Namespace != op.Namespace && op.Catalog.Namespace != "" {
			out = append(out, op.Catalog.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func csvKey(namespace, name string) k8s.Key {
	return k8s.Key{Group: k8s.OLMGroup, Kind: "ClusterServiceVersion", Namespace: namespace, Name: name}
}

// bundleImages returns the images of the bundles that InstallPlans fetched, by ClusterServiceVersion.
// If there are several, an image with a digest takes precedence, then that of the last plan.
func bundleImages(s *snapshot.Snapshot) map[k8s.Key]string {
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

// clusterReader collects the operators of a cluster.
type clusterReader struct {
	*Installations
	originals map[k8s.Key]snapshot.CSV
	copies    map[k8s.Key]bool
	images    map[k8s.Key]string
}

func (r *clusterReader) skip(o *snapshot.Object, operator bool, format string, args ...any) {
	r.Skipped = append(r.Skipped, newSkipped(o, operator, format, args...))
}

// chooseGroups selects the effective OperatorGroup of each namespace, and returns a reason for each
// namespace in which that is ambiguous. OLM is inactive in a namespace with several groups; then the
// group with which the operators were installed is the effective one.
func (r *clusterReader) chooseGroups() map[string]string {
	in := map[string][]snapshot.OperatorGroup{}
	for _, g := range r.s.OperatorGroups() {
		in[g.Namespace] = append(in[g.Namespace], g)
	}
	ambiguous := map[string]string{}
	for ns, groups := range in {
		i := 0
		if len(groups) > 1 {
			i = slices.IndexFunc(groups, func(g snapshot.OperatorGroup) bool { return g.Name == r.effectiveGroup(ns) })
		}
		if i >= 0 {
			r.groups[ns] = groups[i]
			continue
		}
		var names []string
		for _, g := range groups {
			names = append(names, g.Name)
		}
		ambiguous[ns] = fmt.Sprintf("its namespace has %d OperatorGroups (%s), but OLM supports only one: delete all but one", len(groups), strings.Join(names, ", "))
	}
	return ambiguous
}

// effectiveGroup returns the name of the OperatorGroup with which all ClusterServiceVersions of a
// namespace were installed, or "" if there are several.
func (r *clusterReader) effectiveGroup(namespace string) string {
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

// addSubscription adds the operator that a Subscription installed, or skips it with a reason.
func (r *clusterReader) addSubscription(sub snapshot.Subscription, ambiguous string) {
	key := csvKey(sub.Namespace, sub.InstalledCSV)
	csv, there := r.originals[key]
	switch {
	case sub.InstalledCSV == "" && sub.State == "":
		r.skip(sub.Object, false, "it has no installed version")
	case sub.InstalledCSV == "":
		r.skip(sub.Object, false, "it has no installed version (state %s)", sub.State)
	case !there && r.copies[key]:
		r.skip(sub.Object, true, "status.installedCSV is %s, a copy of one in another namespace", sub.InstalledCSV)
	case !there:
		r.skip(sub.Object, true, "status.installedCSV is %s, which is not in the cluster", sub.InstalledCSV)
	case ambiguous != "":
		r.skip(sub.Object, true, "%s", ambiguous)
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

// subscriptionNotes returns remarks about the state of an imported operator.
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

// addExtension adds the operator that a ClusterExtension of OLM v1 installed.
func (r *clusterReader) addExtension(o *snapshot.Object) {
	body := o.Body()
	filter := k8s.Map(body, "spec", "source", "catalog")
	op := Operator{
		Kind: o.Kind, Namespace: k8s.Text(body, "spec", "namespace"), Name: o.Name, Package: k8s.Text(filter, "packageName"),
		Bundle: k8s.Text(body, "status", "install", "bundle", "name"), Version: k8s.Text(body, "status", "install", "bundle", "version"),
		Channels: k8s.Texts(filter, "channels"), Image: k8s.Text(body, "spec", "source", "ociImage", "ref"), object: o,
	}
	if op.Bundle == "" {
		r.skip(o, false, "it has no installed version")
		return
	}
	op.ByImage = op.Image != ""
	if ns := k8s.Text(body, "spec", "config", "inline", "watchNamespace"); ns != "" {
		op.Watch = []string{ns}
	}
	r.Operators = append(r.Operators, op)
}

// addUnowned adds an entry to Skipped for each ClusterServiceVersion that no Subscription lists as
// installed, and returns their number.
func (r *clusterReader) addUnowned(owned map[k8s.Key]bool) int {
	before := len(r.Skipped)
	next := map[k8s.Key]string{}
	for _, sub := range r.s.Subscriptions() {
		next[csvKey(sub.Namespace, sub.CurrentCSV)] = sub.Name
	}
	for key, csv := range r.originals {
		switch {
		case owned[key]:
		case next[key] != "":
			r.skip(csv.Object, false, "Subscription %s is being upgraded to it; its installedCSV is imported", next[key])
		case csv.Phase == "Replacing" || csv.Phase == "Deleting":
			r.skip(csv.Object, false, "it is being deleted (%s)", csv.Phase)
		case csv.Name == snapshot.Packageserver:
			r.skip(csv.Object, false, "it is part of OLM itself")
		default:
			r.skip(csv.Object, true, "it has no Subscription: create one with startingCSV, and import again")
		}
	}
	return len(r.Skipped) - before
}
