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

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
)

// LoadOptions configures LoadFS.
type LoadOptions struct {
	Dir     string   // workspace directory in the file system; other paths and positions are relative to it; empty for the root
	Paths   []Path   // files and directories to read, also outside of the workspace; empty for the whole workspace
	Output  string   // quayside's output directory, which is not read; empty for none
	Applied []string // directories that the GitOps tool applies; a declaration in one causes a warning
	Absent  []int    // indices of Paths that may be missing
}

// Path is a file or a directory with declarations. In YAML it is a string unless Overrides is set.
type Path struct {
	Path      string `json:"path" yamlnode:"text" form:"required nonempty" doc:"File or directory, or a pattern for several (* and ? match in one step of the path), relative to this file. It may be above the workspace, in the same Git repository. The file of an Application, an ApplicationSet or a Flux Kustomization stands for what it applies, with the changes that the tool makes."`
	Cluster   string `json:"cluster" doc:"For the file of an Application, an ApplicationSet or a Flux Kustomization: read only what it applies to the cluster with this name, server or kubeconfig."`
	Overrides bool   `json:"overrides" default:"false" doc:"Whether declarations there replace those of earlier paths."`
}

// In returns p relative to the file system, if p is relative to dir. It returns false if p leads
// out of the file system.
func (p Path) In(dir string) (string, bool) {
	in := path.Join(dir, p.Path)
	return in, fs.ValidPath(in)
}

// Limits on the files of one workspace.
const (
	maxFiles = 20_000
	maxBytes = 512 << 20
)

// LoadFS reads every declaration below the paths:
//
//   - A file that a path names is read regardless of its extension. What the Applications,
//     ApplicationSets and Flux Kustomizations in it apply is read with the changes that the tool makes.
//   - A path with *, ? or [ is a pattern if there is no such file. It must match something.
//   - A directory with a kustomization is built like kustomize does, from files of the whole
//     file system.
//   - Any other directory is walked for files that end in .yaml, .yml or .json. Names with a
//     leading dot are skipped. If the walk finds a directory with a kustomization, LoadFS builds
//     it instead of reading its files, unless another kustomization includes it.
//
// The results are merged like in [Merge]. Objects built by a kustomization, and declarations of a
// path with Overrides, replace declarations of earlier paths with the same dialect, namespace and
// name.
//
// A fault of an object, a file or a kustomization does not affect others. The set is what can be read,
// and lists the rest in Unread. A kustomization that no path names and that cannot be built is only a
// warning if it is seen to hold no declarations. Plugins of kustomizations that are programs are
// skipped with a warning.
//
// The error is a diag.List of all faults, including those in Unread. A missing path is an error that wraps
// fs.ErrNotExist, unless [LoadOptions.Absent] lists it. A link out of the file system is an error. The
// set is nil if a path is missing or invalid, or if there are too many files.
func LoadFS(fsys fs.FS, opt LoadOptions) (*Set, error) {
	l := newLoader(fsys, opt)
	l.findFiles()
	l.build()
	for _, f := range l.files {
		l.readFile(f)
	}
	l.readApplied()
	sets := append(l.applyOverrides(), &Set{Unread: l.unread, Warnings: l.warnings})
	merged := mergeReadable(sets)
	l.errs.Add(diag.Pos{}, Faults(merged.Unread))
	if l.invalid {
		return nil, l.errs.Err()
	}
	merged.Warnings = diag.SortWarnings(slices.Concat(merged.Warnings, l.warnUnlisted(), l.warnTemplates()))
	return merged, l.errs.Err()
}

// loader reads the declarations of a workspace. All its paths are relative to the file system.
type loader struct {
	fsys fs.FS
	opt  LoadOptions // with paths relative to the file system

	files       []candidate // read without a build
	dirs        []candidate // directories with a kustomization
	applied     []appliedDir
	entries     *survey.Reader // nil before the first entry point
	maybeListed []candidate    // files in or below dirs, which a kustomization may list

	kustomizations *overlay.Files
	roots          []*overlay.Overlay        // the kustomizations to build
	reached        map[*overlay.Overlay]bool // all kustomizations that are part of a build
	charts         map[string]int            // number of ignored templates by Helm chart
	looseTemplates []string                  // templates outside of charts
	parts          []part
	unread         []Unread
	warnings       []diag.Warning
	bytes          int64
	built          int       // number of built objects
	errs           diag.List // faults of the paths
	invalid        bool      // whether there are such faults
}

