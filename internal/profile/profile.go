// Package profile adapts a rendered tree to the tool that applies it: the annotations of
// objects, the objects that make the tool apply the tree, and the order of application.
//
// A profile needs one file and one line in the table; one with settings also needs a line in
// [GitOps] or [Cluster]. No other code depends on a profile's name. A profile does not change
// an operator: it adds only annotations and the tool's own objects.
//
// Start from [Lookup] and [Profile].
package profile

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// Name is the name of a profile in quayside.yaml.
type Name string

// Profile adapts a tree to one tool. A new one embeds plain and overrides the differing
// methods.
type Profile interface {
	// About returns the constant properties of the profile.
	About() About

	// Adorn returns an object of the tree with the annotations for the tool.
	Adorn(o k8s.Object, at Place) k8s.Object

	// AdornInstallation returns an Installation that can be applied without waiting for the
	// reporter. It is called before Adorn.
	AdornInstallation(o k8s.Object) k8s.Object

	// Guard returns a cluster's object with protection from pruning by the tool.
	Guard(o k8s.Object) k8s.Object

	// Removal returns the tool's treatment of an object that is removed from the tree, according
	// to its annotations.
	Removal(o k8s.Object) Removal

	// Applier returns the tool's object that applies a cluster's object, according to the
	// tool's marks on it: "Flux Kustomization ns/name". It returns "" if there are none.
	Applier(o k8s.Object) string

	// Defaults fills in the profile's unset settings.
	Defaults(g *GitOps)

	// NeedsSeparateDirs reports whether several clusters need separate directories, because the
	// tool's objects have only the name of a cluster.
	NeedsSeparateDirs(g GitOps) bool

	// Faults returns the faults that prevent the tool from applying a tree to the clusters, in
	// the order of the fields.
	Faults(g GitOps, clusters []Cluster) []Fault

	// Member returns the entry of a cluster in clusters.yaml.
	Member(g GitOps, c Cluster) Member

	// Apply returns the objects that make the tool apply the tree, by their directory in the
	// tree, and files that nothing applies, by path. It requires settings without Faults.
	Apply(t Tree) (own map[string][]k8s.Object, beside map[string][]byte)

	// Inputs returns the data of each cluster for the user's own ApplicationSet or
	// ResourceSet: objects to apply, or files to read, by name. It requires settings without
	// Faults.
	Inputs(t Tree) (objects []k8s.Object, beside map[string][]byte)
}

// Tree describes a tree for a profile.
type Tree struct {
	GitOps       GitOps
	Clusters     []Cluster
	OwnCRDs      bool        // a cluster's CRDs are in clusters/<name>/crds, and not all in crds
	HealthChecks bool        // health snippets for the provided APIs
	APIs         []model.GVK // custom resources that the operators provide, sorted
	Reporter     *Workload   // nil: none
	Pieces       []Piece     // sorted by name
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

// profileTable returns the profiles; the first one is the default of quayside.yaml.
func profileTable() []line {
	return []line{
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
	return nil, fmt.Errorf("no profile %q (have %s)", name, strings.Join(Names(), ", "))
}

// Enum returns the valid values of Name, for the schema.
func (Name) Enum() []string { return Names() }

// isCertificate reports whether o is a certificate, or issues one.
func isCertificate(o k8s.Object) bool { return certificates.Issues(o.Group(), o.Kind()) }

// keepsData reports whether deleting o also deletes the operators' data.
func keepsData(o k8s.Object) bool { return k8s.IsCRD(o) || o.Is("", "Namespace") }

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
