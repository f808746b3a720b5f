package declare

import (
	"cmp"
	"encoding/json"
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
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
)

// LoadOptions are the options of LoadFS.
type LoadOptions struct {
	Dir     string   // directory of the workspace; other paths and positions are relative to it; empty: the root of the file system
	Paths   []Path   // files and directories to read, which may be outside of the workspace; empty: the whole workspace
	Output  string   // quayside's output directory, which is skipped; empty: none
	Applied []string // directories that the GitOps tool applies; a declaration in one of them causes a warning
	Absent  []int    // indexes of the Paths that need not exist

	Environment string // name of the workspace, for [Set.In]; empty: all declarations are for it

	Foreign func(url string) bool // reports whether a URL belongs to another repository than this one; nil: no URL does

	Charts *helm.Charts // renders Helm charts that a path names or an entry point applies, in a child process; nil: they are not read, and no process is started

	Results *memo.Results // remembers the results of kustomizations; may be nil
}

// Path is a file or a directory with declarations. In YAML it is a string unless Overrides is set.
type Path struct {
	Path      string `json:"path" yamlnode:"text" form:"required nonempty" doc:"File or directory, or a pattern (* and ? match no slash), relative to this file. It may be above the workspace, in the same Git repository. If the file contains an Application, an ApplicationSet or a Flux Kustomization, quayside reads the objects that it applies, with the changes that the tool makes."`
	Cluster   string `json:"cluster" doc:"For the file of an Application, an ApplicationSet or a Flux Kustomization: read only the objects that it applies to the cluster with this name, server or kubeconfig."`
	Overrides bool   `json:"overrides" default:"false" doc:"Whether declarations there replace those of earlier paths."`

	Values      json.RawMessage `json:"values" doc:"For the directory of a Helm chart: values, as in values.yaml. These values override the values in valuesFiles."`
	ValuesFiles []string        `json:"valuesFiles" form:"nonempty" doc:"For the directory of a Helm chart: files with values, relative to this file. Later files override earlier ones."`
	ReleaseName string          `json:"releaseName" doc:"For the directory of a Helm chart: name of the release. Default: the name of the chart."`
	Namespace   string          `json:"namespace" doc:"For the directory of a Helm chart: namespace of the release, and of objects without one. Default: default, as in Helm."`
}

func (p Path) hasChartFields() bool {
	return len(p.Values)+len(p.ValuesFiles) > 0 || p.ReleaseName+p.Namespace != ""
}

// chart returns the settings for rendering the chart that the path names. dir is the directory of the
// workspace.
func (p Path) chart(dir string) *survey.Chart {
	c := &survey.Chart{Release: p.ReleaseName, Namespace: p.Namespace}
	if len(p.Values) > 0 && json.Unmarshal(p.Values, &c.Values) != nil {
		c.Fault = "values: expected a mapping"
	}
	for _, name := range p.ValuesFiles {
		c.Files = append(c.Files, path.Join(dir, name))
	}
	return c
}

// Chart returns the chart that the path names, or nil if it names none. dir is the directory of the workspace,
// and pos is the position of the path in the settings.
func (p Path) Chart(fsys fs.FS, dir string, pos diag.Pos) *survey.Applied {
	in, inside := p.In(dir)
	if info, err := fs.Stat(fsys, path.Join(in, "Chart.yaml")); !inside || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return survey.Named(in, p.chart(dir), pos)
}

// In converts a path relative to dir to a path relative to the file system. It returns false if the
// path leaves the file system.
func (p Path) In(dir string) (string, bool) {
	in := path.Join(dir, p.Path)
	return in, fs.ValidPath(in)
}

// Limits for the files of one workspace.
const (
	maxFiles = 20_000
	maxBytes = 512 << 20
)

