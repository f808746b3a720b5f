// Package subscription reads what the user declares.
//
// Declarations come in four dialects that mix freely: OLM v0's Subscription,
// OLM v1's ClusterExtension, Open Cluster Management's OperatorPolicy, and
// quayside's own Subscription. The objects that
// stand around them are read as well: CatalogSource, ClusterCatalog,
// OperatorGroup, Namespace, and ClusterServiceVersion as state taken over from
// a cluster. Every other kind is counted and passed over. The package reads bytes and an
// fs.FS; it chooses nothing and resolves nothing.
//
// It promises nothing yet: its exported names may change in any release.
//
// Start from [Parse], [LoadFS] and [Set].
package subscription

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// limits caps one file: a dump of a large cluster fits.
func limits() yamlnode.Limits { return yamlnode.Limits{Bytes: 32 << 20, Depth: 100, Nodes: 1_000_000} }

// Parse reads every declaration in one file of YAML or JSON documents. Unknown
// fields, wrong types, values that cannot be, objects declared twice and
// contradictions are all found, each with its place; the error is a diag.List.
func Parse(file string, data []byte) (*Set, error) {
	r := collect(file, data)
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	return Merge(r.set)
}

// Merge returns all that the sets hold as one, sorted and checked as a whole.
// The sets are not modified. The error is a diag.List.
func Merge(sets ...*Set) (*Set, error) {
	out := &Set{Others: map[string]int{}}
	var errs diag.List
	merge(&errs, &out.Subscriptions, sets, func(s *Set) []Subscription { return s.Subscriptions })
	merge(&errs, &out.OperatorGroups, []*Set{{OperatorGroups: agreed(sets)}}, func(s *Set) []OperatorGroup { return s.OperatorGroups })
	merge(&errs, &out.CatalogSources, sets, func(s *Set) []CatalogSource { return s.CatalogSources })
	merge(&errs, &out.CSVs, sets, func(s *Set) []ClusterServiceVersion { return s.CSVs })
	merge(&errs, &out.Namespaces, sets, func(s *Set) []Namespace { return s.Namespaces })
	for _, s := range sets {
		out.Warnings = append(out.Warnings, s.Warnings...)
		for kind, n := range s.Others {
			out.Others[kind] += n
		}
	}
	out.Warnings = diag.SortWarnings(out.Warnings)
	out.contradictions(&errs)
	out.successions(&errs)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	out.inferPackages()
	return out, nil
}

// merge joins what the sets hold of one kind, by namespace, name and position.
// What is declared twice is a fault: subscriptions of all dialects share one
// name space, for the lock names them by namespace and name.
func merge[T object](errs *diag.List, out *[]T, sets []*Set, of func(*Set) []T) {
	for _, s := range sets {
		*out = append(*out, of(s)...)
	}
	slices.SortStableFunc(*out, func(a, b T) int {
		x, y := a.identity(), b.identity()
		return cmp.Or(strings.Compare(x.namespace, y.namespace), strings.Compare(x.name, y.name), x.pos.Compare(y.pos))
	})
	for i := 1; i < len(*out); i++ {
		first, d := (*out)[i-1].identity(), (*out)[i].identity()
		if first.namespace == d.namespace && first.name == d.name {
			errs.Addf(d.pos, "%s %q is declared twice, first at %s", d.kind, d.ID().String(), first.pos)
		}
	}
}

// agreed returns the OperatorGroups of all sets, without those in policies that
// say what another one of their name says.
func agreed(sets []*Set) []OperatorGroup {
	var own, policies []OperatorGroup
	for _, s := range sets {
		for _, g := range s.OperatorGroups {
			if g.Policy == "" {
				own = append(own, g)
			} else {
				policies = append(policies, g)
			}
		}
	}
	slices.SortStableFunc(policies, func(a, b OperatorGroup) int { return a.Pos.Compare(b.Pos) })
	for _, g := range policies {
		if !slices.ContainsFunc(own, func(o OperatorGroup) bool { return o.Digest == g.Digest }) {
			own = append(own, g)
		}
	}
	return own
}

// object is a declaration of any kind.
type object interface{ identity() identity }

