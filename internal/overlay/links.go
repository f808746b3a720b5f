package overlay

import (
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/internal/filetree"
)

// resolveLinks returns the target of a path after following symbolic links, as
// kustomize does before it checks the location of a file.
func (f *Files) resolveLinks(name string) (string, error) {
	if dir, _ := path.Split(name); len(dir) > 1 && f.plain[dir[:len(dir)-1]] && fs.ValidPath(name) {
		if _, err := f.source.ReadLink(name); err != nil {
			return name, nil
		}
	}
	return filetree.ResolveLinks(name, f.source.ReadLink, "repository", f.plain)
}

// resolveReference returns the target of a reference in o, and records it.
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

// linkedFS is a file system that resolves symbolic links for kustomize.
type linkedFS struct {
	filesys.FileSystem
	links map[string]string
}

// CleanedAbs returns the directory and the file name of the target of a path.
// The name is empty for a directory.
func (l linkedFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	if to, is := l.links[strings.TrimPrefix(path.Clean(name), "/")]; is {
		name = "/" + to
	}
	return l.FileSystem.CleanedAbs(name)
}
