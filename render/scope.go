package render

import (
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
)

// scopes maps the group and kind of each CRD in a bundle to true if the kind is namespaced.
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

// namespaced reports whether objects of the group and kind have a namespace.
func (s scopes) namespaced(group, kind string) bool {
	if namespaced, ok := s[[2]string{group, kind}]; ok {
		return namespaced
	}
	return k8s.Namespaced(group, kind)
}
