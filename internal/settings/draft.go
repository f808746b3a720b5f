package settings

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Draft holds the settings of a new workspace. An empty field means the default.
type Draft struct {
	Name              string
	Declarations      []declare.Path
	Unread            []string // comments about declarations that are not used
	Catalogs          []CatalogSettings
	Missing           []CatalogSettings // catalogs to be completed by the user; written as comments
	GlobalCatalogs    []string
	KubernetesVersion string
	OpenShiftVersion  string
	Profile           profile.Name
	RepoURL           string // URL of the Git repository that the GitOps tool applies
	Path              string // path of the workspace in the repository: "envs/prod", or "." for the root
	Mirrors           []string
}

// Text returns the content of quayside.yaml with the settings of the draft. Other useful fields are included as
// comments. [Parse] accepts the text.
func (d Draft) Text() []byte {
	var b bytes.Buffer
	write := func(lines ...string) { b.WriteString(strings.Join(lines, "\n") + "\n") }
	field := func(key, value, fallback string) string {
		if value == "" {
			return "  # " + formatField(key, fallback)
		}
		return "  " + formatField(key, value)
	}
	write("# Settings of a quayside workspace. 'quayside schema workspace' describes every field.",
		formatField("apiVersion", APIVersion), formatField("kind", Kind))
	if d.Name != "" {
		write("metadata:", "  "+formatField("name", d.Name))
	}
	declarations := "  # declarations: [subscriptions]"
	if len(d.Declarations) > 0 {
		declarations = "  declarations:"
		for _, p := range d.Declarations {
			if p.Cluster == "" {
				declarations += "\n  - " + encodeScalar(p.Path)
			} else {
				declarations += "\n  - " + formatField("path", p.Path) + "\n    " + formatField("cluster", p.Cluster)
			}
		}
	}
	for _, comment := range d.Unread {
		declarations += "\n  # " + sanitize.Line(comment)
	}
	write("spec:",
		"  # Files and directories with Subscriptions, OperatorGroups, ClusterExtensions and similar kinds.",
		declarations, "",
		"  # Sources of operators.")
	if len(d.Catalogs) > 0 {
		write("  catalogs:", strings.TrimSuffix(CatalogList(d.Catalogs, "  "), "\n"))
	} else {
		write("  # catalogs:")
	}
	switch {
	case len(d.Missing) > 0:
		write("  # The declarations also name:", strings.TrimSuffix(CatalogList(d.Missing, "  # "), "\n"))
	case len(d.Catalogs) == 0:
		write(strings.TrimSuffix(CatalogList([]CatalogSettings{{Namespace: "olm", Name: "operatorhubio-catalog", Source: "image:quay.io/operatorhubio/catalog:latest"}}, "  # "), "\n"))
	}
	if len(d.GlobalCatalogs) > 0 {
		write("", "  # Namespaces whose catalogs are visible in all namespaces.", "  globalCatalogNamespaces:")
		for _, ns := range d.GlobalCatalogs {
			write("  - " + encodeScalar(ns))
		}
	}
	d.writeMirrors(write)
	write("", "  # Versions of the clusters. Only operator versions that support them are installed.",
		field("kubernetesVersion", d.KubernetesVersion, "1.34"), field("openshiftVersion", d.OpenShiftVersion, "4.20"),
		"", "  # GitOps tool: "+strings.Join(profile.Names(), ", ")+".",
		field("profile", string(d.Profile), string(Default().Profile)),
		"", "  # Git repository of the tree. If set, the objects of the GitOps tool are rendered, too.")
	d.writeGitOps(write)
	write("", "  # APIs and objects that the clusters have without these operators.", "  # provides:", "  #   apis: [cert-manager.io/v1]")
	write("", "  # The issuer of webhook certificates, and one entry for each cluster.",
		"  # "+formatField("certificates", string(certificates.Default(d.OpenShiftVersion != ""))), "  # clusters:", "  # - name: default",
		"", "  # The lowest severity that makes 'quayside diff' fail.",
		"  # policy:", "  #   "+formatField("failOn", Default().Policy.FailOn))
	return b.Bytes()
}

// writeMirrors writes spec.mirrors or, if there are no mirrors, an example as a comment.
func (d Draft) writeMirrors(write func(...string)) {
	write("", "  # Files with registry mirrors.")
	if len(d.Mirrors) == 0 {
		write("  # mirrors: [registries.conf]")
		return
	}
	write("  mirrors:")
	for _, name := range d.Mirrors {
		write("  - " + encodeScalar(name))
	}
}

// writeGitOps writes spec.gitops or, if it is not set, an example as a comment.
func (d Draft) writeGitOps(write func(...string)) {
	indent, url := "  ", d.RepoURL
	if url == "" {
		indent, url = "  # ", "https://git.example.com/fleet.git"
	}
	tree := defaultOutput
	if d.Path != "" && d.Path != "." {
		tree = d.Path + "/" + tree
	}
	write(indent+"gitops:", indent+"  "+formatField("repoURL", url), indent+"  "+formatField("path", tree))
	for _, line := range d.profileAbout().Draft {
		write(indent + "  " + line)
	}
}

// CatalogList returns catalogs as an indented YAML list, in the format of spec.catalogs.
func CatalogList(cats []CatalogSettings, indent string) string {
	var b strings.Builder
	for _, c := range cats {
		b.WriteString(indent + "- " + formatField("name", c.Name) + "\n")
		if c.Namespace != "" {
			b.WriteString(indent + "  " + formatField("namespace", c.Namespace) + "\n")
		}
		if c.Priority != 0 {
			b.WriteString(indent + "  priority: " + strconv.Itoa(int(c.Priority)) + "\n")
		}
		if location, ok := c.Source.ChartLocation(); ok {
			b.WriteString(indent + "  " + formatField("helm", location) + "\n")
		} else {
			b.WriteString(indent + "  " + formatField("source", string(c.Source)) + "\n")
		}
	}
	return b.String()
}

// formatField returns a field with a string value as one line of YAML.
func formatField(key, value string) string { return key + ": " + encodeScalar(value) }

// encodeScalar returns s as a YAML scalar on one line.
func encodeScalar(s string) string { return strings.TrimSuffix(string(yamlnode.Encode(s)), "\n") }

// FileLines are lines to add to a file.
type FileLines struct {
	Name  string
	Lines []string
}

// CompanionFiles returns lines for other files of the workspace. They prevent Git from changing the line
// breaks of the lock, and the GitOps tool from applying declarations.
func (d Draft) CompanionFiles() []FileLines {
	out := []FileLines{{".gitattributes", []string{"/quayside.lock text eol=lf"}}}
	if name := d.profileAbout().IgnoreFile; name != "" {
		out = append(out, FileLines{name, []string{"/subscriptions/", "/" + FileName, "/quayside.lock"}})
	}
	return out
}

// profileAbout returns the properties of the draft's profile, or the zero value if the profile is unknown.
func (d Draft) profileAbout() profile.About {
	tool, err := profile.Lookup(d.Profile)
	if err != nil {
		return profile.About{}
	}
	return tool.About()
}
