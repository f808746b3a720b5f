package profile

import (
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// About holds the constant properties of a profile. A profile without objects of its own needs only
// Manager.
type About struct {
	Tool      string // "Argo CD"; empty for a profile without one
	Kind      string // kind of the object that makes the tool apply a tree, with its article: "an Application"; empty for a profile without objects of its own
	Namespace string // default namespace of the tool's own objects
	Manager   string // field manager of the tool's server-side apply

	Directives          []Directive // annotations and labels on an object that control the tool
	Appliers            []Applier   // kinds that make the tool apply directories of a repository
	UntracksCRDs        bool        // the tool does not track CRDs, and so never prunes one
	Protects            string      // the tool's treatment of a protected object that is removed from the tree: "leaves it"
	DirectoryPerCluster bool        // the profile's directory in the tree has one directory per cluster

	Draft      []string // lines of spec.gitops in a new quayside.yaml, after those of every profile
	Steering   []string // patterns of the names of files that control the tool in a directory that it applies
	IgnoreFile string   // file that excludes parts of a repository from the tool; empty if the tool reads only its configured paths
}

// Directive lists the keys of annotations and labels that control a tool.
type Directive struct {
	Tool    string
	Domains []string // every key of these domains and their subdomains
	Keys    []string // patterns of other keys, in lower case
}

// steers reports whether the directive has a key, given in lower case.
func (d Directive) steers(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	below := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	return ok && (slices.ContainsFunc(d.Domains, below) || slices.ContainsFunc(d.Keys, func(pattern string) bool {
		is, _ := path.Match(pattern, key)
		return is
	}))
}

// Steers returns the tool of the first directive that has a key of an annotation or a label,
// or "" if there is none.
func Steers(key string, all []Directive) string {
	for _, d := range all {
		if d.steers(strings.ToLower(key)) {
			return d.Tool
		}
	}
	return ""
}

// SteeredBy returns the tool that a file with that name controls; "" if there is none.
func SteeredBy(file string) string {
	for _, l := range profileTable() {
		a := l.profile.About()
		for _, pattern := range append(slices.Clone(a.Steering), a.IgnoreFile) {
			if is, _ := path.Match(pattern, file); is {
				return a.Tool
			}
		}
	}
	return ""
}

// IsIgnoreFile reports whether a file with that name excludes parts of a repository from a
// tool.
func IsIgnoreFile(file string) bool {
	return slices.ContainsFunc(profileTable(), func(l line) bool { return file != "" && l.profile.About().IgnoreFile == file })
}

// Directives returns the directives of all profiles.
func Directives() []Directive {
	var out []Directive
	for _, l := range profileTable() {
		out = append(out, l.profile.About().Directives...)
	}
	return out
}

// IsToolKey reports whether a key of an annotation or a label is in the domain of a tool that
// applies trees. Such a tool sets or reads the key.
func IsToolKey(key string) bool {
	return slices.ContainsFunc(Directives(), func(d Directive) bool { return Directive{Domains: d.Domains}.steers(key) })
}

// Applier is a kind that makes a tool apply directories of a repository. Paths are the fields
// with these directories; the step [] stands for the items of a list: "spec.sources.[].path".
type Applier struct {
	Group, Kind string
	Paths       []string
	Recurse     string // field beside a path that includes subdirectories: "directory.recurse"; empty: they are included
	Ignores     string // name of the files that exclude files from the tool; empty for none
	Root        bool   // the tool applies the root of the repository where the field is missing
}

// Appliers returns the appliers of all profiles.
func Appliers() []Applier {
	var out []Applier
	for _, l := range profileTable() {
		out = append(out, l.profile.About().Appliers...)
	}
	return out
}

// OfDirectory returns the properties of the profile with that directory in the tree. It
// returns false if there is none.
func OfDirectory(name string) (About, bool) {
	for _, l := range profileTable() {
		if string(l.name) == name && l.profile.About().Kind != "" {
			return l.profile.About(), true
		}
	}
	return About{}, false
}

// Removal is a tool's treatment of an object that is removed from the tree.
type Removal int

// The treatments: the object is deleted, is deleted after confirmation, or stays.
const (
	Pruned Removal = iota
	Asks
	Stays
)

// RemovalOf returns the treatment of an object that is removed from the tree, and the first tool
// that does not delete it without confirmation.
func RemovalOf(o k8s.Object) (removal Removal, tool string) {
	for _, l := range profileTable() {
		if removal := l.profile.Removal(o); removal != Pruned {
			return removal, l.profile.About().Tool
		}
	}
	return Pruned, ""
}

// Protection describes each tool's treatment of a protected object that is removed from the
// tree. The parameter definition selects the text for CRDs.
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

// Engines returns the names of the profiles with objects of their own.
func Engines() []string {
	var out []string
	for _, l := range profileTable() {
		if l.profile.About().Kind != "" {
			out = append(out, string(l.name))
		}
	}
	return out
}

// Guard returns a cluster's object with protection from pruning by every tool.
func Guard(o k8s.Object) k8s.Object {
	for _, l := range profileTable() {
		o = l.profile.Guard(o)
	}
	return o
}

// ApplierOf returns the tool and its object that apply a cluster's object, according to the
// tool's marks on it. It returns "" if there are none.
func ApplierOf(o k8s.Object) string {
	for _, l := range profileTable() {
		if by := l.profile.Applier(o); by != "" {
			return by
		}
	}
	return ""
}

// NeedsSeparateDirs reports whether several clusters need separate directories.
func NeedsSeparateDirs(g *GitOps) bool {
	return g != nil && slices.ContainsFunc(profileTable(), func(l line) bool { return l.profile.NeedsSeparateDirs(*g) })
}

// Defaults fills in the unset settings of all profiles.
func (g *GitOps) Defaults() {
	for _, l := range profileTable() {
		l.profile.Defaults(g)
	}
}
