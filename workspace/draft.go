package workspace

import (
	"bytes"
	"strings"

	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render/profile"
)

// Draft is what somebody says of a workspace that is to be made. Empty fields are
// left to the defaults.
type Draft struct {
	Name              string
	Catalogs          []Catalog
	KubernetesVersion string
	OpenShiftVersion  string
	Profile           profile.Name
	RepoURL           string // of the repository that the GitOps tool reads
	Path              string // of the workspace in that repository: "envs/prod", "." for its root
	Mirrors           []string
}

// Text returns quayside.yaml: what the draft says, and as comments what else a
// person would look for first. Parse reads it.
func (d Draft) Text() []byte {
	var b bytes.Buffer
	say := func(lines ...string) { b.WriteString(strings.Join(lines, "\n") + "\n") }
	field := func(key, value string) string { return key + ": " + scalar(value) }
	said := func(key, value, otherwise string) string {
		if value == "" {
			return "  # " + field(key, otherwise)
		}
		return "  " + field(key, value)
	}
	say("# Settings of a quayside workspace. 'quayside schema workspace' describes every field.",
		field("apiVersion", APIVersion), field("kind", Kind))
	if d.Name != "" {
		say("metadata:", "  "+field("name", d.Name))
	}
	say("spec:",
		"  # Files and directories with Subscriptions, OperatorGroups, ClusterExtensions and their kind.",
		"  # declarations: [subscriptions]", "",
		"  # Where operators come from.")
	if len(d.Catalogs) == 0 {
		say("  # catalogs:", "  # - name: operatorhubio-catalog", "  #   namespace: olm", "  #   source: image:quay.io/operatorhubio/catalog:latest")
	} else {
		say("  catalogs:")
		for _, c := range d.Catalogs {
			say("  - " + field("name", c.Name))
			if c.Namespace != "" {
				say("    " + field("namespace", c.Namespace))
			}
			say("    " + field("source", string(c.Source)))
		}
	}
	d.mirrors(say)
	say("", "  # Versions of the clusters. Operators that cannot run there are not chosen.",
		said("kubernetesVersion", d.KubernetesVersion, "1.34"), said("openshiftVersion", d.OpenShiftVersion, "4.20"),
		"", "  # What applies the tree: "+strings.Join(profile.Names(), ", ")+".",
		said("profile", string(d.Profile), string(Default().Profile)),
		"", "  # Where the tree will live: with this, what makes the tool apply it is rendered too.")
	d.gitops(say, field)
	say("", "  # Who issues the certificates of webhooks, and one entry for each cluster.",
		"  # "+field("certificates", string(Default().Certificates)), "  # clusters:", "  # - name: default",
		"", "  # The lowest severity of a finding with which 'quayside diff' fails.",
		"  # policy:", "  #   "+field("failOn", Default().Policy.FailOn))
	return b.Bytes()
}

func (d Draft) mirrors(say func(...string)) {
	say("", "  # Files that say where images are pulled from in place of where their names point.")
	if len(d.Mirrors) == 0 {
		say("  # mirrors: [registries.conf]")
		return
	}
	say("  mirrors:")
	for _, name := range d.Mirrors {
		say("  - " + scalar(name))
	}
}

func (d Draft) gitops(say func(...string), field func(key, value string) string) {
	mark, url := "  ", d.RepoURL
	if url == "" {
		mark, url = "  # ", "https://git.example.com/fleet.git"
	}
	tree := Default().Output
	if d.Path != "" && d.Path != "." {
		tree = d.Path + "/" + tree
	}
	say(mark+"gitops:", mark+"  "+field("repoURL", url), mark+"  "+field("path", tree))
	if d.Profile == profile.Flux {
		say(mark+"  sourceRef:", mark+"    "+field("kind", "GitRepository"), mark+"    "+field("name", "flux-system"))
	}
}

// scalar returns a string as YAML has it on one line.
func scalar(s string) string { return strings.TrimSuffix(string(yamlnode.Encode(s)), "\n") }

// Lines are some of a file's.
type Lines struct {
	Name  string
	Lines []string
}

// Beside returns lines that belong into files beside quayside.yaml: what keeps a
// checkout from changing the lock, and declarations from the cluster where the tool
// would apply whatever it finds.
func (d Draft) Beside() []Lines {
	out := []Lines{{".gitattributes", []string{"/quayside.lock text eol=lf"}}}
	if d.Profile == profile.Flux {
		out = append(out, Lines{".sourceignore", []string{"/subscriptions/", "/" + FileName, "/quayside.lock"}})
	}
	return out
}
