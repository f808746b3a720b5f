package runtest

import (
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// applyPatch applies a patch with the API server's own library.
func applyPatch(o k8s.Object, p cluster.Patch) (out k8s.Object, err error) {
	document, err := utiljson.Marshal(o)
	if err != nil {
		return nil, err
	}
	form, data, err := p.Encode()
	if err != nil {
		return nil, err
	}
	if form == types.MergePatchType {
		document, err = jsonpatch.MergePatch(document, data)
	} else {
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(data); err == nil {
			document, err = patch.Apply(document)
		}
	}
	if err != nil {
		return nil, err
	}
	return out, utiljson.Unmarshal(document, (*map[string]any)(&out))
}
