package subscription

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/yamlnode"
)

// LoadOptions says what LoadFS reads.
type LoadOptions struct {
	Dir     string   // of the workspace in the file system: all other paths, and those of positions, are relative to it; empty: the top
	Paths   []Path   // where to look, in the workspace or beside it; empty: all of it
	Output  string   // quayside's own tree: passed over where a directory is walked; empty for none
	Applied []string // directories that the GitOps tool applies: a declaration below one earns a warning
	Absent  []int    // indices of Paths that hold nothing where they do not exist, which is no error
}

// Path is where to look for declarations: a file or a directory. It is written as a
// string where it does not override.
type Path struct {
	Path      string `json:"path" yamlnode:"text" form:"required nonempty" doc:"File or directory, relative to this file. It may lie above the workspace, in the same Git repository."`
	Overrides bool   `json:"overrides" default:"false" doc:"Whether what is declared there takes the place of what an earlier path declares."`
}

// In returns p relative to the file system, where dir is what it is relative to.
// It is false where p leads out of the file system.
func (p Path) In(dir string) (string, bool) {
	in := path.Join(dir, p.Path)
	return in, fs.ValidPath(in)
}

// Caps on what is read from one workspace.
const (
	maxFiles = 20_000
	maxBytes = 512 << 20
)

// LoadFS reads every declaration below the paths. A path that names a file is
// read whatever its name. A directory with a kustomization is built as stock
// kustomize builds it, from files of the whole file system. Any other directory is
// walked, in path order, for files that end in .yaml, .yml or .json; what begins
// with a dot is passed over. Where the walk meets a directory with a
// kustomization, that is built in place of reading its files, unless another one
// builds on it.
//
// The sets of all are merged as by [Merge]. What a kustomization builds, or a path
// that overrides holds, takes the place of what an earlier path declares of the same
// dialect, namespace and name.
// A path that does not exist is an error that wraps fs.ErrNotExist, unless
// [LoadOptions.Absent] says otherwise, and so is a link that leads out of the file system an error. All faults are found; the error is a
// diag.List.
func LoadFS(fsys fs.FS, opt LoadOptions) (*Set, error) {
	l := newLoader(fsys, opt)
	l.find()
	l.build()
	for _, f := range l.files {
		l.flat(f)
	}
	merged, err := Merge(l.overridden()...)
	l.errs.Add(diag.Pos{}, err)
	if err := l.errs.Err(); err != nil {
		return nil, err
	}
	merged.Warnings = diag.SortWarnings(slices.Concat(merged.Warnings, l.unlisted(), l.templates(), l.elsewhere(merged)))
	return merged, nil
}

// loader reads the declarations of a workspace. Paths in it are those of the file
// system.
type loader struct {
	fsys fs.FS
	opt  LoadOptions // with paths of the file system

	files  []found // to be read as they are
	dirs   []found // with a kustomization
	beside []found // files in or below dirs, which a kustomization may list

	kustomizations *overlay.Files
	tops           []*overlay.Overlay        // those that are built
	reached        map[*overlay.Overlay]bool // those that go into a build
	charts         map[string]int            // Helm charts, with how many templates of each are passed over
	loose          []string                  // templates without a chart
	parts          []part
	bytes          int64
	errs           diag.List
}

// found is a file or a directory that is to be read.
type found struct {
	path  string
	entry int  // the path in LoadOptions that led there
	named bool // it is that path
}

// part is what one file, or one object that was built, declares.
type part struct {
	set     *Set
	sources []source
	entry   int
	built   *overlay.Overlay // nil for a file
	raw     []byte           // of what was built
}

func newLoader(fsys fs.FS, opt LoadOptions) *loader {
	l := &loader{fsys: fsys, opt: opt, reached: map[*overlay.Overlay]bool{}, charts: map[string]int{}}
	if opt.Output != "" {
		l.opt.Output = path.Join(opt.Dir, opt.Output)
	}
	l.opt.Applied = nil
	for _, dir := range opt.Applied {
		l.opt.Applied = append(l.opt.Applied, path.Join(opt.Dir, dir))
	}
	l.kustomizations = overlay.New(l.regular, nil)
	return l
}

