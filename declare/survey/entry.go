package survey

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Entries contains the entry points in a file, and the entry points that these apply.
type Entries struct {
	Applied []*Applied // directories and files that certainly reach a cluster
	Unknown []Unknown  // parts that cannot be evaluated
	Charts  []string   // clusters of the Applications in the file that only install a chart of another repository; "" is unknown
}

// Unknown is a part of an entry that cannot be evaluated.
type Unknown struct {
	Pos    diag.Pos
	By     string // empty: a chart that a workspace names
	Reason string
}

// Reader reads the entry points in files of a repository.
type Reader struct {
	repo   *repository
	values *valueIndex
	charts *helm.Charts
}

// NewReader returns a reader of a repository. It assumes that every entry point applies this repository, unless
// the entry point names a chart of another repository. charts renders charts. results remembers the results of
// kustomizations. charts and results may be nil.
func NewReader(fsys fs.FS, skip func(dir string) bool, charts *helm.Charts, results *memo.Results) *Reader {
	r := &Reader{newRepository(fsys, skip), &valueIndex{}, charts}
	r.repo.results = results
	return r
}

// WithoutValues returns a copy of r that does not look up the values of Flux variables in the
// repository.
func (r *Reader) WithoutValues() *Reader { return &Reader{r.repo, nil, r.charts} }

func (r *Reader) scanner() *scanner {
	s := newScanner(r.repo, func(string) bool { return false })
	s.assumeOwn, s.values, s.charts = true, r.values, r.charts
	return s
}

// Entries reads the entry points in a file, such as an Application, and the entry points in the files that they
// apply. If file is a kustomization, it returns the entry points in the built objects. It returns nil if there
// are no entry points.
func (r *Reader) Entries(file string) *Entries {
	s := r.scanner()
	if !s.readEntries(file) {
		return nil
	}
	charts := s.chartTargets
	out := s.collectEntries(map[string]bool{file: true})
	out.Charts = charts
	return out
}

// Chart returns the entry points that a chart creates, and the entry points that these apply. Unless the chart
// cannot be rendered, the first item of Applied is a.
func (r *Reader) Chart(a *Applied) *Entries {
	s := r.scanner()
	a.Entry.Applied = []*Applied{a}
	s.Entries = []*Entry{a.Entry}
	return s.collectEntries(map[string]bool{})
}

// Template returns the objects that a tool creates from the chart in a.Dir, in Helm's order. It returns none if
// the chart mentions no API group of declarations or of GitOps tools.
func (r *Reader) Template(a *Applied) ([]Templated, error) {
	if a.Chart == nil {
		return nil, nil
	}
	return r.repo.template(r.charts, relevantGroups(), a)
}

// IsChart reports whether a directory has a Helm chart.
func (r *Reader) IsChart(dir string) bool { return r.repo.isDir(dir) && r.repo.isChart(dir) }

// collectEntries returns the entries of s, and the entry points that they apply. It skips files in
// seen.
func (s *scanner) collectEntries(seen map[string]bool) *Entries {
	out := &Entries{}
	for i := 0; i < len(s.Entries) && len(out.Applied) < maxApplied; i++ {
		e := s.Entries[i]
		if reason := e.CannotTell(); reason != "" {
			out.Unknown = append(out.Unknown, Unknown{e.Pos, e.By, reason})
		}
		for _, a := range e.Applied {
			if a.Guess != "" {
				out.Unknown = append(out.Unknown, Unknown{a.Pos, e.By, a.Guess})
				continue
			}
			if s.repo.isChart(a.Dir) {
				if err := s.addTemplated(a); err != nil {
					out.Unknown = append(out.Unknown, Unknown{a.Pos, e.By, chartReason(a.Dir, err)})
					continue
				}
			}
			out.Applied = append(out.Applied, a)
			if err := s.addNested(a, seen); err != nil {
				out.Unknown = append(out.Unknown, Unknown{a.Pos, e.By, fmt.Sprintf("%q has entry points, but cannot be built: %v", a.Dir, err)})
			}
		}
	}
	out.Unknown = slices.Compact(out.Unknown)
	return out
}

// readEntries adds the entry points in a file, and reports whether it found any.
func (s *scanner) readEntries(file string) bool {
	before := len(s.objects)
	if dir := path.Dir(file); s.repo.kustomization(dir) != nil && s.repo.kustomization(dir).File == file {
		objects, err := s.applyObjects(&Applied{Entry: &Entry{}, Dir: dir})
		if err != nil {
			return false
		}
		s.addBuilt(objects, file, s.applierFiles(&Applied{Dir: dir}))
	} else {
		s.scanAppliers(file)
	}
	for _, o := range s.objects[before:] {
		s.addEntry(o)
	}
	return len(s.objects) > before
}

// scanAppliers records the objects of GitOps tools in a file.
func (s *scanner) scanAppliers(file string) {
	data := s.repo.read(file)
	if !mayApply(data) {
		return
	}
	docs, err := documents(file, data)
	if err != nil {
		return
	}
	for _, n := range docs {
		s.scanDocument(file, n)
	}
}

// mayApply reports whether a file may contain an object of a GitOps tool.
func mayApply(data []byte) bool {
	return slices.ContainsFunc(profile.Appliers(), func(a profile.Applier) bool { return bytes.Contains(data, []byte(a.Group)) })
}

// Resources returns the manifests outside of kustomizations that the tool applies from a.Dir, and the topmost
// directories with kustomizations. Both lists are sorted.
func (a *Applied) Resources(fsys fs.FS, skip func(dir string) bool) (files, dirs []string) {
	r := newRepository(fsys, skip)
	if !r.isDir(a.Dir) {
		return []string{a.Dir}, nil
	}
	r.visitApplied(a, a.Dir, func(name string) { files = append(files, name) }, func(dir string) { dirs = append(dirs, dir) })
	return files, dirs
}

// Match returns the files and directories of a repository that match a pattern of
// spec.declarations, sorted. As in path.Match, no part of a pattern matches a slash.
func Match(fsys fs.FS, pattern string) []string {
	found, err := fs.Glob(fsys, pattern)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(found, func(name string) bool { return !yamlnode.HasExtension(name) && !isDirectory(fsys, name) })
}

func isDirectory(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, path.Clean(name))
	return err == nil && info.IsDir()
}

// At returns a copy of a for the directory dir, which is below a.Dir. The copy lacks the changes to
// kustomizations, because the tool makes these only in a.Dir.
func (a *Applied) At(dir string) *Applied {
	out := *a
	out.Dir, out.Changes = dir, Changes{DefaultNamespace: a.Changes.DefaultNamespace, Unknown: a.Changes.Unknown}
	return &out
}
