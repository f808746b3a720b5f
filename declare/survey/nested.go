package survey

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// A kustomization may change an object of a GitOps tool, like any other object. The object is then
// evaluated in its built form.

// maxBuilt is the maximum number of objects of a kustomization that contains objects of GitOps
// tools.
const maxBuilt = 1_000

// build returns the objects that the kustomization in a directory builds, or nil if it cannot be
// built.
func (s *Survey) build(dir string) []any {
	out, known := s.built[dir]
	if !known {
		objects, err := s.buildText(dir, "", nil)
		if err == nil {
			out = []any{}
			for _, o := range objects {
				out = append(out, o)
			}
		}
		s.built[dir] = out
	}
	return out
}

// buildText returns the objects that a directory builds. If file is not empty, text is the content
// of its kustomization.
func (s *Survey) buildText(dir, file string, text []byte) ([]map[string]any, error) {
	read := func(name string) ([]byte, error) {
		if name == file && file != "" {
			return text, nil
		}
		return fs.ReadFile(s.repo.fsys, name)
	}
	o, err := overlay.NewTolerant(overlay.FileFunc(read), s.repo.manifestsIn, s.repo.results).Open(dir)
	if err != nil {
		return nil, err
	}
	built, err := o.BuildAtMost(maxBuilt)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, text := range built {
		var fields map[string]any
		if json.Unmarshal(text, &fields) == nil {
			out = append(out, fields)
		}
	}
	return out, nil
}

// applierFiles returns the sorted files that the tool applies from a.Dir and that may contain GitOps objects.
func (s *scanner) applierFiles(a *Applied) []string {
	files := s.repo.appliedFiles(a)
	maps.DeleteFunc(files, func(name string, _ bool) bool { return !mayApply(s.repo.read(name)) })
	return slices.Sorted(maps.Keys(files))
}

// changesObjects reports whether the tool, or a kustomization that it applies, changes the objects from a.Dir.
func (s *scanner) changesObjects(a *Applied) bool {
	if a.Changes.IsBuilt() || a.Changes.Substitutes {
		return true
	}
	dirs := map[string]bool{}
	if s.repo.kustomization(a.Dir) != nil {
		s.repo.addIncluded(a.Dir, map[string]bool{}, dirs)
	} else if s.repo.isDir(a.Dir) {
		_, tops := a.Resources(s.repo.fsys, s.repo.skip)
		for _, dir := range tops {
			s.repo.addIncluded(dir, map[string]bool{}, dirs)
		}
	}
	for dir := range dirs {
		if s.repo.kustomization(dir).Changes {
			return true
		}
	}
	return false
}

// addNested adds the entry points in the files that the tool applies from a.Dir, except files in seen. If the
// objects are changed (see changesObjects), addNested builds the objects, and returns the error of the build.
func (s *scanner) addNested(a *Applied, seen map[string]bool) error {
	files := slices.DeleteFunc(s.applierFiles(a), func(name string) bool { return seen[name] })
	for _, name := range files {
		seen[name] = true
	}
	if len(files) == 0 {
		return nil
	}
	if !s.changesObjects(a) {
		for _, name := range files {
			s.readEntries(name)
		}
		return nil
	}
	objects, err := s.applyObjects(a)
	if err != nil {
		return err
	}
	before := len(s.objects)
	s.addBuilt(objects, a.Pos.File, files)
	for _, o := range s.objects[before:] {
		s.addEntry(o)
	}
	return nil
}

