package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Patch is a patch of a kustomization that says by a target what it changes.
type Patch struct {
	Pos    diag.Pos       // of its target
	Target types.Selector // what it is for
	Hits   int            // how many objects that is in one build
}

// Patches returns the patches with a target of those files that of reports true
// for, with what they select in a build of o: kustomize itself is asked, for what
// a target selects depends on all that was done before, and is silent where it
// selects nothing.
func (o *Overlay) Patches(of func(file string) bool) ([]Patch, error) {
	files := o.flat()
	var out []Patch
	for _, k := range o.sorted() {
		if !of(k.File) || !slices.ContainsFunc(k.k.Patches, func(p types.Patch) bool { return p.Target != nil }) {
			continue
		}
		marked := k.k
		marked.Patches = nil
		for i, p := range k.k.Patches {
			if p.Target != nil {
				mark := fmt.Sprintf("{apiVersion: v1, kind: Any, metadata: {name: any, annotations: {%q: \"\"}}}", hit(len(out)))
				marked.Patches = append(marked.Patches, types.Patch{Patch: mark, Target: p.Target})
				out = append(out, Patch{Pos: k.at(fmt.Sprintf("patches[%d].target", i)), Target: *p.Target})
			}
			if text := p.Patch + string(k.own[k.path(p.Path)]); !strings.Contains(text, "$patch") { // a mark goes with the object
				marked.Patches = append(marked.Patches, p)
			}
		}
		data, err := json.Marshal(marked)
		if err != nil {
			return nil, err
		}
		files[k.File] = data
	}
	if len(out) == 0 {
		return nil, nil
	}
	objects, err := o.build(files)
	for _, object := range objects {
		for i := range out {
			if bytes.Contains(object, []byte(hit(i))) {
				out[i].Hits++
			}
		}
	}
	return out, err
}

// hit returns the annotation that marks what a patch selects.
func hit(i int) string { return fmt.Sprintf("hit.quayside.dev/p%dp", i) }

// sorted returns the kustomizations of a build by directory.
func (o *Overlay) sorted() []*Overlay {
	return slices.SortedFunc(maps.Keys(o.Kustomizations()), func(a, b *Overlay) int { return strings.Compare(a.Dir, b.Dir) })
}

// place returns where the patch stands that kustomize says found nothing to
// change, which it names as "Deployment.v1.apps/web.shop"; else the kustomization that it
// was building, else o's file.
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
					return k.at(fmt.Sprintf("patches[%d].patch", i))
				}
				return yamlnode.At(file, name)
			}
		}
	}
	if m := accumulated.FindAllStringSubmatch(said, -1); m != nil {
		for _, k := range o.sorted() {
			if k.Dir == m[len(m)-1][1] {
				return diag.Pos{File: k.File}
			}
		}
	}
	return diag.Pos{File: o.File}
}

// accumulated matches the directories below that kustomize was in when it failed, the
// last of which is the innermost.
var accumulated = regexp.MustCompile(`accumulation of path '/([^']+)'`)
