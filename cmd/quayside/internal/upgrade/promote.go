package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/health/gate"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// PromotionOptions are the options for a promotion.
type PromotionOptions struct {
	Only     []string          // operators to promote, as namespace/package; empty: all
	Rule     *gate.Criteria    // observations required for a promotion; nil: none
	Observed []*health.Summary // observations of all environments
	Now      time.Time
	Proposes bool // whether to open pull requests; promotions that a person reverted are then not repeated, except those in Only

	OutsideWindow string // reason to promote also outside of the windows

	kept map[string]resolve.HeldUpgrade // operators that must not change, with the reason
}

// PromotionOutcome is the outcome of a promotion for one operator.
type PromotionOutcome string

// The outcomes.
const (
	OutcomeUpgraded  PromotionOutcome = "upgraded"  // upgraded to the upstream version
	OutcomeAdded     PromotionOutcome = "added"     // newly pinned, at the upstream version
	OutcomeRemoved   PromotionOutcome = "removed"   // no longer pinned, because it is no longer requested
	OutcomeUnchanged PromotionOutcome = "unchanged" // already at the upstream version
	OutcomeKept      PromotionOutcome = "kept"      // not changed because of a declaration, a catalog or the upstream lock
	OutcomeHeld      PromotionOutcome = "held"      // not changed because the upstream version fails the gate (opt.Rule)
)

// Reasons for OutcomeKept and OutcomeHeld, in addition to those of the resolver.
const (
	ReasonNotInFrom   resolve.HeldBack = "notInFrom"   // not pinned in the upstream environment
	ReasonNotDeclared resolve.HeldBack = "notDeclared" // not declared or required in the target environment
	ReasonContent     resolve.HeldBack = "content"     // the target catalog has a different bundle with the same name
	ReasonGate        resolve.HeldBack = "gate"        // the observations do not satisfy opt.Rule
	ReasonDeclined    resolve.HeldBack = "declined"    // a person reverted its promotion, or closed its pull request
	ReasonWindow      resolve.HeldBack = "window"      // its windows do not permit the change now
	ReasonNeeds       resolve.HeldBack = "dependency"  // it requires an operator that is not promoted
)

// PromotionRow is the outcome for one operator with its versions.
type PromotionRow struct {
	Operator string           `json:"operator"`
	From     string           `json:"upstream,omitempty" doc:"version in the upstream environment"`                   // upstream version; empty if not pinned
	Have     string           `json:"current,omitempty" doc:"version in the target environment before the promotion"` // target version before the promotion; empty if not pinned
	Outcome  PromotionOutcome `json:"outcome" form:"enum=upgraded|added|removed|unchanged|kept|held"`
	Reason   resolve.HeldBack `json:"reason,omitempty" form:"enum=notInFrom|notDeclared|downgrade|hold|range|clusterVersion|installMode|catalog|content|conflict|gate|declined|window|dependency" doc:"reason why it is unchanged or held"`
	Message  string           `json:"message,omitempty"`                                                 // explanation of Reason
	Verdict  *gate.Verdict    `json:"observed,omitempty" doc:"observations in the upstream environment"` // nil without opt.Rule
}

// isPromoted reports whether the outcome is a change.
func (r PromotionRow) isPromoted() bool {
	return r.Outcome == OutcomeUpgraded || r.Outcome == OutcomeAdded || r.Outcome == OutcomeRemoved
}

// outcomeOf returns the outcome for a reason.
func outcomeOf(by resolve.HeldBack) PromotionOutcome {
	if by == ReasonGate || by == ReasonWindow || by == ReasonNeeds {
		return OutcomeHeld
	}
	return OutcomeKept
}

// promotion is a PromotionStep in progress.
type promotion struct {
	PromotionStep
	opt      PromotionOptions
	from     *lockfile.File
	problem  *workspace.Problem
	declared *declare.Set
	selected map[string]bool                // operators to promote; nil: all
	held     map[string]resolve.HeldUpgrade // upstream operators that are not promoted: they are kept, were reverted, or fail the gate
	differs  map[string]resolve.HeldUpgrade // upstream operators whose bundle has different content in the target catalog
	contents map[*catalog.Bundle]catalog.Digest
	verdicts map[string]*gate.Verdict
	seen     []gate.Observation
}

