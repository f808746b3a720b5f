package compare

import (
	"path"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/overlay"
)

// baseCache is the state of a side before overlays, with caches that several overlays share.
type baseCache struct {
	side   *Side
	state  diff.State
	layers map[string]*layer // by clusterInputs.asIs
}

// layer is the base objects of clusters with the same clusterInputs.asIs: objects that are
// applied directly, and objects that overlays may list. The values of the operator maps are as
// in operatorKeys.
type layer struct {
	direct            []diff.Object            // applied without a build
	directOperators   map[string]bool          // operators of direct
	listable          map[string][]diff.Object // objects that overlays may list, by path
	listableOperators map[string]bool          // operators of listable
	listings          map[string]*listing
}

// listing is the objects in the resources of an overlay.
type listing struct {
	objects   []diff.Object
	operators map[string]bool // operators, as in operatorKeys
	simple    bool            // whether a build without patches changes nothing, and all keys are unique
	indexes   map[k8s.Key]int // indexes in objects
}

func (s *Side) newBaseCache(state diff.State) *baseCache {
	return &baseCache{s, state, map[string]*layer{}}
}

// layer returns the cached layer for a list of files that are applied without a build (asIs).
func (g *baseCache) layer(asIs []string) *layer {
	key := strings.Join(asIs, " ")
	if g.layers[key] != nil {
		return g.layers[key]
	}
	given := map[string]bool{}
	for _, dir := range asIs {
		given[g.side.displayPath(path.Join(g.side.out, dir))] = true
	}
	l := &layer{listable: map[string][]diff.Object{}, listableOperators: map[string]bool{}, listings: map[string]*listing{}}
	for _, o := range g.state.Objects {
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
			l.listableOperators[o.Operator] = l.listableOperators[o.Operator] || !g.side.isCRDFile(name)
		}
	}
	g.layers[key] = l
	return l
}

// operatorKeys returns the operators of objects. The value is true if an operator has
// objects other than CRDs.
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
func (g *baseCache) listing(l *layer, o *overlay.Overlay) (*listing, error) {
	key := o.Listing()
	if known := l.listings[key]; known != nil {
		return known, nil
	}
	files := o.All()
	x := &listing{simple: true, indexes: map[k8s.Key]int{}}
	for _, name := range o.Resources() {
		shown := g.side.displayPath(name)
		objects := l.listable[shown]
		if objects == nil {
			var err error
			if objects, err = diff.Objects([]diff.File{{Path: shown, Data: files[name]}}, g.side.pins()); err != nil {
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
