// Package profile adapts a rendered tree to the GitOps tool that applies it. It provides
// annotations for objects, the objects that make the tool apply the tree, and the order in which
// objects are applied.
//
// A new profile needs one file and one entry in profileTable. A profile with settings also needs a field in
// [GitOps] or [Cluster]. No other code depends on the name of a profile. A profile does not change
// operators: it only adds annotations, and objects for the tool.
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

// Profile adapts a tree to one GitOps tool. Implementations embed plain and override some of its
// methods.
type Profile interface {
	// About returns the fixed properties of the profile.
	About() About

	// Annotate returns an object of the tree with annotations for the tool.
	Annotate(o k8s.Object, at ApplyPosition) k8s.Object

	// AnnotateInstallation returns an Installation with annotations that make the tool apply the Installation
	// without waiting for the reporter. It is called before Annotate.
	AnnotateInstallation(o k8s.Object) k8s.Object

	// Guard returns an object with annotations that protect it from pruning.
	Guard(o k8s.Object) k8s.Object

	// Removal returns the effect of removing an object from the tree, according to the annotations of the
	// object.
	Removal(o k8s.Object) Removal

	// Applier returns the object of the tool that applies o, such as "Flux Kustomization ns/name",
	// according to the labels and annotations of o. It returns "" if there is none.
	Applier(o k8s.Object) string

	// Defaults sets the default values of the profile's settings.
	Defaults(g *GitOps)

	// NeedsSeparateDirs reports whether each of several clusters needs its own directory, because
	// the objects of the tool can depend only on the name of a cluster.
	NeedsSeparateDirs(g GitOps) bool

	// Faults returns the faults in settings for which the tool could not apply the tree, sorted by
	// field.
	Faults(g GitOps, clusters []Cluster) []Fault

	// Unmatched returns a fault for each setting with a selector that matches none of the objects,
	// sorted by field.
	Unmatched(g GitOps, objects []k8s.Key) []Fault

	// Member returns the entry of a cluster in clusters.yaml.
	Member(g GitOps, c Cluster) Member

	// Apply returns in own, by directory in the tree, the objects that make the tool apply the tree. In files it
	// returns, by path, files that are not applied. Call Apply only if Faults returns no faults for the settings.
	Apply(t Tree) (own map[string][]k8s.Object, files map[string][]byte)

	// Inputs returns the data of each cluster for the user's own ApplicationSet or ResourceSet: as
	// objects to apply, or as files by name. Call Inputs only if Faults returns no faults for the settings.
	Inputs(t Tree) (objects []k8s.Object, files map[string][]byte)
}

// Tree describes a rendered tree for profiles.
type Tree struct {
	GitOps       GitOps
	Clusters     []Cluster
	OwnCRDs      bool          // each cluster has its own CRDs, in clusters/<name>/crds instead of crds
	HealthChecks bool          // render health checks for APIs
	APIs         []catalog.GVK // APIs that the operators provide, sorted
	Reporter     *Workload     // the reporter; nil if there is none
	Pieces       []Piece       // sorted by name
}

// crdsDir returns the directory in the tree with the CRDs of a cluster.
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

// profileTable returns all profiles. The first one is the default in quayside.yaml.
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

// Lookup returns the profile with this name. An empty name means Plain.
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

// Enum returns the valid values of Name, for JSON schemas.
func (Name) Enum() []string { return Names() }

// isCertificate reports whether o is a certificate or an issuer of certificates.
func isCertificate(o k8s.Object) bool { return certificates.Issues(o.Group(), o.Kind()) }

// keepsData reports whether deleting o would delete data of operators.
func keepsData(o k8s.Object) bool { return k8s.IsCRD(o) || o.Is("", "Namespace") }

// IsKept reports whether o remains when its operator is removed. It assumes that the operator's chart keeps o.
func IsKept(o k8s.Object) bool { return keepsData(o) || isKeepable(o) }

// isKeepable reports whether o may remain when its operator is removed: o has data and grants no permissions.
func isKeepable(o k8s.Object) bool {
	return o.Is("", "PersistentVolumeClaim") || o.Is("", "Secret") || o.Is("", "ConfigMap")
}

// containsText reports whether any key or string in v contains text.
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

// Writes reports whether a profile adds an annotation with this key and value to o, at any [ApplyPosition].
// leaves is true if the operator of o is being uninstalled or replaced. recreated is true if the
// settings of the workspace select o to be recreated.
func Writes(o k8s.Object, key, value string, leaves, recreated bool) bool {
	bare := k8s.Without(o, "metadata", "annotations", key)
	for _, l := range profileTable() {
		for _, at := range []ApplyPosition{{}, {InPiece: true}, {Issuer: true}, {Level: 1}, {Stopped: true}, {MovesLater: true}, {Kept: true}, {Kept: true, InPiece: true}} {
			at.Recreated = recreated
			written := l.profile.Annotate(bare, at)
			if k8s.Text(written, "metadata", "annotations", key) == value {
				return true
			}
			if leaves && k8s.Text(l.profile.Guard(written), "metadata", "annotations", key) == value {
				return true
			}
		}
	}
	return false
}
