package declare

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Survey is an overview of a repository: its declarations, and the objects and
// kustomizations that make a GitOps tool apply them.
type Survey struct {
	fsys     fs.FS
	requests map[string][]Request // by file
	appliers []applier
	includes map[string][]string        // files and directories that the kustomization of a directory lists
	ignored  map[string]*gitrepo.Ignore // by the name of the files with the patterns
	sources  map[string]sourceObject    // by kind, namespace and name
}

// sourceObject is an object for a repository that appliers name, such as Flux's GitRepository.
type sourceObject struct {
	url     string
	ignored *gitrepo.Ignore // spec.ignore
}

// Request is a Subscription, ClusterExtension, OperatorGroup or catalog in a repository.
type Request struct {
	Pos       diag.Pos
	Namespace string // "" if a kustomization sets it
	Package   string // "" if it requests no operator
}

// applier is an object that makes a GitOps tool apply a directory, or a kustomization.
type applier struct {
	by       string // `Application "etcd"`
	pos      diag.Pos
	dir      string
	urls     []string // of the repositories that the object names
	source   string   // key of the Flux source; "" for other tools
	flat     bool     // without files of subdirectories, unless there is a kustomization
	ignores  string   // name of the files with patterns of ignored files; "" for none
	excluded []string // directories that a generator excludes
	include  string   // pattern of the included files relative to dir; "" for all
	exclude  string   // pattern of excluded files
	cluster  string   // name, server or kubeconfig of the target cluster; "" if not set
	built    bool     // a kustomization, which possibly no object applies
}

// Limits of a survey.
const (
	maxSurveyedFiles = 1_000_000 // the rest is ignored
	maxSurveyedSize  = 1 << 20   // bytes; a larger file is no declaration
)