// shown returns a path as the user would name it.
func (l *loader) shown(name string) string {
	rel, err := filepath.Rel(filepath.FromSlash(path.Join("/", l.opt.Dir)), filepath.FromSlash(path.Join("/", name)))
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

func (l *loader) pos(file string) diag.Pos { return diag.Pos{File: l.shown(file)} }

// find lists the files and the directories with kustomizations, sorted, each once.
func (l *loader) find() {
	paths := l.opt.Paths
	if len(paths) == 0 {
		paths = []Path{{Path: "."}}
	}
	for entry, named := range paths {
		p, inside := named.In(l.opt.Dir)
		if !inside {
			l.errs.Addf(diag.Pos{File: path.Clean(named.Path)}, "lies outside of the repository")
			continue
		}
		info, err := fs.Stat(l.fsys, p)
		switch {
		case errors.Is(err, fs.ErrNotExist) && slices.Contains(l.opt.Absent, entry):
		case errors.Is(err, fs.ErrNotExist):
			l.errs.Addf(l.pos(p), "no such file or directory: %w", fs.ErrNotExist)
		case err != nil:
			l.errs.Add(l.pos(p), l.unreadable(p, err))
		case info.IsDir():
			l.walk(found{p, entry, true})
		case p == Kustomization(l.fsys, path.Dir(p)):
			l.walk(found{path.Dir(p), entry, true})
		default:
			l.files = append(l.files, found{p, entry, true})
		}
	}
	slices.SortStableFunc(l.files, func(a, b found) int { return cmp.Compare(l.precedence(b), l.precedence(a)) })
	l.files, l.beside = once(l.files), once(l.beside)
	last := func(d found) int { // a path that names it, else the last one that leads to it
		if d.named {
			return d.entry + len(paths)
		}
		return d.entry
	}
	slices.SortFunc(l.dirs, func(a, b found) int { return cmp.Compare(last(b), last(a)) })
	l.dirs = once(l.dirs)
}

// precedence is the larger the sooner a file counts as one of the path that led to
// it, where several did: the last one that overrides, else the first one.
func (l *loader) precedence(f found) int {
	if l.overriding(f.entry) {
		return f.entry + 1
	}
	return 0
}

// overriding reports whether the path in LoadOptions with that index takes the
// place of others.
func (l *loader) overriding(entry int) bool {
	return entry < len(l.opt.Paths) && l.opt.Paths[entry].Overrides
}

// once sorts by path and leaves each there once, as it stands first.
func once(list []found) []found {
	slices.SortStableFunc(list, func(a, b found) int { return strings.Compare(a.path, b.path) })
	return slices.CompactFunc(list, func(a, b found) bool { return a.path == b.path })
}

func (l *loader) walk(root found) {
	inside := map[string]bool{} // directories with a kustomization in or above them
	err := fs.WalkDir(l.fsys, root.path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			l.errs.Add(l.pos(p), err)
			return nil
		}
		f := found{p, root.entry, p == root.path}
		hidden := p != root.path && strings.HasPrefix(d.Name(), ".")
		switch {
		case d.IsDir() && (hidden || p != root.path && p == l.opt.Output):
			return fs.SkipDir
		case d.IsDir():
			if chart, is := l.chart(p); is {
				l.charts[chart] += l.countTemplates(p)
				return fs.SkipDir
			}
			built := Kustomization(l.fsys, p) != ""
			if built {
				l.dirs = append(l.dirs, f)
			}
			inside[p] = built || inside[path.Dir(p)]
			return nil
		case hidden || !isManifest(p):
			return nil
		}
		info, err := fs.Stat(l.fsys, p) // follows a link; a dangling one is no declaration
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			l.errs.Add(l.pos(p), l.unreadable(p, err))
			return nil
		case !info.Mode().IsRegular():
			return nil
		}
		if err := inert.Name(p); err != nil {
			l.errs.Addf(l.pos(p), "file name %w", err)
			return nil
		}
		if inside[path.Dir(p)] {
			l.beside = append(l.beside, f)
		} else {
			l.files = append(l.files, f)
		}
		if len(l.files)+len(l.beside) > maxFiles {
			return fmt.Errorf("more than the %d files allowed", maxFiles)
		}
		return nil
	})
	l.errs.Add(l.pos(root.path), err)
}