// candidate is a file or a directory to read.
type candidate struct {
	path  string
	entry int  // index of the path in opt.Paths that contains it
	named bool // whether it is that path itself

	applied *survey.Applied // the entry point that applies it; nil if a path names it or contains it
}

// part holds the declarations of one file or of one built object.
type part struct {
	set   *Set
	entry int
	built *overlay.Overlay // the kustomization that built the object; nil for a file
	raw   []byte           // the built object
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
	l.kustomizations = overlay.NewTolerant(overlay.FileFunc(l.readRegular), l.manifestsIn)
	return l
}

// displayPath returns a path relative to the workspace, for messages.
func (l *loader) displayPath(name string) string {
	rel, err := filepath.Rel(filepath.FromSlash(path.Join("/", l.opt.Dir)), filepath.FromSlash(path.Join("/", name)))
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

func (l *loader) pos(file string) diag.Pos { return diag.Pos{File: l.displayPath(file)} }

// findFiles collects the files and the directories with kustomizations, sorted and without duplicates.
func (l *loader) findFiles() {
	paths := l.opt.Paths
	if len(paths) == 0 {
		paths = []Path{{Path: "."}}
	}
	for entry, named := range paths {
		p, inside := named.In(l.opt.Dir)
		if !inside {
			l.addInvalid(diag.Pos{File: path.Clean(named.Path)}, errors.New("is outside of the repository"))
			continue
		}
		switch _, err := fs.Stat(l.fsys, p); {
		case errors.Is(err, fs.ErrNotExist) && slices.Contains(l.opt.Absent, entry):
		case errors.Is(err, fs.ErrNotExist) && named.IsPattern():
			l.addMatches(p, entry)
		default:
			l.addPath(p, entry)
		}
	}
	slices.SortStableFunc(l.files, func(a, b candidate) int { return cmp.Compare(l.precedence(b), l.precedence(a)) })
	l.files, l.maybeListed = uniqueByPath(l.files), uniqueByPath(l.maybeListed)
	last := func(d candidate) int { // the index of the last path that names d, or else of the last path that contains d
		if d.named {
			return d.entry + len(paths)
		}
		return d.entry
	}
	slices.SortFunc(l.dirs, func(a, b candidate) int { return cmp.Compare(last(b), last(a)) })
	l.dirs = uniqueByPath(l.dirs)
}

// addInvalid adds a fault without which nothing is known of a path.
func (l *loader) addInvalid(pos diag.Pos, err error) {
	l.errs.Add(pos, diag.Errorf(pos, "%w", err))
	l.invalid = true
}

// addUnread adds a file or directory that cannot be read.
func (l *loader) addUnread(f candidate, err error) {
	l.addParts(f.entry, unreadAll(l.pos(f.path), err, Unread{partial: true}))
}

// addParts adds unread parts of a path.
func (l *loader) addParts(entry int, parts []Unread) {
	for _, u := range parts {
		u.entry = entry
		l.unread = append(l.unread, u)
	}
}

// precedence orders the paths that contain a file: the last path with Overrides ranks highest. All
// paths without Overrides have precedence 0.
func (l *loader) precedence(f candidate) int {
	if l.isOverriding(f.entry) {
		return f.entry + 1
	}
	return 0
}

// isOverriding reports whether the path with that index in opt.Paths has Overrides.
func (l *loader) isOverriding(entry int) bool {
	return entry < len(l.opt.Paths) && l.opt.Paths[entry].Overrides
}

// uniqueByPath sorts list by path and keeps the first item of each path.
func uniqueByPath(list []candidate) []candidate {
	slices.SortStableFunc(list, func(a, b candidate) int { return strings.Compare(a.path, b.path) })
	return slices.CompactFunc(list, func(a, b candidate) bool { return a.path == b.path })
}

// walk collects the manifests and the kustomizations in and below root.
func (l *loader) walk(root candidate) {
	inside := map[string]bool{} // directories that have a kustomization or are below one
	err := fs.WalkDir(l.fsys, root.path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			l.addUnread(candidate{path: p, entry: root.entry}, err)
			return nil
		}
		f := candidate{path: p, entry: root.entry, named: p == root.path}
		hidden := p != root.path && strings.HasPrefix(d.Name(), ".")
		switch {
		case d.IsDir() && (hidden || p != root.path && p == l.opt.Output):
			return fs.SkipDir
		case d.IsDir():
			if chart, ok := l.findChart(p); ok {
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
			l.addUnread(f, errors.New("symbolic links to directories are not followed: list the target in spec.declarations"))
			return nil
		case hidden || !isManifest(p):
			return nil
		}
		info, err := fs.Stat(l.fsys, p) // follows links; dangling links are ignored
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			l.addUnread(f, l.explainUnreadable(p, err))
			return nil
		case !info.Mode().IsRegular():
			return nil
		}
		if err := sanitize.CheckName(p); err != nil {
			l.addUnread(f, fmt.Errorf("file name %w", err))
			return nil
		}
		if inside[path.Dir(p)] {
			l.maybeListed = append(l.maybeListed, f)
		} else {
			l.files = append(l.files, f)
		}
		if len(l.files)+len(l.maybeListed) > maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		return nil
	})
	if err != nil {
		l.addInvalid(l.pos(root.path), err)
	}
}