// identity is what there can be one of.
type identity struct {
	kind            string // as messages name it
	dialect         Dialect
	namespace, name string
	pos             diag.Pos
}

// key is d without its place.
func (d identity) key() identity {
	d.pos = diag.Pos{}
	return d
}

// ID returns how messages name d.
func (d identity) ID() catalog.ID { return catalog.ID{Namespace: d.namespace, Name: d.name} }

func (s Subscription) identity() identity {
	return identity{"subscription", s.Dialect, s.Namespace, s.Name, s.Pos}
}

func (g OperatorGroup) identity() identity {
	return identity{"OperatorGroup", "", g.Namespace, g.Name, g.Pos}
}

func (d CatalogSource) identity() identity {
	return identity{"catalog", "", d.ID.Namespace, d.ID.Name, d.Pos}
}

func (d ClusterServiceVersion) identity() identity {
	return identity{"ClusterServiceVersion", "", d.Namespace, d.Name, d.Pos}
}
func (d Namespace) identity() identity { return identity{"Namespace", "", "", d.Name, d.Pos} }

// OperatorGroupsIn returns the OperatorGroups of a namespace by name: OLM
// demands exactly one.
func (s *Set) OperatorGroupsIn(namespace string) []OperatorGroup {
	var out []OperatorGroup
	for _, g := range s.OperatorGroups {
		if g.Namespace == namespace {
			out = append(out, g)
		}
	}
	return out
}

// NamespacesMatching returns the names of the declared Namespaces that sel
// matches, sorted.
func (s *Set) NamespacesMatching(sel *LabelSelector) []string {
	var out []string
	for _, n := range s.Namespaces {
		if sel.Matches(n.Labels) {
			out = append(out, n.Name)
		}
	}
	return out
}

// collect reads one file without looking at how its objects fit together.
func collect(file string, data []byte) *reader {
	r := &reader{file: file, set: &Set{Others: map[string]int{}}}
	var err error
	if r.docs, err = yamlnode.Documents(file, data, limits()); err != nil {
		r.errs.Add(diag.Pos{File: file}, err)
		return r
	}
	for _, n := range r.docs {
		if len(r.errs) > yamlnode.MaxFaults {
			r.errs.Addf(r.at(n), "more than %d faults: the rest is left out", yamlnode.MaxFaults)
			break
		}
		r.object(n)
	}
	return r
}

// reader fills a Set from the objects of one file.
type reader struct {
	file  string
	docs  []*yaml.Node
	set   *Set
	first diag.Pos // of what was declared; in no file where nothing was
	errs  diag.List

	sources []source   // what objects of other kinds apply
	around  *yaml.Node // the Policy in which the object stands that is being read
}

// declare puts a declaration into one of the lists of r's set.
func declare[T object](r *reader, list *[]T, d T) {
	*list = append(*list, d)
	if r.first.IsZero() {
		r.first = d.identity().pos
	}
}

func (r *reader) at(n *yaml.Node) diag.Pos { return yamlnode.At(r.file, n) }

// object reads one object, or the items of a List.
func (r *reader) object(n *yaml.Node) {
	apiVersion, kind := text(n, "apiVersion"), text(n, "kind")
	group, _, _ := strings.Cut(apiVersion, "/")
	_, items := yamlnode.Field(n, "items")
	if items != nil && strings.HasSuffix(kind, "List") && (apiVersion == "v1" || isOurs(group)) {
		r.items(items)
		return
	}
	for _, k := range kinds() {
		if k.kind != kind || k.group != group {
			continue
		}
		if !slices.Contains(k.versions, apiVersion) {
			_, v := yamlnode.Field(n, "apiVersion")
			if group == string(Quayside) {
				yamlnode.Header(r.file, n, k.versions[len(k.versions)-1], kind, &r.errs)
				return
			}
			r.errs.Addf(r.at(v), "apiVersion %q is not known for %s (want %s)", apiVersion, kind, strings.Join(k.versions, " or "))
			return
		}
		k.read(r, n)
		return
	}
	r.stranger(n, group, apiVersion, kind)
}

func text(n *yaml.Node, field string) string {
	_, v := yamlnode.Field(n, field)
	s, _ := yamlnode.Text(v)
	return s
}

