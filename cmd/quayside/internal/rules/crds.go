package rules

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// checkSharedCRDs returns an error for each CRD whose spec differs in the tree of another workspace for the
// same cluster.
func checkSharedCRDs(s *State) (Findings, error) {
	if s.Rendered == nil {
		return nil, nil
	}
	var out Findings
	err := s.eachInSharedCluster(func(o Other, other *settings.Workspace, lock *lockfile.File) {
		tree, err := o.Tree()
		if err != nil {
			return // reported there
		}
		theirs := crdFiles(tree)
		for base, own := range crdFiles(s.Rendered.Tree) {
			file, both := theirs[base]
			if !both || bytes.Equal(own.data, file.data) || k8s.Equal(own.spec(), file.spec()) {
				continue
			}
			server := sharedTarget(own.clusters(s.Settings, s.Lock), file.clusters(other, lock), false)
			if server == "" {
				continue
			}
			f := Finding{Severity: Error, Code: "two-owners", Subject: own.crd(), Hint: "lock versions of the operators with equal CRDs, or exclude an operator in spec.clusters[].operators of one of the workspaces"}
			f.Pos = diag.Pos{File: path.Join(s.Settings.OutputDir(), own.name)}
			f.Msg = fmt.Sprintf("the CRD %s differs from the one in %s: the GitOps tool would apply both to %s", f.Subject, path.Join(o.Dir, other.OutputDir(), file.name), server)
			out = append(out, s.accept(f))
		}
	})
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Msg, b.Msg) })
	return out, err
}

// crdFile is the file of a CRD in a tree.
type crdFile struct {
	name string // in the tree
	data []byte
}

// crdFiles returns the files of CRDs in a tree, by base name.
func crdFiles(t *filetree.Tree) map[string]crdFile {
	out := map[string]crdFile{}
	for name, data := range t.All() {
		if strings.HasPrefix(name, layout.CRDs+"/") && path.Ext(name) == ".yaml" {
			out[path.Base(name)] = crdFile{name, data}
		}
	}
	return out
}

// object returns the CRD, or nil if the file cannot be parsed.
func (f crdFile) object() k8s.Object {
	objects, err := yamlnode.Objects(f.name, f.data, yamlnode.Limits{})
	if err != nil || len(objects) != 1 {
		return nil
	}
	return objects[0]
}

func (f crdFile) spec() any { return f.object()["spec"] }

func (f crdFile) crd() string { return f.object().Name() }

// clusters returns a copy of the settings that has only the clusters that get the package of the CRD.
func (f crdFile) clusters(w *settings.Workspace, lock *lockfile.File) *settings.Workspace {
	pkg := path.Base(path.Dir(f.name))
	out := *w
	out.Clusters = nil
	for _, pin := range lock.Pins {
		if pin.Package == pkg {
			out.Clusters = append(out.Clusters, withOperator(w, pin.Key()).Clusters...)
		}
	}
	return &out
}
