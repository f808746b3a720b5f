// Package declare says what declarations a cluster's objects stand for: what was
// installed by OLM, in the words of a person who declares it in files.
//
// It takes a snapshot and returns values. It decides nothing about catalogs: who
// can read them says of each operator whether its catalog still has it. Nothing
// is left out in silence: every Subscription, ClusterExtension, OperatorGroup,
// catalog and ClusterServiceVersion is either declared or in a list, with a reason.
//
// Start from [Read] and [Cluster.Objects].
package declare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/kobj"
)

// Operator is what one Subscription or ClusterExtension installed.
type Operator struct {
	Kind      string // "Subscription", "ClusterExtension"
	Namespace string // install namespace
	Name      string // of the object
	Package   string
	Bundle    string // that is installed
	Version   string
	Channels  []string   // that it may come from; nil: any
	Catalog   catalog.ID // zero where a ClusterExtension leaves it open
	Image     string     // of the bundle, as the InstallPlan fetched it; empty where none says it
	Watch     []string   // namespaces that OLM has it watch, sorted; nil: nobody says, the empty string alone: all
	Generated bool       // OLM made the Subscription, for a dependency
	ByItself  bool       // to be declared by its image, for no catalog has it
	Notes     []string   // what is not as one would think

	object *snapshot.Object
}

// Key returns "namespace/name".
func (o *Operator) Key() string { return o.Namespace + "/" + o.Name }

// Left is an object that is not declared.
type Left struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Operator  bool   `json:"operator"` // something is installed that is then missing
}

// Cluster is what was found in one.
type Cluster struct {
	Operators []*Operator // by namespace and name
	Left      []Left      // in no order
	Total     int         // objects that say what is installed: each is declared or left

	s      *snapshot.Snapshot
	groups map[string]snapshot.OperatorGroup // by namespace: the one that counts there
}

// Read finds what is installed.
func Read(s *snapshot.Snapshot) *Cluster {
	c := &Cluster{s: s, groups: map[string]snapshot.OperatorGroup{}}
	r := reader{Cluster: c, originals: map[kobj.Key]snapshot.CSV{}, copies: map[kobj.Key]bool{}, images: images(s)}
	for _, csv := range s.CSVs() {
		if csv.CopiedFrom == "" {
			r.originals[csv.Key] = csv
		} else {
			r.copies[csv.Key] = true
		}
	}
	crowded := r.chooseGroups()
	owned := map[kobj.Key]bool{}
	for _, sub := range s.Subscriptions() {
		csv := csvKey(sub.Namespace, sub.InstalledCSV)
		owned[csv] = true
		r.subscription(sub, crowded[sub.Namespace])
	}
	for _, o := range s.Kind(snapshot.OLMv1, "ClusterExtension") {
		r.extension(o)
	}
	c.Total = len(s.Subscriptions()) + len(s.Kind(snapshot.OLMv1, "ClusterExtension")) + len(s.OperatorGroups()) +
		len(s.CatalogSources()) + len(s.Kind(snapshot.OLMv1, "ClusterCatalog")) + r.loose(owned)
	slices.SortFunc(c.Operators, func(a, b *Operator) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	return c
}

// Compare orders by kind, namespace and name.
func (l Left) Compare(m Left) int {
	return cmp.Or(strings.Compare(l.Kind, m.Kind), strings.Compare(l.Namespace, m.Namespace), strings.Compare(l.Name, m.Name))
}

// Drop takes an operator out: it is declared otherwise.
func (c *Cluster) Drop(op *Operator) {
	c.Operators = slices.DeleteFunc(c.Operators, func(o *Operator) bool { return o == op })
}

// Leave moves an operator to what is left, with the reason.
func (c *Cluster) Leave(op *Operator, reason string) {
	c.Drop(op)
	c.leave(op.object, true, "%s", reason)
}

func (c *Cluster) leave(o *snapshot.Object, operator bool, format string, args ...any) {
	c.Left = append(c.Left, Left{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Operator: operator, Reason: fmt.Sprintf(format, args...)})
}

func csvKey(namespace, name string) kobj.Key {
	return kobj.Key{Group: snapshot.OLM, Kind: "ClusterServiceVersion", Namespace: namespace, Name: name}
}

// images returns the image of each bundle that an InstallPlan fetched, by
// namespace and name of its ClusterServiceVersion. Of several plans one that
// says the digest counts, and of those the last.
func images(s *snapshot.Snapshot) map[kobj.Key]string {
	out := map[kobj.Key]string{}
	for _, p := range s.InstallPlans() {
		for _, l := range p.Lookups {
			key := csvKey(p.Namespace, l.CSV)
			if l.Image != "" && (pinned(l.Image) || !pinned(out[key])) {
				out[key] = l.Image
			}
		}
	}
	return out
}

func pinned(image string) bool { return strings.Contains(image, "@sha256:") }

// reader finds operators.
type reader struct {
	*Cluster
	originals map[kobj.Key]snapshot.CSV
	copies    map[kobj.Key]bool
	images    map[kobj.Key]string
}

// chooseGroups finds the OperatorGroup that counts in each namespace, and returns
// why there is none where there are several. OLM does nothing in such a namespace,
// but what was installed before says which it was.
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
		crowded[ns] = fmt.Sprintf("its namespace has %d OperatorGroups (%s), and OLM acts in none such: delete all but one", len(groups), strings.Join(names, ", "))
	}
	return crowded
}

