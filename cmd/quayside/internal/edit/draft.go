package edit

import (
	"bytes"
	"maps"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	setting "github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Draft is a set of changes to the files with declarations: new YAML documents and changed fields.
type Draft struct {
	project *workspace.Project
	files   map[string]*draftFile // by path
	changed []declare.Subscription
}

// NewDraft returns an empty draft.
func NewDraft(p *workspace.Project) *Draft { return &Draft{project: p, files: map[string]*draftFile{}} }

// draftFile is a changed file.
type draftFile struct {
	old   []byte   // content before the added objects; its fields may be changed; nil for a new file
	added []byte   // YAML of the added objects
	names []string // names of the added objects
}

// lines returns the number of lines in the new file that precede f.added.
func (f *draftFile) lines() int {
	if f.old == nil {
		return 0
	}
	return bytes.Count(yamlnode.Append(f.old, nil), []byte{'\n'})
}

// exists reports whether a file exists, or is in the draft.
func (d *Draft) exists(name string) (bool, error) {
	if _, ours := d.files[name]; ours {
		return true, nil
	}
	old, err := readIfAny(d.project, name)
	return old != nil, err
}

// IsEmpty reports whether the draft changes no file.
func (d *Draft) IsEmpty() bool { return len(d.files) == 0 }

// Add appends objects to a file, and returns the line of the first object in the new file.
func (d *Draft) Add(name string, objects ...k8s.Object) (line int, err error) {
	f, err := d.file(name)
	if err != nil {
		return 0, err
	}
	line = f.lines() + bytes.Count(f.added, []byte{'\n'}) + 1
	for _, o := range objects {
		f.added = yamlnode.Append(f.added, yamlnode.Encode(o))
		f.names = append(f.names, NameOf(o))
	}
	return line, nil
}

// file returns a file of the draft. It first adds the file with its content on disk if the draft does not have
// it yet.
func (d *Draft) file(name string) (f *draftFile, err error) {
	if f, ours := d.files[name]; ours {
		return f, nil
	}
	f = &draftFile{}
	if f.old, err = readIfAny(d.project, name); err == nil {
		d.files[name] = f
	}
	return f, err
}

// Change sets fields of an existing declaration.
func (d *Draft) Change(s declare.Subscription, values map[declare.Field][]string) error {
	if d.project.IsKustomized(s.Pos.File) {
		return newByHandError(s, "which a kustomization builds")
	}
	f, err := d.file(s.Pos.File)
	if err != nil {
		return err
	}
	if set, err := declare.Parse(s.Pos.File, f.old); err == nil { // s may have moved by earlier changes
		for _, now := range set.Subscriptions {
			if now.Dialect == s.Dialect && now.Key() == s.Key() {
				s = now
			}
		}
	}
	text, err := declare.SetFields(f.old, s, values)
	if err != nil {
		return diag.Hintf(s.Pos, "edit it by hand", "%w", err)
	}
	f.old, d.changed = text, append(d.changed, s)
	return nil
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
		text := f.old
		if f.added != nil {
			text = yamlnode.Append(text, f.added)
		}
		out = append(out, File{Path: name, Change: change, Objects: f.names, text: text})
	}
	return out
}

// Edit returns the draft as an Edit. settings is the content of a new quayside.yaml, or nil.
func (d *Draft) Edit(settings []byte, problem *workspace.Problem, res *workspace.Resolution) *Edit {
	e := &Edit{Files: d.list(), Problem: problem, Resolution: res, project: d.project}
	if settings != nil && len(e.Files) > 0 {
		e.Files = slices.Insert(e.Files, 0, File{Path: setting.FileName, Change: Created, text: settings})
	}
	return e
}

// parse returns the declarations in a text, and reads the values files that they name.
func (d *Draft) parse(name string, text []byte) (*declare.Set, error) {
	set, err := declare.Parse(name, text)
	if err != nil {
		return nil, err
	}
	set = set.WithValues(d.project.Read)
	return set, declare.Faults(set.Unread)
}

// Declared returns the declarations that apply to the environment of the workspace after the edit. These are the
// declarations in existing, as changed by the draft, and the new declarations. Positions refer to the edited files.
func (d *Draft) Declared(existing *declare.Set) (*declare.Set, error) {
	base := *existing
	base.Subscriptions, base.Elsewhere = slices.Concat(base.Subscriptions, base.Elsewhere), nil
	for _, s := range d.changed {
		set, err := d.parse(s.Pos.File, d.files[s.Pos.File].old)
		if err != nil {
			return nil, err
		}
		for _, now := range set.Subscriptions {
			isIt := func(s declare.Subscription) bool {
				return s.Dialect == now.Dialect && s.Key() == now.Key() && s.Pos.File == now.Pos.File
			}
			if i := slices.IndexFunc(base.Subscriptions, isIt); i >= 0 {
				base.Subscriptions[i] = now
			}
		}
	}
	environment := d.project.Environment()
	sets := []*declare.Set{base.In(environment)}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		set, err := d.parse(name, append(bytes.Repeat([]byte{'\n'}, f.lines()), f.added...))
		if err != nil {
			return nil, err
		}
		sets = append(sets, set.In(environment))
	}
	return declare.Merge(sets...)
}