// NewSurvey reads the manifests in fsys, the files of a repository. It skips directories for which
// skip returns true, names with a leading dot, files that Git ignores, and files that are not valid
// YAML. A missing directory is empty.
func NewSurvey(fsys fs.FS, skip func(dir string) bool) (*Survey, error) {
	s := &Survey{fsys: fsys, requests: map[string][]Request{}, includes: map[string][]string{}, ignored: map[string]*gitrepo.Ignore{}, sources: map[string]sourceObject{}}
	ignoreFiles := map[string]bool{}
	for _, a := range profile.Appliers() {
		ignoreFiles[a.Ignores] = a.Ignores != ""
		s.ignored[a.Ignores] = gitrepo.NewIgnore()
	}
	hidden := func(name string) bool { return name != "." && strings.HasPrefix(path.Base(name), ".") }
	seen := 0
	err := gitrepo.WalkFiles(fsys, func(dir string) bool { return hidden(dir) || skip(dir) }, func(name string, d fs.DirEntry) error {
		if seen++; seen > maxSurveyedFiles {
			return fs.SkipAll
		}
		ignores, kustomization := ignoreFiles[d.Name()], slices.Contains(konfig.RecognizedKustomizationFileNames(), d.Name())
		if !ignores && !kustomization && (hidden(name) || !isManifest(name)) {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxSurveyedSize {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		switch {
		case err != nil:
			return err
		case ignores:
			s.ignored[d.Name()].Parse(data, path.Dir(name))
		case kustomization && s.includes[path.Dir(name)] == nil:
			s.includes[path.Dir(name)] = readIncludes(name, data)
		case mayBeRelevant(data):
			s.read(name, data)
		}
		return nil
	})
	return s, err
}

// read records the requests and appliers in a file.
func (s *Survey) read(name string, data []byte) {
	docs, err := yamlnode.Documents(name, data, yamlnode.Limits{Bytes: maxSurveyedSize, Nodes: 200_000})
	if err != nil {
		return // not a manifest: a template, for example
	}
	for _, n := range docs {
		s.document(name, n)
	}
}

// readIncludes returns the files and directories that a kustomization lists; not nil.
func readIncludes(name string, data []byte) []string {
	out := []string{}
	docs, err := yamlnode.Documents(name, data, yamlnode.Limits{Bytes: maxSurveyedSize, Nodes: 50_000})
	if err != nil || len(docs) == 0 {
		return out // kustomize reports the fault
	}
	for _, field := range []string{"resources", "bases", "components"} {
		for _, item := range nodesAt(docs[0], field+".[]") {
			text, _ := yamlnode.Text(item)
			out = append(out, path.Join(path.Dir(name), text))
		}
	}
	return out
}

// mayBeRelevant reports whether a file may contain a request or an applier.
func mayBeRelevant(data []byte) bool {
	for _, d := range []Dialect{V0, V1, Quayside} {
		if bytes.Contains(data, []byte(d)) {
			return true
		}
	}
	return slices.ContainsFunc(profile.Appliers(), func(a profile.Applier) bool {
		return bytes.Contains(data, []byte(a.Group)) || a.Sources != "" && bytes.Contains(data, []byte(a.Sources))
	})
}

func (s *Survey) document(file string, n *yamlnode.Node) {
	group, _, _ := strings.Cut(scalarField(n, "apiVersion"), "/")
	kind := scalarField(n, "kind")
	if _, items := yamlnode.Field(n, "items"); strings.HasSuffix(kind, "List") && items != nil && items.Kind == yamlnode.SequenceNode {
		for _, item := range items.Content {
			s.document(file, item)
		}
		return
	}
	text := func(where string) string {
		for _, v := range nodesAt(n, where) {
			if name, ok := yamlnode.Text(v); ok {
				return name
			}
		}
		return ""
	}
	switch {
	case slices.ContainsFunc(profile.Appliers(), func(a profile.Applier) bool { return a.Sources != "" && a.Sources == group }):
		ignored := gitrepo.NewIgnore()
		ignored.Parse([]byte(text("spec.ignore")), ".")
		s.sources[sourceKey(kind, text("metadata.namespace"), text("metadata.name"))] = sourceObject{text("spec.url"), ignored}
	case group == string(V0) && kind == "Subscription":
		s.requests[file] = append(s.requests[file], Request{yamlnode.At(file, n), text("metadata.namespace"), text("spec.name")})
	case group == string(Quayside) && kind == "Subscription":
		s.requests[file] = append(s.requests[file], Request{yamlnode.At(file, n), text("metadata.namespace"), text("spec.package")})
	case group == string(V1) && kind == "ClusterExtension":
		s.requests[file] = append(s.requests[file], Request{yamlnode.At(file, n), text("spec.namespace"), text("spec.source.catalog.packageName")})
	case group == string(V0) && (kind == "CatalogSource" || kind == "OperatorGroup"), group == string(V1) && kind == "ClusterCatalog":
		s.requests[file] = append(s.requests[file], Request{Pos: yamlnode.At(file, n)})
	}
	for _, a := range profile.Appliers() {
		if a.Group != group || a.Kind != kind {
			continue
		}
		first := len(s.appliers)
		var excluded []string
		for _, where := range a.Paths {
			i := strings.LastIndex(where, ".")
			for _, source := range nodesAt(n, where[:i]) {
				if dir := s.addApplier(a, file, n, source, where[i+1:]); dir != "" {
					excluded = append(excluded, dir)
				}
			}
		}
		for i := range s.appliers[first:] {
			s.appliers[first+i].excluded = excluded
		}
	}
}

func sourceKey(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// addApplier records an applier for a source, a node of the object n, with its path in a field. It
// returns the directory if the source excludes it.
func (s *Survey) addApplier(a profile.Applier, file string, n, source *yamlnode.Node, field string) (excluded string) {
	text := func(from *yamlnode.Node, where string) string {
		for _, v := range nodesAt(from, where) {
			return v.Value
		}
		return ""
	}
	_, v := yamlnode.Field(source, field)
	name, ok := yamlnode.Text(v)
	if v == nil && a.Sources != "" {
		name, ok, v = ".", true, source
	}
	dir := fixedDir(name)
	if !ok || dir == "." && strings.ContainsAny(name, "*?[{$") || !fs.ValidPath(dir) {
		return "" // a template; the generators list the directories
	}
	fixed := dir == path.Clean(strings.TrimPrefix(name, "/"))
	if text(source, "exclude") == "true" {
		if fixed {
			return dir
		}
		return ""
	}
	out := applier{
		by: objectTitle(n), pos: yamlnode.At(file, v), dir: dir, ignores: a.Ignores, urls: []string{scalarField(source, "repoURL")},
		flat: a.Recurse != "" && fixed && text(source, a.Recurse) != "true", include: text(source, "directory.include"), exclude: text(source, "directory.exclude"),
	}
	if out.urls[0] == "" {
		out.urls = collectValues(n, "repoURL")
	}
	for _, where := range a.Targets {
		if c := text(n, where); c != "" {
			out.cluster = c
		}
	}
	if a.Sources != "" {
		kind := text(n, "spec.sourceRef.kind")
		if kind != "GitRepository" {
			return "" // its content is packed elsewhere
		}
		namespace := text(n, "spec.sourceRef.namespace")
		if namespace == "" {
			namespace = text(n, "metadata.namespace")
		}
		out.source = sourceKey(kind, namespace, text(n, "spec.sourceRef.name"))
	}
	s.appliers = append(s.appliers, out)
	return ""
}

// collectValues returns all values of a field below a node.
func collectValues(n *yamlnode.Node, field string) []string {
	var out []string
	for i, c := range n.Content {
		if n.Kind == yamlnode.MappingNode && i%2 == 1 && n.Content[i-1].Value == field && c.Kind == yamlnode.ScalarNode {
			out = append(out, c.Value)
		}
		if n.Kind == yamlnode.SequenceNode || n.Kind == yamlnode.DocumentNode || i%2 == 1 {
			out = append(out, collectValues(c, field)...)
		}
	}
	return out
}

// Dirs returns the topmost directories with requests that the declared paths do not include,
// sorted.
func (s *Survey) Dirs(declared []string) []string {
	files, _ := s.includedFiles(declared)
	var dirs []string
	for file := range s.requests {
		if !files[file] {
			dirs = append(dirs, path.Dir(file))
		}
	}
	slices.Sort(dirs)
	var out []string
	for _, dir := range dirs {
		if !slices.ContainsFunc(out, func(top string) bool { return filetree.Within(dir, top) }) {
			out = append(out, dir)
		}
	}
	return out
}

// Application is a request that a GitOps tool applies to a cluster.
type Application struct {
	By       string   // `Application "etcd"`, `kustomization "clusters/lab"`
	Pos      diag.Pos // position of the object in By
	Request  Request
	Declared bool   // the declared paths include the file of the request
	Proven   bool   // whether an object of a GitOps tool applies it, and not only a kustomization
	Cluster  string // name, server or kubeconfig of the target cluster; "" if not set
}

// Applied returns the requests that a GitOps tool applies, sorted by their positions, each with the
// first object that makes the tool apply it. declared are the declared paths of a workspace, and
// others those of other workspaces. A kustomization outside of these paths counts as applied,
// because the object that applies it may be in another repository. Objects are ignored if foreign
// returns true for all their repository URLs.
func (s *Survey) Applied(declared, others []string, foreign func(url string) bool) []Application {
	files, inputs := s.includedFiles(declared)
	_, more := s.includedFiles(others)
	maps.Copy(inputs, more)
	appliers := slices.DeleteFunc(slices.Clone(s.appliers), func(a applier) bool { return s.isForeign(a, foreign) })
	slices.SortStableFunc(appliers, func(a, b applier) int { return a.pos.Compare(b.pos) })
	for _, dir := range slices.Sorted(maps.Keys(s.includes)) {
		if !inputs[dir] {
			file := Kustomization(s.fsys, dir)
			appliers = append(appliers, applier{by: fmt.Sprintf("kustomization %q", dir), pos: diag.Pos{File: file, Line: 1, Col: 1}, dir: dir, built: true})
		}
	}
	found := map[diag.Pos]bool{}
	var out []Application
	for _, a := range appliers {
		applied := map[string]bool{}
		s.addApplied(a, a.dir, applied)
		for file := range applied {
			for _, r := range s.requests[file] {
				if r.Package != "" && !found[r.Pos] && s.keeps(a, r) {
					found[r.Pos] = true
					out = append(out, Application{a.by, a.pos, r, files[file], !a.built, a.cluster})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Application) int { return a.Request.Pos.Compare(b.Request.Pos) })
	return out
}

// includedFiles returns the files with requests and the kustomizations that declared paths include.
func (s *Survey) includedFiles(declared []string) (files, dirs map[string]bool) {
	files, dirs = map[string]bool{}, map[string]bool{}
	for _, top := range declared {
		for dir := range s.includes {
			if filetree.Within(dir, top) {
				s.addIncluded(dir, files, dirs)
			}
		}
		for file := range s.requests {
			files[file] = files[file] || filetree.Within(file, top)
		}
	}
	return files, dirs
}

// isForeign reports whether an applier applies only files of other repositories.
func (s *Survey) isForeign(a applier, foreign func(url string) bool) bool {
	urls := slices.DeleteFunc(slices.Clone(a.urls), func(url string) bool { return url == "" })
	if source, known := s.sources[a.source]; known {
		urls = append(urls, source.url)
	} else if a.source != "" && a.dir == "." {
		return true // the top of an unknown repository
	}
	return len(urls) > 0 && !slices.ContainsFunc(urls, func(url string) bool { return !foreign(url) })
}

// isExcluded reports whether an applier excludes a file that is not part of a kustomization.
func (s *Survey) isExcluded(a applier, file string) bool {
	if slices.ContainsFunc(a.excluded, func(dir string) bool { return filetree.Within(file, dir) }) {
		return true
	}
	if source, known := s.sources[a.source]; known && source.ignored.Match(file, false) {
		return true
	}
	rel := filetree.Relative(a.dir, file)
	if a.dir == "." {
		rel = file
	}
	return a.ignores != "" && s.ignored[a.ignores].Match(file, false) || a.include != "" && !matchGlob(a.include, rel) || a.exclude != "" && matchGlob(a.exclude, rel)
}

// matchGlob reports whether a pattern of Argo CD's directory sources matches a path: * and ** match
// any text, {a,b} alternatives.
func matchGlob(pattern, name string) bool {
	expr := regexp.QuoteMeta(pattern)
	for _, r := range [][2]string{{`\*`, ".*"}, {`\?`, "."}, {`\{`, "(?:"}, {`\}`, ")"}, {",", "|"}} {
		expr = strings.ReplaceAll(expr, r[0], r[1])
	}
	matched, err := regexp.MatchString("^(?:"+expr+")$", name)
	return err == nil && matched
}

// addApplied adds the files that an applier applies from a directory.
func (s *Survey) addApplied(a applier, dir string, files map[string]bool) {
	if _, err := fs.Stat(s.fsys, path.Join(dir, "Chart.yaml")); err == nil {
		return // its templates are no manifests
	}
	if s.includes[dir] != nil {
		s.addIncluded(dir, files, map[string]bool{})
		return
	}
	for file := range s.requests {
		if !filetree.Within(file, dir) || a.flat && path.Dir(file) != dir || s.isExcluded(a, file) {
			continue
		}
		if !s.kustomizedBetween(dir, path.Dir(file)) {
			files[file] = true
		}
	}
	for k := range s.includes {
		if k != dir && filetree.Within(k, dir) && !a.flat && !s.kustomizedBetween(dir, path.Dir(k)) && !s.isExcluded(a, path.Join(k, "kustomization.yaml")) {
			s.addIncluded(k, files, map[string]bool{})
		}
	}
}

// kustomizedBetween reports whether a directory, or one above it and below top, has a
// kustomization.
func (s *Survey) kustomizedBetween(top, dir string) bool {
	for ; dir != top && dir != "."; dir = path.Dir(dir) {
		if s.includes[dir] != nil {
			return true
		}
	}
	return false
}

// addIncluded adds the files and the directories that the kustomization in dir includes.
func (s *Survey) addIncluded(dir string, files, dirs map[string]bool) {
	if s.includes[dir] == nil || dirs[dir] {
		return
	}
	dirs[dir] = true
	for _, target := range s.includes[dir] {
		files[target] = true
		s.addIncluded(target, files, dirs)
	}
}

// keeps reports whether the kustomization of an applier keeps a request, which its patches may
// delete. It returns true if there is none, or if it cannot be built.
func (s *Survey) keeps(a applier, r Request) bool {
	if s.includes[a.dir] == nil {
		return true
	}
	l := newLoader(s.fsys, LoadOptions{})
	l.walk(candidate{path: a.dir, named: true})
	l.build()
	if l.errs.Err() != nil || Faults(l.unread) != nil {
		return true
	}
	return slices.ContainsFunc(l.parts, func(p part) bool {
		return slices.ContainsFunc(p.set.Subscriptions, func(d Subscription) bool { return d.Package == r.Package })
	})
}
