package survey

import (
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Limits of a survey.
const (
	maxFiles   = 1_000_000 // further files are ignored
	maxSize    = 1 << 20   // bytes of a file; a larger one is assumed to contain no declaration
	maxApplied = 10_000    // number of directories that one object applies
)

// repository reads the files of a repository on demand, and caches some of the results.
type repository struct {
	fsys           fs.FS
	skip           func(dir string) bool
	kustomizations map[string]*kustomization // kustomizations by directory; nil for a directory without one
	lists          map[string][]fs.DirEntry
	ignored        map[string]*gitrepo.Ignore // ignore patterns, by the name of the files that contain them
	loaded         map[string]bool            // files whose patterns are already in ignored
	charts         map[string]*chartFiles     // by directory

	results *memo.Results
	index   *gitrepo.Index // files that need not be read to know their content; may be nil
}

func newRepository(fsys fs.FS, skip func(dir string) bool) *repository {
	return &repository{fsys: fsys, skip: skip, kustomizations: map[string]*kustomization{}, lists: map[string][]fs.DirEntry{}, ignored: map[string]*gitrepo.Ignore{}, loaded: map[string]bool{}, charts: map[string]*chartFiles{}}
}

// read returns the content of a file. It returns nil if the file does not exist, or is too large
// for a manifest.
func (r *repository) read(name string) []byte {
	if !fs.ValidPath(name) {
		return nil
	}
	data, err := filetree.ReadSmall(r.fsys, name, maxSize)
	if err != nil {
		return nil // code that needs the file reports the error
	}
	return data
}

// Open opens a file or a directory.
func (r *repository) Open(name string) (fs.File, error) { return r.fsys.Open(name) }

// ReadDir returns the entries of a directory. It reads each directory once.
func (r *repository) ReadDir(dir string) ([]fs.DirEntry, error) {
	list, known := r.lists[dir]
	if known {
		return list, nil
	}
	read := fs.ReadDir
	if r.index != nil {
		read = filetree.ReadDirInfo
	}
	list, err := read(r.fsys, dir)
	for _, d := range list {
		if r.index != nil && gitrepo.IsAttributesFile(d.Name()) {
			r.index.AddAttributes(dir, r.read(path.Join(dir, d.Name())))
		}
	}
	r.lists[dir] = list
	return list, err
}

// remember returns f of the content of a file. f may also depend on the path of the file. The file is not read
// if its blob is known and a result for this blob and name is stored. name identifies f.
func remember[T any](r *repository, file string, d fs.DirEntry, name string, f func(data []byte) (T, error)) (out T, err error) {
	if blob, known := r.index.Blob(file, d); known {
		if out, found := memo.Find[T](r.results, name, append(blob, file...)); found {
			return out, nil
		}
	}
	data, err := filetree.ReadSmall(r.fsys, file, maxSize)
	switch {
	case err != nil:
		return out, err
	case r.results == nil:
		return f(data)
	}
	return memo.Remember(r.results, name, append(gitrepo.BlobOf(data), file...), func() (T, error) { return f(data) })
}

// list returns the entries of a directory. For a missing directory, it returns none.
func (r *repository) list(dir string) []fs.DirEntry {
	list, _ := r.ReadDir(dir)
	return list
}

// mayBeDir returns false if the directories that were read so far show that a path is not a
// directory.
func (r *repository) mayBeDir(name string) bool {
	list, known := r.lists[path.Dir(name)]
	if !known || name == "." {
		return true
	}
	i, found := slices.BinarySearchFunc(list, path.Base(name), func(d fs.DirEntry, base string) int { return strings.Compare(d.Name(), base) })
	return found && !list[i].Type().IsRegular()
}

func (r *repository) isDir(name string) bool {
	if !fs.ValidPath(name) {
		return false
	}
	info, err := fs.Stat(r.fsys, name)
	return err == nil && info.IsDir()
}

func (r *repository) isChart(dir string) bool {
	return slices.ContainsFunc(r.list(dir), func(d fs.DirEntry) bool { return d.Name() == "Chart.yaml" })
}

// chartOf returns the directory of the Helm chart whose templates include a file, and whether there is such a chart.
func (r *repository) chartOf(name string) (string, bool) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if path.Base(dir) == "templates" && r.isChart(path.Dir(dir)) {
			return path.Dir(dir), true
		}
	}
	return "", false
}

// walk calls visit with each file in and below a directory, until visit returns false. It skips
// hidden directories.
func (r *repository) walk(dir string, visit func(name string) bool) bool {
	for _, d := range r.list(dir) {
		name := path.Join(dir, d.Name())
		switch {
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || r.skip(name)):
		case d.IsDir():
			if !r.walk(name, visit) {
				return false
			}
		case d.Type().IsRegular() && !visit(name):
			return false
		}
	}
	return true
}

