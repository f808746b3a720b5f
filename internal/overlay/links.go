package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// maxLinks bounds how many symbolic links one path may lead through.
const maxLinks = 40

// errAway is for a symbolic link that leads to what is not among these files.
var errAway = errors.New("leads out of the repository")

// real returns where a path leads, symbolic links followed, as kustomize does
// before it looks where a file or a directory lies.
func (f *Files) real(name string) (string, error) {
	if dir, _ := path.Split(name); len(dir) > 1 && f.plain[dir[:len(dir)-1]] && fs.ValidPath(name) {
		if _, is := f.link(name); !is {
			return name, nil
		}
	}
	at, rest, links := ".", strings.Split(name, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == ".." && at == "." {
			return "", fmt.Errorf("%s is or holds a symbolic link that %w", name, errAway)
		}
		at = path.Join(at, part)
		if f.plain[at] || at == "." {
			continue
		}
		target, is := f.link(at)
		if !is {
			if len(rest) > 0 { // a directory: others lie there
				f.plain[at] = true
			}
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s leads through more than %d symbolic links", name, maxLinks)
		}
		if path.IsAbs(target) {
			return "", fmt.Errorf("%s is a symbolic link that %w, to %s", at, errAway, target)
		}
		at, rest = path.Dir(at), append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}

// from returns where what o refers to leads, and keeps it in mind.
func (f *Files) from(o *Overlay, name string) (string, error) {
	name = path.Join(o.Dir, name)
	at, err := f.real(name)
	if err == nil && at != name {
		if o.links == nil {
			o.links = map[string]string{}
		}
		o.links[name] = at
	}
	return at, err
}

// within reports whether a path is a directory or lies below it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// linked is a file system with symbolic links: where kustomize asks what a path
// is, it hears what the links lead to.
type linked struct {
	filesys.FileSystem
	links map[string]string
}

// CleanedAbs returns the directory and the name of the file that a path leads
// to, the name being empty for a directory.
func (l linked) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	if to, is := l.links[strings.TrimPrefix(path.Clean(name), "/")]; is {
		name = "/" + to
	}
	return l.FileSystem.CleanedAbs(name)
}
