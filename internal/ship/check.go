package ship

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/provenance"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/registry"
)

// Report is what was found out about an artifact.
type Report struct {
	Reference string            `json:"reference" doc:"as it was asked for, in full"`
	Digest    string            `json:"digest"`
	Source    string            `json:"source,omitempty" doc:"as it claims, and so are the next two"`
	Revision  string            `json:"revision,omitempty"`
	Created   string            `json:"created,omitempty"`
	SignedBy  []string          `json:"signedBy" doc:"who signed it of those whom spec.trust demands; empty where it demands nobody"`
	Made      *Made             `json:"provenance,omitempty" doc:"what they state of what it was made of"`
	Files     int               `json:"files"`
	Clusters  []string          `json:"clusters" doc:"that it has overlays for"`
	InStep    bool              `json:"inStep"` // nothing was found; what could not be checked is no finding
	Changes   []filetree.Change `json:"changes" doc:"of the files, against the commit: missing, differs, extra"`
	Unchecked []string          `json:"unchecked"`
	project.Failure
}

// Made is a provenance, with what is wrong with it.
type Made struct {
	provenance.Origin
	Differences []string `json:"differences" doc:"from what the commit has"`
}

// Check builds the overlays of an artifact, and compares its files with what goes
// into one of the commit that it names, where the repository around a workspace has
// that, and what its provenance states with what is there. Overlays that do not
// build, in either, are an error; so is a commit of which the tree is not what its
// lock says, and with strict what could not be compared. The report is never nil.
func Check(ctx context.Context, p *project.Project, a *project.Artifact, strict bool) (*Report, error) {
	r := &Report{
		Reference: a.Name, Digest: a.Digest, Source: a.Meta.Source, Revision: a.Meta.Revision, Files: a.Files.Len(),
		Clusters: []string{}, Changes: []filetree.Change{}, Unchecked: []string{}, Failure: project.NewFailure(),
		SignedBy: append([]string{}, a.SignedBy...),
	}
	if a.Origin != nil {
		r.Made = &Made{*a.Origin, []string{}}
	}
	if !a.Meta.Created.IsZero() {
		r.Created = a.Meta.Created.Format(time.RFC3339)
	}
	err := r.compare(ctx, p, a)
	switch {
	case err != nil:
	case len(r.Changes) > 0:
		err = &project.DiffersError{Msg: fmt.Sprintf("%s is not what %s has (%s)", a.Name, a.Meta.Revision, diag.Count(len(r.Changes), "file"))}
	case r.Made != nil && len(r.Made.Differences) > 0:
		err = &project.DiffersError{Msg: fmt.Sprintf("the provenance of %s is not what %s has: %s", a.Name, a.Meta.Revision, strings.Join(r.Made.Differences, "; "))}
	case strict && len(r.Unchecked) > 0:
		err = &project.DiffersError{Msg: "--strict: not everything could be checked"}
	}
	r.InStep = err == nil
	r.Add(err)
	return r, err
}

// Write prints what differs, and tells who signed the artifact and what it is.
func (r *Report) Write(w *terminal.Terminal, talk *terminal.Talk) {
	for _, c := range r.Changes {
		fmt.Fprintf(w, "%s %s\n", w.Sign(c.Kind.Sign()), inert.Line(c.Path))
	}
	for _, who := range r.SignedBy {
		talk.Note("signed by %s", inert.Line(who))
	}
	if m := r.Made; m != nil {
		talk.Note("made of %s of %s, lock %s (%s, %s)", inert.Line(m.Workspace), inert.Line(m.Revision), m.Lock,
			diag.Count(len(m.Operators), "operator"), diag.Count(len(m.Catalogs), "catalog"))
	}
	if r.InStep {
		said := "holds what it should"
		if len(r.Unchecked) > 0 {
			said = "is whole, and its overlays build"
		}
		talk.Note("%s (%s) %s (%s)", inert.Line(r.Reference), r.Digest, said, diag.Count(r.Files, "file"))
	}
}

