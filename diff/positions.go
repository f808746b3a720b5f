package diff

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// locateFindings sets the position of each finding and of each of its locations. Each file is
// parsed once. A position in an invalid file has no line.
func locateFindings(found []Finding) {
	parsed := map[*byte][]*yamlnode.Node{} // documents of a file, by the address of its content
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
			fillPosition(&f.Place, docs[o.Document], f.path)
		}
	}
	for i := range found {
		f := &found[i]
		setPlace(f)
		all := f.locations()
		for j := range all {
			setPlace(&all[j])
		}
	}
}

// blame sets the position of f to the line in files that most likely caused the finding. files are
// overlays. It prefers files that contain the name of the object, and the line with most matches of
// field, value and name. If no line matches, the position is the first file, without a line.
func (f *Finding) blame(files []File) {
	f.Place.Path = files[0].Path
	marks := []string{f.Object.Name, f.Object.Name, f.After, f.After, imageName(f.After)}
	if len(f.path) > 0 {
		marks = append(marks, f.path.last(), f.path.last())
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

// fillPosition sets the lines of p to the field at a path in doc, or to the deepest existing field on this
// path. The region is on one line: from the key to the end of the value or, if the value is on other lines, to
// the end of the key.
func fillPosition(p *Region, doc *yamlnode.Node, path fieldPath) {
	n := doc
	if n.Kind == yamlnode.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	mark := n
	for _, s := range path {
		key, value := enterNode(n, s)
		if value == nil {
			break
		}
		mark, n = key, value
	}
	p.Line, p.Column = mark.Line, mark.Column
	p.EndLine, p.EndCol = mark.Line, mark.Column+len(mark.Value)
	if n != mark && n.Kind == yamlnode.ScalarNode && n.Line == mark.Line && !strings.Contains(n.Value, "\n") {
		p.EndCol = n.Column + len(n.Value)
	}
	if p.EndCol <= p.Column {
		p.EndCol = p.Column + 1
	}
}

// enterNode follows one step from n. value is the node that the step leads to, and mark is the node
// to highlight for it, such as the key. Both are nil if the step does not exist.
func enterNode(n *yamlnode.Node, s step) (mark, value *yamlnode.Node) {
	if n.Kind == yamlnode.MappingNode && s.by == "" {
		return yamlnode.Field(n, s.key)
	}
	if n.Kind != yamlnode.SequenceNode {
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
