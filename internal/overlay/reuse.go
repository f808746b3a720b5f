package overlay

import (
	"bytes"
	"errors"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/api/konfig"
)

// ReuseFrom lets f reuse each overlay that other has opened and whose input is the same in f. Two revisions
// usually differ in few overlays, and comparing the input is faster than opening an overlay.
func (f *Files) ReuseFrom(other *Files) { f.previous = other }

// findReusable returns the overlay of a directory from f.previous if all of its input is the same
// in f, otherwise nil.
func (f *Files) findReusable(dir string) *Overlay {
	if f.previous == nil || f.previous.nodes[dir] == nil || !f.reuse(f.previous.nodes[dir]) {
		return nil
	}
	return f.nodes[dir]
}

// reuse reports whether all input of o is the same in f. If so, it records o in f.nodes.
func (f *Files) reuse(o *Overlay) bool {
	if have, known := f.nodes[o.Dir]; known {
		return have == o
	}
	if f.changed[o] || o.err != nil || !f.isUnchanged(o) {
		f.changed[o] = true
		return false
	}
	f.nodes[o.Dir] = o
	return true
}

func (f *Files) isUnchanged(o *Overlay) bool {
	resolvesTo := func(name, to string) bool {
		at, err := f.resolveLinks(name)
		return err == nil && at == to
	}
	if o.hasOptionalFiles {
		return false
	}
	for name, to := range o.links {
		if !resolvesTo(name, to) {
			return false
		}
	}
	for _, sub := range o.children {
		if !f.reuse(sub) {
			return false
		}
	}
	for name, data := range o.ownFiles {
		if !resolvesTo(name, name) {
			return false
		}
		if got, err := f.source.ReadFile(name); err != nil || !bytes.Equal(got, data) {
			return false
		}
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		at := o.path(name)
		if !resolvesTo(path.Join(o.Dir, name), at) {
			return false
		}
		if _, err := f.source.ReadFile(at); at != o.File && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}
