package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render/profile"
)

// gitops writes the objects that make the GitOps tool apply the tree, in a
// directory of their own that is not part of the tree's base.
func (t *tree) gitops() error {
	if t.opt.GitOps == nil || t.opt.profile.Kind() == "" {
		return nil
	}
	if missing := profile.Missing(t.opt.profile, *t.opt.GitOps); len(missing) > 0 {
		return fmt.Errorf("gitops.%s is needed to render for the GitOps tool", strings.Join(missing, " and gitops."))
	}
	told := profile.Tree{GitOps: *t.opt.GitOps, HealthChecks: t.opt.HealthChecks, APIs: t.providedAPIs()}
	for _, c := range t.opt.Clusters {
		told.Clusters = append(told.Clusters, profile.Cluster{Name: c.Name, Server: c.Server})
	}
	if r := t.opt.Reporter; r != nil {
		told.Reporter = &profile.Workload{Namespace: r.Namespace, Name: reporterName}
	}
	for _, r := range t.objects {
		told.Objects = append(told.Objects, r.Object)
	}
	objects, beside := t.opt.profile.Apply(told)
	if !slices.ContainsFunc(told.Objects, kobj.IsCRD) {
		if err := t.files.Add("crds/README.md", []byte(noDefinitions)); err != nil {
			return err
		}
	}
	dir := string(t.opt.Profile)
	for _, name := range slices.Sorted(maps.Keys(beside)) {
		if err := t.files.Add(path.Join(dir, name), beside[name]); err != nil {
			return err
		}
	}
	var files []string
	for _, o := range objects {
		o = owned(o, nil, "")
		file := fileName(o.Kind()+"-"+o.Name()) + ".yaml"
		if err := t.files.Add(path.Join(dir, file), yamlnode.Encode(o)); err != nil {
			return err
		}
		files = append(files, file)
	}
	slices.Sort(files)
	return t.kustomization(dir, files)
}

// noDefinitions keeps a directory, which Git would not do, for the GitOps tool:
// it prunes nothing of a directory that is not there.
const noDefinitions = "No operator is installed, so there is no custom resource definition here.\n"

// providedAPIs returns the custom resources that the operators provide, each
// once, sorted.
func (t *tree) providedAPIs() []catalog.GVK {
	var out []catalog.GVK
	for _, in := range t.installs {
		for _, api := range in.b.CSV.OwnedCRDs {
			if _, group, ok := strings.Cut(api.Name, "."); ok {
				out = append(out, catalog.GVK{Group: group, Version: api.Version, Kind: api.Kind})
			}
		}
	}
	slices.SortFunc(out, catalog.GVK.Compare)
	return slices.Compact(out)
}
