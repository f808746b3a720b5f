package workspace

import (
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/format"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// repositoryCharts returns a renderer for the charts of the repository, as for a cluster with OLM.
// Templates see the APIs of Kubernetes, of OLM and of spec.provides.
func (p *Opened) repositoryCharts(w *settings.Workspace) *helm.Charts {
	return p.charts.For(func() (string, []string, error) {
		return format.Kubernetes(lockfile.Template{KubernetesVersion: w.KubernetesVersion, APIVersions: slices.Concat(declare.APIs(), w.Provides.APIs)})
	})
}

// loadPaths reads the declarations in paths. It ignores paths that do not exist, and declarations
// that cannot be read.
func (p *Opened) loadPaths(paths []declare.Path) []declare.Subscription {
	files, dir := p.Repository()
	opt := declare.LoadOptions{Dir: dir, Paths: slices.DeleteFunc(slices.Clone(paths), func(d declare.Path) bool { return !d.IsPattern() && !p.exists(d.Path) }), Output: p.Settings.OutputDir(), Foreign: p.isForeign(), Charts: p.repositoryCharts(p.Settings), Results: p.results}
	if len(opt.Paths) == 0 {
		return nil // without paths, LoadFS would read the whole workspace
	}
	set, _ := declare.LoadFS(files, opt)
	if set == nil {
		return nil
	}
	return set.Subscriptions
}
