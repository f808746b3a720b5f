package state

import (
	"path"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/overlay"
)

// ground is the state of a side before any overlay. What many overlays build on is
// worked out once.
type ground struct {
	side   *Side
	whole  diff.State
	layers map[string]*layer // by what a cluster gets as it is
}

// layer is what clusters get of a ground, and what their overlays may list.
type layer struct {
	given    []diff.Object            // whatever an overlay lists
	here     map[string]bool          // the operators of that, whether with more than definitions
	base     map[string][]diff.Object // what may be listed, by path
	there    map[string]bool          // the operators of that, likewise
	listings map[string]*listing
}

// listing is what an overlay lists.
type listing struct {
	objects []diff.Object
	here    map[string]bool  // the operators of these, whether with more than definitions
	simple  bool             // kustomize takes each as it stands, and each once
	at      map[kobj.Key]int // their places
}

func (s *Side) ground(whole diff.State) *ground {
	return &ground{s, whole, map[string]*layer{}}
}

// layer returns what clusters get that get the objects of some directories and files of
// the tree as they are.
func (g *ground) layer(asIs []string) *layer {
	key := strings.Join(asIs, " ")
	if g.layers[key] != nil {
		return g.layers[key]
	}
	given := map[string]bool{}
	for _, dir := range asIs {
		given[path.Join(g.side.as, g.side.out, dir)] = true
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
	l.here = operators(l.given)
	for name, list := range l.base {
		for _, o := range list {
			l.there[o.Operator] = l.there[o.Operator] || !g.side.definition(name)
		}
	}
	g.layers[key] = l
	return l
}

// operators returns the operators of objects, and of each whether it has more than
// definitions among them.
func operators(objects []diff.Object) map[string]bool {
	out := map[string]bool{}
	for i := range objects {
		o := &objects[i]
		out[o.Operator] = out[o.Operator] || kobj.Text(o.Content, "kind") != "CustomResourceDefinition"
	}
	return out
}

// listing returns what an overlay lists, of which nothing may be changed. Overlays
// that list the same share it.
func (g *ground) listing(l *layer, o *overlay.Overlay) (*listing, error) {
	key := o.Listing()
	if known := l.listings[key]; known != nil {
		return known, nil
	}
	files := o.All()
	x := &listing{simple: true, at: map[kobj.Key]int{}}
	for _, name := range o.Resources() {
		shown := path.Join(g.side.as, name)
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
	x.here = operators(x.objects)
	l.listings[key] = x
	return x, nil
}
