package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/report/gate"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
)

// Options say how a step is made.
type Options struct {
	Only []string           // namespace/package; empty: everything
	Rule *gate.Rule         // what has to have been seen; nil: nothing
	Seen []gate.Observation // of any environment
	Now  time.Time
}

// Fate is what becomes of an operator.
type Fate string

// The fates of an operator.
const (
	Moves Fate = "moves" // to what the environment before pins
	Comes Fate = "comes" // likewise, and was not pinned here
	Same  Fate = "same"  // it is there already
	Stays Fate = "stays" // what is declared here, or in the environment before, keeps it
	Held  Fate = "held"  // what was seen of it does not suffice
)

// Reason is why an operator stays or is held.
type Reason string

// The reasons.
const (
	NotInFrom   Reason = "notInFrom"   // the environment before does not pin it
	NotDeclared Reason = "notDeclared" // nothing asks for it here
	Older       Reason = "older"       // the environment before pins an older version
	Hold        Reason = "hold"        // its declaration holds it
	Range       Reason = "range"       // its declaration asks for other versions or channels
	Cluster     Reason = "cluster"     // it does not run on that version of the clusters
	Catalog     Reason = "catalog"     // no catalog here has it
	Content     Reason = "content"     // the catalog here has another bundle of that name
	Conflict    Reason = "conflict"    // it does not go together with something else
	Gate        Reason = "gate"        // what was seen does not suffice
	Needs       Reason = "needs"       // it needs one that is held
)

// Row is what becomes of one operator.
type Row struct {
	Operator string        `json:"operator"`
	From     string        `json:"from,omitempty" doc:"version in the environment before"`          // empty where it is not pinned
	Have     string        `json:"have,omitempty" doc:"version in the one that takes over, before"` // likewise
	Fate     Fate          `json:"fate" form:"enum=moves|comes|same|stays|held"`
	Reason   Reason        `json:"reason,omitempty" form:"enum=notInFrom|notDeclared|older|hold|range|cluster|catalog|content|conflict|gate|needs" doc:"why it stays or is held"`
	Message  string        `json:"message,omitempty"`                              // likewise, in words
	Verdict  *gate.Verdict `json:"seen,omitempty" doc:"in the environment before"` // nil where nothing has to have been seen
}

// moves reports whether it is taken over.
func (r Row) moves() bool { return r.Fate == Moves || r.Fate == Comes }

// stay is why an operator of the environment before is not taken over.
type stay struct {
	fate   Fate
	reason Reason
	text   string
}

// promotion is a step while it is made.
type promotion struct {
	Step
	opt      Options
	from     *lockfile.File
	in       *project.Inputs
	declared *subscription.Set
	asked    map[string]bool // operators that may move: nil: all
	stays    map[string]stay // operators of from that are not taken over
	verdicts map[string]*gate.Verdict
}

// Promote returns what becomes of the operators of both environments. What the one
// before pins is taken over by the digest of its bundle; all else of the lock stays
// as it is, or the error says that it cannot.
func (s Step) Promote(ctx context.Context, opt Options) (*StepReport, error) {
	p := &promotion{Step: s, opt: opt, stays: map[string]stay{}, verdicts: map[string]*gate.Verdict{}}
	var err error
	if p.from, err = s.From.NeedLock(); err != nil {
		return nil, err
	}
	settings := s.To.ResolveOptions()
	settings.From = p.from
	if p.in, err = s.To.Inputs(ctx, settings, true); err != nil {
		return nil, err
	}
	p.declared = p.in.Declared
	if err := p.ask(); err != nil {
		return nil, err
	}
	if err := p.judge(); err != nil {
		return nil, err
	}
	res, err := p.resolve(ctx)
	if err != nil {
		return nil, err
	}
	out := &StepReport{
		From: s.From.Title, To: s.To.Title, Directory: s.To.Dir, Gate: opt.Rule, Operators: append([]Row{}, p.rows(res)...),
		Changes: []project.Change{}, Warnings: []diag.Warning{}, Step: s, Inputs: p.in,
	}
	if out.promoted() > 0 {
		out.Resolution, out.Changes, out.Warnings = res, append(out.Changes, res.Changes...), append(out.Warnings, res.Warnings...)
	}
	return out, nil
}