// isDir reports whether a path is a directory, or a link to one.
func (l *loader) isDir(name string) bool {
	info, err := fs.Stat(l.fsys, name)
	return err == nil && info.IsDir()
}

// explainUnreadable returns the error for an unreadable path. It explains symbolic links out of the
// repository, which the file system refuses to follow.
func (l *loader) explainUnreadable(name string, err error) error {
	if link := l.findLink(name); link != "" {
		return fmt.Errorf("symbolic link %s points outside the repository: replace it with a copy of its target", l.displayPath(link))
	}
	return err
}

// findLink returns the first symbolic link among a path and its parents, or "".
func (l *loader) findLink(name string) string {
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
	return yamlnode.HasExtension(name)
}

// readFile parses the declarations of a file outside of kustomizations.
func (l *loader) readFile(f candidate) {
	data, err := l.read(f.path)
	if err != nil {
		l.addUnread(f, err)
		return
	}
	r := l.parse(f, l.displayPath(f.path), data)
	if isTemplate(r, data) {
		l.looseTemplates = append(l.looseTemplates, f.path)
		l.addTemplate(f.path, data)
		return
	}
	if u, unknown := l.checkKnown(f, r, nil, r.first); unknown {
		l.addParts(f.entry, []Unread{u})
		return
	}
	l.addParts(f.entry, r.unread(data, func(p diag.Pos) diag.Pos { return p }))
	if !r.first.IsZero() {
		if msg := l.appliedWarning(f.path); msg != "" {
			r.set.Warnings = append(r.set.Warnings, diag.Warning{Pos: r.first, Code: "declaration-in-tree", Msg: msg})
		}
	}
	l.parts = append(l.parts, part{set: r.set, entry: f.entry})
}

// parse parses a file. If an entry point applies it, objects get the default namespace.
func (l *loader) parse(f candidate, file string, data []byte) *reader {
	namespace := ""
	if f.applied != nil {
		namespace = f.applied.Changes.DefaultNamespace
	}
	return parseFileIn(file, data, namespace)
}

// manifestsIn returns the names of the manifests in a directory, sorted.
func (l *loader) manifestsIn(dir string) []string {
	list, _ := fs.ReadDir(l.fsys, dir) // a missing directory has none
	var out []string
	for _, d := range list {
		if d.Type().IsRegular() && isManifest(d.Name()) {
			out = append(out, d.Name())
		}
	}
	return out
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

// appliedWarning returns a warning if the GitOps tool applies a directory that contains file, and
// "" otherwise.
func (l *loader) appliedWarning(file string) string {
	for _, dir := range l.opt.Applied {
		if dir == "." || strings.HasPrefix(file, dir+"/") {
			return fmt.Sprintf("this declaration is in %q, which the GitOps tool applies to the cluster: move it, or exclude it there", l.displayPath(dir))
		}
	}
	return ""
}

// Kustomization returns the path of the kustomization file in dir, or "" if there is none.
func Kustomization(fsys fs.FS, dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		p := path.Join(dir, name)
		if info, err := fs.Stat(fsys, p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}
