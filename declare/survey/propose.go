package survey

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/filetree"
)

// Proposal contains paths of declarations to choose from. Paths that declare the same operator are for
// different environments, such as two overlays of one base.
type Proposal struct {
	Environments []string // environments to choose from, the one with the most operators first; empty: there is no choice
	IsOpen       bool     // whether the user must choose: the environments concern the whole workspace, and are not only variants of single operators

	choices []choice
}

// minShared is the minimum number of operators that must have a variant with the same name. Only then is this
// name an environment of the whole workspace.
const minShared = 2

// Choice is a path for spec.declarations.
type Choice struct {
	Path    string // path in the repository
	Cluster string // see declare.Path; empty: all clusters
}

// choice is a path with the operators that it declares.
type choice struct {
	Choice
	environment string          // empty if no other path declares its operators
	operators   map[string]bool // "namespace/package"
	applied     bool            // whether an object of a GitOps tool applies it
}

// Propose returns paths that declare all operators of the repository, except operators within the paths in
// taken.
func (s *Survey) Propose(taken []string) Proposal {
	byChoice := map[Choice]*choice{}
	add := func(c Choice, d Declaration, applied bool) {
		if slices.ContainsFunc(taken, func(top string) bool { return filetree.Within(c.Path, top) }) {
			return
		}
		if byChoice[c] == nil {
			byChoice[c] = &choice{Choice: c, operators: map[string]bool{}, applied: applied}
		}
		if d.IsOperator() {
			byChoice[c].operators[d.Namespace+"/"+cmp.Or(d.Package, d.Name)] = true
		}
	}
	separate := s.separatePolicies()
	for _, d := range s.Declarations {
		if d.Obstacle != "" {
			continue
		}
		appliers := slices.DeleteFunc(s.Appliers(d), func(a *Applied) bool {
			return a.Guess != "" && s.repo.kustomization(a.Dir) == nil || a.Entry.isNamed()
		})
		for _, a := range appliers {
			add(s.choiceOf(a), d, true)
		}
		if len(appliers) > 0 || d.templated {
			continue
		}
		tops := s.TopKustomizations(d)
		for _, dir := range tops {
			add(Choice{Path: dir}, d, false)
		}
		switch k := s.nearestKustomization(d.Pos.File); {
		case len(tops) > 0:
		case k == nil && separate[path.Dir(d.Pos.File)]:
			add(Choice{Path: d.Pos.File}, d, false)
			byChoice[Choice{Path: d.Pos.File}].environment = s.placementOf(d)
		case k == nil:
			add(Choice{Path: s.plainPath(d.Pos.File)}, d, false)
		case k.Invalid: // it may list the file
			add(Choice{Path: path.Dir(k.File)}, d, false)
		}
	}
	p := Proposal{}
	bases := s.directoriesOfBases()
	for _, c := range byChoice {
		if len(c.operators) > 0 || c.applied || s.repo.kustomization(c.Path) == nil || !bases[path.Dir(c.Path)] {
			p.choices = append(p.choices, *c)
		}
	}
	slices.SortFunc(p.choices, func(a, b choice) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Cluster, b.Cluster)) })
	p.dropUnapplied()
	p.nameEnvironments()
	return p
}

// separatePolicies returns the directories with policies that install the same operator on the clusters of
// different placements. These policies are for different environments, so each policy needs its own path.
func (s *Survey) separatePolicies() map[string]bool {
	first, out := map[string]Declaration{}, map[string]bool{}
	for _, d := range s.Declarations {
		if !d.IsOperator() || d.Obstacle != "" || s.placementOf(d) == "" {
			continue
		}
		key := d.Namespace + "/" + cmp.Or(d.Package, d.Name)
		other, known := first[key]
		if !known {
			first[key] = d
		} else if s.placementOf(other) != s.placementOf(d) && other.Pos.File != d.Pos.File {
			out[path.Dir(d.Pos.File)], out[path.Dir(other.Pos.File)] = true, true
		}
	}
	return out
}

// placementOf returns the names of the placements of the policy that contains a declaration, or "".
func (s *Survey) placementOf(d Declaration) string {
	var names []string
	if p := s.holders[d.Pos]; p != nil {
		for _, title := range p.Placements {
			_, name, _ := strings.Cut(title, " ")
			names = append(names, strings.Trim(name, `"`))
		}
	}
	return strings.Join(names, "+")
}

