package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// maxLinks limits the symbolic links in one path.
const maxLinks = 40

// errOutside is returned for a symbolic link to a file outside of the source.
var errOutside = errors.New("leads outside of the repository")

// resolveLinks returns the target of a path after following symbolic links, as
// kustomize does before it checks the location of a file.
func (f *Files) resolveLinks(name string) (string, error) {
	if dir, _ := path.Split(name); len(dir) > 1 && f.plain[dir[:len(dir)-1]] && fs.ValidPath(name) {
		if _, err := f.source.ReadLink(name); err != nil {
			return name, nil
		}
	}
	at, rest, links := ".", strings.Split(name, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == ".." && at == "." {
			return "", fmt.Errorf("%s is or contains a symbolic link that %w", name, errOutside)
		}
		at = path.Join(at, part)
		if f.plain[at] || at == "." {
			continue
		}
		target, err := f.source.ReadLink(at)
		if err != nil {
			if len(rest) > 0 { // a directory: others lie there
				f.plain[at] = true
			}
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s leads through more than %d symbolic links", name, maxLinks)
		}
		if path.IsAbs(target) {
			return "", fmt.Errorf("%s is a symbolic link that %w, to %s", at, errOutside, target)
		}
		at, rest = path.Dir(at), append(strings.Split(target, "/"), rest...)
	}
	return at, nil
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
