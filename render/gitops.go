package render

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// writeGitOps writes the objects of the GitOps tool: the objects that the user applies once, and the objects
// that the tool then applies by itself.
func (t *tree) writeGitOps() error {
	if !t.opt.hasEngine() {
		return nil
	}
	profiled := profile.Tree{GitOps: *t.opt.GitOps, OwnCRDs: t.ownCRDs, HealthChecks: t.opt.HealthChecks, APIs: customResources(t.installs)}
	for _, v := range t.views {
		profiled.Clusters = append(profiled.Clusters, v.cluster)
	}
	var faults []error
	for _, f := range t.opt.profile.Faults(profiled.GitOps, profiled.Clusters) {
		faults = append(faults, fmt.Errorf("spec.%s: %s", f.Field, f.Message))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if r := t.opt.Reporter; r != nil {
		profiled.Reporter = &profile.Workload{Namespace: r.Namespace, Name: reporterName}
	}
	if !t.opt.byCluster() {
		var err error
		if profiled.Pieces, err = t.profilePieces(); err != nil {
			return err
		}
	}
	own, files := t.opt.profile.Apply(profiled)
	if t.opt.byCluster() && !slices.ContainsFunc(t.objects, func(r Rendered) bool { return k8s.IsCRD(r.Object) }) {
		if err := t.files.Add("crds/README.md", []byte(noCRDsReadme)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := t.files.Add(name, files[name]); err != nil {
			return err
		}
	}
	for dir, objects := range own {
		if err := t.writeToolObjects(dir, objects); err != nil {
			return err
		}
	}
	if t.opt.GitOps.Inputs {
		return t.writeInputs(t.opt.profile.Inputs(profiled))
	}
	return nil
}

// writeInputs writes data about each cluster, for an ApplicationSet or ResourceSet of the user.
func (t *tree) writeInputs(objects []Object, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := t.files.Add(path.Join("inputs", name), files[name]); err != nil {
			return err
		}
	}
	if len(objects) == 0 {
		return nil
	}
	return t.writeToolObjects("inputs", objects)
}

// writeToolObjects writes objects of the GitOps tool to dir. It adds a kustomization, except in the directory
// pieces/, which engines read without a kustomization.
func (t *tree) writeToolObjects(dir string, objects []Object) error {
	pieces := dir == layout.Pieces || strings.HasPrefix(dir, layout.Pieces+"/")
	var files []string
	for _, o := range objects {
		o = withOwner(o, nil, "")
		var errs diag.List
		if checkBuildable(diag.Pos{}, o, &errs); errs.Err() != nil {
			return errs.Err()
		}
		name := o.Kind() + "-" + o.Name()
		if pieces { // omit the prefix, which is the same for all names in this directory
			_, name, _ = strings.Cut(o.Name(), "--")
		}
		file := fitName(maxFileName(dir), fileName(name))
		if err := t.files.Add(path.Join(dir, file), yamlnode.Encode(o)); err != nil {
			return err
		}
		files = append(files, file)
	}
	if pieces && len(files) == 0 {
		return t.files.Add(path.Join(dir, "README.md"), []byte(noPiecesReadme))
	}
	if pieces {
		return nil
	}
	slices.Sort(files)
	return t.writeKustomization(dir, files)
}

// noCRDsReadme is the README of an empty directory of CRDs. It keeps the directory in Git: without
// the directory, the GitOps tool would not prune anything.
const noCRDsReadme = "No operator is installed, so there is no custom resource definition here.\n"

// noPiecesReadme is the README of an empty directory of pieces.
const noPiecesReadme = "No operator is installed, so there are no manifests here.\n"

// customResources returns the kinds of custom resources that operators provide, sorted and without duplicates.
func customResources(installs []operator) []catalog.GVK {
	var out []catalog.GVK
	for _, in := range installs {
		out = append(out, in.b.Provides()...)
	}
	slices.SortFunc(out, catalog.GVK.Compare)
	return slices.Compact(out)
}
