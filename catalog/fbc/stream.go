package fbc

import (
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// Sink takes the packages of a catalog while it is read, so that they need not
// be held together.
type Sink interface {
	// Put takes a package of which all seems to be there, with its slices. It
	// reports false, and has not taken it, where something must be missing.
	Put(p *catalog.PackageData) bool
	// Back gives back a package that was taken, for there is more of it, and
	// forgets it.
	Back(name string) (catalog.PackageData, error)
}

// StreamFS reads the catalog in fsys as LoadFS does, and gives sink the packages
// whose objects stand together. It returns the others.
func StreamFS(fsys fs.FS, sink Sink) (catalog.Content, error) {
	b := newBuilder()
	b.sink, b.taken, b.stays = sink, map[string]bool{}, map[string]bool{}
	b.walk(fsys)
	b.drain("")
	for _, p := range b.sorted() { // those without a name
		b.held.add(p)
	}
	b.packages = b.held
	return b.content()
}

// settle gives the sink what belongs to the last package, once an object of
// another one was read.
func (b *builder) settle() {
	if b.sink == nil || b.current == b.before {
		return
	}
	b.before = b.current
	b.drain(b.current)
}

// drain empties packages but for one. Where there are faults nothing will come
// of the others, and they are let go.
func (b *builder) drain(except string) {
	stay, all := b.byName[except], b.packages
	b.packages = packages{}
	if stay != nil {
		delete(all.byName, except)
		b.byName = map[string]*catalog.PackageData{except: stay}
	}
	if len(b.faults) > 0 {
		return
	}
	for _, p := range all.sorted() {
		switch {
		case b.stays[p.Name]:
			b.held.add(p)
		case b.taken[p.Name]:
			first, err := b.sink.Back(p.Name)
			if err != nil {
				b.fault(diag.Pos{}, err)
			}
			delete(b.taken, p.Name)
			b.stays[p.Name] = true
			b.held.add(first)
			b.held.add(p)
		case !p.Undeclared && b.sink.Put(&p):
			b.taken[p.Name] = true
		default:
			b.stays[p.Name] = true
			b.held.add(p)
		}
	}
	clear(b.texts)
	clear(b.values)
}
