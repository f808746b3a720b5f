package workspace

import (
	"slices"

	"github.com/quayside/quayside/declare"
)

// loadPaths reads the declarations in paths. It ignores paths that do not exist, and declarations
// that cannot be read.
func (p *Opened) loadPaths(paths []declare.Path) []declare.Subscription {
	files, dir := p.Repository()
	opt := declare.LoadOptions{Dir: dir, Paths: slices.DeleteFunc(slices.Clone(paths), func(d declare.Path) bool { return !d.IsPattern() && !p.exists(d.Path) }), Output: p.Settings.Output}
	if len(opt.Paths) == 0 {
		return nil // without paths, LoadFS would read the whole workspace
	}
	set, _ := declare.LoadFS(files, opt)
	if set == nil {
		return nil
	}
	return set.Subscriptions
}
