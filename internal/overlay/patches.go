package overlay

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// patchPosition returns the position for an error message of kustomize. If the message names the
// target of a patch, such as "Deployment.v1.apps/web.shop", it is the position of the patch.
// Otherwise it is the file of the kustomization that was being built, or else that of o.
func (o *Overlay) patchPosition(message string) diag.Pos {
	for _, k := range o.sortedKustomizations() {
		for i, p := range k.kustomization.Patches {
			file, text := k.path(p.Path), k.ownFiles[k.path(p.Path)]
			if p.Path == "" {
				file, text = k.File, []byte(p.Patch)
			}
			docs, _ := yamlnode.Documents(file, text, yamlnode.Limits{}) // ignore the error: kustomize has parsed the file
			for _, doc := range docs {
				_, kind := yamlnode.Field(doc, "kind")
				_, meta := yamlnode.Field(doc, "metadata")
				if kind == nil || meta == nil {
					continue
				}
				_, name := yamlnode.Field(meta, "name")
				if name == nil || !strings.Contains(message, kind.Value+".") || !strings.Contains(message, "/"+name.Value+".") {
					continue
				}
				if p.Path == "" {
					return k.position(fmt.Sprintf("patches[%d].patch", i))
				}
				return yamlnode.At(file, name)
			}
		}
	}
	if m := accumulationPath.FindAllStringSubmatch(message, -1); m != nil {
		for _, k := range o.sortedKustomizations() {
			if k.Dir == m[len(m)-1][1] {
				return diag.Pos{File: k.File}
			}
		}
	}
	return diag.Pos{File: o.File}
}

// accumulationPath matches the directories in an error message of kustomize, from the outermost to
// the innermost one that it was processing.
var accumulationPath = regexp.MustCompile(`accumulation of path '/([^']+)'`)
