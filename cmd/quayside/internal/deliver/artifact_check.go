package deliver

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

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/overlay"
)

// ArtifactReport is the result of checking an artifact.
type ArtifactReport struct {
	Reference  string                `json:"reference" doc:"full reference from the arguments, or the directory of a tree"`
	Digest     string                `json:"digest,omitempty" doc:"digest of an artifact"`
	Source     string                `json:"source,omitempty" doc:"source according to the artifact, like revision and created"`
	Revision   string                `json:"revision,omitempty"`
	Created    string                `json:"created,omitempty"`
	SignedBy   []string              `json:"signedBy" doc:"required signers of spec.trust that signed it; empty if none are required"`
	Provenance *ComparedProvenance   `json:"provenance,omitempty" doc:"origin according to the provenance"`
	Files      int                   `json:"files"`
	Clusters   []string              `json:"clusters" doc:"clusters with overlays in the artifact"`
	UpToDate   bool                  `json:"upToDate"` // no differences found; unchecked parts do not count
	Changes    []filetree.FileChange `json:"changes" doc:"differences from the files of the commit: missing, differs, extra"`
	Unchecked  []string              `json:"unchecked"`
	workspace.Failure
}

// ComparedProvenance is a provenance with its differences from the commit.
type ComparedProvenance struct {
	inventory.Provenance
	Differences []string `json:"differences" doc:"differences from the files of the commit"`
}

// CheckArtifact builds the overlays of an artifact, and compares the artifact's files and provenance with the
// commit it was pushed from. A difference, an overlay that does not build, or a commit whose tree is out of
// date is an error. If the repository of workspace p does not have the commit, the report lists the comparison
// as unchecked. If strict is true, an unchecked comparison is an error. The report is never nil.
func CheckArtifact(ctx context.Context, p *workspace.Project, a *workspace.Artifact, strict bool) (*ArtifactReport, error) {
	r := &ArtifactReport{
		Reference: a.Name, Digest: a.Digest, Source: a.Meta.Source, Revision: a.Meta.Revision, Files: a.Files.Len(),
		Clusters: []string{}, Changes: []filetree.FileChange{}, Unchecked: []string{}, Failure: workspace.NewFailure(),
		SignedBy: append([]string{}, a.SignedBy...),
	}
	if a.Origin != nil {
		r.Provenance = &ComparedProvenance{*a.Origin, []string{}}
	}
	if !a.Meta.Created.IsZero() {
		r.Created = a.Meta.Created.Format(time.RFC3339)
	}
	err := r.compare(ctx, p, a)
	switch {
	case err != nil:
	case len(r.Changes) > 0:
		err = &workspace.DiffersError{Msg: fmt.Sprintf("%s differs from %s (%s)", a.Name, a.Meta.Revision, diag.Count(len(r.Changes), "file"))}
	case r.Provenance != nil && len(r.Provenance.Differences) > 0:
		err = &workspace.DiffersError{Msg: fmt.Sprintf("the provenance of %s does not match %s: %s", a.Name, a.Meta.Revision, strings.Join(r.Provenance.Differences, "; "))}
	case strict && len(r.Unchecked) > 0:
		err = &workspace.DiffersError{Msg: "--strict: not everything could be checked"}
	}
	r.UpToDate = err == nil
	r.Add(err)
	return r, err
}

// compare sets r.Changes and the differences in provenance. If there is no commit to compare with, it adds the
// reason to r.Unchecked.
func (r *ArtifactReport) compare(ctx context.Context, p *workspace.Project, a *workspace.Artifact) error {
	dir, whole := a.Tree()
	clusterLayout, err := a.Layout()
	if err != nil {
		return &oci.Error{Image: a.Name, Err: err}
	}
	if len(clusterLayout.Clusters) == 0 {
		return &oci.Error{Image: a.Name, Err: fmt.Errorf("not a tree rendered by quayside: no %s", layout.ClustersFile)}
	}
	for _, c := range clusterLayout.Clusters {
		r.Clusters = append(r.Clusters, c.Name)
	}
	if err := checkBuilds(a.Files, dir, clusterLayout); err != nil {
		return err
	}
	branch, commit, ok := parseRevision(a.Meta.Revision)
	if !ok {
		r.Unchecked = append(r.Unchecked, "the artifact names no commit to compare with")
		return nil
	}
	repo, err := gitrepo.Open(p.Name())
	if err == nil {
		_, err = repo.Revision(commit)
	} else if !errors.Is(err, gitrepo.ErrNone) {
		return err
	}
	if err != nil {
		r.Unchecked = append(r.Unchecked, fmt.Sprintf("its commit %s is not in this repository: %v", commit, err))
		return nil
	}
	opt := LoadOptions{At: commit, Branch: branch}
	if !whole {
		opt.Clusters = r.Clusters
	}
	want, err := LoadTree(ctx, p, opt)
	if err != nil {
		return err
	}
	r.Changes = compareTrees(a.Files, want.Files)
	if a.Origin != nil {
		r.Provenance.Differences = append(r.Provenance.Differences, a.Origin.CompareCommit(want.Origin)...)
	}
	return nil
}

// parseRevision splits a revision in the format of Flux: "main@sha1:…".
func parseRevision(text string) (branch, commit string, ok bool) {
	m := regexp.MustCompile(`^(?:(.+)@)?(?:sha1:([0-9a-f]{40})|sha256:([0-9a-f]{64}))$`).FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2] + m[3], true
}

// checkBuilds builds the overlays of all clusters. dir is the path of the tree in files.
func checkBuilds(files *filetree.Tree, dir string, tree *layout.Tree) error {
	_, err := listInputs(func(name string) ([]byte, error) {
		if data, ok := files.Get(name); ok {
			return data, nil
		}
		return nil, fs.ErrNotExist
	}, dir, tree, tree.Clusters)
	return err
}

// listInputs builds the overlays of clusters and returns the paths of all files that the overlays use. dir is
// the directory of the tree. Identical overlays are built only once. The error lists all faults with their
// positions.
func listInputs(read func(name string) ([]byte, error), dir string, tree *layout.Tree, clusters []layout.Cluster) (map[string]bool, error) {
	names, built, seen := map[string]bool{}, map[[32]byte]bool{}, map[string]bool{}
	kustomizations := overlay.New(overlay.FileFunc(read))
	var faults diag.List
	for _, cluster := range clusters {
		dirs := tree.Pieces(cluster)
		if _, crds := tree.ClusterCRDDirs(cluster); crds != "" {
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
				_, err = o.BuildTree(func(name string) bool { return filetree.Within(name, dir) })
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

// compareTrees returns the differences between the files of two trees, sorted by path.
func compareTrees(have, want *filetree.Tree) []filetree.FileChange {
	out := []filetree.FileChange{}
	for name, data := range have.All() {
		if wanted, ok := want.Get(name); !ok {
			out = append(out, filetree.FileChange{Path: name, Kind: filetree.Extra})
		} else if !bytes.Equal(data, wanted) {
			out = append(out, filetree.FileChange{Path: name, Kind: filetree.Modified})
		}
	}
	for name := range want.All() {
		if _, ok := have.Get(name); !ok {
			out = append(out, filetree.FileChange{Path: name, Kind: filetree.Missing})
		}
	}
	slices.SortFunc(out, func(a, b filetree.FileChange) int { return strings.Compare(a.Path, b.Path) })
	return out
}
