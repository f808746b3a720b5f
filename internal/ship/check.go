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

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/registry"
)

// Found is what was found out about an artifact.
type Found struct {
	Clusters  []string          // that it has overlays for, sorted
	Changes   []filetree.Change // of its files, against the commit that it names, by path
	Stated    []string          // what its provenance states and that commit has not, or has otherwise
	Unchecked string            // why it was not compared with that; empty where it was
}

// Check builds the overlays of an artifact, and compares its files with what goes
// into one of the commit that it names, where the repository around a workspace has
// that, and what its provenance states with what is there. Overlays that do not build, in either, are an error; so is a commit of which
// the tree is not what its lock says.
func Check(ctx context.Context, p *project.Project, a *project.Artifact) (Found, error) {
	dir, whole := a.Tree()
	f := Found{Clusters: a.Clusters()}
	if !whole && len(f.Clusters) == 0 {
		return f, &registry.Error{Image: a.Name, Err: errors.New("it holds no tree that quayside rendered: no overlay of a cluster")}
	}
	if err := builds(a.Files, dir, f.Clusters); err != nil {
		return f, err
	}
	branch, commit, ok := commitOf(a.Meta.Revision)
	if !ok {
		f.Unchecked = "it names no commit, so that there is nothing to compare it with"
		return f, nil
	}
	repo, err := gitrepo.Open(p.Name())
	if err == nil {
		_, err = repo.Revision(commit)
	} else if !errors.Is(err, gitrepo.ErrNone) {
		return f, err
	}
	if err != nil {
		f.Unchecked = fmt.Sprintf("commit %s, which it names, is not here: %v", commit, err)
		return f, nil
	}
	opt := Options{At: commit, Branch: branch}
	if !whole {
		opt.Clusters = f.Clusters
	}
	want, err := Load(ctx, p, opt)
	if err != nil {
		return f, err
	}
	f.Changes = compare(a.Files, want.Files)
	if a.Origin != nil {
		f.Stated = a.Origin.Differences(want.Origin)
	}
	return f, nil
}

// commitOf takes a revision apart, as Flux writes it: "main@sha1:…".
func commitOf(text string) (branch, commit string, ok bool) {
	m := regexp.MustCompile(`^(?:(.+)@)?(?:sha1:([0-9a-f]{40})|sha256:([0-9a-f]{64}))$`).FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2] + m[3], true
}

// builds builds the overlays of clusters, equal ones once.
func builds(files *filetree.Tree, dir string, clusters []string) error {
	_, err := inputs(func(name string) ([]byte, error) {
		if data, ok := files.Get(name); ok {
			return data, nil
		}
		return nil, fs.ErrNotExist
	}, dir, clusters)
	return err
}

// inputs builds the overlays of clusters of the tree in a directory, equal ones
// once, and returns the paths of the files that go into that. Errors have the place
// of what is wrong, all at once.
func inputs(read func(name string) ([]byte, error), dir string, clusters []string) (map[string]bool, error) {
	names, built := map[string]bool{}, map[[32]byte]bool{}
	kustomizations := overlay.New(read, nil)
	var faults diag.List
	for _, cluster := range clusters {
		for _, part := range []string{"", "reporter", "crds"} {
			o, err := kustomizations.Open(path.Join(dir, "clusters", cluster, part))
			if part != "" && errors.Is(err, overlay.ErrNone) {
				continue
			}
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
	var out []filetree.Change
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
