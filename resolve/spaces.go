package resolve

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// watchOf returns the namespaces that bundle b would watch if it were installed in ns. An empty list means all
// namespaces. The declaration takes precedence over the OperatorGroup. If neither of them sets the namespaces,
// b watches all namespaces or, if b does not support this, only ns.
func (w *environment) watchOf(ns string, s *want, b *catalog.Bundle) []string {
	if s != nil && s.decl != nil {
		if s.decl.WatchAll {
			return nil
		}
		if s.decl.Watch != nil {
			return s.decl.Watch
		}
	}
	sp := w.namespace(ns)
	if sp.group != nil {
		return sp.watch
	}
	if b != nil && !catalog.SupportsNamespaces(b.Metadata().InstallModes, ns, nil) {
		return []string{ns}
	}
	return nil
}

func (w *environment) warnsOnly() bool { return w.opt.Requirements == "warn" }

// cannotRun returns the reason why the bundle of a cannot run in its namespace or on the cluster. It returns
// the zero value if the bundle can run. It implements rule 7 of the package comment.
func (w *chooser) cannotRun(a *atom) ban {
	b := a.entry.Bundle()
	m := b.Metadata()
	if !catalog.SupportsNamespaces(m.InstallModes, a.ns, a.watch) {
		modes := make([]string, len(m.InstallModes))
		for i, mode := range m.InstallModes {
			modes[i] = string(mode)
		}
		can := strings.Join(modes, ", ")
		if can == "" {
			can = "none"
		}
		return ban{kind: banInstallMode, text: fmt.Sprintf("does not support install mode %s, which is needed to watch %s (supported: %s)",
			catalog.ModeFor(a.ns, a.watch), formatWatched(a.watch), can)}
	}
	for _, c := range w.clusters(a.ns + "/" + a.facts.pkg) {
		if text := kubernetesMismatch(m, c.KubernetesVersion); text != "" {
			return ban{banCluster, fmt.Sprintf("%s, %s has %s", text, c.Name, c.KubernetesVersion), m.MinKubeVersion}
		}
	}
	if text := openShiftMismatch(b.MaxOpenShiftVersion(), w.opt.OpenShiftVersion); text != "" {
		return ban{kind: banCluster, text: fmt.Sprintf("%s, the workspace has %s", text, w.opt.OpenShiftVersion)}
	}
	return ban{}
}

// clusters returns the clusters that get an operator ("namespace/package"), with names for messages. If all
// clusters have the same version, it returns a single entry for the workspace.
func (w *environment) clusters(operator string) []Cluster {
	if len(w.opt.Clusters) == 0 {
		return []Cluster{{Name: "the workspace", KubernetesVersion: w.opt.KubernetesVersion}}
	}
	var out []Cluster
	for _, c := range w.opt.Clusters {
		if c.Gets(operator) {
			out = append(out, Cluster{Name: fmt.Sprintf("cluster %q", c.Name), KubernetesVersion: c.KubernetesVersion})
		}
	}
	return out
}

func formatWatched(ns []string) string {
	if len(ns) == 0 {
		return "all namespaces"
	}
	return "namespace " + strings.Join(ns, ", ")
}

// isBelow reports whether the version of a cluster is lower than the required version want. A cluster version without a
// patch number, such as 1.34, counts as the newest patch. If a version is empty or malformed, it returns false.
func isBelow(have, want string) bool {
	h, v, ok := parseBoth(have, want)
	if ok && strings.Count(have, ".") == 1 {
		h.Patch = math.MaxUint64
	}
	return ok && h.LT(v)
}

// needsPatch reports whether the cluster's version lacks the patch number that a comparison with want needs:
// want is a patch of the same minor version.
func needsPatch(have, want string) bool {
	h, v, ok := parseBoth(have, want)
	return ok && h.LT(v) && !isBelow(have, want)
}

// isAboveMinor reports whether a version has a higher MAJOR.MINOR than limit. If either is empty or malformed,
// it returns false.
func isAboveMinor(have, limit string) bool {
	h, l, ok := parseBoth(have, limit)
	return ok && (h.Major > l.Major || h.Major == l.Major && h.Minor > l.Minor)
}

// parseBoth parses two versions of clusters, such as "1.34" or "v1.34.2". ok is false if either is
// empty or malformed.
func parseBoth(x, y string) (v, w semver.Version, ok bool) {
	if x == "" || y == "" {
		return v, w, false
	}
	v, err1 := semver.ParseTolerant(x)
	w, err2 := semver.ParseTolerant(y)
	return v, w, err1 == nil && err2 == nil
}

// notPromoted returns a reason against choosing atom a if the upstream lock (Options.From) pins another bundle
// of the same package. Otherwise, it returns "".
func (w *chooser) notPromoted(a *atom) string {
	pin := w.upstreamPin(a.ns, a.facts.pkg)
	if pin == nil || pin.Bundle == a.entry.Name() {
		return ""
	}
	return "differs from the upstream lock (" + pin.Bundle + ")"
}

// isOverlapping reports whether two lists of watched namespaces have a common namespace. An empty
// list means all namespaces.
func isOverlapping(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(ns string) bool { return slices.Contains(b, ns) })
}

// sharedProviders finds atoms in other namespaces that can meet a requirement (Options.SharedDependencies). It
// implements Rule 10 of the package comment.
type sharedProviders struct {
	b         *builder
	rooted    []int // atoms that are candidates of a root
	notRooted []int
	memo      map[sharedKey][2][]int
}

type sharedKey struct {
	ns  string
	req *requirement
}

func (b *builder) newSharedProviders() *sharedProviders {
	if !b.w.opt.SharedDependencies || !b.hasSeveralNamespaces() {
		return nil
	}
	s := &sharedProviders{b: b, memo: map[sharedKey][2][]int{}}
	rooted := rootAtoms(b.roots)
	for id := 1; id < len(b.atoms); id++ {
		if rooted[id] {
			s.rooted = append(s.rooted, id)
		} else if b.atoms[id].inst == nil {
			s.notRooted = append(s.notRooted, id)
		}
	}
	return s
}

// hasSeveralNamespaces reports whether the subscriptions are in more than one namespace.
func (b *builder) hasSeveralNamespaces() bool {
	return slices.ContainsFunc(b.st.wants, func(s *want) bool { return s.ns != b.st.wants[0].ns })
}

// addShared returns c, the choice for requirement r of atom a, with further atoms. These are operators in other
// namespaces that watch the namespace of a. Candidates of a root are preferred to new installs in the namespace
// of a. The other atoms are never preferred: they meet the choice only if they are chosen for another reason,
// or if there is no alternative.
func (s *sharedProviders) addShared(a *atom, r *requirement, c solve.Choice) solve.Choice {
	key := sharedKey{a.ns, r}
	got, ok := s.memo[key]
	if !ok {
		got = [2][]int{s.matching(a.ns, r, s.rooted), s.matching(a.ns, r, s.notRooted)}
		s.memo[key] = got
	}
	if len(got[0]) > 0 {
		here := 0
		for here < len(c.Of) && s.b.atoms[c.Of[here]].inst != nil {
			here++
		}
		c.Of = slices.Concat(c.Of[:here], got[0], c.Of[here:])
	}
	c.Also = got[1]
	return c
}

func (s *sharedProviders) matching(ns string, r *requirement, ids []int) []int {
	var out []int
	for _, id := range ids {
		a := s.b.atoms[id]
		if a.ns != ns && isOverlapping(a.watch, []string{ns}) && r.match(a.facts) {
			out = append(out, id)
		}
	}
	return out
}