// have returns the pin that the environment has of an operator.
func (p *promotion) have(key string) (lockfile.Pin, bool) { return pinOf(p.in.Read, key) }

func pinOf(f *lockfile.File, key string) (lockfile.Pin, bool) {
	if f == nil {
		return lockfile.Pin{}, false
	}
	ns, pkg, _ := strings.Cut(key, "/")
	return f.Pin(ns, pkg)
}

// same reports whether two pins are of one bundle, by digest.
func same(a, b lockfile.Pin) bool {
	return a.Bundle == b.Bundle && a.BundleDigest() == b.BundleDigest()
}

// ask finds the operators that are named, and what they need in the environment
// before.
func (p *promotion) ask() error {
	if len(p.opt.Only) == 0 {
		return nil
	}
	var known []string
	for _, pin := range p.from.Pins {
		known = append(known, pin.Key())
	}
	var faults diag.List
	p.asked = map[string]bool{}
	for _, key := range p.opt.Only {
		if _, ok := pinOf(p.from, key); !ok {
			faults.Addf(diag.Pos{}, "%s does not pin %s%s", p.From.Title, key, diag.DidYouMean(key, known))
		}
		p.asked[key] = true
	}
	for more := true; more; {
		more = false
		for _, pin := range p.from.Pins {
			for _, r := range pin.Requires {
				if p.asked[pin.Key()] && !p.asked[r.Pin] {
					p.asked[r.Pin], more = true, true
				}
			}
		}
	}
	return faults.Err()
}

// judge holds what the gate does not let pass.
func (p *promotion) judge() error {
	for _, pin := range p.from.Pins {
		if now, ok := p.have(pin.Key()); p.opt.Rule == nil || ok && same(now, pin) {
			continue
		}
		v, err := p.verdict(pin)
		if err != nil {
			return err
		}
		p.verdicts[pin.Key()] = v
		if !v.Pass {
			p.stays[pin.Key()] = stay{Held, Gate, "in " + p.From.Title + " " + v.Text(*p.opt.Rule)}
		} else if text := p.refuses(pin); text != "" {
			p.stays[pin.Key()] = stay{Held, Gate, "in " + p.To.Title + " " + text}
		}
	}
	return nil
}

// verdict asks the gate about a pin of the environment before.
func (p *promotion) verdict(pin lockfile.Pin) (*gate.Verdict, error) {
	clusters, err := p.From.clusters(pin.Key())
	if err != nil {
		return nil, err
	}
	v := gate.Judge(*p.opt.Rule, gate.Pin{
		Operator: pin.Key(), Bundle: string(pin.BundleDigest()), Checksum: string(pin.Checksum()), Clusters: clusters,
	}, p.seenIn(p.From, true), p.opt.Now)
	return &v, nil
}

// refuses returns what the operator says against an upgrade in the clusters that
// are to take over pin.
func (p *promotion) refuses(pin lockfile.Pin) string {
	clusters, err := p.To.clusters(pin.Key())
	now, ok := p.have(pin.Key())
	if err != nil || !ok {
		return ""
	}
	v := gate.Judge(*p.opt.Rule, gate.Pin{Operator: now.Key(), Bundle: string(now.BundleDigest()), Clusters: clusters}, p.seenIn(p.To, false), p.opt.Now)
	for _, r := range v.Reasons {
		if r.Cause == gate.NotUpgradeable {
			return r.String()
		}
	}
	return ""
}

// seenIn returns what was seen of an environment. Observations that do not say of
// which they are, are of the one before, as files are asked for its clusters.
func (p *promotion) seenIn(e *Environment, unsaid bool) []gate.Observation {
	return slices.DeleteFunc(slices.Clone(p.opt.Seen), func(o gate.Observation) bool {
		return o.Environment != e.Title && (o.Environment != "" || !unsaid)
	})
}

// clusters returns the clusters of an environment that get an operator.
func (e *Environment) clusters(operator string) ([]string, error) {
	var out []string
	for _, c := range e.Settings.Clusters {
		gets, err := (render.Cluster{Operators: c.Operators}).Gets(operator)
		if err != nil {
			return nil, err
		}
		if gets {
			out = append(out, c.Name)
		}
	}
	return out, nil
}

