package compare

import (
	"path"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/overlay"
)

// ground is the state of a side before overlays, with caches of work common to several
// overlays.
type ground struct {
	side   *Side
	whole  diff.State
	layers map[string]*layer // by the directories and files that a cluster gets without a build
}

// layer is the base objects for a group of clusters: those that overlays may list, and the
// others.
type layer struct {
	given    []diff.Object            // without a build
	here     map[string]bool          // its operators; true: with objects other than CRDs
	base     map[string][]diff.Object // objects that overlays may list, by path
	there    map[string]bool          // its operators; true: with objects other than CRDs
	listings map[string]*listing
}

// listing is the objects listed as resources of an overlay.
type listing struct {
	objects []diff.Object
	here    map[string]bool // their operators; true: with objects other than CRDs
	simple  bool            // kustomize does not change any object by itself, and there are no duplicates
	at      map[k8s.Key]int // indexes of the objects
}

func (s *Side) ground(whole diff.State) *ground {
	return &ground{s, whole, map[string]*layer{}}
}

// layer returns the layer for clusters that get the directories and files asIs.
func (g *ground) layer(asIs []string) *layer {
	key := strings.Join(asIs, " ")
	if g.layers[key] != nil {
		return g.layers[key]
	}
	given := map[string]bool{}
	for _, dir := range asIs {
		given[g.side.shown(path.Join(g.side.out, dir))] = true
	}
	l := &layer{base: map[string][]diff.Object{}, there: map[string]bool{}, listings: map[string]*listing{}}
	for _, o := range g.whole.Objects {
		switch {
		case given[path.Dir(o.Path)] || given[o.Path]:
			l.given = append(l.given, o)
		default:
			l.base[o.Path] = append(l.base[o.Path], o)
		}
	}
	l.here = operatorKeys(l.given)
	for name, list := range l.base {
		for _, o := range list {
			l.there[o.Operator] = l.there[o.Operator] || !g.side.definition(name)
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

// listing returns the objects listed by an overlay, shared between overlays with equal
// lists. Callers must not change it.
func (g *ground) listing(l *layer, o *overlay.Overlay) (*listing, error) {
	key := o.Listing()
	if known := l.listings[key]; known != nil {
		return known, nil
	}
	files := o.All()
	x := &listing{simple: true, at: map[k8s.Key]int{}}
	for _, name := range o.Resources() {
		shown := g.side.shown(name)
		objects := l.base[shown]
		if objects == nil {
			var err error
			if objects, err = diff.Objects([]diff.File{{Path: shown, Data: files[name]}}, g.side.pins()); err != nil {
				return nil, err
			}
		}
		x.simple = x.simple && diff.Simple(objects)
		for i := range objects {
			key := objects[i].Key()
			_, twice := x.at[key]
			x.simple, x.at[key] = x.simple && !twice, len(x.objects)+i
		}
		x.objects = append(x.objects, objects...)
	}
	x.here = operatorKeys(x.objects)
	l.listings[key] = x
	return x, nil
}