// Promote pins operators of the target environment at the bundles of the upstream environment, by digest. It
// returns the outcome for the operators of both environments. It returns an error if the promotion would change
// an operator to a bundle that is not pinned upstream.
func (s PromotionStep) Promote(ctx context.Context, opt PromotionOptions) (*PromotionStepReport, error) {
	p := &promotion{PromotionStep: s, opt: opt, held: map[string]resolve.HeldUpgrade{}, differs: map[string]resolve.HeldUpgrade{}, contents: map[*catalog.Bundle]catalog.Digest{}, verdicts: map[string]*gate.Verdict{}}
	var err error
	if p.from, err = s.From.NeedLock(); err != nil {
		return nil, err
	}
	settings := s.To.ResolveOptions()
	settings.From = p.from
	if p.problem, err = workspace.ReadProblem(ctx, s.To.Project, workspace.Request{Options: settings, Fresh: true}); err != nil {
		return nil, err
	}
	p.declared = p.problem.Declared
	if err := p.selectOperators(); err != nil {
		return nil, err
	}
	if err := p.applyGate(ctx); err != nil {
		return nil, err
	}
	res, err := p.resolve(ctx)
	if err != nil {
		return nil, err
	}
	out := &PromotionStepReport{
		From: s.From.Title, To: s.To.Title, Directory: s.To.Dir, Gate: opt.Rule, Operators: append([]PromotionRow{}, p.rows(res)...),
		Changes: []workspace.Change{}, Warnings: []diag.Warning{}, Step: s, Problem: p.problem, opt: opt,
	}
	if out.CountPromoted() > 0 {
		closed, err := s.closed(ctx, res.Lock, p.problem.Read, opt)
		if err != nil {
			return nil, err
		}
		switch {
		case opt.OutsideWindow != "":
			res.Lock = workspace.OutsideWindow(res.Lock, closed, opt.OutsideWindow)
		case len(closed) > 0:
			opt.kept = maps.Clone(opt.kept)
			if opt.kept == nil {
				opt.kept = map[string]resolve.HeldUpgrade{}
			}
			for _, f := range closed {
				opt.kept[f.Subject] = resolve.HeldUpgrade{By: ReasonWindow, Text: strings.TrimPrefix(f.Msg, f.Subject+" ")}
			}
			return s.Promote(ctx, opt)
		}
		out.Resolution, out.Changes, out.Warnings = res, append(out.Changes, res.Changes...), append(out.Warnings, res.Warnings...)
	}
	return out, nil
}

// closed returns findings about the operators whose windows do not permit the promotion now. It omits operators
// that are kept already. It returns no findings for pull requests, because windows restrict only the merge of a
// pull request.
func (s PromotionStep) closed(ctx context.Context, after, before *lockfile.File, opt PromotionOptions) (rules.Findings, error) {
	if opt.Proposes {
		return nil, nil
	}
	found, err := closedWindows(ctx, s.To.Project, before, after)
	return slices.DeleteFunc(found, func(f rules.Finding) bool {
		_, kept := opt.kept[f.Subject]
		return kept
	}), err
}

// isSamePin reports whether two pins have the same bundle, by digest.
func isSamePin(a, b lockfile.Pin) bool {
	return a.Bundle == b.Bundle && a.BundleDigest() == b.BundleDigest()
}