// resolve resolves with what is left to take over, until nothing comes of it that
// is not to.
func (p *promotion) resolve(ctx context.Context) (*project.Resolution, error) {
	for range len(p.from.Pins) + len(p.declared.Subscriptions) + 2 {
		p.in.Options.From, p.in.Declared = p.followed(), p.wanted()
		res, err := p.in.Resolve(ctx)
		var conflicts resolve.Conflicts
		switch {
		case err != nil && !errors.As(err, &conflicts):
			return nil, err
		case err != nil, res.Failed != nil:
			if failed := errors.Join(err, res.Failed); !p.give(res.Conflicts) {
				return nil, failed
			}
			continue
		}
		again, err := p.check(res)
		if err != nil || !again {
			return res, err
		}
	}
	return nil, fmt.Errorf("%s: resolving comes to no end", p.To.Title)
}

// takes reports whether an operator of the environment before is to be taken over.
func (p *promotion) takes(key string) bool {
	_, stays := p.stays[key]
	return !stays && (p.asked == nil || p.asked[key])
}

// followed returns the part of the lock before that is to be taken over.
func (p *promotion) followed() *lockfile.File {
	var pins []lockfile.Pin
	for _, pin := range p.from.Pins {
		if p.takes(pin.Key()) {
			pins = append(pins, pin)
		}
	}
	return p.from.With(pins)
}

// wanted returns the declarations without those that nothing answers yet and that
// the environment before has nothing for: promoting installs what was tried.
func (p *promotion) wanted() *subscription.Set {
	out := *p.declared
	out.Subscriptions = slices.DeleteFunc(slices.Clone(out.Subscriptions), func(s subscription.Subscription) bool {
		key := s.Namespace + "/" + s.Package
		_, pinned := p.have(key)
		_, there := pinOf(p.from, key)
		return !pinned && s.Bundle == "" && (!there || !p.takes(key))
	})
	return &out
}

// give keeps back what takes part in conflicts, and reports whether there was
// something to keep back.
func (p *promotion) give(conflicts []*resolve.Conflict) bool {
	given := false
	for _, c := range conflicts {
		for _, key := range p.takenPart(c) {
			if _, ok := pinOf(p.from, key); ok && p.takes(key) {
				p.stays[key] = stay{Stays, Conflict, summary(c)}
				given = true
			}
		}
	}
	return given
}

// takenPart returns the operators that a conflict is between, those that are new
// here before the others.
func (p *promotion) takenPart(c *resolve.Conflict) []string {
	var fresh, others []string
	for _, s := range p.declared.Subscriptions {
		if !slices.Contains(c.Subscriptions, s.Namespace+"/"+s.Name) {
			continue
		}
		key := s.Namespace + "/" + s.Package
		if _, pinned := p.have(key); pinned {
			others = append(others, key)
		} else {
			fresh = append(fresh, key)
		}
	}
	if len(fresh) > 0 {
		return fresh
	}
	return others
}

// summary returns a conflict in one line.
func summary(c *resolve.Conflict) string {
	var text []string
	for _, l := range c.Chain {
		text = append(text, l.Text)
	}
	return strings.Join(text, "; ")
}

// check keeps back what would bring something that is not to move, and reports
// whether there was such a thing. Other content under the name of a bundle is not
// what was tried.
func (p *promotion) check(res *project.Resolution) (again bool, err error) {
	var faults diag.List
	for _, pin := range res.Lock.Pins {
		key := pin.Key()
		if old, ok := p.have(key); ok && same(old, pin) {
			continue
		}
		theirs, there := pinOf(p.from, key)
		switch {
		case there && p.takes(key) && same(theirs, pin):
		case there && p.takes(key) && theirs.Bundle == pin.Bundle:
			p.stays[key] = stay{Stays, Content, fmt.Sprintf("%s has %s with %s, %s with %s", p.From.Title, pin.Bundle, theirs.BundleDigest().Short(), p.To.Title, pin.BundleDigest().Short())}
			again = true
		case p.keepRequiring(res.Lock, pin):
			again = true
		default:
			faults.Addf(diag.Pos{}, "%s: %s would become %s, which is not what %s was seen with: run 'quayside resolve' in %s first",
				p.To.Title, key, pin.Bundle, p.From.Title, p.To.Dir)
		}
	}
	return again, faults.Err()
}

