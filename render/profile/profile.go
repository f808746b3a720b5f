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
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/kobj"
)

// Name is the name of a profile, as in quayside.yaml.
type Name string

// Profile is what one tool wants of a tree.
type Profile interface {
	// Adorn returns an object of the tree with what the tool wants on it.
	Adorn(o kobj.Object) kobj.Object

	// AdornInstallation returns an Installation with what lets it be applied
	// without waiting for the reporter, before Adorn.
	AdornInstallation(o kobj.Object) kobj.Object

	// Namespace returns where the tool's own objects go where nobody says.
	Namespace() string

	// Kind returns what the tool applies a tree by, with its article: "an
	// Application". It is empty for a profile without objects of its own.
	Kind() string

	// Needed returns what the profile cannot do without to render those, by
	// field of spec.gitops, in the order in which it is asked for.
	Needed(g GitOps) []Field

	// Apply returns the objects that make the tool apply the tree, and files
	// that lie beside them and that nothing applies, by name. All that is
	// needed is there.
	Apply(t Tree) (own []kobj.Object, beside map[string][]byte)
}

// Field is a field of spec.gitops with its value.
type Field struct{ Name, Value string }

// Tree is what a profile is told of a tree.
type Tree struct {
	GitOps       GitOps
	Clusters     []Cluster
	HealthChecks bool          // health snippets for the provided APIs
	APIs         []catalog.GVK // custom resources that the operators provide, sorted
	Objects      []kobj.Object // of the base, CRDs included
	Reporter     *Workload     // nil: none
}

// Cluster is one overlay: clusters/<name>.
type Cluster struct {
	Name   string // "prod"
	Server string // "https://kubernetes.default.svc", the cluster itself where empty
}

// Workload is the reporter's Deployment; its overlay is clusters/<name>/reporter.
type Workload struct{ Namespace, Name string }

// GitOps is where the tree will live.
type GitOps struct {
	RepoURL    string // "https://git.example.com/fleet.git"
	Revision   string // "main"
	Path       string // "rendered"
	Namespace  string // "argocd"
	Project    string // "default"
	SourceKind string // "GitRepository"
	SourceName string // "fleet"

	SourceNamespace string // of the Flux source; empty: Namespace
}

// reporterDir is the directory of the reporter's overlay within a cluster's.
const reporterDir = "reporter"

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

// Enum returns the names that a Name may be, for the schema.
func (Name) Enum() []string { return Names() }

// Missing returns the fields that a profile needs and that have no value.
func Missing(p Profile, g GitOps) []string {
	var out []string
	for _, f := range p.Needed(g) {
		if f.Value == "" {
			out = append(out, f.Name)
		}
	}
	return out
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
