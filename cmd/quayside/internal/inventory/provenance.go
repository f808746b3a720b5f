package inventory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/lockfile"
)

// ProvenanceBuildType is the SLSA build type of a pushed tree; see docs/artifacts.md.
const ProvenanceBuildType = "https://quayside.dev/provenance/tree/v1"

const provenanceBuilder = "https://quayside.dev/push"

// ErrForeignProvenance is returned for a provenance that another tool created.
var ErrForeignProvenance = errors.New("not the provenance of a tree that quayside pushed")

// Provenance lists the sources of an artifact: commit, lock, catalogs and bundles. Unknown fields
// are empty.
type Provenance struct {
	Source    string            `json:"source,omitempty" doc:"URL of the repository"`
	Revision  string            `json:"revision" doc:"branch, if known, and commit"` // "main@sha1:…"
	Workspace string            `json:"workspace" doc:"its directory in the repository"`
	Clusters  []string          `json:"clusters,omitempty" doc:"target clusters; absent: all clusters of the environment"`
	Lock      string            `json:"lock" doc:"digest of quayside.lock"`
	Catalogs  []ProvenanceInput `json:"catalogs"`
	Operators []ProvenanceInput `json:"operators"`
}

// ProvenanceInput is a catalog or a bundle used for an artifact.
type ProvenanceInput struct {
	Name    string `json:"name" doc:"namespace and name of the catalog, or of the operator"`
	Version string `json:"version,omitempty" doc:"version of an operator"`
	URI     string `json:"uri,omitempty" doc:"package URL of the image; empty for bundles in the repository"`
	Digest  string `json:"digest" doc:"digest in the lock"`
}

// NewProvenanceInputs returns the catalogs and the bundles of a lock, in lock order. The bundles include the
// bundles of operators that are being removed.
func NewProvenanceInputs(lock *lockfile.File) (catalogs, operators []ProvenanceInput) {
	catalogs, operators = []ProvenanceInput{}, []ProvenanceInput{}
	for _, c := range lock.Catalogs() {
		in := ProvenanceInput{Name: c.ID.String(), Digest: string(c.Digest)}
		if image, ok := strings.CutPrefix(c.Source, "image:"); ok {
			in.URI = PackageURL(imageref.Split(image).Name() + "@" + in.Digest)
		}
		catalogs = append(catalogs, in)
	}
	pins := slices.Clone(lock.Pins)
	for _, l := range lock.Leaving {
		pins = append(pins, l.Pin)
	}
	for _, p := range pins {
		operators = append(operators, ProvenanceInput{Name: p.Key(), Version: p.Version, URI: PackageURL(p.Image), Digest: string(p.BundleDigest())})
	}
	return catalogs, operators
}

// slsaPredicate is the SLSA provenance predicate, without unused fields.
type slsaPredicate struct {
	Build buildDefinition `json:"buildDefinition"`
	Run   runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	Type         string               `json:"buildType"`
	Parameters   externalParameters   `json:"externalParameters"`
	Dependencies []resourceDescriptor `json:"resolvedDependencies"`
}

type externalParameters struct {
	Revision  string   `json:"revision"`
	Workspace string   `json:"workspace"`
	Clusters  []string `json:"clusters,omitempty"`
}

