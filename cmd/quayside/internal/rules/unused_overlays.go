package rules

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
)

// checkUnusedOverlays returns a finding for each directory with YAML files that looks like an overlay,
// but that no cluster's build uses. The finding is an error if the name of the directory is probably a
// misspelled name of a used directory: one letter differs, or the namespace is missing.
func checkUnusedOverlays(s *State) (Findings, error) {
	files, err := s.overlayCandidates()
	if err != nil || len(files) == 0 {
		return nil, err
	}
	f, err := s.Fleet()
	if err != nil {
		return nil, err
	}
	used, seen := map[string]bool{}, map[[32]byte]bool{}
	for _, name := range f.Clusters() {
		x, err := f.Inputs(name)
		if err != nil {
			return nil, nil //nolint:nilerr // reported where overlays are built
		}
		for _, o := range x.Overlays {
			if seen[o.Digest] {
				continue
			}
			seen[o.Digest] = true
			for k := range o.Kustomizations() {
				for _, file := range k.Files() {
					used[file] = true
				}
			}
		}
	}
	unused := map[string][]string{} // by directory
	for _, name := range files {
		if !used[path.Join(s.Dir, name)] {
			unused[path.Dir(name)] = append(unused[path.Dir(name)], name)
		}
	}
	var out Findings
	for _, dir := range slices.Sorted(maps.Keys(unused)) {
		finding := Finding{Severity: Warning, Code: "unused-overlay", Pos: diag.Pos{File: unused[dir][0]}, Subject: dir}
		finding.Msg = "no cluster uses " + diag.Some(unused[dir], 3) + ": refer to it in a kustomization of an overlay, or delete it"
		if meant := s.meantOverlay(dir); meant != "" {
			finding.Severity = Error
			finding.Msg = fmt.Sprintf("no cluster uses %s (did you mean %s?)", dir, meant)
			finding.Hint = "rename the directory"
		}
		out = append(out, s.accept(finding))
	}
	return out, nil
}

// overlayCandidates returns the YAML files in the directory of overlays, and in sibling directories with
// almost the same name.
func (s *State) overlayCandidates() ([]string, error) {
	base := s.Settings.OverlaysDir()
	dirs := []string{base}
	siblings, _ := fs.ReadDir(s.Files, path.Dir(base))
	for _, e := range siblings {
		if e.IsDir() && e.Name() != path.Base(base) && isOneLetter(e.Name(), path.Base(base)) {
			dirs = append(dirs, path.Join(path.Dir(base), e.Name()))
		}
	}
	var out []string
	for _, dir := range dirs {
		err := fs.WalkDir(s.Files, dir, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil && name == dir:
				return fs.SkipDir // no overlays
			case err != nil:
				return err
			case strings.HasPrefix(d.Name(), ".") && d.IsDir():
				return fs.SkipDir
			case d.Type().IsRegular() && yamlnode.HasExtension(name):
				out = append(out, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// meantOverlay returns the overlay directory that the user probably meant by the misspelled name dir, or "".
func (s *State) meantOverlay(dir string) string {
	base := s.Settings.OverlaysDir()
	top, rest := base, strings.TrimPrefix(dir, base)
	if rest == dir || rest != "" && rest[0] != '/' { // a directory beside it
		steps := strings.SplitN(strings.TrimPrefix(dir, strings.TrimPrefix(path.Dir(base)+"/", "./")), "/", 2)
		return path.Join(append([]string{base}, steps[1:]...)...)
	}
	cluster, piece, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	if !slices.Contains(s.Settings.ClusterNames(), cluster) {
		i := slices.IndexFunc(s.Settings.ClusterNames(), func(name string) bool { return isOneLetter(cluster, name) })
		if i < 0 || cluster == "" {
			return ""
		}
		return path.Join(top, s.Settings.ClusterNames()[i], piece)
	}
	if piece == "" || strings.Contains(piece, "/") {
		return ""
	}
	for _, name := range s.pieceNames() {
		if _, pkg, _ := strings.Cut(name, "."); piece != name && (isOneLetter(piece, name) || piece == pkg) {
			return path.Join(top, cluster, name)
		}
	}
	return ""
}

// pieceNames returns the names that the overlay directories of a cluster may have.
func (s *State) pieceNames() []string {
	out := []string{layout.Resources, "reporter"}
	for _, pin := range s.Lock.Pins {
		out = append(out, pin.Namespace+"."+pin.Package)
	}
	return out
}

// isOneLetter reports whether a and b differ in one letter, which is changed, added or removed.
func isOneLetter(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i < len(a) && a[i+1:] == b[i+1:]
	case 1:
		return a[i:] == b[i+1:]
	default:
		return false
	}
}
