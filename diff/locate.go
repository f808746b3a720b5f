package diff

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/base/imageref"
	"github.com/quayside/quayside/internal/base/yamlnode"
)

// step is one step into a document: the field key of a mapping, or a list element. by
// selects the element: its field by equals key; with ".", the element is the scalar key;
// with "#", key is its index.
type step struct{ key, by string }

// stepPath returns the steps through nested mappings.
func stepPath(names ...string) []step {
	out := make([]step, len(names))
	for i, n := range names {
		out[i] = step{key: n}
	}
	return out
}

// locateFindings sets the line of each finding and of each of its spots. It parses only
// files with findings, each once. In a file that does not parse, lines are zero.
func locateFindings(found []Finding) {
	parsed := map[*byte][]*yaml.Node{} // by the address of the file's content
	place := func(f *Finding) {
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
		place(f)
		for j := range f.spots {
			s := &f.spots[j]
			one := Finding{Object: s.Object, After: f.After, Place: s.Place, where: s.where, steps: s.steps}
			place(&one)
			s.Place = one.Place
		}
	}
}

// blame sets the place to the line of the overlay's files that most likely causes the
// finding: the line contains the field, the value or the object's name, preferably in a
// file that contains the object's name. Without such a line it is the first file as a
// whole.
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
				f.Place = Place{file.Path, f.Place.Removed, line, len(text) - len(start) + 1, line, max(len(end), len(text)-len(start)+1) + 1}
			}
		}
	}
}

// imageName returns an image reference without tag and digest.
func imageName(s string) string {
	ref := imageref.Split(s)
	ref.Tag, ref.Digest = "", ""
	return ref.String()
}

// fillPosition sets the region of p to the last step that exists. The region of a field
// begins at its key and ends with the line on which its value starts.
func fillPosition(p *Place, doc *yaml.Node, steps []step) {
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

// enterNode follows one step. mark is the node to highlight; both are nil if nothing
// matches.
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
