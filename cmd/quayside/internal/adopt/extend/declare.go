package extend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// Operator is an operator installed by a Subscription, a ClusterExtension, a HelmRelease or an Application.
type Operator struct {
	Kind      string // kind of the object that installed it, such as "Subscription"
	Namespace string // install namespace
	Name      string // name of that object
	Package   string
	Bundle    string // installed bundle
	Version   string
	Channels  []string   // allowed channels; nil: any
	Catalog   catalog.ID // zero if a ClusterExtension does not select one
	Image     string     // bundle image according to the InstallPlan or to Flux; empty: unknown
	Watch     []string   // namespaces that it watches under OLM, sorted; nil: unknown; a single "": all
	Generated bool       // whether OLM created the Subscription, for a dependency
	ByImage   bool       // whether it is declared by its bundle image instead of a catalog
	Notes     []string   // notes for the user

	object *snapshot.LiveObject
	chart  map[string]any // spec of the Subscription of a chart, without the catalog; nil: not a chart
}

// Key returns "namespace/name".
func (o Operator) Key() string { return o.Namespace + "/" + o.Name }

// AsSkipped returns the entry for an operator that is not imported, with the reason.
func (o Operator) AsSkipped(reason string) Skipped { return newSkipped(o.object, true, "%s", reason) }

// Skipped is an object of the cluster that is not imported.
type Skipped struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Operator  bool   `json:"operator"` // whether the object installs an operator, which is then missing
}

// ClusterCatalog is a catalog of the cluster.
type ClusterCatalog struct {
	catalog.ID
	Priority int32
	Source   source.Ref // location of a catalog of charts; empty: another catalog
}

// Installations contains the objects of a cluster that install operators.
type Installations struct {
	Operators   []Operator        // by namespace and name
	Skipped     []Skipped         // objects that are not imported; unordered
	Catalogs    []ClusterCatalog  // catalogs in the cluster, and catalogs that only Subscriptions name
	Total       int               // number of objects; each is declared or in Skipped
	NotSelected int               // number of HelmReleases, and Applications with a chart, that are not selected
	Unread      []snapshot.Unread // kinds that could not be read from the cluster

	s      *snapshot.Snapshot
	groups map[string]snapshot.OperatorGroup // effective OperatorGroup, by namespace
}

// Read returns the installations of a cluster. It includes a HelmRelease or Application only if the object has
// the label [survey.SelectLabel], or if a pattern of include matches its namespace/name, as in [path.Match].
func Read(s *snapshot.Snapshot, include ...string) *Installations {
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
		len(s.CatalogSources()) + len(s.Kind(k8s.OLMv1Group, "ClusterCatalog")) + r.addUnowned(owned) + r.addCharts(include)
	slices.SortFunc(c.Operators, func(a, b Operator) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	return c
}

// Compare orders entries by kind, namespace and name.
func (l Skipped) Compare(m Skipped) int {
	return cmp.Or(strings.Compare(l.Kind, m.Kind), strings.Compare(l.Namespace, m.Namespace), strings.Compare(l.Name, m.Name))
}

func newSkipped(o *snapshot.LiveObject, operator bool, format string, args ...any) Skipped {
	return Skipped{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Operator: operator, Reason: fmt.Sprintf(format, args...)}
}

// listCatalogs returns the catalogs in a cluster, and catalogs that only its Subscriptions name.
func listCatalogs(s *snapshot.Snapshot) []ClusterCatalog {
	var out []ClusterCatalog
	for _, c := range s.CatalogSources() {
		out = append(out, ClusterCatalog{catalog.ID{Namespace: c.Namespace, Name: c.Name}, c.Priority, ""})
	}
	for _, o := range s.Kind(k8s.OLMv1Group, "ClusterCatalog") {
		out = append(out, ClusterCatalog{ID: catalog.ID{Name: o.Name}})
	}
	for _, sub := range s.Subscriptions() {
		if sub.Catalog.Name != "" && !slices.ContainsFunc(out, func(c ClusterCatalog) bool { return c.ID == sub.Catalog }) {
			out = append(out, ClusterCatalog{ID: sub.Catalog})
		}
	}
	return out
}

// globalCatalogNamespaces returns the namespaces of the catalogs from which OLM installed operators in other
// namespaces, sorted. OLM does so only for catalogs in its global catalog namespace.
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

// bundleImages returns the bundle image of each ClusterServiceVersion, according to the InstallPlans. If these
// have different images, it prefers an image with a digest, and then the image of the last InstallPlan.
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

func (r *clusterReader) skip(o *snapshot.LiveObject, operator bool, format string, args ...any) {
	r.Skipped = append(r.Skipped, newSkipped(o, operator, format, args...))
}

// chooseGroups selects the effective OperatorGroup of each namespace. OLM ignores a namespace that has several.
// In such a namespace, the effective OperatorGroup is the one with which the operators were installed.
// chooseGroups returns the namespaces whose effective OperatorGroup is unknown, with the reason.
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

// effectiveGroup returns the name of the OperatorGroup with which the ClusterServiceVersions of a namespace
// were installed. If they were installed with different ones, it returns "".
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

// addSubscription adds the operator that a Subscription installed. If there is no such operator, it adds the
// Subscription to Skipped with the reason. If ambiguous is not empty, it does the same with ambiguous as the reason.
func (r *clusterReader) addSubscription(sub snapshot.Subscription, ambiguous string) {
	key := csvKey(sub.Namespace, sub.InstalledCSV)
	csv, there := r.originals[key]
	switch {
	case sub.InstalledCSV == "" && sub.State == "":
		r.skip(sub.LiveObject, false, "it has no installed version")
	case sub.InstalledCSV == "":
		r.skip(sub.LiveObject, false, "it has no installed version (state %s)", sub.State)
	case !there && r.copies[key]:
		r.skip(sub.LiveObject, true, "status.installedCSV is %s, a copy from another namespace", sub.InstalledCSV)
	case !there:
		r.skip(sub.LiveObject, true, "status.installedCSV is %s, which is not in the cluster", sub.InstalledCSV)
	case ambiguous != "":
		r.skip(sub.LiveObject, true, "%s", ambiguous)
	default:
		op := Operator{
			Kind: sub.Kind, Namespace: sub.Namespace, Name: sub.Name, Package: sub.Package, Bundle: sub.InstalledCSV, Version: csv.Version,
			Catalog: sub.Catalog, Image: r.images[key], Generated: sub.GeneratedBy != "", Notes: subscriptionNotes(sub, csv), object: sub.LiveObject,
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

// subscriptionNotes returns notes about the state of an imported operator.
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
func (r *clusterReader) addExtension(o *snapshot.LiveObject) {
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

// addUnowned adds to Skipped the ClusterServiceVersions that no Subscription lists as installed. It returns
// their number.
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
			r.skip(csv.LiveObject, false, "Subscription %s is being upgraded to this version; the installed version (status.installedCSV) is imported", next[key])
		case csv.Phase == "Replacing" || csv.Phase == "Deleting":
			r.skip(csv.LiveObject, false, "it is being deleted (%s)", csv.Phase)
		case csv.Name == snapshot.Packageserver:
			r.skip(csv.LiveObject, false, "it is part of OLM itself")
		default:
			r.skip(csv.LiveObject, true, "it has no Subscription: create one with startingCSV, and import again")
		}
	}
	return len(r.Skipped) - before
}