// unreadable says what is wrong with a path that cannot be read: a link on the way
// to it that leads out of the repository is refused by the file system.
func (l *loader) unreadable(name string, err error) error {
	if link := l.link(name); link != "" {
		return fmt.Errorf("%s is a symbolic link that cannot be followed inside the repository: put what it leads to in its place", l.shown(link))
	}
	return err
}

// link returns the first symbolic link on the way to a path, "" where there is none.
func (l *loader) link(name string) string {
	steps := strings.Split(name, "/")
	for i := range steps {
		at := path.Join(steps[:i+1]...)
		if info, err := fs.Lstat(l.fsys, at); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return at
		}
	}
	return ""
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// flat reads the declarations of a file as it is.
func (l *loader) flat(f found) {
	data, err := l.read(f.path)
	if err != nil {
		l.errs.Add(l.pos(f.path), err)
		return
	}
	r := collect(l.shown(f.path), data)
	if isTemplate(r, data) {
		l.loose = append(l.loose, f.path)
		return
	}
	if err := r.errs.Err(); err != nil {
		l.errs.Add(l.pos(f.path), err)
		return
	}
	if !r.first.IsZero() {
		if msg := l.applied(f.path); msg != "" {
			r.set.Warnings = append(r.set.Warnings, diag.Warning{Pos: r.first, Code: "declaration-in-tree", Msg: msg})
		}
	}
	l.parts = append(l.parts, part{set: r.set, sources: r.sources, entry: f.entry})
}

func (l *loader) read(file string) ([]byte, error) {
	info, err := fs.Stat(l.fsys, file)
	if err != nil {
		return nil, err
	}
	if l.bytes += info.Size(); info.Size() > int64(limits().Bytes) || l.bytes > maxBytes {
		return nil, diag.Errorf(l.pos(file), "%d bytes: more than the %d of one file or the %d of all declarations", info.Size(), limits().Bytes, maxBytes)
	}
	return fs.ReadFile(l.fsys, file)
}

// applied says where a file lies below a directory that the GitOps tool applies,
// or is listed as a resource by a kustomization beside or above it: OLM, or the
// API server, would get its declarations as well.
func (l *loader) applied(file string) string {
	for _, dir := range l.opt.Applied {
		if dir == "." || strings.HasPrefix(file, dir+"/") {
			return fmt.Sprintf("this declaration lies in %q, which the GitOps tool applies to the cluster: move it or exclude it there", l.shown(dir))
		}
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		k := Kustomization(l.fsys, dir)
		builtHere := slices.ContainsFunc(l.tops, func(o *overlay.Overlay) bool { return o.File == k })
		if k != "" && !builtHere && lists(l.fsys, dir, k, file) {
			return fmt.Sprintf("%q lists this declaration as a resource, so the GitOps tool would apply it to the cluster: take it out there", l.shown(k))
		}
		if dir == "." {
			return ""
		}
	}
}

// Kustomization returns the path of a directory's kustomization, or "".
func Kustomization(fsys fs.FS, dir string) string {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		p := path.Join(dir, name)
		if info, err := fs.Stat(fsys, p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// lists reports whether a kustomization names file as a resource, or a
// directory that holds it and has no kustomization to say otherwise.
func lists(fsys fs.FS, dir, kustomizationFile, file string) bool {
	if info, err := fs.Stat(fsys, kustomizationFile); err != nil || info.Size() > 1<<20 {
		return false
	}
	data, err := fs.ReadFile(fsys, kustomizationFile)
	if err != nil {
		return false
	}
	docs, err := yamlnode.Documents(kustomizationFile, data, yamlnode.Limits{Bytes: 1 << 20, Nodes: 50_000})
	if err != nil || len(docs) == 0 {
		return false // kustomize says what is wrong with it
	}
	for _, field := range []string{"resources", "bases"} {
		_, list := yamlnode.Field(docs[0], field)
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, item := range list.Content {
			name, _ := yamlnode.Text(item)
			target := path.Join(dir, name)
			if target == file || strings.HasPrefix(file, target+"/") && Kustomization(fsys, target) == "" {
				return true
			}
		}
	}
	return false
}