type resourceDescriptor struct {
	Name        string            `json:"name"`
	URI         string            `json:"uri,omitempty"`
	Digest      map[string]string `json:"digest,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type runDetails struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// Names of resolvedDependencies in the predicate. The constants catalogName and pinName are prefixes of names.
const (
	sourceName  = "source"
	lockName    = "lock"
	catalogName = "catalog:"
	pinName     = "operator:"
)

// Predicate returns the SLSA predicate, to be encoded as JSON.
func (o *Provenance) Predicate() any {
	from := resourceDescriptor{Name: sourceName, Digest: map[string]string{"gitCommit": o.commit()}}
	if o.Source != "" {
		from.URI = "git+" + o.Source
	}
	p := slsaPredicate{Build: buildDefinition{
		Type:         ProvenanceBuildType,
		Parameters:   externalParameters{o.Revision, o.Workspace, o.Clusters},
		Dependencies: []resourceDescriptor{from, {Name: lockName, Digest: newDigestSet(o.Lock)}},
	}}
	p.Run.Builder.ID = provenanceBuilder
	for _, in := range o.Catalogs {
		p.Build.Dependencies = append(p.Build.Dependencies, resourceDescriptor{Name: catalogName + in.Name, URI: in.URI, Digest: newDigestSet(in.Digest)})
	}
	for _, in := range o.Operators {
		p.Build.Dependencies = append(p.Build.Dependencies, resourceDescriptor{
			Name: pinName + in.Name, URI: in.URI, Digest: newDigestSet(in.Digest), Annotations: map[string]string{"version": in.Version},
		})
	}
	return p
}

func newDigestSet(digest string) map[string]string {
	if digest == "" {
		return nil
	}
	return map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}
}

// commit returns the commit of the revision, without the branch.
func (o *Provenance) commit() string { return o.Revision[strings.LastIndex(o.Revision, ":")+1:] }

// ParseProvenance parses the JSON of [Provenance.Predicate]. Do not trust the result, even if it is signed: a signer
// can make false statements. ParseProvenance returns [ErrForeignProvenance] if another tool created the provenance.
func ParseProvenance(data []byte) (*Provenance, error) {
	var p slsaPredicate
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeignProvenance, err)
	}
	if p.Build.Type != ProvenanceBuildType {
		return nil, fmt.Errorf("%w: its build type is %q, not %q", ErrForeignProvenance, p.Build.Type, ProvenanceBuildType)
	}
	o := &Provenance{
		Revision: p.Build.Parameters.Revision, Workspace: p.Build.Parameters.Workspace, Clusters: p.Build.Parameters.Clusters,
		Catalogs: []ProvenanceInput{}, Operators: []ProvenanceInput{},
	}
	if !regexp.MustCompile(`^(.+@)?(sha1:[0-9a-f]{40}|sha256:[0-9a-f]{64})$`).MatchString(o.Revision) {
		return nil, fmt.Errorf("invalid revision %q in the provenance: must be [branch@]sha1:commit or [branch@]sha256:commit", o.Revision)
	}
	from, seen := resourceDescriptor{}, map[string]bool{}
	for _, r := range p.Build.Dependencies {
		if seen[r.Name] {
			return nil, fmt.Errorf("the provenance contains %q twice", r.Name)
		}
		seen[r.Name] = true
		in := ProvenanceInput{URI: r.URI, Version: r.Annotations["version"]}
		if r.Digest["sha256"] != "" {
			in.Digest = "sha256:" + r.Digest["sha256"]
		}
		switch name, is := strings.CutPrefix(r.Name, catalogName); {
		case r.Name == sourceName:
			from = r
		case r.Name == lockName:
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
		return nil, fmt.Errorf("the provenance has both revision %s and commit %q", o.Revision, from.Digest["gitCommit"])
	case !imageref.IsDigest(o.Lock):
		return nil, errors.New("the provenance has no digest of the lock")
	}
	return o, nil
}

// ArtifactContents describes the contents of an artifact, for [Provenance.CompareArtifact].
type ArtifactContents struct {
	Revision  string   // from the manifest of the artifact
	Whole     bool     // whether it has all clusters of the environment
	Clusters  []string // sorted
	Operators []string // namespace/package, sorted
}

// CompareArtifact returns the differences between the provenance and an artifact, or nil.
func (o *Provenance) CompareArtifact(c ArtifactContents) []string {
	var out []string
	if c.Revision != o.Revision {
		out = append(out, fmt.Sprintf("the provenance has %s, but the artifact has %s", o.Revision, cmp.Or(c.Revision, "nothing")))
	}
	switch {
	case len(o.Clusters) == 0 && !c.Whole:
		out = append(out, "the provenance is for a whole environment, but the artifact is for "+cmp.Or(strings.Join(c.Clusters, ", "), "nothing"))
	case len(o.Clusters) > 0 && (c.Whole || !slices.Equal(o.Clusters, c.Clusters)):
		out = append(out, fmt.Sprintf("the provenance is for clusters %s, but the artifact is for %s", strings.Join(o.Clusters, ", "), cmp.Or(strings.Join(c.Clusters, ", "), "nothing")))
	}
	inProvenance := map[string]bool{}
	for _, in := range o.Operators {
		inProvenance[in.Name] = true
		if c.Whole && !slices.Contains(c.Operators, in.Name) {
			out = append(out, fmt.Sprintf("the provenance has operator %s, but the artifact does not", in.Name))
		}
	}
	for _, name := range c.Operators {
		if !inProvenance[name] {
			out = append(out, fmt.Sprintf("the artifact has operator %s, but the provenance does not", name))
		}
	}
	return out
}

// CompareCommit returns the differences between o and have, the provenance of a commit, or nil if
// they are equal. It ignores Source, because a repository can have several URLs.
func (o *Provenance) CompareCommit(have *Provenance) []string {
	var out []string
	if o.Workspace != have.Workspace {
		out = append(out, fmt.Sprintf("the provenance has workspace %s, but the commit has %s", o.Workspace, have.Workspace))
	}
	if o.Lock != have.Lock {
		out = append(out, fmt.Sprintf("the provenance has lock %s, but the commit has %s", o.Lock, have.Lock))
	}
	for _, list := range []struct {
		what         string
		stated, have []ProvenanceInput
	}{{"catalog", o.Catalogs, have.Catalogs}, {"operator", o.Operators, have.Operators}} {
		byName := map[string]ProvenanceInput{}
		for _, in := range list.have {
			byName[in.Name] = in
		}
		for _, in := range list.stated {
			other, found := byName[in.Name]
			delete(byName, in.Name)
			switch {
			case !found:
				out = append(out, fmt.Sprintf("the provenance has %s %s, but the commit does not", list.what, in.Name))
			case other != in:
				out = append(out, fmt.Sprintf("the provenance has %s %s, but the commit has %s", list.what, in, other))
			}
		}
		for _, in := range list.have {
			if _, unmatched := byName[in.Name]; unmatched {
				out = append(out, fmt.Sprintf("the commit has %s %s, but the provenance does not", list.what, in.Name))
			}
		}
	}
	return out
}

// String returns the input as shown in messages.
func (i ProvenanceInput) String() string {
	out := i.Name
	if i.Version != "" {
		out += " " + i.Version
	}
	out += " (" + cmp.Or(i.Digest, "nothing")
	if i.URI != "" {
		out += " of " + i.URI
	}
	return out + ")"
}
