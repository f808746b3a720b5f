package render

import (
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
)

// scopes contains the scope of the kinds that a bundle's CRDs define, by group and kind: true if
// namespaced.
type scopes map[[2]string]bool

func newScopes(objects []bundle.ManifestObject) scopes {
	s := scopes{}
	for _, o := range objects {
		if k8s.IsCRD(o.Object) {
			crd := k8s.ParseCRD(o.Object)
			s[[2]string{crd.Group, crd.Kind}] = crd.Namespaced
		}
	}
	return s
}

// namespaced reports whether objects of a kind have a namespace.
func (s scopes) namespaced(group, kind string) bool {
	if namespaced, ok := s[[2]string{group, kind}]; ok {
		return namespaced
	}
	return k8s.Namespaced(group, kind)
}
