// Package profile adapts a rendered tree to the GitOps tool that applies it: annotations of
// objects, objects that make the tool apply the tree, and the order of application.
//
// A new profile needs one file and one entry in profileTable. A profile with settings also needs a
// field in [GitOps] or [Cluster]. No other code depends on the name of a profile. A profile does
// not change operators: it adds only annotations and objects for the tool.
//
// Start from [Lookup] and [Profile].
package profile

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// Name is the name of a profile in quayside.yaml.
type Name string

// Profile adapts a tree to one tool. Implementations embed plain and override some methods.
type Profile interface {
	// About returns the constant properties of the profile.
	About() About

	// Annotate returns an object of the tree with annotations for the tool.
	Annotate(o k8s.Object, at ApplyPosition) k8s.Object

	// AnnotateInstallation returns an Installation with annotations that make the tool apply it
	// without waiting for the reporter. It is called before Annotate.
	AnnotateInstallation(o k8s.Object) k8s.Object

	// Guard returns an object of a cluster with annotations that protect it from pruning.
	Guard(o k8s.Object) k8s.Object

	// Removal returns the behaviour of the tool when the object is removed from the tree. It
	// depends on the annotations of the object.
	Removal(o k8s.Object) Removal

	// Applier returns the object of the tool that applies an object of a cluster, such as "Flux
	// Kustomization ns/name", according to the labels and annotations of o. It returns "" if there
	// is none.
	Applier(o k8s.Object) string

	// Defaults sets the defaults of the profile's settings.
	Defaults(g *GitOps)

	// NeedsSeparateDirs reports whether several clusters need separate directories, because the
	// objects of the tool can depend only on the name of a cluster.
	NeedsSeparateDirs(g GitOps) bool

	// Faults returns the faults in settings that prevent the tool from applying the tree, ordered
	// by field.
	Faults(g GitOps, clusters []Cluster) []Fault

	// Unmatched returns a fault for each setting that should select objects, but selects none of
	// the given ones, ordered by field.
	Unmatched(g GitOps, objects []k8s.Key) []Fault

	// Member returns the entry of a cluster in clusters.yaml.
	Member(g GitOps, c Cluster) Member

	// Apply returns the objects that make the tool apply the tree, by directory in the tree, and
	// files that the tool does not apply, by path. The settings must have no Faults.
	Apply(t Tree) (own map[string][]k8s.Object, files map[string][]byte)

	// Inputs returns the data of each cluster for the user's own ApplicationSet or ResourceSet:
	// objects to apply, or files by name. The settings must have no Faults.
	Inputs(t Tree) (objects []k8s.Object, files map[string][]byte)
}

// Tree is the content of a rendered tree as far as profiles use it.
type Tree struct {
	GitOps       GitOps
	Clusters     []Cluster
	OwnCRDs      bool          // each cluster's CRDs are in clusters/<name>/crds instead of crds
	HealthChecks bool          // whether to render health checks for APIs
	APIs         []catalog.GVK // custom resources that the operators provide, sorted
	Reporter     *Workload     // nil if there is no reporter
	Pieces       []Piece       // sorted by name
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

// entry is one row of profileTable.
type entry struct {
	name    Name
	profile Profile
}

// profileTable returns the profiles; the first one is the default of quayside.yaml.
func profileTable() []entry {
	return []entry{
		{ArgoCD, argoCD{}},
		{Flux, flux{}},
		{Plain, plain{}},
	}
}

// Names returns the names of all profiles.
func Names() []string {
	var out []string
	for _, l := range profileTable() {
		out = append(out, string(l.name))
	}
	return out
}

// Lookup returns the profile with a name. An empty name selects Plain.
func Lookup(name Name) (Profile, error) {
	if name == "" {
		name = Plain
	}
	for _, l := range profileTable() {
		if l.name == name {
			return l.profile, nil
		}
	}
	return nil, fmt.Errorf("unknown profile %q: must be one of %s", name, strings.Join(Names(), ", "))
}

// Enum returns the valid values of Name, for the schema.
func (Name) Enum() []string { return Names() }

// isCertificate reports whether o is a certificate or an issuer of certificates.
func isCertificate(o k8s.Object) bool { return certificates.Issues(o.Group(), o.Kind()) }

// keepsData reports whether deleting o would delete data of operators.
func keepsData(o k8s.Object) bool { return k8s.IsCRD(o) || o.Is("", "Namespace") }

// containsText reports whether a string or key in v contains text.
func containsText(v any, text string) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if strings.Contains(key, text) || containsText(e, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return containsText(e, text) })
	case string:
		return strings.Contains(v, text)
	}
	return false
}
