package edit

import (
	"bytes"
	"maps"
	"slices"

	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/declare"
	"github.com/quayside/quayside/internal/k8s"
	setting "github.com/quayside/quayside/internal/settings"
)

// Draft is a set of YAML documents to append to files of declarations.
type Draft struct {
	project *workspace.Project
	files   map[string]*addition // by path
}

// NewDraft returns an empty draft.
func NewDraft(p *workspace.Project) *Draft { return &Draft{project: p, files: map[string]*addition{}} }

// addition is a file with the text to append.
type addition struct {
	old   []byte // nil: new file
	added []byte
	names []string // names of the added objects
}

// lines returns the number of lines before the added text.
func (f *addition) lines() int {
	if f.old == nil {
		return 0
	}
	return bytes.Count(yamlnode.Append(f.old, nil), []byte{'\n'})
}

// exists reports whether a file exists, or has additions in this draft.
func (d *Draft) exists(name string) (bool, error) {
	if _, ours := d.files[name]; ours {
		return true, nil
	}
	old, err := readIfAny(d.project, name)
	return old != nil, err
}

// IsEmpty reports whether the draft has no additions.
func (d *Draft) IsEmpty() bool { return len(d.files) == 0 }

// Add adds objects to a file, and returns the line of the first one.
func (d *Draft) Add(name string, objects ...k8s.Object) (line int, err error) {
	f, ours := d.files[name]
	if !ours {
		f = &addition{}
		if f.old, err = readIfAny(d.project, name); err != nil {
			return 0, err
		}
		d.files[name] = f
	}
	line = f.lines() + bytes.Count(f.added, []byte{'\n'}) + 1
	for _, o := range objects {
		f.added = yamlnode.Append(f.added, yamlnode.Encode(o))
		f.names = append(f.names, NameOf(o))
	}
	return line, nil
}

// NameOf returns "Kind namespace/name", or "Kind name".
func NameOf(o k8s.Object) string {
	return k8s.Key{Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}.String()
}

// list returns the files with their new content, by path.
func (d *Draft) list() []File {
	var out []File
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		change := Created
		if f.old != nil {
			change = Changed
		}
		out = append(out, File{Path: name, Change: change, Objects: f.names, text: yamlnode.Append(f.old, f.added)})
	}
	return out
}

// Edit returns the draft as an Edit with a resolution. settings is the content of a new
// quayside.yaml, or nil.
func (d *Draft) Edit(settings []byte, in *workspace.Inputs, res *workspace.Resolution) *Edit {
	e := &Edit{Files: d.list(), Inputs: in, Resolution: res, project: d.project}
	if settings != nil && len(e.Files) > 0 {
		e.Files = slices.Insert(e.Files, 0, File{Path: setting.FileName, Change: Created, text: settings})
	}
	return e
}

// Declared returns the existing declarations merged with the draft. Positions are those in the
// files after the edit.
func (d *Draft) Declared(existing *declare.Set) (*declare.Set, error) {
	sets := []*declare.Set{existing}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		set, err := declare.Parse(name, append(bytes.Repeat([]byte{'\n'}, f.lines()), f.added...))
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return declare.Merge(sets...)
}