// selectOperators selects the operators in opt.Only, and their dependencies in the upstream lock.
// Without opt.Only, all operators are selected.
func (p *promotion) selectOperators() error {
	if len(p.opt.Only) == 0 {
		return nil
	}
	var known []string
	for _, pin := range p.from.Pins {
		known = append(known, pin.Key())
	}
	var faults diag.List
	p.selected = map[string]bool{}
	for _, key := range p.opt.Only {
		if _, ok := p.from.Operator(key); !ok {
			faults.Addf(diag.Pos{}, "%s does not pin %s%s", p.From.Title, key, diag.DidYouMean(key, known))
		}
		p.selected[key] = true
	}
	for more := true; more; {
		more = false
		for _, pin := range p.from.Pins {
			for _, r := range pin.Requires {
				if p.selected[pin.Key()] && !p.selected[r.Pin] {
					p.selected[r.Pin], more = true, true
				}
			}
		}
	}
	return faults.Err()
}

// applyGate adds three kinds of operators to p.held: operators that the options keep, operators that fail the
// gate, and operators whose earlier promotion a person reverted.
func (p *promotion) applyGate(ctx context.Context) error {
	if p.opt.Rule != nil && p.opt.Rule.Signed {
		if err := p.To.VerifyObserved(p.opt.Observed); err != nil {
			return err
		}
	}
	var clone *workspace.Clone
	if p.opt.Proposes {
		var err error
		if clone, err = p.To.Clone(); err != nil && !errors.Is(err, gitrepo.ErrNone) {
			return err
		}
	}
	maps.Copy(p.held, p.opt.kept)
	p.seen = health.Observations(p.opt.Observed)
	for _, pin := range p.from.Pins {
		key := pin.Key()
		now, pinned := p.problem.Read.Operator(key)
		if _, kept := p.held[key]; kept || pinned && isSamePin(now, pin) {
			continue
		}
		by, text, err := p.gateReason(pin)
		if err == nil && text == "" && pinned && clone != nil && !slices.Contains(p.opt.Only, key) {
			by = ReasonDeclined
			text, err = clone.RevertReason(ctx, now, pin)
		}
		if err != nil {
			return err
		}
		if text != "" {
			p.held[key] = resolve.HeldUpgrade{By: by, Text: text}
		}
	}
	return nil
}

// gateReason returns the reason why the gate rejects an upstream pin, or an empty text.
func (p *promotion) gateReason(pin lockfile.Pin) (resolve.HeldBack, string, error) {
	if p.opt.Rule == nil {
		return "", "", nil
	}
	v, err := p.verdict(pin)
	if err != nil {
		return "", "", err
	}
	p.verdicts[pin.Key()] = v
	if !v.Pass {
		return ReasonGate, v.Text(*p.opt.Rule, p.From.Title), nil
	}
	text := p.notUpgradeableReason(pin)
	if text != "" {
		text = "in " + p.To.Title + " " + text
	}
	return ReasonGate, text, nil
}

// verdict evaluates the gate for an upstream pin.
func (p *promotion) verdict(pin lockfile.Pin) (*gate.Verdict, error) {
	clusters, err := profile.ClustersThatGet(pin.Key(), p.From.Settings.Clusters)
	if err != nil {
		return nil, err
	}
	v := gate.Judge(*p.opt.Rule, gate.Pin{
		Environment: p.From.Title, Operator: pin.Key(), Bundle: string(pin.BundleDigest()), Checksum: string(pin.Checksum()), Clusters: clusters,
	}, p.seen, p.opt.Now)
	return &v, nil
}

// notUpgradeableReason returns a text that lists the clusters of the target environment in which
// the operator reports that it is not upgradeable. It returns "" if there are no such clusters.
func (p *promotion) notUpgradeableReason(pin lockfile.Pin) string {
	clusters, err := profile.ClustersThatGet(pin.Key(), p.To.Settings.Clusters)
	now, ok := p.problem.Read.Operator(pin.Key())
	if err != nil || !ok {
		return ""
	}
	v := gate.Judge(*p.opt.Rule, gate.Pin{Environment: p.To.Title, Operator: now.Key(), Bundle: string(now.BundleDigest()), Clusters: clusters}, p.seen, p.opt.Now)
	for _, r := range v.Reasons {
		if r.Cause == gate.NotUpgradeable {
			return r.String()
		}
	}
	return ""
}

