package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// flatten returns the files of a build for kustomize. It replaces a kustomization that only lists and edits
// objects by a list of the edited objects: kustomize is slow, because it searches all objects for each patch.
func (o *Overlay) flatten() map[string][]byte {
	files := o.All()
	all := o.Kustomizations()
	for k := range all {
		if len(k.kustomization.BuildMetadata)+len(k.links) > 0 { // not possible: objects get origin annotations, or paths depend on links
			return files
		}
	}
	for k := range all {
		if texts, ok := k.editedTexts(); ok {
			k.replaceResources(files, texts)
		}
	}
	return files
}

// BuildTree is [Overlay.Build] for a tree of rendered files. It does not run kustomize if all of
// these are true: o only lists files and makes simple edits, and rendered returns true for these
// files.
func (o *Overlay) BuildTree(rendered func(name string) bool) ([][]byte, error) {
	if !slices.ContainsFunc(o.Resources(), func(name string) bool { return !rendered(name) }) {
		if built, ok := o.buildListed(); ok {
			return built, nil
		}
	}
	return o.Build()
}

// buildListed returns the result of Build without running kustomize. It returns false if o does
// more than list objects and make simple edits. All resource files must be in the format of
// yamlnode.Encode.
func (o *Overlay) buildListed() ([][]byte, bool) {
	for k := range o.Kustomizations() {
		if len(k.kustomization.BuildMetadata)+len(k.links) > 0 {
			return nil, false
		}
	}
	edits, ok := o.editsByKey()
	if !ok {
		return nil, false
	}
	var out [][]byte
	seen := map[k8s.Key]bool{}
	for _, text := range o.appendTexts(nil) {
		object, ok := singleObject(text)
		key := k8s.Object(object).Key()
		if !ok || seen[key] || !isLoadedUnchanged(object) {
			return nil, false
		}
		seen[key] = true
		data, ok := encodeEdited(object, edits[key])
		if !ok {
			return nil, false
		}
		out = append(out, data)
	}
	return out, true
}

// editsByKey returns the edits for each object. It returns false if [Overlay.Edits] returns false.
func (o *Overlay) editsByKey() (map[k8s.Key][]Edit, bool) {
	edits, ok := o.Edits()
	out := map[k8s.Key][]Edit{}
	for _, e := range edits {
		out[e.Key] = append(out[e.Key], e)
	}
	return out, ok
}

// encodeEdited returns an edited object as JSON. It returns false if only kustomize can determine
// the result.
func encodeEdited(object map[string]any, edits []Edit) ([]byte, bool) {
	for _, e := range edits {
		edited, ok := e.Apply(object)
		if !ok {
			return nil, false
		}
		object = edited
	}
	data, err := json.Marshal(object)
	return data, err == nil
}

// isLoadedUnchanged reports whether kustomize certainly accepts an object and keeps all its fields.
// It returns false for annotations that kustomize interprets, for the key "<<", which kustomize drops, and
// for fractions, which kustomize formats differently.
func isLoadedUnchanged(object k8s.Object) bool {
	if _, has := object["items"]; has && strings.HasSuffix(object.Kind(), "List") {
		return false
	}
	for name := range k8s.Map(object, "metadata", "annotations") {
		if strings.Contains(name, "config.k") {
			return false
		}
	}
	return object.APIVersion() != "" && object.Kind() != "" && object.Key().Name != "" && !strings.Contains(object.Group(), "kustomize") &&
		!containsValue(map[string]any(object), func(v any) bool {
			fields, _ := v.(map[string]any)
			_, merges := fields["<<"]
			return merges || isFraction(v)
		})
}

// replaceResources changes files so that o lists one new file for each element of texts, instead of its resources.
func (o *Overlay) replaceResources(files map[string][]byte, texts [][]byte) {
	dir := "made"
	taken := func(name string) bool { return filetree.Within(name, path.Join(o.Dir, dir)) }
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

// editedTexts returns the resources of o after its edits, in order. It returns false if o has no
// edits, or if only kustomize can determine the result.
func (o *Overlay) editedTexts() ([][]byte, bool) {
	edits, ok := o.editsByKey()
	if !ok || o.targets == nil {
		return nil, false
	}
	texts := o.appendTexts(nil)
	seen := map[k8s.Key]bool{}
	for i, text := range texts {
		if !bytes.Contains(text, []byte("Deployment")) && !bytes.ContainsAny(text, `\&*`) {
			continue
		}
		object, ok := singleObject(text)
		key := k8s.Object(object).Key()
		if !ok || seen[key] {
			return nil, false
		}
		seen[key] = true
		if len(edits[key]) > 0 {
			if texts[i], ok = encodeEdited(object, edits[key]); !ok {
				return nil, false
			}
		}
	}
	return texts, true
}

// appendTexts appends the documents of the resource files of o to out, in the order in which
// kustomize loads them.
func (o *Overlay) appendTexts(out [][]byte) [][]byte {
	children := o.children
	for _, name := range o.kustomization.Resources {
		if data, isFile := o.ownFiles[o.path(name)]; isFile {
			out = append(out, splitDocuments(data)...)
		} else {
			out, children = children[0].appendTexts(out), children[1:]
		}
	}
	return out
}

// splitDocuments splits a text into documents. It returns the whole text if a document is empty, or
// if a marker may be part of a document.
func splitDocuments(text []byte) [][]byte {
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

// singleObject returns the object in a file. It returns false unless the file has exactly one
// object.
func singleObject(text []byte) (map[string]any, bool) {
	docs, err := yamlnode.Objects("", text, yamlnode.Limits{})
	if err != nil || len(docs) != 1 {
		return nil, false
	}
	_, isList := docs[0]["items"].([]any)
	return docs[0], !isList || !strings.HasSuffix(k8s.Text(docs[0], "kind"), "List")
}