// LoadFS reads the declarations in the given paths:
//
//   - A path that names a file is read, whatever its extension. If the file contains Applications,
//     ApplicationSets or Flux Kustomizations, the files that these objects apply are read, with the changes
//     that the tool makes. A HelmRelease, or an Application or ApplicationSet that only installs a chart of
//     another repository, is a declaration.
//   - A path with *, ? or [ is a pattern, if there is no such file. It must match something.
//   - A directory with a Helm chart is rendered with the values of the path. Files that its Applications and
//     ApplicationSets apply are read, too.
//   - A directory with a kustomization is built as by kustomize, from files of the whole file system.
//   - Any other directory is searched for files that end in .yaml, .yml or .json. Names with a
//     leading dot are skipped. If the search finds a directory with a kustomization, LoadFS builds the
//     kustomization instead of reading the files, unless another kustomization includes the directory.
//
// The results are merged as in [Merge]. Objects built by a kustomization, and declarations of a path with
// Overrides, replace declarations of earlier paths with the same dialect, namespace and name.
//
// A fault of an object, a file or a kustomization does not affect other declarations. The set contains
// everything that can be read. Its Unread lists the rest. A kustomization that cannot be built is only a
// warning if no path names it and it certainly contains no declarations. Plugins that are programs are skipped
// with a warning.
//
// The error is a diag.List of all faults, including those in Unread. It wraps fs.ErrNotExist if a path does
// not exist, unless [LoadOptions.Absent] lists it. A symbolic link out of the file system is an error. The
// set is nil if a path is missing or invalid, or if there are too many files.
func LoadFS(fsys fs.FS, opt LoadOptions) (*Set, error) {
	l := newLoader(fsys, opt)
	defer opt.Charts.Close()
	defer opt.Results.Save()
	l.findFiles()
	l.build()
	for _, f := range l.files {
		l.readFile(f)
	}
	l.readApplied()
	l.addTemplates()
	if opt.Environment != "" {
		for i := range l.parts {
			l.parts[i].set = l.parts[i].set.In(opt.Environment)
		}
	}
	sets := append(l.applyOverrides(), &Set{Unread: l.unread, Warnings: l.warnings})
	merged := mergeReadable(sets).WithValues(func(name string) ([]byte, error) { return l.readRegular(path.Join(l.opt.Dir, name)) })
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
	opt  LoadOptions // all paths in it are relative to the file system

	files       []candidate // files to read without a build
	dirs        []candidate // directories with a kustomization
	applied     []appliedDir
	entries     *survey.Reader
	maybeListed []candidate // files in or below dirs, which a kustomization may list

	direct         map[string]bool // directories whose paths have no symbolic link
	kustomizations *overlay.Files
	roots          []*overlay.Overlay        // kustomizations to build
	reached        map[*overlay.Overlay]bool // roots and all kustomizations that they include
	charts         map[string][]string       // directories of templates that are not named, by Helm chart
	rendered       map[string]bool           // directories of charts that were rendered
	ignored        map[string]int            // number of ignored templates, by Helm chart
	looseTemplates []string                  // ignored templates outside of charts
	parts          []part
	unread         []Unread
	warnings       []diag.Warning
	bytes          int64
	built          int       // number of objects built so far
	errs           diag.List // faults of paths
	invalid        bool      // whether addInvalid was called
}

// candidate is a file or a directory to read.
type candidate struct {
	path  string
	entry int  // index of its path in opt.Paths
	named bool // whether opt.Paths names it, rather than a directory that contains it

	applied *survey.Applied // entry point that applies it; nil: a path names or contains it
}

// part contains the declarations of one file or one built object.
type part struct {
	set   *Set
	entry int
	built *overlay.Overlay // kustomization that built the object; nil: a file
	raw   []byte           // built object
}

func newLoader(fsys fs.FS, opt LoadOptions) *loader {
	l := &loader{fsys: fsys, opt: opt, direct: map[string]bool{}, reached: map[*overlay.Overlay]bool{}, charts: map[string][]string{}, rendered: map[string]bool{}, ignored: map[string]int{}}
	if opt.Output != "" {
		l.opt.Output = path.Join(opt.Dir, opt.Output)
	}
	l.opt.Applied = nil
	for _, dir := range opt.Applied {
		l.opt.Applied = append(l.opt.Applied, path.Join(opt.Dir, dir))
	}
	l.entries = survey.NewReader(fsys, l.isOutput, opt.Charts, opt.Results)
	l.kustomizations = overlay.NewTolerant(overlay.FileFunc(l.readRegular), l.manifestsIn, opt.Results)
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

// findFiles finds the files to read and the directories with kustomizations, sorted and without
// duplicates.
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
	last := func(d candidate) int { // index of the last path that names d, or else of the last that contains d
		if d.named {
			return d.entry + len(paths)
		}
		return d.entry
	}
	slices.SortFunc(l.dirs, func(a, b candidate) int { return cmp.Compare(last(b), last(a)) })
	l.dirs = uniqueByPath(l.dirs)
}