// resolve resolves the target environment with the upstream pins.
func (p *promotion) resolve(ctx context.Context) (*workspace.Resolution, error) {
	pr := *p.problem
	pr.Options.From, pr.Options.Lenient = p.upstreamLock(), true
	pr.Options.Objection = func(namespace string, to *catalog.Bundle) string { return p.refusal(ctx, namespace, to) }
	res, err := workspace.Resolve(ctx, &pr)
	if err != nil {
		return nil, err
	}
	if res.Failed != nil {
		return nil, res.Failed
	}
	return res, p.checkBundles(res)
}

// refusal returns the reason to reject a bundle, or "". It also rejects a bundle that has the same name as the
// upstream bundle but different content, because this content was not tested upstream.
func (p *promotion) refusal(ctx context.Context, namespace string, to *catalog.Bundle) string {
	key := namespace + "/" + to.Package().Name()
	theirs, there := p.from.Operator(key)
	switch s, stays := p.held[key]; {
	case !there:
		return "is not pinned in " + p.From.Title
	case theirs.Bundle != to.Name():
		return "differs from the bundle pinned in " + p.From.Title + " (" + theirs.Bundle + ")"
	case stays:
		return "blocked: " + s.Text
	case !p.isPromoted(key):
		return "is not selected for promotion"
	}
	content, known := p.contents[to]
	if !known {
		var err error
		if content, err = p.problem.ContentDigest(ctx, namespace, to); err != nil {
			return "" // the resolver returns this error if it selects the bundle
		}
		p.contents[to] = content
	}
	if content == theirs.BundleDigest() {
		return ""
	}
	p.differs[key] = resolve.HeldUpgrade{By: ReasonContent, Text: fmt.Sprintf("%s has %s with %s, %s with %s", p.From.Title, to.Name(), theirs.BundleDigest().Short(), p.To.Title, content.Short())}
	return "blocked: " + p.differs[key].Text
}

// reasonToKeep returns the reason why an upstream operator is not promoted, and whether there is a reason.
func (p *promotion) reasonToKeep(key string) (resolve.HeldUpgrade, bool) {
	if s, ok := p.held[key]; ok {
		return s, true
	}
	s, ok := p.differs[key]
	return s, ok
}

// isPromoted reports whether an operator is selected and not held, so that the promotion may change it.
func (p *promotion) isPromoted(key string) bool {
	_, stays := p.held[key]
	return !stays && (p.selected == nil || p.selected[key])
}

// upstreamLock returns the upstream lock, reduced to the pins to promote.
func (p *promotion) upstreamLock() *lockfile.File {
	var pins []lockfile.Pin
	for _, pin := range p.from.Pins {
		if p.isPromoted(pin.Key()) {
			pins = append(pins, pin)
		}
	}
	return p.from.With(pins)
}

// checkBundles returns a fault for each pin that would change to a bundle that is not pinned
// upstream.
func (p *promotion) checkBundles(res *workspace.Resolution) error {
	var faults diag.List
	for _, pin := range res.Lock.Pins {
		theirs, there := p.from.Operator(pin.Key())
		if old, ok := p.problem.Read.Operator(pin.Key()); ok && isSamePin(old, pin) || there && isSamePin(theirs, pin) {
			continue
		}
		faults.Addf(diag.Pos{}, "%s: %s would become %s, which differs from the version observed in %s: run 'quayside resolve' in %s first",
			p.To.Title, pin.Key(), pin.Bundle, p.From.Title, p.To.Dir)
	}
	return faults.Err()
}

