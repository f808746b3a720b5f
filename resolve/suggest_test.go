package resolve_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// TestSuggestionsResolveConflicts applies each suggested change of each conflict and resolves again. The
// conflict must not occur again. If it was the only conflict, no other conflict may occur.
func TestSuggestionsResolveConflicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, opt := drawUniverse(t), drawOptions(t)
		x := u.index(t)
		var prev *lockfile.File
		if rapid.Bool().Draw(t, "installed before") {
			prev = mustResolve(t, x, &u.decl, nil, opt).Lock
			u.decl = drawDeclarations(t, []string{"a", "b", "c"})
		}
		for i := range u.decl.Subscriptions {
			s := &u.decl.Subscriptions[i]
			s.Pos = diag.Pos{File: strings.ReplaceAll(s.Key(), "/", "-"), Line: 1}
		}
		for i := range u.decl.OperatorGroups {
			u.decl.OperatorGroups[i].Pos = diag.Pos{File: u.decl.OperatorGroups[i].Namespace, Line: 1}
		}
		opt.KeepGoing, opt.Hops = false, 1
		if rapid.IntRange(0, 3).Draw(t, "wrong channel") == 0 && len(u.decl.Subscriptions) > 0 {
			u.decl.Subscriptions[0].Channels = []string{"stabel"}
		}
		res, err := resolve.Resolve(x, &u.decl, prev, opt)
		var conflicts explain.Conflicts
		if !errors.As(err, &conflicts) {
			return
		}
		for _, c := range res.Conflicts {
			if c.Tried > 3 {
				t.Fatalf("%d changes were tried", c.Tried)
			}
			for _, change := range c.Changes {
				d := manualEdit{decl: u.decl, prev: prev, opt: opt}
				d.decl.Subscriptions = slices.Clone(d.decl.Subscriptions)
				for _, part := range strings.Split(change.At+": "+change.Text, ", and: ") {
					if !d.applyLine(strings.TrimPrefix(part, ": ")) {
						t.Fatalf("unknown suggestion %q", part)
					}
				}
				_, err := resolve.Resolve(x, &d.decl, d.prev, d.opt)
				var left explain.Conflicts
				if err != nil && !errors.As(err, &left) {
					t.Fatalf("%s: %v", change.Text, err)
				}
				for _, l := range left {
					if key := strings.Join(l.Subscriptions, " "); len(conflicts) == 1 || key == strings.Join(c.Subscriptions, " ") {
						t.Fatalf("%v\nis not resolved by %q:\n%v", c, change.Text, l)
					}
				}
			}
		}
	})
}

// manualEdit holds the inputs that a user edits to apply a suggestion.
type manualEdit struct {
	decl declare.Set
	prev *lockfile.File
	opt  resolve.Options
}

// applyLine applies the change that a line describes. It returns false if the line is unknown.
func (d *manualEdit) applyLine(line string) bool {
	for pattern, how := range map[string]func(s *declare.Subscription, word string){
		`^(\S+):1: request channel (\S+)$`:    func(s *declare.Subscription, word string) { s.Channels = []string{word} },
		`^(\S+):1: set its catalog to (\S+)$`: func(s *declare.Subscription, word string) { id := catalogID(word); s.Catalog = &id },
		`^(\S+):1: move subscription \S+ to namespace (\S+)$`: func(s *declare.Subscription, word string) {
			s.Namespace = word
		},
		`^(\S+):1: move subscription (\S+) to its own namespace, with an OperatorGroup that watches only that namespace$`: func(s *declare.Subscription, _ string) {
			s.Namespace = "elsewhere"
			d.setGroup("elsewhere", []string{"elsewhere"})
		},
		`^(\S+):1: remove subscription (\S+)$`: func(s *declare.Subscription, _ string) { s.Name = "" },
	} {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(line); m != nil {
			for i := range d.decl.Subscriptions {
				if s := &d.decl.Subscriptions[i]; s.Pos.File == m[1] {
					how(s, m[2])
				}
			}
			d.decl.Subscriptions = slices.DeleteFunc(d.decl.Subscriptions, func(s declare.Subscription) bool { return s.Name == "" })
			return true
		}
	}
	return d.applySetting(line)
}

// applySetting applies a change of a flag, a setting or an OperatorGroup. It returns false if the
// line is unknown.
func (d *manualEdit) applySetting(line string) bool {
	flag, operator, _ := strings.Cut(strings.TrimPrefix(line, "run again with "), "=")
	ns, pkg, _ := strings.Cut(operator, "/")
	group := regexp.MustCompile(`^(\S+):1: make OperatorGroup og watch (all namespaces|namespace (\S+))$`).FindStringSubmatch(line)
	switch {
	case flag == "--allow-downgrade":
		d.opt.AllowDowngrade = true
	case flag == "--unpin":
		d.opt.Unpin = append(slices.Clone(d.opt.Unpin), resolve.Target{Namespace: ns, Package: pkg})
	case flag == "--reinstall":
		d.opt.Named = append(slices.Clone(d.opt.Named), resolve.Target{Namespace: ns, Package: pkg, Reinstall: true})
	case line == "allow the overlap: set spec.allowOverlap: true in quayside.yaml":
		d.opt.AllowOverlap = true
	case line == "share the dependency between namespaces: set spec.sharedDependencies: true in quayside.yaml":
		d.opt.SharedDependencies = true
	case group != nil && group[3] == "":
		d.setGroup(group[1], nil)
	case group != nil:
		d.setGroup(group[1], []string{group[3]})
	default:
		return false
	}
	return true
}

func (d *manualEdit) setGroup(ns string, watch []string) {
	d.decl.OperatorGroups = append(slices.DeleteFunc(slices.Clone(d.decl.OperatorGroups), func(g declare.OperatorGroup) bool { return g.Namespace == ns }),
		declare.OperatorGroup{Namespace: ns, Name: "og", TargetNamespaces: watch})
}

func catalogID(s string) catalog.ID {
	ns, name, _ := strings.Cut(s, "/")
	return catalog.ID{Namespace: ns, Name: name}
}
