package declare

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/filetree"
	"github.com/quayside/quayside/internal/base/gitrepo"
	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/profile"
)

// Survey is an overview of a repository: its declarations, and the objects and
// kustomizations that make a GitOps tool apply them.
type Survey struct {
	fsys     fs.FS
	requests map[string][]Request // by file
	appliers []applier
	dirs     []string // with a kustomization
	ignored  map[string]*gitrepo.Ignore
}

// Request is a Subscription, ClusterExtension, OperatorGroup or catalog in a repository.
type Request struct {
	Pos       diag.Pos
	Namespace string // "" if a kustomization sets it
	Package   string // "" if it requests no operator
}

// applier is an object that makes a GitOps tool apply a directory, or a kustomization.
type applier struct {
	by      string // `Application "etcd"`
	pos     diag.Pos
	dir     string
	url     string // of the repository; "" if unknown
	flat    bool   // without files of subdirectories, unless there is a kustomization
	ignores string // name of the files with patterns of ignored files; "" for none
}

// Limits of a survey.
const (
	maxSurveyed     = 200_000 // files and directories
	maxSurveyedFile = 1 << 20 // bytes; a larger file is no declaration
)

// NewSurvey reads the manifests in fsys, the files of a repository. It does not enter
// directories that skip accepts, nor names with a leading dot, nor what Git ignores. Files
// that are not valid YAML are ignored. A missing directory is empty.
func NewSurvey(fsys fs.FS, skip func(dir string) bool) (*Survey, error) {
	s := &Survey{fsys: fsys, requests: map[string][]Request{}, ignored: map[string]*gitrepo.Ignore{}}
	git, seen := gitrepo.NewIgnore(), 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > maxSurveyed {
			return fmt.Errorf("more than %d files in the repository to search for declarations", maxSurveyed)
		}
		hidden := name != "." && strings.HasPrefix(d.Name(), ".")
		switch {
		case name == "." && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			return err
		case d.IsDir() && (hidden || skip(name) || git.Match(name, true)):
			return fs.SkipDir
		case d.IsDir():
			if Kustomization(fsys, name) != "" {
				s.dirs = append(s.dirs, name)
			}
			return errors.Join(git.Load(fsys, name), s.loadIgnored(name))
		case hidden || !d.Type().IsRegular() || !isManifest(name) || git.Match(name, false):
			return nil
		}
		return s.read(name, d)
	})
	return s, err
}

// loadIgnored reads the files of a directory that exclude files from a GitOps tool.
func (s *Survey) loadIgnored(dir string) error {
	for _, a := range profile.Appliers() {
		if a.Ignores == "" {
			continue
		}
		if s.ignored[a.Ignores] == nil {
			s.ignored[a.Ignores] = gitrepo.NewIgnore()
		}
		data, err := fs.ReadFile(s.fsys, path.Join(dir, a.Ignores))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.ignored[a.Ignores].Parse(data, dir)
	}
	return nil
}

// read records the requests and appliers in a file.
func (s *Survey) read(name string, d fs.DirEntry) error {
	if info, err := d.Info(); err != nil || info.Size() > maxSurveyedFile {
		return err
	}
	data, err := fs.ReadFile(s.fsys, name)
	if err != nil || !mayMatter(data) {
		return err
	}
	docs, err := yamlnode.Documents(name, data, yamlnode.Limits{Bytes: maxSurveyedFile, Nodes: 200_000})
	if err != nil {
		return nil //nolint:nilerr // not a manifest: a template, for example
	}
	for _, n := range docs {
		s.document(name, n)
	}
	return nil
}

// mayMatter reports whether a file may contain a request or an applier.
func mayMatter(data []byte) bool {
	for _, d := range []Dialect{V0, V1, Quayside} {
		if bytes.Contains(data, []byte(d)) {
			return true
		}
	}
	return slices.ContainsFunc(profile.Appliers(), func(a profile.Applier) bool { return bytes.Contains(data, []byte(a.Group)) })
}

func (s *Survey) document(file string, n *yaml.Node) {
	group, _, _ := strings.Cut(scalarField(n, "apiVersion"), "/")
	kind := scalarField(n, "kind")
	if _, items := yamlnode.Field(n, "items"); strings.HasSuffix(kind, "List") && items != nil && items.Kind == yaml.SequenceNode {
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
		for _, where := range a.Paths {
			i := strings.LastIndex(where, ".")
			for _, source := range nodesAt(n, where[:i]) {
				s.addApplier(a, file, n, source, where[i+1:])
			}
		}
	}
}

// addApplier records an applier for a source, a node of the object n, with its path in a field.
func (s *Survey) addApplier(a profile.Applier, file string, n, source *yaml.Node, field string) {
	_, v := yamlnode.Field(source, field)
	name, ok := yamlnode.Text(v)
	if v == nil && a.Root {
		name, ok, v = ".", true, source
	}
	if !ok {
		return
	}
	dir := fixedDir(name)
	if dir == "." && strings.ContainsAny(name, "*?[{$") || !fs.ValidPath(dir) {
		return // a template; the generators list the directories
	}
	flat := a.Recurse != ""
	for _, v := range nodesAt(source, a.Recurse) {
		flat = flat && v.Value != "true"
	}
	s.appliers = append(s.appliers, applier{
		by: objectTitle(n), pos: yamlnode.At(file, v), dir: dir, url: scalarField(source, "repoURL"),
		flat: flat && dir == path.Clean(strings.TrimPrefix(name, "/")), ignores: a.Ignores,
	})
}