// walkDirs calls visit with dir and each directory below it. It skips hidden directories.
func (r *repository) walkDirs(dir string, visit func(name string)) {
	visit(dir)
	for _, d := range r.list(dir) {
		if name := path.Join(dir, d.Name()); d.IsDir() && !strings.HasPrefix(d.Name(), ".") && !r.skip(name) {
			r.walkDirs(name, visit)
		}
	}
}

// isIgnored reports whether ignore files with the name ignoreFile exclude a file.
func (r *repository) isIgnored(ignoreFile, file string) bool {
	if ignoreFile == "" {
		return false
	}
	g := r.ignored[ignoreFile]
	if g == nil {
		g = gitrepo.NewIgnore()
		r.ignored[ignoreFile] = g
	}
	steps := strings.Split(file, "/")
	for i := range steps {
		dir := path.Join(".", path.Join(steps[:i]...))
		if name := path.Join(dir, ignoreFile); !r.loaded[name] {
			r.loaded[name] = true
			g.Parse(r.read(name), dir)
		}
	}
	return g.Match(file, false)
}

// manifestsIn returns the names of the manifests in a directory, sorted.
func (r *repository) manifestsIn(dir string) []string {
	var out []string
	for _, d := range r.list(dir) {
		if d.Type().IsRegular() && yamlnode.HasExtension(d.Name()) {
			out = append(out, d.Name())
		}
	}
	return out
}

// kustomization is the content of a kustomization file as far as a survey needs it.
type kustomization struct {
	_          struct{} `cbor:",toarray"`
	File       string   `cbor:"-"`
	Resources  []string // files and directories, relative to the repository
	Patches    []string // files with patches, relative to the repository
	Generators []generatorConfig
	Component  bool
	Invalid    bool
	Changes    bool // whether it changes its resources
}

// generatorConfig is the configuration of generators: a file, or a text in a kustomization.
type generatorConfig struct {
	Pos  diag.Pos // of the text
	File string   // empty for a text
	Text string
}

// kustomization returns the kustomization in a directory, or nil if there is none. If the file is invalid, the
// result lists nothing.
func (r *repository) kustomization(dir string) *kustomization {
	k, known := r.kustomizations[dir]
	if known {
		return k
	}
	if !r.mayBeDir(dir) {
		return nil
	}
	for _, d := range r.list(dir) {
		if slices.Contains(konfig.RecognizedKustomizationFileNames(), d.Name()) && d.Type().IsRegular() {
			name := path.Join(dir, d.Name())
			parse := func(data []byte) (kustomization, error) { return parseKustomization(name, data), nil }
			parsed, err := remember(r, name, d, "survey.parseKustomization", parse)
			parsed.File, parsed.Invalid = name, parsed.Invalid || err != nil
			k = &parsed
			break
		}
	}
	r.kustomizations[dir] = k
	return k
}

func parseKustomization(file string, data []byte) kustomization {
	k := kustomization{File: file}
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{Bytes: maxSize, Nodes: 50_000})
	if err != nil || len(docs) == 0 {
		k.Invalid = true
		return k // the kustomize build reports this error
	}
	k.Component = textAt(docs[0], "kind") == types.ComponentKind
	join := func(where string) []string {
		var out []string
		for _, item := range yamlnode.NodesAt(docs[0], where) {
			if text, ok := yamlnode.Text(item); ok && !strings.Contains(text, "\n") {
				out = append(out, path.Join(path.Dir(file), text))
			}
		}
		return out
	}
	k.Resources = slices.Concat(join("resources.[]"), join("bases.[]"), join("components.[]"))
	for _, item := range yamlnode.NodesAt(docs[0], "generators.[]") {
		switch text, ok := yamlnode.Text(item); {
		case ok && strings.ContainsAny(text, "\n{"):
			k.Generators = append(k.Generators, generatorConfig{Pos: yamlnode.At(file, item), Text: text})
		case ok:
			k.Generators = append(k.Generators, generatorConfig{File: path.Join(path.Dir(file), text)})
		}
	}
	k.Patches = slices.Concat(join("patches.[].path"), join("patchesStrategicMerge.[]"), join("patchesJson6902.[].path"))
	for i := 0; i+1 < len(docs[0].Content); i += 2 {
		switch docs[0].Content[i].Value {
		case "apiVersion", "kind", "metadata", "resources", "bases", "generatorOptions", "configMapGenerator", "secretGenerator", "openapi", "buildMetadata", "sortOptions":
		default:
			k.Changes = k.Changes || len(docs[0].Content[i+1].Content) > 0 || docs[0].Content[i+1].Value != ""
		}
	}
	return k
}

// textAt returns the first string at a field path, or "".
func textAt(n *yamlnode.Node, where string) string {
	for _, v := range yamlnode.NodesAt(n, where) {
		if text, ok := yamlnode.Text(v); ok {
			return text
		}
	}
	return ""
}

