package overlay

import (
	"io/fs"
	"path"

	"github.com/quayside/quayside/internal/filetree"
)

// resolveLinks returns the target of a path after following symbolic links. kustomize also follows
// links before it checks where a file is.
func (f *Files) resolveLinks(name string) (string, error) {
	if dir, _ := path.Split(name); len(dir) > 1 && f.plain[dir[:len(dir)-1]] && fs.ValidPath(name) {
		if _, err := f.source.ReadLink(name); err != nil {
			return name, nil
		}
	}
	return filetree.ResolveLinks(name, f.source.ReadLink, "repository", f.plain)
}

// resolveReference returns the path that a reference in o leads to, and records links in o.
func (f *Files) resolveReference(o *Overlay, name string) (string, error) {
	name = path.Join(o.Dir, name)
	at, err := f.resolveLinks(name)
	if err == nil && at != name {
		if o.links == nil {
			o.links = map[string]string{}
		}
		o.links[name] = at
	}
	return at, err
}