// Dirs returns the topmost directories with requests that the declared paths do not include,
// sorted.
func (s *Survey) Dirs(declared []string) []string {
	files, _ := s.inputs(declared)
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
	Pos      diag.Pos // of By
	Of       Request
	Declared bool // the declared paths include the file of the request
}

// Applied returns the requests that a GitOps tool applies, sorted by their positions, with the
// first object that makes it do so. declared are the declared paths of a workspace, and others
// those of other workspaces. A kustomization that is not part of them counts as applied, because
// the object that applies it may be elsewhere. Objects for the repositories at the URLs that
// foreign accepts are ignored.
func (s *Survey) Applied(declared, others []string, foreign func(url string) bool) []Application {
	files, inputs := s.inputs(declared)
	_, more := s.inputs(others)
	maps.Copy(inputs, more)
	appliers := slices.DeleteFunc(slices.Clone(s.appliers), func(a applier) bool { return a.url != "" && foreign(a.url) })
	slices.SortStableFunc(appliers, func(a, b applier) int { return a.pos.Compare(b.pos) })
	for _, dir := range s.dirs {
		if !inputs[dir] {
			file := Kustomization(s.fsys, dir)
			appliers = append(appliers, applier{by: fmt.Sprintf("kustomization %q", dir), pos: diag.Pos{File: file, Line: 1, Col: 1}, dir: dir})
		}
	}
	found := map[diag.Pos]bool{}
	var out []Application
	for _, a := range appliers {
		applied := map[string]bool{}
		s.reach(a, a.dir, applied)
		for file := range applied {
			for _, r := range s.requests[file] {
				if r.Package != "" && !found[r.Pos] && s.keeps(a, r) {
					found[r.Pos] = true
					out = append(out, Application{a.by, a.pos, r, files[file]})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Application) int { return a.Of.Pos.Compare(b.Of.Pos) })
	return out
}

// inputs returns the files with requests and the kustomizations that declared paths include.
func (s *Survey) inputs(declared []string) (files, dirs map[string]bool) {
	files, dirs = map[string]bool{}, map[string]bool{}
	for _, top := range declared {
		for _, dir := range s.dirs {
			if filetree.Within(dir, top) {
				s.closure(dir, files, dirs)
			}
		}
		for file := range s.requests {
			files[file] = files[file] || filetree.Within(file, top)
		}
	}
	return files, dirs
}

// reach adds the files that an applier applies from a directory.
func (s *Survey) reach(a applier, dir string, files map[string]bool) {
	if Kustomization(s.fsys, dir) != "" {
		s.closure(dir, files, map[string]bool{})
		return
	}
	for file := range s.requests {
		if !filetree.Within(file, dir) || a.flat && path.Dir(file) != dir || a.ignores != "" && s.ignored[a.ignores].Match(file, false) {
			continue
		}
		if !s.kustomizedBetween(dir, path.Dir(file)) {
			files[file] = true
		}
	}
	for _, k := range s.dirs {
		if k != dir && filetree.Within(k, dir) && !a.flat && !s.kustomizedBetween(dir, path.Dir(k)) && (a.ignores == "" || !s.ignored[a.ignores].Match(k, true)) {
			s.closure(k, files, map[string]bool{})
		}
	}
}

// kustomizedBetween reports whether a directory, or one above it and below top, has a
// kustomization.
func (s *Survey) kustomizedBetween(top, dir string) bool {
	for ; dir != top && dir != "."; dir = path.Dir(dir) {
		if slices.Contains(s.dirs, dir) {
			return true
		}
	}
	return false
}

// closure adds the files and the directories that the kustomization in dir includes.
func (s *Survey) closure(dir string, files, dirs map[string]bool) {
	name := Kustomization(s.fsys, dir)
	if name == "" || dirs[dir] {
		return
	}
	dirs[dir] = true
	info, err := fs.Stat(s.fsys, name)
	if err != nil || info.Size() > maxSurveyedFile {
		return
	}
	data, err := fs.ReadFile(s.fsys, name)
	if err != nil {
		return
	}
	docs, err := yamlnode.Documents(name, data, yamlnode.Limits{Bytes: maxSurveyedFile, Nodes: 50_000})
	if err != nil || len(docs) == 0 {
		return // kustomize reports the fault
	}
	for _, field := range []string{"resources", "bases", "components"} {
		for _, item := range nodesAt(docs[0], field+".[]") {
			text, _ := yamlnode.Text(item)
			target := path.Join(dir, text)
			if files[target] = true; fs.ValidPath(target) {
				s.closure(target, files, dirs)
			}
		}
	}
}

// keeps reports whether the kustomization of an applier keeps a request, which its patches may
// delete. It returns true if there is none, or if it cannot be built.
func (s *Survey) keeps(a applier, r Request) bool {
	if Kustomization(s.fsys, a.dir) == "" {
		return true
	}
	l := newLoader(s.fsys, LoadOptions{})
	l.walk(candidate{path: a.dir, named: true})
	l.build()
	if l.errs.Err() != nil {
		return true
	}
	return slices.ContainsFunc(l.parts, func(p part) bool {
		return slices.ContainsFunc(p.set.Subscriptions, func(d Subscription) bool { return d.Package == r.Package })
	})
}
