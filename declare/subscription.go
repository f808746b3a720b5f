// Package declare parses the user's declarations.
//
// A workspace can mix declarations of four APIs: OLM v0's Subscription, OLM v1's ClusterExtension, Open
// Cluster Management's OperatorPolicy, and quayside's own Subscription. An object of a GitOps tool that
// installs a chart can also be a declaration, if it is selected. These objects are HelmReleases of Flux, and
// Applications and ApplicationSets of Argo CD. The package also parses related objects: CatalogSource,
// ClusterCatalog, OperatorGroup, Namespace, and ClusterServiceVersion, which is state exported from a
// cluster. It counts objects of other kinds and ignores them. Its input is bytes or an fs.FS. It does not
// resolve versions.
//
// The API is not stable: exported names may change in any release.
//
// Start from [Parse], [LoadFS] and [Set].
package declare

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// parseLimits returns the limits for one file. They are sufficient for an export of a large
// cluster.
func parseLimits() yamlnode.Limits {
	return yamlnode.Limits{Bytes: 32 << 20, Depth: 100, Nodes: 1_000_000}
}

// Parse parses the declarations in a file with YAML or JSON documents. The error is a diag.List of
// all faults: unknown fields, wrong types, invalid values, duplicates and contradictions.
func Parse(file string, data []byte) (*Set, error) {
	r := parseFile(file, data)
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	return Merge(r.set)
}

// Merge returns the union of the sets, sorted. It keeps one of several equal objects. The error is
// a diag.List of faults such as different objects with the same name. It does not modify the sets.
func Merge(sets ...*Set) (*Set, error) {
	out := mergeReadable(sets)
	if err := Faults(out.Unread); err != nil {
		return nil, err
	}
	return out, nil
}

// mergeReadable returns the union of the sets. Declarations that contradict each other are unread.
func mergeReadable(sets []*Set) *Set {
	out := &Set{Others: map[string]int{}}
	for _, s := range sets {
		out.Images = append(out.Images, s.Images...)
		out.Warnings = append(out.Warnings, s.Warnings...)
		out.Unread = append(out.Unread, s.Unread...)
		out.Elsewhere = append(out.Elsewhere, s.Elsewhere...)
		out.ChartSources = append(out.ChartSources, s.ChartSources...)
		out.ConfigMaps = append(out.ConfigMaps, s.ConfigMaps...)
		for kind, n := range s.Others {
			out.Others[kind] += n
		}
	}
	merge(out, &out.Subscriptions, sets, func(s *Set) []Subscription { return s.Subscriptions })
	merge(out, &out.OperatorGroups, []*Set{{OperatorGroups: mergeOperatorGroups(sets)}}, func(s *Set) []OperatorGroup { return s.OperatorGroups })
	merge(out, &out.CatalogSources, sets, func(s *Set) []CatalogSource { return s.CatalogSources })
	out.addChartCatalogs()
	merge(out, &out.CSVs, sets, func(s *Set) []ClusterServiceVersion { return s.CSVs })
	merge(out, &out.Namespaces, sets, func(s *Set) []Namespace { return s.Namespaces })
	out.Warnings = diag.SortWarnings(out.Warnings)
	out.dropContradictions()
	out.dropSuccessions()
	out.inferPackages()
	out.addImages()
	slices.SortStableFunc(out.Unread, func(a, b Unread) int { return cmp.Or(a.Pos.Compare(b.Pos), strings.Compare(a.Reason, b.Reason)) })
	return out
}

// merge sets list to the objects of one kind from all sets, sorted by namespace, name and position.
// Of equal objects it keeps the first. Different objects with the same name are unread.
// Subscriptions of all dialects must have different keys (namespace and name), because these
// identify them in the lock.
func merge[T object](out *Set, list *[]T, sets []*Set, listOf func(*Set) []T) {
	var all []T
	for _, s := range sets {
		all = append(all, listOf(s)...)
	}
	slices.SortStableFunc(all, func(a, b T) int {
		x, y := a.identity(), b.identity()
		return cmp.Or(strings.Compare(x.namespace, y.namespace), strings.Compare(x.name, y.name), x.pos.Compare(y.pos))
	})
	for i := 0; i < len(all); {
		first := all[i].identity()
		same := all[i:]
		if n := slices.IndexFunc(same, func(d T) bool { return d.identity().namespace != first.namespace || d.identity().name != first.name }); n >= 0 {
			same = same[:n]
		}
		i += len(same)
		different := slices.DeleteFunc(slices.Clone(same[1:]), func(d T) bool { return reflect.DeepEqual(d.meaning(), same[0].meaning()) })
		for _, d := range different {
			x := d.identity()
			out.Unread = append(out.Unread, unreadObject(diag.Errorf(x.pos, "%s %q is declared twice, first at %s", x.kind, x.ID().String(), first.pos), x))
		}
		if len(different) == 0 {
			*list = append(*list, same[0])
		}
	}
}