func (r *reader) items(items *yaml.Node) {
	if items.Kind != yaml.SequenceNode {
		if s, ok := yamlnode.Text(items); ok || items.Kind == yaml.MappingNode {
			r.errs.Addf(r.at(items), "items: want a list, got %s", map[bool]string{true: "\"" + s + "\"", false: "a mapping"}[ok])
		}
		return
	}
	for _, it := range items.Content {
		if len(r.errs) > yamlnode.MaxFaults {
			return
		}
		if it.Kind != yaml.MappingNode {
			r.errs.Addf(r.at(it), "items: want an object")
			continue
		}
		r.object(it)
	}
}

// known is one kind that is read.
type known struct {
	group    string
	kind     string
	versions []string
	read     func(r *reader, n *yaml.Node)
	fields   func() map[Field]string // of a kind that declares a Subscription: where it keeps what
}

// kinds returns every kind that is read. A dialect is one line here: the rest of
// it stands in its own file.
func kinds() []known {
	return []known{
		{string(V0), "Subscription", []string{"operators.coreos.com/v1alpha1"}, (*reader).subscriptionV0, fieldsV0},
		{string(V1), "ClusterExtension", []string{"olm.operatorframework.io/v1"}, (*reader).clusterExtension, fieldsV1},
		{string(OCM), "OperatorPolicy", []string{"policy.open-cluster-management.io/v1beta1"}, (*reader).operatorPolicy, fieldsOCM},
		{string(Quayside), "Subscription", []string{"quayside.dev/v1alpha1"}, (*reader).subscriptionOwn, fieldsOwn},
		{string(V0), "CatalogSource", []string{"operators.coreos.com/v1alpha1"}, (*reader).catalogSource, nil},
		{string(V0), "OperatorGroup", []string{"operators.coreos.com/v1", "operators.coreos.com/v1alpha2"}, (*reader).operatorGroup, nil},
		{string(V0), "ClusterServiceVersion", []string{"operators.coreos.com/v1alpha1"}, (*reader).clusterServiceVersion, nil},
		{string(V1), "ClusterCatalog", []string{"olm.operatorframework.io/v1"}, (*reader).clusterCatalog, nil},
		{"v1", "Namespace", []string{"v1"}, (*reader).namespace, nil},
	}
}

// isOurs reports whether declarations are of that API group.
func isOurs(group string) bool { return fieldsOf(Dialect(group)) != nil }

// otherKinds are those of the known groups that declare nothing.
func otherKinds() []string {
	return []string{
		"InstallPlan", "OperatorCondition", "Operator", "OLMConfig", "ClusterObjectSet", "ClusterExtensionRevision", "ClusterObjectTemplate",
		"Workspace", "Lock", "Installation", "PackageManifest",
		"Policy", "PolicySet", "PolicyAutomation", "PolicyGenerator", "PlacementBinding", "ConfigurationPolicy", "CertificatePolicy",
	}
}

// stranger passes over what is of no concern, but for slips of the keyboard:
// a declaration that is silently left out would be the worst answer.
func (r *reader) stranger(n *yaml.Node, group, apiVersion, kind string) {
	var inGroup, withKind []string
	for _, k := range kinds() {
		if k.group == group {
			inGroup = append(inGroup, k.kind)
		}
		if k.kind == kind {
			withKind = append(withKind, k.versions...)
		}
	}
	r.aside(n, group, kind)
	if isOurs(group) && !slices.Contains(otherKinds(), kind) {
		if hint := diag.DidYouMean(kind, inGroup); hint != "" || group == string(Quayside) {
			key, v := yamlnode.Field(n, "kind")
			if key == nil {
				v = n
			}
			r.errs.Addf(r.at(v), "kind %q is not known in %s%s", kind, apiVersion, hint)
		}
		return
	}
	if hint := diag.DidYouMean(apiVersion, withKind); hint != "" && kind != "Namespace" {
		_, v := yamlnode.Field(n, "apiVersion")
		r.set.Warnings = append(r.set.Warnings, diag.Warning{Pos: r.at(v), Code: "unknown-api", Msg: kind + " of " + apiVersion + " is passed over" + hint})
	}
}