func groupOf(n *yamlnode.Node) string {
	group, _, _ := strings.Cut(textAt(n, "apiVersion"), "/")
	return group
}

// decode returns the fields of a node. It omits fields that are no valid YAML.
func decode(n *yamlnode.Node) map[string]any {
	data, err := yamlnode.JSON(n)
	out := map[string]any{}
	if err == nil && json.Unmarshal(data, &out) != nil {
		return map[string]any{}
	}
	return out
}

// documents returns the objects in a file. It replaces a List by the items of the List.
func documents(file string, data []byte) ([]*yamlnode.Node, error) {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{Bytes: maxSize, Nodes: 200_000})
	if err != nil {
		return nil, err
	}
	var out []*yamlnode.Node
	var add func(n *yamlnode.Node)
	add = func(n *yamlnode.Node) {
		if _, items := yamlnode.Field(n, "items"); items != nil && items.Kind == yamlnode.SequenceNode && strings.HasSuffix(textAt(n, "kind"), "List") {
			for _, item := range items.Content {
				add(item)
			}
			return
		}
		out = append(out, n)
	}
	for _, n := range docs {
		add(n)
	}
	return out, nil
}

// appliedFiles returns the manifests that the tool applies from a.Dir, including the files of kustomizations.
func (r *repository) appliedFiles(a *Applied) map[string]bool {
	files := map[string]bool{}
	if !r.isDir(a.Dir) {
		if r.read(a.Dir) != nil {
			files[a.Dir] = true
		}
		return files
	}
	r.visitApplied(a, a.Dir, func(name string) { files[name] = true }, func(dir string) { r.addIncluded(dir, files, map[string]bool{}) })
	return files
}

// visitApplied calls file with each manifest in dir that the tool applies and that is outside of
// kustomizations. It calls built with each topmost directory that has a kustomization. The calls are in lexical
// order.
func (r *repository) visitApplied(a *Applied, dir string, file, built func(name string)) {
	switch {
	case r.isChart(dir):
		return // the files are Helm templates
	case r.kustomization(dir) != nil:
		built(dir)
		return
	}
	for _, d := range r.list(dir) {
		name := path.Join(dir, d.Name())
		switch {
		case strings.HasPrefix(d.Name(), ".") && d.IsDir(), a.excludes(r, name, d.IsDir()):
		case d.IsDir() && a.recurse && !r.skip(name):
			r.visitApplied(a, name, file, built)
		case d.Type().IsRegular() && yamlnode.HasExtension(name):
			file(name)
		}
	}
}

// addIncluded adds the files and directories that the kustomization in dir includes, directly or
// indirectly.
func (r *repository) addIncluded(dir string, files, dirs map[string]bool) {
	k := r.kustomization(dir)
	if k == nil || dirs[dir] {
		return
	}
	dirs[dir] = true
	for _, target := range k.Resources {
		if fs.ValidPath(target) && r.kustomization(target) != nil {
			r.addIncluded(target, files, dirs)
		} else {
			files[target] = true
		}
	}
	for _, policy := range r.generatedPolicies(k) {
		for _, name := range policy.manifests {
			if r.kustomization(name) != nil {
				r.addIncluded(name, files, dirs)
			} else {
				files[name] = true
			}
		}
	}
}

// matchGlob reports whether a path matches a pattern of Argo CD's directory sources: * and ** match
// any text, and {a,b} matches alternatives.
func matchGlob(pattern, name string) bool {
	expr := regexp.QuoteMeta(pattern)
	for _, r := range [][2]string{{`\*`, ".*"}, {`\?`, "."}, {`\{`, "(?:"}, {`\}`, ")"}, {",", "|"}} {
		expr = strings.ReplaceAll(expr, r[0], r[1])
	}
	matched, err := regexp.MatchString("^(?:"+expr+")$", name)
	return err == nil && matched
}

// excludes reports whether the tool, in applying a.Dir, omits a file or directory outside of kustomizations.
func (a *Applied) excludes(r *repository, name string, dir bool) bool {
	if a.ignore != nil && a.ignore.Match(name, dir) || r.isIgnored(a.ignoreFile, name) {
		return true
	}
	rel := name
	if a.Dir != "." {
		rel = filetree.Relative(a.Dir, name)
	}
	return !dir && (a.include != "" && !matchGlob(a.include, rel) || a.exclude != "" && matchGlob(a.exclude, rel))
}

// at returns the position of a field of the node n, which is in the entry. If the field is missing, it returns the
// position of the nearest enclosing field. If a kustomization changes the entry, it returns the entry's position.
func (e *Entry) at(n *yamlnode.Node, field string) diag.Pos {
	if e.built != "" {
		return e.Pos
	}
	return diag.Fields(yamlnode.Positions(e.Pos.File, n)).At(field, e.Pos)
}