// mergeOperatorGroups returns the OperatorGroups of all sets. It omits a group in a policy if it is
// equal to another group.
func mergeOperatorGroups(sets []*Set) []OperatorGroup {
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
type object interface {
	identity() identity
	meaning() any // returns the content without positions
}

// identity identifies a declaration, and contains its position.
type identity struct {
	kind            string // for messages
	dialect         Dialect
	namespace, name string
	pos             diag.Pos
}

// key returns d without its position.
func (d identity) key() identity {
	d.pos = diag.Pos{}
	return d
}

// ID returns the namespace and the name of d, for messages.
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

func (s Subscription) meaning() any {
	s.Pos, s.Fields = diag.Pos{}, nil
	return s
}

func (g OperatorGroup) meaning() any {
	g.Pos, g.Fields = diag.Pos{}, nil
	return g
}

func (d CatalogSource) meaning() any {
	d.Pos, d.Content = diag.Pos{}, diag.Pos{}
	return d
}

func (d ClusterServiceVersion) meaning() any {
	d.Pos = diag.Pos{}
	return d
}

func (d Namespace) meaning() any {
	d.Pos = diag.Pos{}
	return d
}

// OperatorGroupsIn returns the OperatorGroups in a namespace, sorted by name. OLM supports only
// one.
func (s *Set) OperatorGroupsIn(namespace string) []OperatorGroup {
	var out []OperatorGroup
	for _, g := range s.OperatorGroups {
		if g.Namespace == namespace {
			out = append(out, g)
		}
	}
	return out
}

// NamespacesMatching returns the names of the declared Namespaces that match a selector, sorted.
func (s *Set) NamespacesMatching(sel *LabelSelector) []string {
	var out []string
	for _, n := range s.Namespaces {
		if sel.Matches(n.Labels) {
			out = append(out, n.Name)
		}
	}
	return out
}

// parseFile parses one file. It does not compare the objects with each other.
func parseFile(file string, data []byte) *reader { return (&reader{file: file}).parse(data) }

// parse parses the text of the file, and returns r.
func (r *reader) parse(data []byte) *reader {
	r.set = &Set{Others: map[string]int{}}
	var err error
	if r.docs, err = yamlnode.Documents(r.file, data, parseLimits()); err != nil {
		r.errs.Add(diag.Pos{File: r.file}, err)
		return r
	}
	for _, n := range r.docs {
		if len(r.errs) > yamlnode.MaxFaults {
			r.errs.Addf(r.at(n), "more than %d faults: the rest is omitted", yamlnode.MaxFaults)
			break
		}
		r.readObject(n)
	}
	return r
}

// reader reads the objects of one file into a Set.
type reader struct {
	file  string
	docs  []*yamlnode.Node
	set   *Set
	first diag.Pos // position of the first declaration; zero: none yet
	errs  diag.List
	about []Unread // object of each fault, in the same order as the faults

	named     bool                                                           // whether a path names the file, so that charts that GitOps tools install declare operators
	cluster   string                                                         // name or server of the cluster whose Applications are read; empty: of all clusters
	locate    func(name string) string                                       // converts a path in the repository to one relative to the workspace; nil: they are the same
	foreign   func(url string) bool                                          // reports whether a URL belongs to another repository; nil: no URL does
	chartIn   func(dir string) string                                        // returns the name of the chart in a directory of the repository, or ""; nil: no charts
	generate  func(*yamlnode.Node) (apps []map[string]any, unknown []string) // returns the Applications of an ApplicationSet; nil: it is not read
	namespace string                                                         // namespace of objects that have none; empty: not set
	policy    *yamlnode.Node                                                 // Policy that contains the current object, or nil
}

// declare appends d to a list of the reader's set.
func declare[T object](r *reader, list *[]T, d T) {
	*list = append(*list, d)
	if r.first.IsZero() {
		r.first = d.identity().pos
	}
}

func (r *reader) at(n *yamlnode.Node) diag.Pos { return yamlnode.At(r.file, n) }

// readObject reads one object, or the items of a List.
func (r *reader) readObject(n *yamlnode.Node) {
	apiVersion, kind := scalarField(n, "apiVersion"), scalarField(n, "kind")
	group, _, _ := strings.Cut(apiVersion, "/")
	_, items := yamlnode.Field(n, "items")
	if items != nil && strings.HasSuffix(kind, "List") && (apiVersion == "v1" || isOurs(group)) {
		r.readItems(items)
		return
	}
	defer r.dropFaulty(n, kind, len(r.errs), *r.set)
	switch {
	case group == fluxSources && (kind == "HelmRepository" || kind == "OCIRepository"):
		r.readChartSource(n)
		return
	case apiVersion == "v1" && kind == "ConfigMap":
		r.readConfigMap(n)
	case group == string(flux) && kind == "HelmRelease" && (r.named || survey.IsSelected(n)):
		r.readHelmRelease(n)
		return
	case group == string(argo) && (kind == "Application" || kind == "ApplicationSet") && (survey.IsSelected(n) || r.named && survey.InstallsChart(n)):
		r.readApplications(n)
		return
	}
	for _, k := range knownKinds() {
		if k.kind != kind || k.group != group {
			continue
		}
		if !slices.Contains(k.versions, apiVersion) {
			_, v := yamlnode.Field(n, "apiVersion")
			if group == string(Quayside) {
				yamlnode.CheckHeader(r.file, n, k.versions[len(k.versions)-1], kind, &r.errs)
				return
			}
			r.errs.Addf(r.at(v), "unknown apiVersion %q for %s: must be %s", apiVersion, kind, strings.Join(k.versions, " or "))
			return
		}
		setDefaultNamespace(n, r.namespace)
		before := len(r.errs)
		k.read(r, n)
		if len(r.errs) == before {
			r.rejectPlaceholders(n)
		}
		return
	}
	r.ignoreUnrelated(n, group, apiVersion, kind)
}

// dropFaulty removes all objects that were read from n, if n has a fault that belongs to none of them. It
// attributes the fault to n. before and errs are the set and the number of faults before n was read.
func (r *reader) dropFaulty(n *yamlnode.Node, kind string, errs int, before Set) {
	if len(r.errs) <= max(errs, len(r.about)) {
		return
	}
	_, meta := yamlnode.Field(n, "metadata")
	u := Unread{Kind: kind, Namespace: scalarField(meta, "namespace"), Name: scalarField(meta, "name")}
	for _, s := range r.set.Subscriptions[len(before.Subscriptions):] {
		u.Namespace, u.Name, u.Package = s.Namespace, s.Name, s.Package
	}
	if u.Package == "" && kind == "OperatorPolicy" {
		u.Namespace, u.Name = "", "" // the fault is about the policy, not its subscription
	}
	for len(r.about) < errs { // earlier faults belong to no object
		r.about = append(r.about, Unread{})
	}
	for len(r.about) < len(r.errs) {
		r.about = append(r.about, u)
	}
	before.Others = r.set.Others
	*r.set = before
}

// unread returns an Unread for each fault of the file. mapPos converts the positions of faults.
func (r *reader) unread(data []byte, mapPos func(diag.Pos) diag.Pos) []Unread {
	var out []Unread
	for i, e := range r.errs {
		about := Unread{text: data}
		if i < len(r.about) && r.about[i].Kind != "" {
			about = r.about[i]
		}
		out = append(out, unreadAll(diag.Pos{File: r.file}, diag.MapPositions(e, mapPos), about)...)
	}
	return out
}

func scalarField(n *yamlnode.Node, field string) string {
	_, v := yamlnode.Field(n, field)
	s, _ := yamlnode.Text(v)
	return s
}

func (r *reader) readItems(items *yamlnode.Node) {
	if items.Kind != yamlnode.SequenceNode {
		if s, ok := yamlnode.Text(items); ok || items.Kind == yamlnode.MappingNode {
			r.errs.Addf(r.at(items), "items: expected a list, got %s", map[bool]string{true: "\"" + s + "\"", false: "a mapping"}[ok])
		}
		return
	}
	for _, it := range items.Content {
		if len(r.errs) > yamlnode.MaxFaults {
			return
		}
		if it.Kind != yamlnode.MappingNode {
			r.errs.Addf(r.at(it), "items: each item must be an object with apiVersion and kind")
			continue
		}
		r.readObject(it)
	}
}

// knownKind is a supported kind.
type knownKind struct {
	group    string
	kind     string
	versions []string
	read     func(r *reader, n *yamlnode.Node)
	fields   func() map[Field]string // field paths; nil if the kind declares no operator
}

// knownKinds returns every supported kind.
func knownKinds() []knownKind {
	return []knownKind{
		{string(V0), "Subscription", []string{"operators.coreos.com/v1alpha1"}, (*reader).readSubscriptionV0, fieldsV0},
		{string(V1), "ClusterExtension", []string{"olm.operatorframework.io/v1"}, (*reader).readClusterExtension, fieldsV1},
		{string(OCM), "OperatorPolicy", []string{"policy.open-cluster-management.io/v1beta1"}, (*reader).readOperatorPolicy, fieldsOCM},
		{string(Quayside), "Subscription", []string{"quayside.dev/v1alpha1"}, (*reader).readSubscriptionOwn, fieldsOwn},
		{string(V0), "CatalogSource", []string{"operators.coreos.com/v1alpha1"}, (*reader).readCatalogSource, nil},
		{string(V0), "OperatorGroup", []string{"operators.coreos.com/v1", "operators.coreos.com/v1alpha2"}, (*reader).readOperatorGroup, nil},
		{string(V0), "ClusterServiceVersion", []string{"operators.coreos.com/v1alpha1"}, (*reader).readClusterServiceVersion, nil},
		{string(V0), "InstallPlan", []string{"operators.coreos.com/v1alpha1"}, (*reader).readInstallPlan, nil},
		{string(V1), "ClusterCatalog", []string{"olm.operatorframework.io/v1"}, (*reader).readClusterCatalog, nil},
		{"v1", "Namespace", []string{"v1"}, (*reader).readNamespace, nil},
	}
}

// APIs returns the APIs of OLM and of policies whose objects are declarations: each as "group/version"
// and as "group/version/Kind".
func APIs() []string {
	var out []string
	for _, k := range knownKinds() {
		if k.group == string(Quayside) || k.group == "v1" {
			continue
		}
		for _, v := range k.versions {
			out = append(out, v, v+"/"+k.kind)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isOurs reports whether an API group contains a kind that declares an operator.
func isOurs(group string) bool {
	return group != string(flux) && group != string(argo) && fieldsOf(Dialect(group)) != nil
}

// otherKinds returns the kinds that are ignored without a fault, although their API groups contain
// kinds of declarations.
func otherKinds() []string {
	return []string{
		"OperatorCondition", "Operator", "OLMConfig", "ClusterObjectSet", "ClusterExtensionRevision", "ClusterObjectTemplate",
		"Workspace", "Lock", "Installation", "PackageManifest",
		"Policy", "PolicySet", "PolicyAutomation", "PolicyGenerator", "PlacementBinding", "ConfigurationPolicy", "CertificatePolicy",
	}
}

// ignoreUnrelated ignores an object of an unsupported kind. If its kind or group appears to be
// misspelled, it adds a fault, so that no declaration is silently ignored.
func (r *reader) ignoreUnrelated(n *yamlnode.Node, group, apiVersion, kind string) {
	var inGroup, withKind []string
	for _, k := range knownKinds() {
		if k.group == group {
			inGroup = append(inGroup, k.kind)
		}
		if k.kind == kind {
			withKind = append(withKind, k.versions...)
		}
	}
	r.ignoreObject(n, group, kind)
	if isOurs(group) && !slices.Contains(otherKinds(), kind) {
		if hint := diag.DidYouMean(kind, inGroup); hint != "" || group == string(Quayside) {
			key, v := yamlnode.Field(n, "kind")
			if key == nil {
				v = n
			}
			r.errs.Addf(r.at(v), "unknown kind %q in %s%s", kind, apiVersion, hint)
		}
		return
	}
	if hint := diag.DidYouMean(apiVersion, withKind); hint != "" && kind != "Namespace" {
		_, v := yamlnode.Field(n, "apiVersion")
		_, meta := yamlnode.Field(n, "metadata")
		r.set.Warnings = append(r.set.Warnings, diag.Warning{
			Pos: r.at(v), Code: "unknown-api", Msg: kind + " of " + apiVersion + " is ignored" + hint,
			Subject: scalarField(meta, "namespace") + "/" + scalarField(meta, "name"),
		})
	}
}
