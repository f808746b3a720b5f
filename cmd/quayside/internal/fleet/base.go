package fleet

import (
	"path"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/overlay"
)

// Base is the state of a tree before overlays, with caches that all clusters share.
type Base struct {
	fleet  *Fleet
	Start  diff.State
	layers map[string]*layer // by Inputs.asIs
}

// layer contains the base objects, divided into objects that are applied directly and objects that overlays may
// include. Clusters with the same Inputs.asIs share one layer. The maps of operators have the format of
// operatorKeys.
type layer struct {
	direct            []diff.Object            // applied without a build
	directOperators   map[string]bool          // operators of the objects in direct
	listable          map[string][]diff.Object // objects that overlays may include, by path
	listableOperators map[string]bool          // operators of the objects in listable
	listings          map[string]*listing
}

// listing contains the objects in the resources of an overlay's kustomization.
type listing struct {
	objects   []diff.Object
	operators map[string]bool // result of operatorKeys
	simple    bool            // whether all keys are unique, and kustomize changes only patched objects
	indexes   map[k8s.Key]int // index in objects, by key
}

// NewBase returns the base of a fleet. state has the objects of all clusters before overlays.
func (f *Fleet) NewBase(state diff.State) *Base {
	return &Base{f, state, map[string]*layer{}}
}

// layer returns the cached layer for a list of files that are applied without a build (asIs).
func (g *Base) layer(asIs []string) *layer {
	key := strings.Join(asIs, " ")
	if g.layers[key] != nil {
		return g.layers[key]
	}
	given := map[string]bool{}
	for _, dir := range asIs {
		given[g.fleet.DisplayPath(path.Join(g.fleet.Out, dir))] = true
	}
	l := &layer{listable: map[string][]diff.Object{}, listableOperators: map[string]bool{}, listings: map[string]*listing{}}
	for _, o := range g.Start.Objects {
		switch {
		case given[path.Dir(o.Path)] || given[o.Path]:
			l.direct = append(l.direct, o)
		default:
			l.listable[o.Path] = append(l.listable[o.Path], o)
		}
	}
	l.directOperators = operatorKeys(l.direct)
	for name, list := range l.listable {
		for _, o := range list {
			l.listableOperators[o.Operator] = l.listableOperators[o.Operator] || !g.fleet.IsCRDFile(name)
		}
	}
	g.layers[key] = l
	return l
}

// operatorKeys returns a map whose keys are the operators of the objects. A value is true if the
// operator has an object that is not a CRD.
func operatorKeys(objects []diff.Object) map[string]bool {
	out := map[string]bool{}
	for i := range objects {
		o := &objects[i]
		out[o.Operator] = out[o.Operator] || k8s.Text(o.Content, "kind") != "CustomResourceDefinition"
	}
	return out
}

// listing returns the listing of an overlay. Overlays with equal resources share one listing, so
// callers must not modify it.
func (g *Base) listing(l *layer, o *overlay.Overlay) (*listing, error) {
	key := o.Listing()
	if known := l.listings[key]; known != nil {
		return known, nil
	}
	files := o.All()
	x := &listing{simple: true, indexes: map[k8s.Key]int{}}
	for _, name := range o.Resources() {
		shown := g.fleet.DisplayPath(name)
		objects := l.listable[shown]
		if objects == nil {
			var err error
			if objects, err = diff.Objects([]diff.File{{Path: shown, Data: files[name]}}, g.fleet.Pins()); err != nil {
				return nil, err
			}
		}
		x.simple = x.simple && diff.Simple(objects)
		for i := range objects {
			key := objects[i].Key()
			_, twice := x.indexes[key]
			x.simple, x.indexes[key] = x.simple && !twice, len(x.objects)+i
		}
		x.objects = append(x.objects, objects...)
	}
	x.operators = operatorKeys(x.objects)
	l.listings[key] = x
	return x, nil
}
