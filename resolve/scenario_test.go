package resolve_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// TestScenarios runs the scenarios in testdata/scenarios/*.txt. A line that begins with "== " names
// the next scenario. The other lines are:
//
//	catalog hi 10 [ns]         the following lines are in this catalog (default: cat, priority 0, in olm); "catalog none hi" removes it
//	stable: a1 a2<a1-a0~<2.0.0 a channel of package a; the first channel of a package is its default;
//	                           < replaces, - skips, ~ skipRange (_ for a space)
//	bundle a2 needs b >=1      requires a package; "api K [v2]" an API, "gives K" provides one, "deprecated", "modes OwnNamespace",
//	                           "kube 1.30.0", "openshift 4.9", "constraint {…}", "message text", "suggests NAMESPACE"
//	bundle a2 here gives K     likewise, only in this catalog; "here image TEXT", "here as 2.1.0 [3]" set its image, its version and release
//	group ops [ns,…]           an OperatorGroup ("group none ops" removes it)
//	sub a [stable] [k=v …]     a subscription; ns, name, catalog, start, range, only, hold, approval, v1, policy, installed, watch, replaces
//	unsub a
//	csv a1 [bare] [replaces=]  a ClusterServiceVersion in ops
//	run [k=v …]                resolves from the lock so far: upgrade, up=a[@v], hops, down, keep, prune, unpin, anew, kube, openshift, warn, shared, overlap, global, settled, uninstalls, gone, lenient, from
//	save NAME                  saves the lock for run from=NAME; "again NAME" restores it
//	want a2 team/b1            expects exactly these pins
//	leaving a1>ops/b           expects exactly these leaving operators and their successors; "a1>+ops/c": with the remaining operators of its unit
//	pin a k=v …                expects fields of the pin of a: replaces, skipped, remaining, heldBack, version, channel, catalog, image, watch
//	moves a1>a2                expects exactly these moves of the run
//	warn CODE [text]           expects a warning of the run; "quiet": expects no warning
//	stay NS/PKG TEXT           expects an operator that could not be promoted, and the reason
//	conflict NS/SUB …          expects a conflict of the run between these subscriptions
//	fail TEXT                  expects this text in the conflicts of the run, " | " for the end of a line
//	stale [TEXT] / insync      expects that Check reports the lock as out of date, or does not
//	unchecked TEXT             expects the unverified values of Check, " | " for the end of a line; "confirmed": none
//	merge NAME                 adds the pins of a saved lock that are missing from the current lock
//	show why b | whynot a@2 | tree | outdated
//	olm a1 b1 / because / none see TestGoldenUpstream
//	| LINE                     expects the next line of the shown text, with spaces for tabs
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(data), "\n== ")[1:] {
			name, script, _ := strings.Cut(part, "\n")
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+name, func(t *testing.T) {
				newScenario(t).run(script)
			})
		}
	}
}

type scenario struct {
	t        *testing.T
	cats     map[string]*catalog.Content
	cur      string
	props    map[string][]catalog.Property
	meta     map[string]*catalog.Metadata
	messages map[string]string
	images   map[string]string // by catalog and bundle, as are versions
	versions map[string]string
	releases map[string]string
	decl     declare.Set
	lock     *lockfile.File
	saved    map[string]*lockfile.File
	opt      resolve.Options
	res      *resolve.Result
	err      error
	shown    []string
	upstream verdict
}

func newScenario(t *testing.T) *scenario {
	s := &scenario{
		t: t, cats: map[string]*catalog.Content{}, props: map[string][]catalog.Property{}, meta: map[string]*catalog.Metadata{},
		messages: map[string]string{}, images: map[string]string{}, versions: map[string]string{}, releases: map[string]string{}, saved: map[string]*lockfile.File{},
	}
	s.catalog([]string{"cat", "0"})
	s.group([]string{"ops"})
	return s
}

func (s *scenario) run(script string) {
	for n, line := range strings.Split(script, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if words[0] != "|" && len(s.shown) > 0 {
			s.t.Fatalf("line %d: unexpected output %q", n+1, s.shown)
		}
		s.line(n+1, words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), words[0])))
	}
}

