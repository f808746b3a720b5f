package declare

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/k8s/overlay"
)

// LoadOptions configures LoadFS.
type LoadOptions struct {
	Dir     string   // workspace directory in the file system; Paths, Output, Applied and positions are relative to it; empty: the top
	Paths   []Path   // files and directories to read, which may be outside of the workspace; empty: the whole workspace
	Output  string   // quayside's own output directory, skipped by the walk; empty for none
	Applied []string // directories that the GitOps tool applies: a declaration below one causes a warning
	Absent  []int    // indices of Paths that may be missing without an error
}

// Path is a file or a directory with declarations. It is written as a string unless it
// overrides.
type Path struct {
	Path      string `json:"path" yamlnode:"text" form:"required nonempty" doc:"File or directory, relative to this file. It may be above the workspace, in the same Git repository."`
	Overrides bool   `json:"overrides" default:"false" doc:"Whether declarations there replace those of earlier paths."`
}

// In returns p relative to the file system, for a p relative to dir. It returns false if p
// leads out of the file system.
func (p Path) In(dir string) (string, bool) {
	in := path.Join(dir, p.Path)
	return in, fs.ValidPath(in)
}

// Limits on the files of one workspace.
const (
	maxFiles = 20_000
	maxBytes = 512 << 20
)

// LoadFS reads every declaration below the paths. A file named by a path is read regardless of its
// extension. A directory with a kustomization is built as stock kustomize builds it, from
// files of the whole file system. Any other directory is walked, in path order, for files that
// end in .yaml, .yml or .json; names with a leading dot are skipped. If the walk meets a
// directory with a kustomization, LoadFS builds that instead of reading its files, unless
// another kustomization builds on it.
//
// All sets are merged as by [Merge]. The objects built by a kustomization, and the
// declarations of a path that overrides, override declarations of earlier paths with the same
// dialect, namespace and name.
//
// A missing path is an error that wraps fs.ErrNotExist, unless [LoadOptions.Absent] lists it.
// A link out of the file system is an error. All faults are collected; the error is a
// diag.List.
func LoadFS(fsys fs.FS, opt LoadOptions) (*Set, error) {
	l := newLoader(fsys, opt)
	l.find()
	l.build()
	for _, f := range l.files {
		l.readFile(f)
	}
	merged, err := Merge(l.overridden()...)
	l.errs.Add(diag.Pos{}, err)
	if err := l.errs.Err(); err != nil {
		return nil, err
	}
	merged.Warnings = diag.SortWarnings(slices.Concat(merged.Warnings, l.warnUnlisted(), l.templates(), l.warnUnreadDirs(merged)))
	return merged, nil
}

// loader reads the declarations of a workspace. Its paths are relative to the file system.
type loader struct {
	fsys fs.FS
	opt  LoadOptions // with paths relative to the file system

	files  []found // to read without a build
	dirs   []found // with a kustomization
	beside []found // files in or below dirs, which a kustomization may list

	kustomizations *overlay.Files
	tops           []*overlay.Overlay        // the kustomizations to build
	reached        map[*overlay.Overlay]bool // the kustomizations that are part of a build
	charts         map[string]int            // number of ignored templates by Helm chart
	loose          []string                  // templates without a chart
	parts          []part
	bytes          int64
	errs           diag.List
}

// found is a file or a directory to read.
type found struct {
	path  string
	entry int  // index of the path in LoadOptions that led to it
	named bool // is that path itself
}

// part holds the declarations of one file or of one built object.
type part struct {
	set     *Set
	sources []source
	entry   int
	built   *overlay.Overlay // nil for a file
	raw     []byte           // the built object
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
	l.kustomizations = overlay.New(overlay.FileFunc(l.regular))
	return l
}

// shown returns a path relative to the workspace, for messages.
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
			l.errs.Addf(diag.Pos{File: path.Clean(named.Path)}, "is outside of the repository")
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
	l.files, l.beside = uniqueByPath(l.files), uniqueByPath(l.beside)
	last := func(d found) int { // the last path that names it, otherwise the last one that leads to it
		if d.named {
			return d.entry + len(paths)
		}
		return d.entry
	}
	slices.SortFunc(l.dirs, func(a, b found) int { return cmp.Compare(last(b), last(a)) })
	l.dirs = uniqueByPath(l.dirs)
}

// precedence returns the index of the path that determines how a file is read, if several paths
// include it: the last one that overrides, or else the first one.
func (l *loader) precedence(f found) int {
	if l.overriding(f.entry) {
		return f.entry + 1
	}
	return 0
}

// overriding reports whether the path in LoadOptions with that index overrides others.
func (l *loader) overriding(entry int) bool {
	return entry < len(l.opt.Paths) && l.opt.Paths[entry].Overrides
}

// uniqueByPath sorts by path and keeps the first of equal paths.
func uniqueByPath(list []found) []found {
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
		case !hidden && !inside[path.Dir(p)] && d.Type()&fs.ModeSymlink != 0 && l.isDir(p):
			l.errs.Addf(l.pos(p), "symbolic links to directories are not followed: list the target in spec.declarations")
			return nil
		case hidden || !isManifest(p):
			return nil
		}
		info, err := fs.Stat(l.fsys, p) // follows a link, and ignores a dangling one
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			l.errs.Add(l.pos(p), l.unreadable(p, err))
			return nil
		case !info.Mode().IsRegular():
			return nil
		}
		if err := inert.CheckName(p); err != nil {
			l.errs.Addf(l.pos(p), "file name %w", err)
			return nil
		}
		if inside[path.Dir(p)] {
			l.beside = append(l.beside, f)
		} else {
			l.files = append(l.files, f)
		}
		if len(l.files)+len(l.beside) > maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		return nil
	})
	l.errs.Add(l.pos(root.path), err)
}

// isDir reports whether a path is a directory, or a link to one.
func (l *loader) isDir(name string) bool {
	info, err := fs.Stat(l.fsys, name)
	return err == nil && info.IsDir()
}

// unreadable returns the error for an unreadable path. The file system refuses symbolic links
// that lead out of the repository.
func (l *loader) unreadable(name string, err error) error {
	if link := l.link(name); link != "" {
		return fmt.Errorf("%s is a symbolic link that leads out of the repository: replace it with a copy of its target", l.shown(link))
	}
	return err
}

// link returns the first symbolic link in a path, or "".
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

// readFile reads the declarations of a file that is not part of a kustomization.
func (l *loader) readFile(f found) {
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
	if l.bytes += info.Size(); info.Size() > int64(parseLimits().Bytes) || l.bytes > maxBytes {
		return nil, diag.Errorf(l.pos(file), "%d bytes exceed the limit of %d for one file or %d for all declarations", info.Size(), parseLimits().Bytes, maxBytes)
	}
	return fs.ReadFile(l.fsys, file)
}

// applied returns a warning for a declaration below a directory that the GitOps tool applies, and
// "" for all others.
func (l *loader) applied(file string) string {
	for _, dir := range l.opt.Applied {
		if dir == "." || strings.HasPrefix(file, dir+"/") {
			return fmt.Sprintf("this declaration is in %q, which the GitOps tool applies to the cluster: move it, or exclude it there", l.shown(dir))
		}
	}
	return ""
}

// Kustomization returns the path of a directory's kustomization file, or "".
func Kustomization(fsys fs.FS, dir string) string {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		p := path.Join(dir, name)
		if info, err := fs.Stat(fsys, p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}
