// Package profile is what a tree must be for the tool that applies it: what the
// tool wants on each object, the objects that make it apply the tree, and the
// order in which a cluster can take what is rendered.
//
// A profile is a file here and a line in the table. None of them changes what an
// operator gets: annotations and objects of the tool's own are all it adds.
//
// Start from [Of] and [Profile].
package profile

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
)

// Name is the name of a profile, as in quayside.yaml.
type Name string

// Profile is what one tool wants of a tree.
type Profile interface {
	// Adorn returns an object of the tree with what the tool wants on it.
	Adorn(o kobj.Object, at Place) kobj.Object

	// AdornInstallation returns an Installation with what lets it be applied
	// without waiting for the reporter, before Adorn.
	AdornInstallation(o kobj.Object) kobj.Object

	// Manager returns the field manager by which the tool applies a tree on the
	// server.
	Manager() string

	// Guard returns an object of a cluster with what keeps the tool from pruning it.
	Guard(o kobj.Object) kobj.Object

	// Applier returns which of the tool's objects applies an object of a cluster, as
	// far as that bears its mark: "Flux Kustomization ns/name". It is empty where none
	// does.
	Applier(o kobj.Object) string

	// Namespace returns where the tool's own objects go where nobody says.
	Namespace() string

	// Kind returns what the tool applies a tree by, with its article: "an
	// Application". It is empty for a profile without objects of its own.
	Kind() string

	// Faults returns why the tool cannot be told to apply a tree to the clusters,
	// in the order of the fields.
	Faults(g GitOps, clusters []Cluster) []Fault

	// Member returns what clusters.yaml says of a cluster.
	Member(g GitOps, c Cluster) Member

	// Apply returns the objects that make the tool apply the tree, by the directory
	// of the tree that they are to lie in, and files that nothing applies, by path.
	// There are no Faults.
	Apply(t Tree) (own map[string][]kobj.Object, beside map[string][]byte)

	// Inputs returns what an ApplicationSet or a ResourceSet of the user's own is
	// told of each cluster: objects to be applied, or files for it to read, by name.
	// There are no Faults.
	Inputs(t Tree) (objects []kobj.Object, beside map[string][]byte)
}

// Tree is what a profile is told of a tree.
type Tree struct {
	GitOps       GitOps
	Clusters     []Cluster
	OwnCRDs      bool          // a cluster's CRDs are those of clusters/<name>/crds, not all of crds
	HealthChecks bool          // health snippets for the provided APIs
	APIs         []catalog.GVK // custom resources that the operators provide, sorted
	Reporter     *Workload     // nil: none
	Pieces       []Piece       // by name
}

// Cluster is one that gets the tree, or some of it.
type Cluster struct {
	Name        string // "prod"
	Server      string // "https://prod.example.com:6443", where Argo CD has the cluster …
	Destination string // … or the name by which it has it; the cluster that it runs in where both are empty
	KubeConfig  string // name of the Secret by which Flux on another cluster reaches it; empty: its own Flux applies it

	Values   map[string]string // for Inputs
	Prefix   string            // what stands before the directories of its pieces: "", or "clusters/<name>/" where something differs
	Overlays bool              // the team changes something there
}

// crdsDir returns the directory of a cluster's CRDs in the tree.
func (t Tree) crdsDir(cluster string) string {
	if t.OwnCRDs {
		return path.Join("clusters", cluster, layout.CRDs)
	}
	return layout.CRDs
}

// Workload is the reporter's Deployment.
type Workload struct{ Namespace, Name string }

// line is one line of the table.
type line struct {
	name    Name
	profile Profile
}

// table lists the profiles; the first one is the default of quayside.yaml.
func table() []line {
	return []line{{ArgoCD, argoCD{}}, {Flux, flux{}}, {Plain, plain{}}}
}

// Names returns the names of all profiles.
func Names() []string {
	var out []string
	for _, l := range table() {
		out = append(out, string(l.name))
	}
	return out
}

// Of returns the profile of a name. An empty one is Plain.
func Of(name Name) (Profile, error) {
	if name == "" {
		name = Plain
	}
	for _, l := range table() {
		if l.name == name {
			return l.profile, nil
		}
	}
	return nil, fmt.Errorf("no profile %q (have %s)", name, strings.Join(Names(), ", "))
}

// Guard returns an object of a cluster with what keeps every tool from pruning it.
func Guard(o kobj.Object) kobj.Object {
	for _, l := range table() {
		o = l.profile.Guard(o)
	}
	return o
}

// Applier returns which object of which tool applies an object of a cluster, as
// far as that bears a mark; empty where none does.
func Applier(o kobj.Object) string {
	for _, l := range table() {
		if by := l.profile.Applier(o); by != "" {
			return by
		}
	}
	return ""
}

// Enum returns the names that a Name may be, for the schema.
func (Name) Enum() []string { return Names() }

// IssuesCertificates reports whether an API is one by which quayside has
// certificates issued. The operator that provides it has to run before those that
// wait for their certificates do, whether or not any of them is there today: what
// is applied in which order does not change with what stands beside it.
func IssuesCertificates(api catalog.GVK) bool {
	return api.Group == certManagerGroup && slices.Contains(certificateKinds(), api.Kind)
}

const certManagerGroup = "cert-manager.io"

func certificateKinds() []string { return []string{"Certificate", "Issuer", "ClusterIssuer"} }

// certificate reports whether o is one, or issues one.
func certificate(o kobj.Object) bool {
	return IssuesCertificates(catalog.GVK{Group: o.Group(), Kind: o.Kind()})
}

// keepsData reports whether deleting o deletes what operators keep in it.
func keepsData(o kobj.Object) bool { return kobj.IsCRD(o) || o.Is("", "Namespace") }

// holdsText reports whether a string or key within v contains text.
func holdsText(v any, text string) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if strings.Contains(key, text) || holdsText(e, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holdsText(e, text) })
	case string:
		return strings.Contains(v, text)
	}
	return false
}