// applyObjects returns the objects that the tool applies from a.Dir. It replaces variables whose values are
// unknown with unknownText.
func (s *scanner) applyObjects(a *Applied) ([]map[string]any, error) {
	var own string
	var data []byte
	if k := s.repo.kustomization(a.Dir); k != nil {
		own, data = k.File, s.repo.read(k.File)
	}
	files, dirs := a.Resources(s.repo.fsys, s.repo.skip)
	text, err := a.Kustomization(data, slices.Concat(files, dirs))
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	if text != nil {
		if own == "" {
			own = path.Join(a.Dir, "kustomization.yaml")
		}
		if out, err = s.buildText(a.Dir, own, text); err != nil {
			return nil, err
		}
	} else {
		for _, dir := range dirs {
			objects, err := s.buildText(dir, "", nil)
			if err != nil {
				return nil, err
			}
			out = append(out, objects...)
		}
		for _, name := range files {
			docs, _ := documents(name, s.repo.read(name)) // a fault of that file only
			for _, n := range docs {
				out = append(out, decode(n))
			}
		}
	}
	return a.Changes.substitute(out), nil
}

// substitute returns objects with the values of variables.
func (c Changes) substitute(objects []map[string]any) []map[string]any {
	if !c.Substitutes {
		return objects
	}
	left := regexp.MustCompile(`\$\{[^{}]*\}`)
	out := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			continue
		}
		text, unknown := c.SubstituteVariables(text)
		if len(unknown) > 0 {
			text = left.ReplaceAll(text, []byte(`\u0000`))
		}
		var fields map[string]any
		if json.Unmarshal(text, &fields) == nil {
			out = append(out, fields)
		}
	}
	return out
}

// addBuilt records the built objects that belong to GitOps tools. The position of such an object is the
// position of the object with the same kind and name in files. If there is none, it is the beginning of file,
// the kustomization file.
func (s *scanner) addBuilt(objects []map[string]any, file string, files []string) {
	positions := map[string]diag.Pos{}
	for _, name := range files {
		docs, _ := documents(name, s.repo.read(name))
		for _, n := range docs {
			positions[objectTitle(n)] = yamlnode.At(name, n)
		}
	}
	for _, fields := range objects {
		group, _, _ := strings.Cut(k8s.Text(fields, "apiVersion"), "/")
		if !slices.ContainsFunc(profile.Appliers(), func(a profile.Applier) bool { return a.Group == group && a.Kind == k8s.Text(fields, "kind") }) {
			continue
		}
		text, err := json.Marshal(fields)
		if err != nil {
			continue
		}
		docs, err := yamlnode.Documents(file, text, yamlnode.Limits{Bytes: maxSize, Nodes: 50_000})
		if err != nil || len(docs) != 1 {
			continue
		}
		pos, known := positions[objectTitle(docs[0])]
		if !known {
			pos = diag.Pos{File: file, Line: 1, Col: 1}
		}
		s.objects = append(s.objects, entryObject{file: pos.File, node: docs[0], pos: pos, built: file})
	}
}

// builtObjects returns the objects of GitOps tools in the repository. If a topmost kustomization changes an
// object, the result has the built form of the object.
func (s *scanner) builtObjects() []entryObject {
	all := s.objects
	byFile := map[string]bool{}
	for _, o := range all {
		byFile[o.file] = true
	}
	lower := s.lowerDirs()
	covered := map[string]bool{}
	s.objects = nil
	for _, dir := range slices.Sorted(maps.Keys(s.repo.kustomizations)) {
		k := s.repo.kustomizations[dir]
		if k == nil || k.Component || lower[dir] {
			continue
		}
		included, dirs := map[string]bool{}, map[string]bool{}
		s.repo.addIncluded(dir, included, dirs)
		maps.DeleteFunc(included, func(name string, _ bool) bool { return !byFile[name] })
		if len(included) == 0 || !s.changesObjects(&Applied{Dir: dir}) {
			continue
		}
		objects, err := s.buildText(dir, "", nil)
		if err != nil {
			continue
		}
		files := slices.Sorted(maps.Keys(included))
		for _, name := range files {
			covered[name] = true
		}
		s.addBuilt(objects, k.File, files)
	}
	out := slices.DeleteFunc(slices.Clone(all), func(o entryObject) bool { return covered[o.file] })
	out = append(out, s.objects...)
	s.objects = all
	return out
}
