package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// piece is a unit that a GitOps engine builds, applies, watches, prunes and rolls back. It contains one
// operator, or several operators that work only together.
type piece struct {
	name    string
	members []*operator // by namespace and package; operators with leftover objects come last
}

// dir returns the directory of the piece in the base.
func (p piece) dir() string { return path.Join(layout.Operators, p.name) }

// memberDir returns the directory of an operator of the piece. Usually this is the directory of the piece. For
// leftover objects, or if the piece has several operators, it is a directory below that of the piece.
func (p piece) memberDir(in *operator) string {
	if name := pieceName(in.pin); name != p.name {
		return path.Join(p.dir(), name)
	}
	return p.dir()
}

// containsAny reports whether any of the chosen operators is in the piece.
func (p piece) containsAny(chosen []*operator) bool {
	return slices.ContainsFunc(p.members, func(in *operator) bool { return slices.Contains(chosen, in) })
}

// pieceName returns the name of a piece with one operator. The name is unambiguous, because names of namespaces
// contain no dot.
func pieceName(pin lockfile.Pin) string { return pin.Namespace + "." + pin.Package }

// findPieces returns the pieces, sorted by name. Operators that require each other in a cycle share a piece,
// because they work only together. An operator also shares its piece with the leftover objects of its
// predecessor, so that the engine prunes these objects later. The name of a piece depends on all of its
// operators. If the operators change, the piece gets a new name, so that no object moves from one existing
// piece to another.
func findPieces(installs, replaced []operator, uninstalling []lockfile.Leaving) []piece {
	var lock lockfile.File
	for _, in := range installs {
		lock.Pins = append(lock.Pins, in.pin)
	}
	needed := map[string]map[string]bool{}
	for _, in := range installs {
		needed[in.name()] = lock.Needed(in.name())
	}
	firstOf := map[string]string{} // first operator of the piece, by operator
	join := func(a, b string) {
		first, other := firstOf[a], firstOf[b]
		for name, of := range firstOf {
			if of == other {
				firstOf[name] = first
			}
		}
	}
	for i, in := range installs {
		firstOf[in.name()] = in.name()
		for _, before := range installs[:i] {
			if needed[in.name()][before.name()] && needed[before.name()][in.name()] {
				join(before.name(), in.name())
			}
		}
	}
	uninstalled := map[string][]string{} // uninstalled operators of a piece, by its first operator
	for _, l := range uninstalling {
		for _, key := range l.With {
			join(l.With[0], key)
		}
	}
	for _, l := range uninstalling {
		if len(l.With) > 0 {
			first := firstOf[l.With[0]]
			uninstalled[first] = append(uninstalled[first], l.Key())
		}
	}
	var out []piece
	at := map[string]int{}
	for i := range installs {
		in := &installs[i]
		j, known := at[firstOf[in.name()]]
		if !known {
			j = len(out)
			out = append(out, piece{})
			at[firstOf[in.name()]] = j
		}
		at[in.name()] = j
		out[j].members = append(out[j].members, in)
	}
	for i := range out {
		names := slices.Clone(uninstalled[firstOf[out[i].members[0].name()]])
		for _, in := range out[i].members {
			names = append(names, in.name())
		}
		out[i].name = joinedName(names)
	}
	for i := range replaced {
		in := &replaced[i]
		if j, there := at[in.successor]; there && len(in.objects) > 0 {
			out[j].members = append(out[j].members, in)
		}
	}
	slices.SortFunc(out, func(a, b piece) int { return cmp.Compare(a.name, b.name) })
	return out
}

// joinedName returns the name of a piece with the given operators, each as "namespace/package".
func joinedName(operators []string) string {
	slices.Sort(operators)
	first := strings.Replace(operators[0], "/", ".", 1)
	if len(operators) == 1 {
		return first
	}
	sum := sha256.Sum256([]byte(strings.Join(operators, "\n")))
	return fmt.Sprintf("%s-and-%d-%s", first, len(operators)-1, hex.EncodeToString(sum[:4]))
}

