package settings

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/profile"
)

// Draft holds the settings of a new workspace. Empty fields get defaults.
type Draft struct {
	Name              string
	Declarations      []string // paths relative to the workspace
	Catalogs          []Catalog
	KubernetesVersion string
	OpenShiftVersion  string
	Profile           profile.Name
	RepoURL           string // of the repository that the GitOps tool reads
	Path              string // of the workspace in that repository: "envs/prod", "." for its root
	Mirrors           []string
}

// Text returns quayside.yaml with the draft's settings, and with the most useful other fields
// as comments. Parse accepts it.
func (d Draft) Text() []byte {
	var b bytes.Buffer
	say := func(lines ...string) { b.WriteString(strings.Join(lines, "\n") + "\n") }
	said := func(key, value, otherwise string) string {
		if value == "" {
			return "  # " + formatField(key, otherwise)
		}
		return "  " + formatField(key, value)
	}
	say("# Settings of a quayside workspace. 'quayside schema workspace' describes every field.",
		formatField("apiVersion", APIVersion), formatField("kind", Kind))
	if d.Name != "" {
		say("metadata:", "  "+formatField("name", d.Name))
	}
	declarations := "  # declarations: [subscriptions]"
	if len(d.Declarations) > 0 {
		declarations = "  declarations:"
		for _, name := range d.Declarations {
			declarations += "\n  - " + encodeScalar(name)
		}
	}
	say("spec:",
		"  # Files and directories with Subscriptions, OperatorGroups, ClusterExtensions and similar kinds.",
		declarations, "",
		"  # Sources of operators.")
	if len(d.Catalogs) == 0 {
		say("  # catalogs:", "  # - name: operatorhubio-catalog", "  #   namespace: olm", "  #   source: image:quay.io/operatorhubio/catalog:latest")
	} else {
		say("  catalogs:", strings.TrimSuffix(CatalogList(d.Catalogs, "  "), "\n"))
	}
	d.mirrors(say)
	say("", "  # Versions of the clusters. Operators that cannot run there are not chosen.",
		said("kubernetesVersion", d.KubernetesVersion, "1.34"), said("openshiftVersion", d.OpenShiftVersion, "4.20"),
		"", "  # GitOps tool: "+strings.Join(profile.Names(), ", ")+".",
		said("profile", string(d.Profile), string(Default().Profile)),
		"", "  # Git repository of the tree: with it, the tool's own objects are rendered as well.")
	d.gitops(say)
	say("", "  # The issuer of webhook certificates, and one entry for each cluster.",
		"  # "+formatField("certificates", string(Default().Certificates)), "  # clusters:", "  # - name: default",
		"", "  # The lowest severity that makes 'quayside diff' fail.",
		"  # policy:", "  #   "+formatField("failOn", Default().Policy.FailOn))
	return b.Bytes()
}

func (d Draft) mirrors(say func(...string)) {
	say("", "  # Files with registry mirrors.")
	if len(d.Mirrors) == 0 {
		say("  # mirrors: [registries.conf]")
		return
	}
	say("  mirrors:")
	for _, name := range d.Mirrors {
		say("  - " + encodeScalar(name))
	}
}

func (d Draft) gitops(say func(...string)) {
	mark, url := "  ", d.RepoURL
	if url == "" {
		mark, url = "  # ", "https://git.example.com/fleet.git"
	}
	tree := Default().Output
	if d.Path != "" && d.Path != "." {
		tree = d.Path + "/" + tree
	}
	say(mark+"gitops:", mark+"  "+formatField("repoURL", url), mark+"  "+formatField("path", tree))
	for _, line := range d.profileAbout().Draft {
		say(mark + "  " + line)
	}
}

// CatalogList returns indented catalogs in the format of spec.catalogs.
func CatalogList(cats []Catalog, indent string) string {
	var b strings.Builder
	for _, c := range cats {
		b.WriteString(indent + "- " + formatField("name", c.Name) + "\n")
		if c.Namespace != "" {
			b.WriteString(indent + "  " + formatField("namespace", c.Namespace) + "\n")
		}
		if c.Priority != 0 {
			b.WriteString(indent + "  priority: " + strconv.Itoa(int(c.Priority)) + "\n")
		}
		b.WriteString(indent + "  " + formatField("source", string(c.Source)) + "\n")
	}
	return b.String()
}

// formatField returns a field of a mapping on one line.
func formatField(key, value string) string { return key + ": " + encodeScalar(value) }

// encodeScalar returns a string as a YAML scalar on one line.
func encodeScalar(s string) string { return strings.TrimSuffix(string(yamlnode.Encode(s)), "\n") }

// Lines are lines of one file.
type Lines struct {
	Name  string
	Lines []string
}

// Beside returns lines for files next to quayside.yaml. They prevent Git from changing the line
// endings of the lock, and a tool that applies every file from applying the declarations to the
// cluster.
func (d Draft) Beside() []Lines {
	out := []Lines{{".gitattributes", []string{"/quayside.lock text eol=lf"}}}
	if name := d.profileAbout().IgnoreFile; name != "" {
		out = append(out, Lines{name, []string{"/subscriptions/", "/" + FileName, "/quayside.lock"}})
	}
	return out
}

// profileAbout returns the profile's description, or the zero value for an unknown profile.
func (d Draft) profileAbout() profile.About {
	tool, err := profile.Lookup(d.Profile)
	if err != nil {
		return profile.About{}
	}
	return tool.About()
}
