package profile

import (
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// About holds the constant properties of a profile. A profile without a tool sets only Manager.
type About struct {
	Tool      string // name of the tool, such as "Argo CD"; empty for a profile without a tool
	Kind      string // kind of the object that makes the tool apply a tree, with its article, such as "an Application"; empty for a profile without such objects
	Namespace string // default namespace of these objects
	Manager   string // field manager of the tool's server-side apply

	Directives          []Directive // annotations and labels of objects that control the tool
	Appliers            []Applier   // kinds that make the tool apply directories of a repository
	UntracksCRDs        bool        // the tool does not track CRDs, so it never prunes them
	Protects            string      // behaviour of the tool when a protected object is removed from the tree, as a verb phrase: "does not prune it"
	DirectoryPerCluster bool        // the profile's directory in the tree has a subdirectory per cluster

	Draft        []string // lines for spec.gitops in a new quayside.yaml, in addition to those of every profile
	ControlFiles []string // name patterns of files that control how the tool applies their directory
	IgnoreFile   string   // file that excludes parts of a repository from the tool; empty if the tool has no such file
}

// Directive is a set of annotation and label keys that control a tool.
type Directive struct {
	Tool    string
	Domains []string // domains whose keys, including those of subdomains, belong to the directive
	Keys    []string // lower-case patterns of other keys
}

// matches reports whether the directive contains a lower-case key.
func (d Directive) matches(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	inDomain := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	return ok && (slices.ContainsFunc(d.Domains, inDomain) || slices.ContainsFunc(d.Keys, func(pattern string) bool {
		matched, _ := path.Match(pattern, key)
		return matched
	}))
}

// ToolOfKey returns the tool that an annotation or label key controls according to the directives
// all, or "" if there is none.
func ToolOfKey(key string, all []Directive) string {
	for _, d := range all {
		if d.matches(strings.ToLower(key)) {
			return d.Tool
		}
	}
	return ""
}

// ToolOfFile returns the tool that a file with that base name controls, or "" if there is none.
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

// IsIgnoreFile reports whether a file with that base name excludes parts of a repository from a
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

// IsToolKey reports whether an annotation or label key is in the domain of a tool that applies
// trees. Such tools set or read these keys.
func IsToolKey(key string) bool {
	return slices.ContainsFunc(Directives(), func(d Directive) bool { return Directive{Domains: d.Domains}.matches(key) })
}

// Applier is a kind that makes a tool apply directories of a repository. Paths are the fields that
// contain the directories. The step [] is any item of a list, as in "spec.sources.[].path".
type Applier struct {
	Group, Kind string
	Paths       []string
	Ignores     string   // name of the files that exclude files from the tool; empty for none
	Targets     []string // fields with the name, the server or the kubeconfig of the target cluster
	Sources     string   // API group of the objects that spec.sourceRef names, in which case a missing path means the root of the repository; empty: the field repoURL beside the path names the repository
}

// Appliers returns the appliers of all profiles.
func Appliers() []Applier {
	var out []Applier
	for _, l := range profileTable() {
		out = append(out, l.profile.About().Appliers...)
	}
	return out
}

// AboutDirectory returns the properties of the profile whose objects are in the top-level directory
// name of the tree. It returns false if there is none.
func AboutDirectory(name string) (About, bool) {
	for _, l := range profileTable() {
		if string(l.name) == name && l.profile.About().Kind != "" {
			return l.profile.About(), true
		}
	}
	return About{}, false
}

// Removal is the behaviour of a tool when an object is removed from the tree.
type Removal int

// The tool deletes the object, deletes it after confirmation, or keeps it.
const (
	RemovalPrune Removal = iota
	RemovalConfirm
	RemovalKeep
)

// RemovalOf returns the behaviour of the first tool that does not delete o without confirmation when o
// is removed from the tree, and the tool. If there is none, it returns RemovalPrune and "".
func RemovalOf(o k8s.Object) (removal Removal, tool string) {
	for _, l := range profileTable() {
		if removal := l.profile.Removal(o); removal != RemovalPrune {
			return removal, l.profile.About().Tool
		}
	}
	return RemovalPrune, ""
}

// Protection describes the behaviour of each tool when a protected object is removed from the tree.
// If definition is true, the object is a CRD.
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

// Engines returns the names of the profiles that render objects for a tool, such as Applications.
func Engines() []string {
	var out []string
	for _, l := range profileTable() {
		if l.profile.About().Kind != "" {
			out = append(out, string(l.name))
		}
	}
	return out
}

// Guard returns an object of a cluster with annotations that protect it from pruning by every tool.
func Guard(o k8s.Object) k8s.Object {
	for _, l := range profileTable() {
		o = l.profile.Guard(o)
	}
	return o
}

// ApplierOf returns the tool and its object that apply an object of a cluster, such as "Flux
// Kustomization ns/name", according to the labels and annotations of o. It returns "" if there are
// none.
func ApplierOf(o k8s.Object) string {
	for _, l := range profileTable() {
		if by := l.profile.Applier(o); by != "" {
			return by
		}
	}
	return ""
}

// NeedsSeparateDirs reports whether any profile requires separate directories if there are several
// clusters. g may be nil.
func NeedsSeparateDirs(g *GitOps) bool {
	return g != nil && slices.ContainsFunc(profileTable(), func(l entry) bool { return l.profile.NeedsSeparateDirs(*g) })
}

// Defaults sets the defaults of all profiles.
func (g *GitOps) Defaults() {
	for _, l := range profileTable() {
		l.profile.Defaults(g)
	}
}