// needs returns the names of the pieces that p requires, sorted, without p itself. p requires a piece if a
// pin of p lists a pin of the piece in Requires.
func (p piece) needs(all []piece) []string {
	var out []string
	for _, in := range p.members {
		for _, r := range in.pin.Requires {
			i := slices.IndexFunc(all, func(q piece) bool {
				return slices.ContainsFunc(q.members, func(o *operator) bool { return o.name() == r.Pin })
			})
			if i >= 0 && all[i].name != p.name {
				out = append(out, all[i].name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// crds returns the directories of the CRDs that the operators of a piece ship, sorted. A CRD counts even if the
// copy of another operator is rendered. dirOf maps the name of a CRD to its directory.
func (p piece) crds(dirOf map[string]string) []string {
	dirs := map[string]bool{}
	for _, in := range p.members {
		for _, o := range in.crds {
			dirs[dirOf[o.Name()]] = true
		}
		for _, o := range in.objects {
			if o.Is(k8s.OLMGroup, "OperatorCondition") {
				dirs[dirOf[operatorConditionCRD().Name()]] = true
			}
		}
	}
	delete(dirs, "") // a CRD of the platform has no directory
	return slices.Sorted(maps.Keys(dirs))
}

// annotatedKustomization returns the fields of a kustomization in a directory that an engine builds. The
// annotation CRDsAnnotation in these fields lists the CRD directories that the objects need.
func annotatedKustomization(resources, crds []string) map[string]any {
	fields := map[string]any{"resources": k8s.Values(resources...)}
	var names []string
	for _, dir := range crds {
		names = append(names, path.Base(dir))
	}
	annotations := map[string]any{"config.kubernetes.io/local-config": "true"}
	if len(names) > 0 {
		annotations[layout.CRDsAnnotation] = strings.Join(names, " ")
	}
	fields["metadata"] = map[string]any{"annotations": annotations}
	return fields
}

// profilePieces returns the pieces as values of package profile.
func (t *tree) profilePieces() ([]profile.Piece, error) {
	var out []profile.Piece
	for _, ns := range t.namespaces {
		clusters := t.clustersWith(func(v *view) bool { return slices.Contains(v.neededNamespaces(), ns) })
		out = append(out, profile.Piece{Name: namespacePieceName(ns), Dir: path.Join(layout.Namespaces, ns), Clusters: clusters})
	}
	for _, p := range t.pieces {
		clusters := t.clustersWith(func(v *view) bool { return p.containsAny(v.here) })
		piece := profile.Piece{Name: p.name, Dir: p.dir(), CRDs: p.crds(t.crdDirs), Clusters: clusters}
		for _, in := range p.members {
			if slices.Contains(t.namespaces, in.pin.Namespace) {
				piece.Needs = append(piece.Needs, namespacePieceName(in.pin.Namespace))
			}
			piece.APIs = append(piece.APIs, in.b.Provides()...)
		}
		slices.Sort(piece.Needs)
		piece.Needs = append(slices.Compact(piece.Needs), p.needs(t.pieces)...)
		out = append(out, piece)
	}
	if t.opt.Reporter != nil {
		crds := []string{path.Join(layout.CRDs, sharedPackage)}
		out = append(out, profile.Piece{Name: layout.Reporter, Dir: layout.Reporter, Reports: true},
			profile.Piece{Name: layout.Installations, Dir: layout.Installations, CRDs: crds, Plain: true, Reports: true})
	}
	for _, l := range t.uninstalling {
		if len(l.With) > 0 {
			continue // the operator is part of a piece that remains
		}
		piece := profile.Piece{Name: pieceName(l.Pin), Dir: path.Join(layout.Leaving, pieceName(l.Pin)), Leaving: true, Clusters: []string{}}
		for _, c := range t.opt.Clusters {
			if got, err := c.Gets(l.Key()); err != nil {
				return nil, err
			} else if got {
				piece.Clusters = append(piece.Clusters, c.Name)
			}
		}
		if len(piece.Clusters) == len(t.opt.Clusters) {
			piece.Clusters = nil
		}
		out = append(out, piece)
	}
	own := profile.Piece{Name: layout.Resources, Dir: layout.Resources}
	for _, c := range t.opt.Clusters {
		if slices.Contains(c.Overlays, layout.Resources) {
			own.Clusters = append(own.Clusters, c.Name)
		}
	}
	if own.Clusters != nil {
		out = append(out, own)
	}
	return out, nil
}

func namespacePieceName(ns string) string { return "namespace-" + ns }

// clustersWith returns the names of the clusters whose views satisfy the predicate is. If all clusters do, it
// returns nil.
func (t *tree) clustersWith(is func(v *view) bool) []string {
	out, known := []string{}, map[string]bool{} // known caches results by list of operators, which many clusters share
	for _, v := range t.views {
		key := strings.Join(v.cluster.Operators, "\x00")
		gets, seen := known[key]
		if !seen {
			gets = is(v)
			known[key] = gets
		}
		if gets {
			out = append(out, v.cluster.Name)
		}
	}
	if len(out) == len(t.opt.Clusters) {
		return nil
	}
	return out
}