// compare fills in what the commit has otherwise, or why it was not looked at.
func (r *Report) compare(ctx context.Context, p *project.Project, a *project.Artifact) error {
	dir, whole := a.Tree()
	lies, err := a.Layout()
	if err != nil {
		return &registry.Error{Image: a.Name, Err: err}
	}
	if len(lies.Clusters) == 0 {
		return &registry.Error{Image: a.Name, Err: fmt.Errorf("it holds no tree that quayside rendered: no %s", layout.ClustersFile)}
	}
	for _, c := range lies.Clusters {
		r.Clusters = append(r.Clusters, c.Name)
	}
	if err := builds(a.Files, dir, lies); err != nil {
		return err
	}
	branch, commit, ok := commitOf(a.Meta.Revision)
	if !ok {
		r.Unchecked = append(r.Unchecked, "it names no commit, so that there is nothing to compare it with")
		return nil
	}
	repo, err := gitrepo.Open(p.Name())
	if err == nil {
		_, err = repo.Revision(commit)
	} else if !errors.Is(err, gitrepo.ErrNone) {
		return err
	}
	if err != nil {
		r.Unchecked = append(r.Unchecked, fmt.Sprintf("commit %s, which it names, is not here: %v", commit, err))
		return nil
	}
	opt := Options{At: commit, Branch: branch}
	if !whole {
		opt.Clusters = r.Clusters
	}
	want, err := Load(ctx, p, opt)
	if err != nil {
		return err
	}
	r.Changes = compare(a.Files, want.Files)
	if a.Origin != nil {
		r.Made.Differences = append(r.Made.Differences, a.Origin.Differences(want.Origin)...)
	}
	return nil
}

// commitOf takes a revision apart, as Flux writes it: "main@sha1:…".
func commitOf(text string) (branch, commit string, ok bool) {
	m := regexp.MustCompile(`^(?:(.+)@)?(?:sha1:([0-9a-f]{40})|sha256:([0-9a-f]{64}))$`).FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2] + m[3], true
}

// builds builds what all clusters get, what is equal once.
func builds(files *filetree.Tree, dir string, lies *layout.Tree) error {
	_, err := inputs(func(name string) ([]byte, error) {
		if data, ok := files.Get(name); ok {
			return data, nil
		}
		return nil, fs.ErrNotExist
	}, dir, lies, lies.Clusters)
	return err
}

// inputs builds what clusters get of the tree in a directory, what is equal once,
// and returns the paths of the files that go into that. Errors have the place of
// what is wrong, all at once.
func inputs(read func(name string) ([]byte, error), dir string, lies *layout.Tree, clusters []layout.Cluster) (map[string]bool, error) {
	names, built, seen := map[string]bool{}, map[[32]byte]bool{}, map[string]bool{}
	kustomizations := overlay.New(read, nil)
	var faults diag.List
	for _, cluster := range clusters {
		dirs := lies.Pieces(cluster)
		if _, crds := lies.Definitions(cluster); crds != "" {
			dirs = append(dirs, crds)
		}
		for _, part := range dirs {
			if seen[part] {
				continue
			}
			seen[part] = true
			o, err := kustomizations.Open(path.Join(dir, part))
			if err == nil && !built[o.Digest] {
				built[o.Digest] = true
				_, err = o.Build()
			}
			faults.Add(diag.Pos{}, err)
			if o == nil {
				continue
			}
			for name := range o.All() {
				names[name] = true
			}
		}
	}
	return names, faults.Err()
}

// compare returns how files differ from those that are wanted, by path.
func compare(have, want *filetree.Tree) []filetree.Change {
	out := []filetree.Change{}
	for name, data := range have.All() {
		if wanted, ok := want.Get(name); !ok {
			out = append(out, filetree.Change{Path: name, Kind: filetree.Extra})
		} else if !bytes.Equal(data, wanted) {
			out = append(out, filetree.Change{Path: name, Kind: filetree.Differs})
		}
	}
	for name := range want.All() {
		if _, ok := have.Get(name); !ok {
			out = append(out, filetree.Change{Path: name, Kind: filetree.Missing})
		}
	}
	slices.SortFunc(out, func(a, b filetree.Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}
