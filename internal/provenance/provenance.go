// Package provenance says what an artifact was made of, in the form of SLSA's
// provenance v1: the commit, the lock, and the catalogs and bundles that the lock
// pins. It has no time and names no machine and no version of the program: the same
// commit gives the same bytes.
//
// Start from [Origin], [Origin.Predicate] and [Parse].
package provenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/bom"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/lockfile"
)

// BuildType says how what is stated is to be read; docs/artifacts.md describes it.
const BuildType = "https://quayside.dev/provenance/tree/v1"

const builder = "https://quayside.dev/push"

// ErrOther says that something else than quayside was at work.
var ErrOther = errors.New("not the provenance of a tree that quayside pushed")

// Origin is what an artifact was made of. What is not known is empty.
type Origin struct {
	Source    string   `json:"source,omitempty" doc:"URL of the repository"`
	Revision  string   `json:"revision" doc:"the branch, if it is known, and the commit"` // "main@sha1:…"
	Workspace string   `json:"workspace" doc:"its directory in the repository"`
	Clusters  []string `json:"clusters,omitempty" doc:"that it is for; none: all of the environment"`
	Lock      string   `json:"lock" doc:"digest of quayside.lock"`
	Catalogs  []Input  `json:"catalogs"`
	Operators []Input  `json:"operators"`
}

// Input is a catalog or a bundle that went into it.
type Input struct {
	Name    string `json:"name" doc:"namespace and name of the catalog, or of the operator"`
	Version string `json:"version,omitempty" doc:"of an operator"`
	URI     string `json:"uri,omitempty" doc:"package URL of the image; none for what lies in the repository"`
	Digest  string `json:"digest" doc:"as in the lock"`
}

// Inputs returns the catalogs and the bundles of a lock, in its order.
func Inputs(lock *lockfile.File) (catalogs, operators []Input) {
	catalogs, operators = []Input{}, []Input{}
	for _, c := range lock.Catalogs() {
		in := Input{Name: c.ID.String(), Digest: string(c.Digest)}
		if image, ok := strings.CutPrefix(c.Source, "image:"); ok {
			in.URI = bom.PackageURL(imageref.Split(image).Name() + "@" + in.Digest)
		}
		catalogs = append(catalogs, in)
	}
	pins := slices.Clone(lock.Pins)
	for _, l := range lock.Leaving {
		pins = append(pins, l.Pin)
	}
	for _, p := range pins {
		operators = append(operators, Input{Name: p.Key(), Version: p.Version, URI: bom.PackageURL(p.Image), Digest: string(p.BundleDigest())})
	}
	return catalogs, operators
}

// predicate is SLSA's, as far as it is used.
type predicate struct {
	Build build `json:"buildDefinition"`
	Run   run   `json:"runDetails"`
}

type build struct {
	Type         string     `json:"buildType"`
	Parameters   parameters `json:"externalParameters"`
	Dependencies []resource `json:"resolvedDependencies"`
}

type parameters struct {
	Revision  string   `json:"revision"`
	Workspace string   `json:"workspace"`
	Clusters  []string `json:"clusters,omitempty"`
}