// directoriesOfBases returns the directories below the top that contain bases: kustomizations that others
// include. Another kustomization in such a directory is an unused base if it has no operator and nothing
// includes it. A declared path must not include unused bases, because a namespace could get two OperatorGroups.
func (s *Survey) directoriesOfBases() map[string]bool {
	out := map[string]bool{}
	for name := range s.lowerDirs() {
		if dir := path.Dir(name); dir != "." && s.repo.kustomization(name) != nil {
			out[dir] = true
		}
	}
	return out
}

// choiceOf returns the path for declaring the directory that an entry point applies. If the tool changes the
// declarations or does not apply the whole directory, the path is the file of the entry point. Otherwise the
// path is the directory.
func (s *Survey) choiceOf(a *Applied) Choice {
	partial := !a.recurse && s.repo.kustomization(a.Dir) == nil && s.hasDeclarationsBelow(a.Dir)
	if a.Guess == "" && (a.Chart != nil || s.changes(a) || partial || a.include+a.exclude != "" || a.ignore != nil && a.recurse && a.Dir == ".") {
		file := cmp.Or(a.Entry.built, a.Entry.Pos.File)
		clusters := map[string]bool{}
		for _, other := range a.Entry.Applied {
			clusters[other.Cluster] = true
		}
		if len(clusters) > 1 {
			return Choice{file, a.Cluster}
		}
		return Choice{Path: file}
	}
	return Choice{Path: a.Dir}
}

// hasDeclarationsBelow reports whether a subdirectory of dir has declarations.
func (s *Survey) hasDeclarationsBelow(dir string) bool {
	return slices.ContainsFunc(s.Declarations, func(d Declaration) bool {
		in := path.Dir(d.Pos.File)
		return in != dir && filetree.Within(in, dir)
	})
}

// Kustomizations returns the directories of the kustomizations that include a declaration, sorted.
func (s *Survey) Kustomizations(d Declaration) []string { return s.kustomizationsOf(d.Pos.File) }

// TopKustomizations returns those kustomizations that include a declaration and that no other
// kustomization includes.
func (s *Survey) TopKustomizations(d Declaration) []string {
	lower := s.lowerDirs()
	return slices.DeleteFunc(slices.Clone(s.Kustomizations(d)), func(dir string) bool { return lower[dir] || s.repo.kustomization(dir).Component })
}

// lowerDirs returns the files and directories that kustomizations include.
func (s *Survey) lowerDirs() map[string]bool {
	if s.lower == nil {
		s.lower = map[string]bool{}
		for _, k := range s.repo.kustomizations {
			if k != nil {
				for _, name := range k.Resources {
					s.lower[name] = true
				}
			}
		}
	}
	return s.lower
}

// nearestKustomization returns the kustomization in the directory of a file, or else in its nearest parent
// directory. It returns nil if there is none.
func (s *Survey) nearestKustomization(file string) *kustomization {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if k := s.repo.kustomization(dir); k != nil || dir == "." {
			return k
		}
	}
}

// Unlisted returns the directory of the nearest kustomization, if that kustomization does not list the file of
// d, and nothing else applies or includes this file. Otherwise, it returns "".
func (s *Survey) Unlisted(d Declaration) string {
	isPatch := d.IsOperator() && d.Package == ""
	k := s.nearestKustomization(d.Pos.File)
	if isPatch || d.Obstacle != "" || k == nil || k.Invalid || len(s.Appliers(d))+len(s.Kustomizations(d)) > 0 {
		return ""
	}
	return path.Dir(k.File)
}

// plainPath returns the path for declaring a file outside of kustomizations. It is the directory of the file,
// unless that directory is the top of the repository, contains a kustomization at any depth, or has
// declarations in subdirectories. Then it is the file itself.
func (s *Survey) plainPath(file string) string {
	dir := path.Dir(file)
	if dir == "." || s.hasDeclarationsBelow(dir) {
		return file
	}
	for below, k := range s.repo.kustomizations {
		if k != nil && filetree.Within(below, dir) {
			return file
		}
	}
	return dir
}

// variants returns, for each operator, the indexes of the choices that declare it.
func (p Proposal) variants() map[string][]int {
	out := map[string][]int{}
	for i, c := range p.choices {
		for operator := range c.operators {
			out[operator] = append(out[operator], i)
		}
	}
	return out
}