// governing returns the OperatorGroup that all ClusterServiceVersions of a namespace
// were installed under, or "".
func (r *reader) governing(namespace string) string {
	var names []string
	for key, csv := range r.originals {
		if key.Namespace == namespace {
			names = append(names, kobj.Text(csv.Body(), "metadata", "annotations", "olm.operatorGroup"))
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 1 {
		return names[0]
	}
	return ""
}

// subscription reads what a Subscription installed.
func (r *reader) subscription(sub snapshot.Subscription, crowded string) {
	key := csvKey(sub.Namespace, sub.InstalledCSV)
	csv, there := r.originals[key]
	switch {
	case sub.InstalledCSV == "" && sub.State == "":
		r.leave(sub.Object, false, "nothing is installed for it")
	case sub.InstalledCSV == "":
		r.leave(sub.Object, false, "nothing is installed for it (state %s)", sub.State)
	case !there && r.copies[key]:
		r.leave(sub.Object, true, "status.installedCSV names %s, which is a copy that OLM made of one in another namespace", sub.InstalledCSV)
	case !there:
		r.leave(sub.Object, true, "status.installedCSV names %s, which is not in the cluster", sub.InstalledCSV)
	case crowded != "":
		r.leave(sub.Object, true, "%s", crowded)
	default:
		op := &Operator{
			Kind: sub.Kind, Namespace: sub.Namespace, Name: sub.Name, Package: sub.Package, Bundle: sub.InstalledCSV, Version: csv.Version,
			Catalog: sub.Catalog, Image: r.images[key], Generated: sub.GeneratedBy != "", Notes: notes(sub, csv), object: sub.Object,
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

// notes says what a person should know of an operator that is taken as it is.
func notes(sub snapshot.Subscription, csv snapshot.CSV) []string {
	var out []string
	if csv.Phase != "Succeeded" {
		text := "its ClusterServiceVersion is " + cmp.Or(csv.Phase, "without a phase")
		if csv.Message != "" {
			text += ": " + csv.Message
		}
		out = append(out, text)
	}
	if sub.CurrentCSV != "" && sub.CurrentCSV != sub.InstalledCSV {
		out = append(out, "an upgrade to "+sub.CurrentCSV+" waits in the cluster, and is not taken")
	}
	return out
}

// extension reads what a ClusterExtension of OLM v1 installed.
func (r *reader) extension(o *snapshot.Object) {
	body := o.Body()
	filter := kobj.Map(body, "spec", "source", "catalog")
	op := &Operator{
		Kind: o.Kind, Namespace: kobj.Text(body, "spec", "namespace"), Name: o.Name, Package: kobj.Text(filter, "packageName"),
		Bundle: kobj.Text(body, "status", "install", "bundle", "name"), Version: kobj.Text(body, "status", "install", "bundle", "version"),
		Channels: kobj.Texts(filter, "channels"), Image: kobj.Text(body, "spec", "source", "ociImage", "ref"), object: o,
	}
	if op.Bundle == "" {
		r.leave(o, false, "nothing is installed for it")
		return
	}
	op.ByItself = op.Image != ""
	r.Operators = append(r.Operators, op)
}

// loose says of the ClusterServiceVersions that no Subscription calls installed why
// they are there, and returns how many there are.
func (r *reader) loose(owned map[kobj.Key]bool) int {
	before := len(r.Left)
	next := map[kobj.Key]string{}
	for _, sub := range r.s.Subscriptions() {
		next[csvKey(sub.Namespace, sub.CurrentCSV)] = sub.Name
	}
	for key, csv := range r.originals {
		switch {
		case owned[key]:
		case next[key] != "":
			r.leave(csv.Object, false, "Subscription %s is being upgraded to it; what it calls installed is taken", next[key])
		case csv.Phase == "Replacing" || csv.Phase == "Deleting":
			r.leave(csv.Object, false, "it is on its way out (%s)", csv.Phase)
		case csv.Name == snapshot.Packageserver:
			r.leave(csv.Object, false, "it is a part of OLM itself")
		default:
			r.leave(csv.Object, true, "no Subscription says that it is installed: create one with startingCSV, and import again")
		}
	}
	return len(r.Left) - before
}