type resource struct {
	Name        string            `json:"name"`
	URI         string            `json:"uri,omitempty"`
	Digest      map[string]string `json:"digest,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type run struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// Names of what is depended on; of a catalog or an operator its own follows.
const (
	source      = "source"
	lock        = "lock"
	catalogName = "catalog:"
	pinName     = "operator:"
)

// Predicate returns what is stated of the origin, to be marshalled as JSON.
func (o *Origin) Predicate() any {
	from := resource{Name: source, Digest: map[string]string{"gitCommit": o.commit()}}
	if o.Source != "" {
		from.URI = "git+" + o.Source
	}
	p := predicate{Build: build{
		Type:         BuildType,
		Parameters:   parameters{o.Revision, o.Workspace, o.Clusters},
		Dependencies: []resource{from, {Name: lock, Digest: digestOf(o.Lock)}},
	}}
	p.Run.Builder.ID = builder
	for _, in := range o.Catalogs {
		p.Build.Dependencies = append(p.Build.Dependencies, resource{Name: catalogName + in.Name, URI: in.URI, Digest: digestOf(in.Digest)})
	}
	for _, in := range o.Operators {
		p.Build.Dependencies = append(p.Build.Dependencies, resource{
			Name: pinName + in.Name, URI: in.URI, Digest: digestOf(in.Digest), Annotations: map[string]string{"version": in.Version},
		})
	}
	return p
}

func digestOf(digest string) map[string]string {
	if digest == "" {
		return nil
	}
	return map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}
}

// commit returns the commit in the revision, which may stand behind a branch.
func (o *Origin) commit() string { return o.Revision[strings.LastIndex(o.Revision, ":")+1:] }

// Parse reads what [Origin.Predicate] returned, of which whoever signed it may have
// made anything. What another builder states is [ErrOther].
func Parse(data []byte) (*Origin, error) {
	var p predicate
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOther, err)
	}
	if p.Build.Type != BuildType {
		return nil, fmt.Errorf("%w: it is of build type %q, not %q", ErrOther, p.Build.Type, BuildType)
	}
	o := &Origin{
		Revision: p.Build.Parameters.Revision, Workspace: p.Build.Parameters.Workspace, Clusters: p.Build.Parameters.Clusters,
		Catalogs: []Input{}, Operators: []Input{},
	}
	if !regexp.MustCompile(`^(.+@)?(sha1:[0-9a-f]{40}|sha256:[0-9a-f]{64})$`).MatchString(o.Revision) {
		return nil, fmt.Errorf("the provenance is of revision %q: want a commit", o.Revision)
	}
	from, seen := resource{}, map[string]bool{}
	for _, r := range p.Build.Dependencies {
		if seen[r.Name] {
			return nil, fmt.Errorf("the provenance names %q twice", r.Name)
		}
		seen[r.Name] = true
		in := Input{URI: r.URI, Version: r.Annotations["version"]}
		if r.Digest["sha256"] != "" {
			in.Digest = "sha256:" + r.Digest["sha256"]
		}
		switch name, is := strings.CutPrefix(r.Name, catalogName); {
		case r.Name == source:
			from = r
		case r.Name == lock:
			o.Lock = in.Digest
		case is:
			in.Name = name
			o.Catalogs = append(o.Catalogs, in)
		default:
			if in.Name, is = strings.CutPrefix(r.Name, pinName); is {
				o.Operators = append(o.Operators, in)
			}
		}
	}
	o.Source = strings.TrimPrefix(from.URI, "git+")
	switch {
	case from.Digest["gitCommit"] != o.commit():
		return nil, fmt.Errorf("the provenance is of revision %s and of commit %q at once", o.Revision, from.Digest["gitCommit"])
	case !imageref.IsDigest(o.Lock):
		return nil, errors.New("the provenance names no lock by its digest")
	}
	return o, nil
}

// Contents is what an artifact itself shows of its origin.
type Contents struct {
	Revision  string   // as its manifest has it
	Whole     bool     // all of an environment, not the part of some clusters
	Clusters  []string // sorted
	Operators []string // namespace/package, sorted
}

// Against returns how what is stated differs from what an artifact shows; none
// where it does not.
func (o *Origin) Against(c Contents) []string {
	var out []string
	if c.Revision != o.Revision {
		out = append(out, fmt.Sprintf("it states %s, and the artifact names %s", o.Revision, orNothing(c.Revision)))
	}
	switch {
	case len(o.Clusters) == 0 && !c.Whole:
		out = append(out, "it states that of all of an environment, and the artifact is for "+orNothing(strings.Join(c.Clusters, ", ")))
	case len(o.Clusters) > 0 && (c.Whole || !slices.Equal(o.Clusters, c.Clusters)):
		out = append(out, fmt.Sprintf("it states that of clusters %s, and the artifact is for %s", strings.Join(o.Clusters, ", "), orNothing(strings.Join(c.Clusters, ", "))))
	}
	stated := map[string]bool{}
	for _, in := range o.Operators {
		stated[in.Name] = true
		if c.Whole && !slices.Contains(c.Operators, in.Name) {
			out = append(out, fmt.Sprintf("it states operator %s, which the artifact has not", in.Name))
		}
	}
	for _, name := range c.Operators {
		if !stated[name] {
			out = append(out, fmt.Sprintf("it does not state operator %s, which the artifact has", name))
		}
	}
	return out
}

// Differences returns how what is stated differs from what a commit has; none where
// it does not. Repositories have several URLs, and are not compared.
func (o *Origin) Differences(have *Origin) []string {
	var out []string
	if o.Workspace != have.Workspace {
		out = append(out, fmt.Sprintf("it states workspace %s, and the commit has %s", o.Workspace, have.Workspace))
	}
	if o.Lock != have.Lock {
		out = append(out, fmt.Sprintf("it states lock %s, and the commit has %s", o.Lock, have.Lock))
	}
	for _, list := range []struct {
		what         string
		stated, have []Input
	}{{"catalog", o.Catalogs, have.Catalogs}, {"operator", o.Operators, have.Operators}} {
		by := map[string]Input{}
		for _, in := range list.have {
			by[in.Name] = in
		}
		for _, in := range list.stated {
			was, is := by[in.Name]
			delete(by, in.Name)
			switch {
			case !is:
				out = append(out, fmt.Sprintf("it states %s %s, which the commit has not", list.what, in.Name))
			case was != in:
				out = append(out, fmt.Sprintf("it states %s %s, and the commit has %s", list.what, in, was))
			}
		}
		for _, in := range list.have {
			if _, left := by[in.Name]; left {
				out = append(out, fmt.Sprintf("it does not state %s %s, which the commit has", list.what, in.Name))
			}
		}
	}
	return out
}

// String returns an input as messages have it.
func (i Input) String() string {
	out := i.Name
	if i.Version != "" {
		out += " " + i.Version
	}
	out += " (" + orNothing(i.Digest)
	if i.URI != "" {
		out += " of " + i.URI
	}
	return out + ")"
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