// dropUnapplied drops each choice that no tool applies, if tools apply all operators of the choice from other
// paths.
func (p *Proposal) dropUnapplied() {
	variants := p.variants()
	all := p.choices
	p.choices = slices.DeleteFunc(slices.Clone(all), func(c choice) bool {
		if c.applied || len(c.operators) == 0 {
			return false
		}
		for operator := range c.operators {
			if !slices.ContainsFunc(variants[operator], func(i int) bool { return all[i].applied }) {
				return false
			}
		}
		return true
	})
}

// nameEnvironments sets the environments of choices that have operators in common. The name is the cluster or,
// without a cluster, the part in which the paths differ.
func (p *Proposal) nameEnvironments() {
	count := map[string]int{}
	variants := p.variants()
	for _, operator := range slices.Sorted(maps.Keys(variants)) {
		indices := variants[operator]
		if len(indices) < 2 {
			continue
		}
		var paths []string
		for _, i := range indices {
			paths = append(paths, p.choices[i].Path)
		}
		names := differences(paths)
		for n, i := range indices {
			c := &p.choices[i]
			if c.environment == "" {
				c.environment = cmp.Or(c.Cluster, names[n], path.Base(c.Path))
			}
		}
		seen := map[string]bool{}
		for _, i := range indices {
			if name := p.choices[i].environment; !seen[name] {
				seen[name] = true
				count[name]++
			}
		}
	}
	p.Environments = slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	differing := 0
	for _, indices := range variants {
		if len(indices) > 1 {
			differing++
		}
	}
	p.IsOpen = len(p.Environments) > 1 && (2*count[p.Environments[0]] >= differing || count[p.Environments[0]] >= minShared)
	for i, c := range p.choices { // also name the environment of other choices by their path or cluster
		if c.environment != "" {
			continue
		}
		for _, name := range p.Environments {
			if slices.Contains(strings.Split(c.Path, "/"), name) || c.Cluster == name {
				p.choices[i].environment = name
			}
		}
	}
}

// differences returns each path without the leading and trailing path elements that all paths
// share.
func differences(paths []string) []string {
	var all [][]string
	for _, p := range paths {
		all = append(all, strings.Split(p, "/"))
	}
	for len(all[0]) > 0 && !slices.ContainsFunc(all, func(steps []string) bool { return len(steps) == 0 || steps[0] != all[0][0] }) {
		first := all[0][0]
		for i := range all {
			if all[i][0] == first {
				all[i] = all[i][1:]
			}
		}
	}
	for len(all[0]) > 0 && !slices.ContainsFunc(all, func(steps []string) bool { return len(steps) == 0 || steps[len(steps)-1] != all[0][len(all[0])-1] }) {
		for i := range all {
			all[i] = all[i][:len(all[i])-1]
		}
	}
	var out []string
	for _, steps := range all {
		out = append(out, strings.Join(steps, "/"))
	}
	return out
}

// Choose returns the paths for environments. If several paths declare an operator, Choose takes the path whose
// environment comes first in environments. open are the remaining paths with operators that no chosen path
// declares.
func (p Proposal) Choose(environments []string) (chosen, open []Choice) {
	picked, covered := map[int]bool{}, map[string]bool{}
	isCovered := func(operator string) bool { return covered[operator] }
	order := slices.Clone(p.choices)
	indices := make([]int, len(order))
	for i := range indices {
		indices[i] = i
	}
	slices.SortStableFunc(indices, func(a, b int) int { return len(order[b].operators) - len(order[a].operators) })
	for _, name := range append(slices.Clone(environments), "") {
		for _, i := range indices {
			operators := order[i].operators
			if order[i].environment != name || anyKey(operators, isCovered) {
				continue
			}
			picked[i] = true
			maps.Copy(covered, operators)
		}
	}
	for i, c := range p.choices {
		switch {
		case picked[i]:
			chosen = append(chosen, c.Choice)
		case anyKey(c.operators, func(operator string) bool { return !isCovered(operator) }):
			open = append(open, c.Choice)
		}
	}
	return chosen, open
}

// anyKey reports whether a predicate is true for at least one key of m.
func anyKey(m map[string]bool, is func(key string) bool) bool {
	for key := range m {
		if is(key) {
			return true
		}
	}
	return false
}
