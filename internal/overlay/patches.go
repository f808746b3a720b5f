package overlay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// sorted returns the kustomizations of a build by directory.
func (o *Overlay) sorted() []*Overlay {
	return slices.SortedFunc(maps.Keys(o.Kustomizations()), func(a, b *Overlay) int { return strings.Compare(a.Dir, b.Dir) })
}

// place returns where the patch stands that kustomize says found nothing to
// change, which it names as "Deployment.v1.apps/web.shop"; else o's file.
func (o *Overlay) place(said string) diag.Pos {
	for _, k := range o.sorted() {
		for i, p := range k.k.Patches {
			file, text := k.path(p.Path), k.own[k.path(p.Path)]
			if p.Path == "" {
				file, text = k.File, []byte(p.Patch)
			}
			docs, _ := yamlnode.Documents(file, text, yamlnode.Limits{}) // kustomize read it
			for _, doc := range docs {
				_, kind := yamlnode.Field(doc, "kind")
				_, meta := yamlnode.Field(doc, "metadata")
				if kind == nil || meta == nil {
					continue
				}
				_, name := yamlnode.Field(meta, "name")
				if name == nil || !strings.Contains(said, kind.Value+".") || !strings.Contains(said, "/"+name.Value+".") {
					continue
				}
				if p.Path == "" {
					return k.fields.At(fmt.Sprintf("patches[%d].patch", i), diag.Pos{File: k.File})
				}
				return yamlnode.At(file, name)
			}
		}
	}
	return diag.Pos{File: o.File}
}
