package profile

import (
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// About holds the fixed properties of a profile. A profile without a GitOps tool sets only Manager.
type About struct {
	Tool      string // name of the tool, such as "Argo CD"; empty for a profile without a tool
	Kind      string // kind of the objects that make the tool apply a tree, with an article: "an Application"; empty if there are none
	Namespace string // default namespace of these objects
	Manager   string // field manager of the tool's server-side apply

	Directives          []Directive // annotations and labels by which objects control the tool
	Appliers            []Applier   // kinds of objects that make the tool apply directories of a repository
	UntracksCRDs        bool        // the tool does not track CRDs and never prunes them
	RunsHooks           bool        // whether it applies hooks before and after the other objects
	Protects            string      // effect of removing a protected object from the tree, as a verb phrase: "does not prune it"
	DirectoryPerCluster bool        // the directory of the profile in the tree has a subdirectory for each cluster

	Draft        []string // additional lines for spec.gitops in a new quayside.yaml
	ControlFiles []string // name patterns of files that control how the tool applies their directory
	IgnoreFile   string   // file that excludes parts of a repository from the tool, like .gitignore; empty if the tool has none
}

// Directive describes annotation and label keys by which an object controls a tool.
type Directive struct {
	Tool    string
	Domains []string // all keys with these domains or their subdomains
	Keys    []string // patterns for other keys, in lower case
}

// matches reports whether the directive includes key, which must be in lower case.
func (d Directive) matches(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	inDomain := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	return ok && (slices.ContainsFunc(d.Domains, inDomain) || slices.ContainsFunc(d.Keys, func(pattern string) bool {
		matched, _ := path.Match(pattern, key)
		return matched
	}))
}

// ToolOfKey returns the tool that an annotation or label with this key controls, according to the directives
// in all. It returns "" if there is none.
func ToolOfKey(key string, all []Directive) string {
	for _, d := range all {
		if d.matches(strings.ToLower(key)) {
			return d.Tool
		}
	}
	return ""
}

// ToolOfFile returns the tool that a file with this base name controls, or "" if there is none.
func ToolOfFile(file string) string {
	for _, l := range profileTable() {
		a := l.profile.About()
		for _, pattern := range append(slices.Clone(a.ControlFiles), a.IgnoreFile) {
			if is, _ := path.Match(pattern, file); is {
				return a.Tool
			}
		}
	}
	return ""
}

// IsIgnoreFile reports whether a file with this base name excludes parts of a repository from a
// tool.
func IsIgnoreFile(file string) bool {
	return slices.ContainsFunc(profileTable(), func(l entry) bool { return file != "" && l.profile.About().IgnoreFile == file })
}

// Directives returns the directives of all profiles.
func Directives() []Directive {
	var out []Directive
	for _, l := range profileTable() {
		out = append(out, l.profile.About().Directives...)
	}
	return out
}

// IsToolKey reports whether an annotation or label key has the domain of a tool that applies trees.
// Such keys are set or read by the tool.
func IsToolKey(key string) bool {
	return slices.ContainsFunc(Directives(), func(d Directive) bool { return Directive{Domains: d.Domains}.matches(key) })
}

// Applier is a kind of object that makes a tool apply directories of a repository. Paths are the
// fields that contain the directories. In a field path, [] stands for any item of a list, as in
// "spec.sources.[].path".
type Applier struct {
	Group, Kind string
	Paths       []string
	Ignores     string   // base name of files that exclude parts of a directory; empty if there are none
	Targets     []string // fields that name the target cluster: its name, server or kubeconfig
	// Sources is the API group of spec.sourceRef, which refers to the repository. A missing path means the root
	// of this repository. If Sources is empty, the field repoURL next to each path contains the repository.
	Sources string
}

// Appliers returns the appliers of all profiles.
func Appliers() []Applier {
	var out []Applier
	for _, l := range profileTable() {
		out = append(out, l.profile.About().Appliers...)
	}
	return out
}

// AboutDirectory returns the properties of the profile that owns a top-level directory of the tree.
// It returns false if there is none.
func AboutDirectory(name string) (About, bool) {
	for _, l := range profileTable() {
		if string(l.name) == name && l.profile.About().Kind != "" {
			return l.profile.About(), true
		}
	}
	return About{}, false
}

// Removal is the effect of removing an object from the tree.
type Removal int

// The tool deletes the object, deletes it only after a confirmation, or keeps it.
const (
	RemovalPrune Removal = iota
	RemovalConfirm
	RemovalKeep
)

// RemovalOf looks for the first tool that does not simply delete o when o is removed from the tree. It returns
// the effect of the removal and the name of the tool, or RemovalPrune and "" if there is no such tool.
func RemovalOf(o k8s.Object) (removal Removal, tool string) {
	for _, l := range profileTable() {
		if removal := l.profile.Removal(o); removal != RemovalPrune {
			return removal, l.profile.About().Tool
		}
	}
	return RemovalPrune, ""
}

// Protection describes, for each tool, the effect of removing a protected object from the tree. definition is
// true for a CRD.
func Protection(definition bool) string {
	var each, tools []string
	for _, l := range profileTable() {
		if a := l.profile.About(); a.Protects != "" {
			each, tools = append(each, a.Tool+" "+a.Protects), append(tools, a.Tool)
		}
	}
	if definition {
		return "neither " + strings.Join(tools, " nor ") + " prunes it"
	}
	return strings.Join(each, ", ")
}

// Engines returns the names of the profiles that render objects for a GitOps tool, such as
// Applications.
func Engines() []string {
	var out []string
	for _, l := range profileTable() {
		if l.profile.About().Kind != "" {
			out = append(out, string(l.name))
		}
	}
	return out
}

// Guard returns o with annotations that protect o from pruning by any tool.
func Guard(o k8s.Object) k8s.Object {
	for _, l := range profileTable() {
		o = l.profile.Guard(o)
	}
	return o
}

// ApplierOf returns the object of a GitOps tool that applies o, such as "Flux Kustomization
// ns/name", according to the labels and annotations of o. It returns "" if the object is unknown.
func ApplierOf(o k8s.Object) string {
	for _, l := range profileTable() {
		if by := l.profile.Applier(o); by != "" {
			return by
		}
	}
	return ""
}

// NeedsSeparateDirs reports whether any profile requires a separate directory for each of several
// clusters. g may be nil.
func NeedsSeparateDirs(g *GitOps) bool {
	return g != nil && slices.ContainsFunc(profileTable(), func(l entry) bool { return l.profile.NeedsSeparateDirs(*g) })
}

// Defaults sets the default values of all profiles.
func (g *GitOps) Defaults() {
	for _, l := range profileTable() {
		l.profile.Defaults(g)
	}
}
