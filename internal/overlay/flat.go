package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
)

// flat returns the files of a build in which the kustomizations that only list
// objects and edit some of them list what they make of these: kustomize looks
// through all objects for each patch.
func (o *Overlay) flat() map[string][]byte {
	files := o.All()
	all := o.Kustomizations()
	for k := range all {
		if len(k.k.BuildMetadata)+len(k.links) > 0 { // objects say, or it depends, where they came from
			return files
		}
	}
	for k := range all {
		if made, ok := k.made(); ok {
			k.relist(files, made)
		}
	}
	return files
}

// relist has a kustomization list these texts.
func (o *Overlay) relist(files map[string][]byte, texts [][]byte) {
	dir := "made"
	taken := func(name string) bool { return within(name, path.Join(o.Dir, dir)) }
	for slices.ContainsFunc(slices.Collect(maps.Keys(files)), taken) {
		dir += "-"
	}
	var list strings.Builder
	list.WriteString("resources:\n")
	for i, text := range texts {
		name := fmt.Sprintf("%s/%d.yaml", dir, i)
		files[path.Join(o.Dir, name)] = text
		list.WriteString("- " + name + "\n")
	}
	files[o.File] = []byte(list.String())
}

// made returns the texts of what o lists, in order, with its edits, and false where
// it has none or it is for kustomize to say what these are.
func (o *Overlay) made() ([][]byte, bool) {
	edits, ok := o.Edits()
	if !ok || o.targets == nil {
		return nil, false
	}
	about := map[kobj.Key][]Edit{}
	for _, e := range edits {
		about[e.Key] = append(about[e.Key], e)
	}
	texts := o.texts(nil)
	seen := map[kobj.Key]bool{}
	for i, text := range texts {
		if !bytes.Contains(text, []byte("Deployment")) && !bytes.ContainsAny(text, `\&*`) {
			continue
		}
		object, ok := alone(text)
		key := kobj.Object(object).Key()
		if !ok || seen[key] {
			return nil, false
		}
		seen[key] = true
		for _, e := range about[key] {
			if object, ok = e.Apply(object); !ok {
				return nil, false
			}
		}
		if len(about[key]) > 0 {
			data, err := json.Marshal(object)
			if err != nil {
				return nil, false
			}
			texts[i] = data
		}
	}
	return texts, true
}

// texts appends the documents of the files that o lists, in the order in which
// kustomize loads them.
func (o *Overlay) texts(out [][]byte) [][]byte {
	below := o.below
	for _, name := range o.k.Resources {
		if data, isFile := o.own[o.path(name)]; isFile {
			out = append(out, documents(data)...)
		} else {
			out, below = below[0].texts(out), below[1:]
		}
	}
	return out
}

// documents returns the documents of a text, and the text as a whole where they
// cannot be told apart by its lines, or one of them is empty.
func documents(text []byte) [][]byte {
	marker := []byte("\n---\n")
	n := bytes.Count(text, marker)
	if n == 0 || n != bytes.Count(text, []byte("\n---")) || bytes.Contains(text, []byte("\n...")) || bytes.ContainsAny(text, "%\r") {
		return [][]byte{text}
	}
	out := bytes.Split(text, marker)
	if slices.ContainsFunc(out, yamlnode.IsEmpty) {
		return [][]byte{text}
	}
	return out
}

// alone returns the object in a file, and false where there are several, or none.
func alone(text []byte) (map[string]any, bool) {
	docs, err := yamlnode.Documents("", text, yamlnode.Limits{})
	if err != nil || len(docs) != 1 || len(unlisted(docs)) != 1 || unlisted(docs)[0] != docs[0] {
		return nil, false
	}
	data, err := yamlnode.JSON(docs[0])
	if err != nil {
		return nil, false
	}
	var object map[string]any
	err = utiljson.Unmarshal(data, &object)
	return object, err == nil && object != nil
}