// rows returns the outcome for each selected operator, sorted by name.
func (p *promotion) rows(res *workspace.Resolution) []PromotionRow {
	keys := map[string]bool{}
	for _, pin := range p.from.Pins {
		keys[pin.Key()] = true
	}
	if p.problem.Read != nil {
		for _, pin := range p.problem.Read.Pins {
			keys[pin.Key()] = true
		}
	}
	for _, s := range p.declared.Subscriptions {
		if s.Package != "" {
			keys[s.Namespace+"/"+s.Package] = true
		}
	}
	var out []PromotionRow
	for key := range keys {
		if p.selected != nil && !p.selected[key] {
			continue
		}
		out = append(out, p.row(key, res))
	}
	slices.SortFunc(out, func(a, b PromotionRow) int { return strings.Compare(a.Operator, b.Operator) })
	return out
}

func (p *promotion) row(key string, res *workspace.Resolution) PromotionRow {
	theirs, there := p.from.Operator(key)
	old, had := p.problem.Read.Operator(key)
	now, has := res.Lock.Operator(key)
	row := PromotionRow{Operator: key, From: theirs.Version, Have: old.Version, Verdict: p.verdicts[key], Outcome: OutcomeKept}
	s, stays := p.reasonToKeep(key)
	switch {
	case had && !has && !stays:
		row.Outcome, row.Message = OutcomeRemoved, "it is no longer requested in "+p.To.Title
	case !there && !stays:
		row.Reason, row.Message = ReasonNotInFrom, p.From.Title+" does not pin it"
		if !had {
			row.Message += ": run 'quayside resolve' to pin it here"
		}
	case has && isSamePin(now, theirs) && had && isSamePin(old, theirs):
		row.Outcome = OutcomeUnchanged
	case has && isSamePin(now, theirs) && had:
		row.Outcome = OutcomeUpgraded
	case has && isSamePin(now, theirs):
		row.Outcome = OutcomeAdded
	case stays && (had || has || p.isDeclared(key) || s.By == ReasonContent || s.By == ReasonDeclined):
		row.Outcome, row.Reason, row.Message = outcomeOf(s.By), s.By, s.Text
	case !has && !p.isDeclared(key):
		row.Reason, row.Message = ReasonNotDeclared, "it is not requested in "+p.To.Title
	default:
		s := p.explain(key, theirs, res)
		row.Outcome, row.Reason, row.Message = outcomeOf(s.By), s.By, s.Text
	}
	return row
}

// isDeclared reports whether an operator is declared in the target environment.
func (p *promotion) isDeclared(key string) bool {
	return slices.ContainsFunc(p.declared.Subscriptions, func(s declare.Subscription) bool { return s.Namespace+"/"+s.Package == key })
}

// explain returns the reason why an operator is not promoted.
func (p *promotion) explain(key string, theirs lockfile.Pin, res *workspace.Resolution) resolve.HeldUpgrade {
	held, found := res.HeldPromotions[key]
	if !found {
		return resolve.HeldUpgrade{By: resolve.HeldByConflict, Text: fmt.Sprintf("%s pins %s, which conflicts with other pins", p.From.Title, theirs.Bundle)}
	}
	if held.By == resolve.HeldByConflict {
		if needed, ok := p.findRefused(theirs, held.Refused); ok {
			s, _ := p.reasonToKeep(needed.Key())
			return resolve.HeldUpgrade{By: ReasonNeeds, Text: "it needs " + needed.Key() + " " + needed.Version + ", which is held back: " + s.Text}
		}
	}
	held.Text = p.From.Title + " pins " + held.Text
	return held
}

// findRefused searches the dependencies of pin in the upstream lock. It returns the first dependency that is in
// refused and is not promoted.
func (p *promotion) findRefused(pin lockfile.Pin, refused []string) (lockfile.Pin, bool) {
	for todo, seen := []lockfile.Pin{pin}, map[string]bool{pin.Key(): true}; len(todo) > 0; todo = todo[1:] {
		for _, r := range todo[0].Requires {
			below, there := p.from.Operator(r.Pin)
			if !there || seen[r.Pin] {
				continue
			}
			seen[r.Pin], todo = true, append(todo, below)
			if _, ok := p.reasonToKeep(r.Pin); ok && slices.Contains(refused, r.Pin) {
				return below, true
			}
		}
	}
	return lockfile.Pin{}, false
}
