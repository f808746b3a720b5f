package diff

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// step is one step of a path into a document. The field by determines its meaning:
//
//   - "": the field key of a mapping
//   - ".": the scalar element key of a list
//   - "#": the element of a list with index key
//   - "*": the order of a list
//   - otherwise: the element of a list whose field by equals key
type step struct{ key, by string }

// stepPath returns the path of a field in nested mappings.
func stepPath(names ...string) []step {
	out := make([]step, len(names))
	for i, n := range names {
		out[i] = step{key: n}
	}
	return out
}

// locateFindings sets the position of each finding and of each of its locations. It parses each file
// with findings once. Positions in invalid files have no line.
func locateFindings(found []Finding) {
	parsed := map[*byte][]*yaml.Node{} // documents by the address of the file's content
	setPlace := func(f *Finding) {
		o := f.where
		if o != nil && o.sources != nil {
			f.blame(o.sources)
		}
		if o == nil || len(o.Raw) == 0 {
			return
		}
		docs, ok := parsed[&o.Raw[0]]
		if !ok {
			docs, _ = yamlnode.Documents(o.Path, o.Raw, yamlnode.Limits{})
			parsed[&o.Raw[0]] = docs
		}
		if o.Document < len(docs) {
			fillPosition(&f.Place, docs[o.Document], f.steps)
		}
	}
	for i := range found {
		f := &found[i]
		setPlace(f)
		for j := range f.locations {
			s := &f.locations[j]
			one := Finding{Object: s.Object, After: f.After, Place: s.Place, where: s.where, steps: s.steps}
			setPlace(&one)
			s.Place = one.Place
		}
	}
}

// blame sets the place to the line in the overlay's files that most likely caused the finding. It
// prefers the line with the most matches of the field, the value and the object's name, and files
// that contain the object's name. If no line matches, the place is the first file.
func (f *Finding) blame(files []File) {
	f.Place.Path = files[0].Path
	marks := []string{f.Object.Name, f.Object.Name, f.After, f.After, imageName(f.After)}
	if n := len(f.steps); n > 0 {
		marks = append(marks, f.steps[n-1].key, f.steps[n-1].key)
	}
	best := 0
	for _, file := range files {
		named, line := bytes.Contains(file.Data, []byte(f.Object.Name)), 0
		for text := range bytes.Lines(file.Data) {
			line++
			score := 0
			for _, mark := range marks {
				if mark != "" && bytes.Contains(text, []byte(mark)) {
					score++
				}
			}
			if score > 0 && named {
				score++
			}
			if score > best {
				best = score
				start, end := bytes.TrimLeft(text, " -"), bytes.TrimRight(text, " \r\n")
				f.Place = Region{file.Path, f.Place.Removed, line, len(text) - len(start) + 1, line, max(len(end), len(text)-len(start)+1) + 1}
			}
		}
	}
}

// imageName returns an image reference without its tag and digest.
func imageName(s string) string {
	ref := imageref.Split(s)
	ref.Tag, ref.Digest = "", ""
	return ref.String()
}

// fillPosition sets the region of p to the last existing node of a path. The region begins at the
// key of a field and ends on the same line.
func fillPosition(p *Region, doc *yaml.Node, steps []step) {
	n := doc
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	mark := n
	for _, s := range steps {
		key, value := enterNode(n, s)
		if value == nil {
			break
		}
		mark, n = key, value
	}
	p.Line, p.Column = mark.Line, mark.Column
	p.EndLine, p.EndCol = mark.Line, mark.Column+len(mark.Value)
	if n != mark && n.Kind == yaml.ScalarNode && n.Line == mark.Line && !strings.Contains(n.Value, "\n") {
		p.EndCol = n.Column + len(n.Value)
	}
	if p.EndCol <= p.Column {
		p.EndCol = p.Column + 1
	}
}

// enterNode follows one step from n. mark is the node to highlight. Both results are nil if the
// step does not exist.
func enterNode(n *yaml.Node, s step) (mark, value *yaml.Node) {
	if n.Kind == yaml.MappingNode && s.by == "" {
		return yamlnode.Field(n, s.key)
	}
	if n.Kind != yaml.SequenceNode {
		return nil, nil
	}
	for i, e := range n.Content {
		if s.by == "." && e.Value == s.key || s.by == "#" && strconv.Itoa(i) == s.key {
			return e, e
		}
		if _, v := yamlnode.Field(e, s.by); v != nil && v.Value == s.key {
			return e, e
		}
	}
	return nil, nil
}
