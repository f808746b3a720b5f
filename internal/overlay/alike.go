package overlay

import (
	"bytes"
	"errors"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/api/konfig"
)

// Like has f take what was opened of other where all that goes into it is the same
// here: of two states of many clusters most are, and opening one takes longer than
// to see that.
func (f *Files) Like(other *Files) { f.like = other }

// alike returns what other files opened of a directory that is the same here, nil
// where there is none or it is not.
func (f *Files) alike(dir string) *Overlay {
	if f.like == nil || f.like.nodes[dir] == nil || !f.same(f.like.nodes[dir]) {
		return nil
	}
	return f.nodes[dir]
}

// same reports whether o, of other files, would be opened here just so, and if it is
// takes it.
func (f *Files) same(o *Overlay) bool {
	if have, known := f.nodes[o.Dir]; known {
		return have == o
	}
	if f.unlike[o] || !f.sameHere(o) {
		f.unlike[o] = true
		return false
	}
	f.nodes[o.Dir] = o
	return true
}

func (f *Files) sameHere(o *Overlay) bool {
	leads := func(name, to string) bool {
		at, err := f.real(name)
		return err == nil && at == to
	}
	if o.asks {
		return false
	}
	for name, to := range o.links {
		if !leads(name, to) {
			return false
		}
	}
	for _, sub := range o.below {
		if !f.same(sub) {
			return false
		}
	}
	for name, data := range o.own {
		if !leads(name, name) {
			return false
		}
		if got, err := f.read(name); err != nil || !bytes.Equal(got, data) {
			return false
		}
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		at := o.path(name)
		if !leads(path.Join(o.Dir, name), at) {
			return false
		}
		if _, err := f.read(at); at != o.File && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}