// keepRequiring keeps back the operators that are taken over and that require pin.
func (p *promotion) keepRequiring(lock *lockfile.File, pin lockfile.Pin) bool {
	reason, text := Needs, "it needs "+pin.Key()+" "+pin.Version
	if s, ok := p.stays[pin.Key()]; ok {
		text += ", which stays: " + s.text
	}
	kept := false
	seen := map[string]bool{pin.Key(): true}
	for todo := []lockfile.Pin{pin}; len(todo) > 0; todo = todo[1:] {
		for _, r := range lock.RequiredBy(todo[0]) {
			above, ok := pinOf(lock, r.Pin)
			if !ok || seen[r.Pin] {
				continue
			}
			seen[r.Pin] = true
			todo = append(todo, above)
			theirs, there := pinOf(p.from, r.Pin)
			if old, had := p.have(r.Pin); there && p.takes(r.Pin) && same(theirs, above) && !(had && same(old, above)) {
				p.stays[r.Pin] = stay{Held, reason, text}
				kept = true
			}
		}
	}
	return kept
}

// rows returns what becomes of every operator that is asked for.
func (p *promotion) rows(res *project.Resolution) []Row {
	keys := map[string]bool{}
	for _, pin := range p.from.Pins {
		keys[pin.Key()] = true
	}
	if p.in.Read != nil {
		for _, pin := range p.in.Read.Pins {
			keys[pin.Key()] = true
		}
	}
	for _, s := range p.declared.Subscriptions {
		if s.Package != "" {
			keys[s.Namespace+"/"+s.Package] = true
		}
	}
	var out []Row
	for key := range keys {
		if p.asked != nil && !p.asked[key] {
			continue
		}
		out = append(out, p.row(key, res))
	}
	slices.SortFunc(out, func(a, b Row) int { return strings.Compare(a.Operator, b.Operator) })
	return out
}

func (p *promotion) row(key string, res *project.Resolution) Row {
	theirs, there := pinOf(p.from, key)
	old, had := p.have(key)
	now, has := pinOf(res.Lock, key)
	row := Row{Operator: key, From: theirs.Version, Have: old.Version, Verdict: p.verdicts[key], Fate: Stays}
	s, stays := p.stays[key]
	switch {
	case !there:
		row.Reason, row.Message = NotInFrom, p.From.Title+" does not pin it"
		if !had {
			row.Message += ": 'quayside resolve' pins it here"
		}
	case has && same(now, theirs) && had && same(old, theirs):
		row.Fate = Same
	case has && same(now, theirs) && had:
		row.Fate = Moves
	case has && same(now, theirs):
		row.Fate = Comes
	case stays && (has || p.declares(key) || s.fate == Stays):
		row.Fate, row.Reason, row.Message = s.fate, s.reason, s.text
	case !has:
		row.Reason, row.Message = NotDeclared, "nothing asks for it in "+p.To.Title
	default:
		row.Reason, row.Message = p.why(key, theirs, res.Stays)
	}
	return row
}

// declares reports whether an operator is declared here.
func (p *promotion) declares(key string) bool {
	return slices.ContainsFunc(p.declared.Subscriptions, func(s subscription.Subscription) bool { return s.Namespace+"/"+s.Package == key })
}

// why returns why an operator does not follow.
func (p *promotion) why(key string, theirs lockfile.Pin, stays []resolve.Stay) (Reason, string) {
	i := slices.IndexFunc(stays, func(s resolve.Stay) bool { return s.Namespace+"/"+s.Package == key })
	if i < 0 {
		return Conflict, fmt.Sprintf("%s pins %s, which does not go together with the rest", p.From.Title, theirs.Bundle)
	}
	reasons := map[resolve.HeldBack]Reason{
		resolve.HeldByHold: Hold, resolve.HeldByVersions: Older, resolve.HeldByRange: Range, resolve.HeldByCluster: Cluster,
		resolve.HeldByInstallMode: Cluster, resolve.HeldByCatalog: Catalog, resolve.HeldByDrop: Catalog,
	}
	reason, ok := reasons[stays[i].By]
	if !ok {
		reason = Conflict
	}
	return reason, p.From.Title + " pins " + stays[i].Text
}