// addInvalid adds a fault that concerns a whole path. LoadFS then returns no set.
func (l *loader) addInvalid(pos diag.Pos, err error) {
	l.errs.Add(pos, diag.Errorf(pos, "%w", err))
	l.invalid = true
}

// addUnread adds an Unread for a file or directory that cannot be read.
func (l *loader) addUnread(f candidate, err error) {
	l.addParts(f.entry, unreadAll(l.pos(f.path), err, Unread{partial: true}))
}

// addParts adds parts to l.unread. entry is the index of the path that contains them.
func (l *loader) addParts(entry int, parts []Unread) {
	for _, u := range parts {
		u.entry = entry
		l.unread = append(l.unread, u)
	}
}

// precedence returns the rank of the path of f: later paths with Overrides rank higher, and all
// paths without Overrides have rank 0.
func (l *loader) precedence(f candidate) int {
	if l.isOverriding(f.entry) {
		return f.entry + 1
	}
	return 0
}

// isOverriding reports whether the path with an index has Overrides.
func (l *loader) isOverriding(entry int) bool {
	return entry < len(l.opt.Paths) && l.opt.Paths[entry].Overrides
}

// uniqueByPath sorts list by path. Of items with the same path, it keeps the first.
func uniqueByPath(list []candidate) []candidate {
	slices.SortStableFunc(list, func(a, b candidate) int { return strings.Compare(a.path, b.path) })
	return slices.CompactFunc(list, func(a, b candidate) bool { return a.path == b.path })
}

// walk finds the manifests and kustomizations in and below root.
func (l *loader) walk(root candidate) {
	inside := map[string]bool{} // directories with a kustomization, and directories below them
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
				l.charts[chart] = append(l.charts[chart], p)
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
		info, err := fs.Stat(l.fsys, p) // Stat follows links; dangling links are ignored
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

// explainUnreadable returns the error for an unreadable path. If the cause is a symbolic link that
// leaves the repository, the error names the link.
func (l *loader) explainUnreadable(name string, err error) error {
	if link := l.findLink(name); link != "" {
		return fmt.Errorf("symbolic link %s points outside the repository: replace it with a copy of its target", l.displayPath(link))
	}
	return err
}

// findLink returns the first symbolic link in a path, or "".
func (l *loader) findLink(name string) string {
	if l.direct[name] || name == "." {
		return ""
	}
	if link := l.findLink(path.Dir(name)); link != "" {
		return link
	}
	info, err := fs.Lstat(l.fsys, name)
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		return name
	}
	if err == nil && info.IsDir() {
		l.direct[name] = true
	}
	return ""
}

func isManifest(name string) bool {
	return yamlnode.HasExtension(name)
}

// readFile reads the declarations in a file that is not part of a kustomization.
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

// parse parses a file. If an entry point applies the file, objects without a namespace get the default
// namespace.
func (l *loader) parse(f candidate, file string, data []byte) *reader {
	namespace := ""
	if f.applied != nil {
		namespace = f.applied.Changes.DefaultNamespace
	}
	r := &reader{file: file, namespace: namespace, named: f.named && f.path == path.Join(l.opt.Dir, file), generate: l.entries.Applications, locate: l.displayPath, foreign: l.opt.Foreign, chartIn: chartsOf(l.read)}
	if f.entry < len(l.opt.Paths) {
		r.cluster = l.opt.Paths[f.entry].Cluster
	}
	return r.parse(data)
}

// chartsOf returns a function that returns the name of the chart in a directory, or "" if the directory has none.
func chartsOf(read func(file string) ([]byte, error)) func(dir string) string {
	return func(dir string) string {
		data, err := read(path.Join(dir, "Chart.yaml"))
		if err != nil {
			return ""
		}
		chart, _ := helm.ReadMetadata(map[string][]byte{"Chart.yaml": data}) // "" if it is invalid
		return chart.Name
	}
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

// appliedWarning returns the text of a warning if a file is in a directory that a GitOps tool applies.
// Otherwise, it returns "".
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
