package render

import (
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
)

// scopes answers which kinds have a namespace: a bundle's own as its CRDs say,
// by group and kind.
type scopes map[[2]string]bool

func newScopes(objects []bundle.Object) scopes {
	s := scopes{}
	for _, o := range objects {
		if kobj.IsCRD(o.Object) {
			crd := kinds.Define(o.Object)
			s[[2]string{crd.Group, crd.Kind}] = crd.Namespaced
		}
	}
	return s
}

// namespaced reports whether objects of the group and kind have a namespace.
func (s scopes) namespaced(group, kind string) bool {
	if namespaced, ok := s[[2]string{group, kind}]; ok {
		return namespaced
	}
	return kinds.Namespaced(group, kind)
}