func (s *scenario) line(n int, words []string, rest string) {
	fatal := func(format string, args ...any) {
		s.t.Helper()
		s.t.Fatalf("line %d: %s: %s", n, strings.Join(words, " "), fmt.Sprintf(format, args...))
	}
	args := words[1:]
	switch words[0] {
	case "catalog":
		s.catalog(args)
	case "bundle":
		s.bundle(args, rest)
	case "group":
		s.group(args)
	case "sub":
		s.sub(args)
	case "unsub":
		s.decl.Subscriptions = slices.DeleteFunc(s.decl.Subscriptions, func(d declare.Subscription) bool { return d.Name == args[0] })
	case "csv":
		s.csv(args)
	case "run":
		s.resolve(args)
	case "olm":
		s.round(rest)
	case "because":
		s.upstream.because = rest
	case "none":
		s.upstream.none = rest
	case "save":
		s.saved[args[0]] = s.lock
	case "again":
		s.lock = s.saved[args[0]]
	case "want":
		if s.err != nil {
			fatal("Resolve: %v", s.err)
		}
		if got := s.pins(); !slices.Equal(got, sorted(args)) {
			fatal("got %s", strings.Join(got, " "))
		}
	case "leaving":
		var got []string
		for _, l := range s.lock.Leaving {
			w := short(l.Bundle) + ">" + l.ReplacedBy
			for _, key := range l.With {
				w += "+" + key
			}
			got = append(got, w)
		}
		if !slices.Equal(got, args) {
			fatal("got %s", strings.Join(got, " "))
		}
	case "pin":
		for _, a := range args[1:] {
			k, want, _ := strings.Cut(a, "=")
			if got := s.recorded(args[0], k); got != want {
				fatal("%s is %q", k, got)
			}
		}
	case "moves":
		if got := s.moves(); !slices.Equal(got, sorted(args)) {
			fatal("got %s", strings.Join(got, " "))
		}
	case "warn":
		text := strings.TrimSpace(strings.TrimPrefix(rest, args[0]))
		if !slices.ContainsFunc(s.res.Warnings, func(w diag.Warning) bool { return w.Code == args[0] && strings.Contains(w.Msg, text) }) {
			fatal("got %v", s.res.Warnings)
		}
	case "stay":
		text := strings.TrimSpace(strings.TrimPrefix(rest, args[0]))
		if h, found := s.res.HeldPromotions[args[0]]; !found || !strings.Contains(h.Text, text) {
			fatal("got %+v", s.res.HeldPromotions)
		}
	case "conflict":
		seen := 0
		for _, c := range s.res.Conflicts {
			if slices.Equal(c.Subscriptions, args) {
				seen++
			}
		}
		if seen != 1 {
			fatal("got %v", s.res.Conflicts)
		}
	case "quiet":
		if len(s.res.Warnings) > 0 {
			fatal("got %v", s.res.Warnings)
		}
	case "fail":
		if s.err == nil || !strings.Contains(strings.Join(strings.Fields(s.err.Error()), " "), strings.ReplaceAll(rest, " | ", " ")) {
			fatal("got %v", s.err)
		}
	case "stale", "insync":
		err := check(s.index(), &s.decl, s.parsed(), s.opt)
		if (err != nil) != (words[0] == "stale") || err != nil && !strings.Contains(err.Error(), rest) {
			fatal("got %v", err)
		}
	case "unchecked", "confirmed":
		v, err := resolve.Check(s.index(), &s.decl, s.parsed(), s.opt)
		if err != nil {
			fatal("Check: %v", err)
		}
		var lines []string
		for _, r := range v.Unchecked {
			lines = append(lines, r.String())
		}
		if got := strings.Join(lines, " | "); got != rest {
			fatal("got %s", got)
		}
	case "merge":
		s.merge(args[0])
	case "show":
		s.show(args)
	case "|":
		if len(s.shown) == 0 || strings.Join(strings.Fields(s.shown[0]), " ") != strings.Join(args, " ") {
			fatal("got %q", s.shown)
		}
		s.shown = s.shown[1:]
	default:
		if !strings.HasSuffix(words[0], ":") {
			fatal("no such command")
		}
		s.channel(strings.TrimSuffix(words[0], ":"), args)
	}
}

// parsed returns the lock as parsed from a file, with positions.
func (s *scenario) parsed() *lockfile.File {
	if s.lock == nil {
		return nil
	}
	f, err := lockfile.Parse("quayside.lock", lockfile.Format(s.lock))
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func sorted(words []string) []string {
	out := slices.Clone(words)
	slices.Sort(out)
	return out
}

// check returns the result of Check as one error, or nil if the lock is up to date.
func check(x *catalog.Index, decl *declare.Set, lock *lockfile.File, opt resolve.Options) error {
	v, err := resolve.Check(x, decl, lock, opt)
	if err == nil && len(v.Stale) > 0 {
		err = &resolve.StaleError{Reasons: v.Stale}
	}
	return err
}
