package diff

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"

	"github.com/quayside/quayside/internal/celrule"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/scan"
)

// Policy decides which findings are refused. It has severity thresholds, waivers and user-defined
// rules.
type Policy struct {
	FailOn   Severity // findings of this severity or higher are refused; Off refuses none
	Clusters []Level  // FailOn for some clusters; the first match applies
	Waivers  []diag.Waiver
	Rules    []CELRule // matching findings are refused, whatever their severity

	// Vulnerabilities lists the scanner severities for which a new vulnerability is refused. If it
	// is not nil, FailOn and Clusters do not apply to new vulnerabilities.
	Vulnerabilities []string

	Base *Policy // another policy that must accept each finding, too; may be nil
}

// Level is the value of FailOn for some clusters.
type Level struct {
	Names  []string // names of clusters, or prefixes followed by "*"
	FailOn Severity
}

// CELRule is a user-defined rule.
type CELRule struct {
	Name       string `json:"name"`
	Expression string `json:"expression"` // `finding.rule.startsWith("images.") && finding.after.contains("docker.io")`
	Message    string `json:"message,omitempty"`

	Tree bool     `json:"-"` // the rule is about rendered objects instead of findings
	Pos  diag.Pos `json:"-"` // position of the expression
}

// PolicyResult is the verdict of a policy on a report.
type PolicyResult struct {
	Fail    bool           `json:"fail"`
	Faults  []Fault        `json:"faults,omitempty"`  // refused findings, in the order of the report
	Waived  []Fault        `json:"waived,omitempty"`  // findings that match a user-defined rule, but are accepted by a waiver
	Waivers []diag.Warning `json:"waivers,omitempty"` // warnings about waivers that have expired, expire soon or match no finding
}

// Refused returns the number of refused findings for display, such as "2 findings".
func (v *PolicyResult) Refused() string { return diag.Count(len(v.Faults), "finding") }

// Fault is a finding that the policy refuses, with the reason.
type Fault struct {
	Policy   string `json:"policy"` // "failOn", or the name of a user-defined rule
	Message  string `json:"message"`
	Rule     string `json:"rule"` // rule ID of the finding
	Operator string `json:"operator,omitempty"`
	Subject  string `json:"subject,omitempty"` // "CustomResourceDefinition widgets.demo.io v1 spec.x"

	Clusters []string `json:"clusters,omitempty"` // clusters for which the finding is refused; nil means all
	Waiver   string   `json:"waiver,omitempty"`   // reason of the waiver that accepts the finding
}

// fault returns the fault for a refused finding. policy is the policy's field or rule that refuses the finding.
func (f Finding) fault(policy, message string, clusters []string) Fault {
	return Fault{policy, message, f.Rule, f.Operator, strings.TrimSuffix(clusterPrefix(clusters)+f.subject(), ": "), clusters, f.Waiver}
}

// Judge applies the policy p. It returns a copy of r with waivers and a verdict.
//
// A waiver for the rule of a finding has no effect on user-defined rules: these need waivers with their own
// names. If p has a base, both policies must accept each finding, each with its own waivers. If nothing but
// the policy and trust settings changes, no finding is refused. today is the current day, such as
// "2026-11-21".
//
// The error lists all user-defined rules with invalid CEL, or names a rule whose evaluation fails.
func Judge(r *Report, p Policy, today string) (*Report, error) {
	var judges []*judge
	for at := &p; at != nil; at = at.Base {
		rules, err := at.compile(false)
		if err != nil {
			return nil, err
		}
		w := at.selectWaivers(today, func(one diag.Waiver) bool { return at.appliesToDiff(one, r.scanned) })
		w.clusters = r.Clusters
		judges = append(judges, &judge{*at, rules, w})
	}
	out := *r
	out.Findings = nil
	var v PolicyResult
	for _, f := range r.Findings {
		var faults []Fault
		for _, part := range splitWaived(judges, f, r.Clusters) {
			faults = append(faults, part.faults...)
			out.Findings = append(out.Findings, part.Finding)
		}
		for _, j := range judges {
			refused, waived, err := j.applyRules(f)
			if err != nil {
				return nil, err
			}
			faults, v.Waived = append(faults, refused...), append(v.Waived, waived...)
		}
		v.Faults = append(v.Faults, uniqueFaults(faults)...)
	}
	if r.onlyPolicy {
		v.Faults, judges[0].waiverSet.used = nil, slices.Repeat([]bool{true}, len(judges[0].waiverSet.used))
	}
	v.Waivers = diag.Review(judges[0].waiverSet.waivers, judges[0].waiverSet.used, judges[0].waiverSet.objects, today)
	out.Notes = slices.Concat(r.Notes, p.unknownClusterNotes(r.Clusters))
	out.Operators = slices.Clone(r.Operators)
	out.addMissingOperators(r.Operators)
	v.Fail = len(v.Faults) > 0
	out.Verdict = &v
	return &out, nil
}

// uniqueFaults removes duplicate faults. Two policies may refuse the same finding.
func uniqueFaults(faults []Fault) []Fault {
	var out []Fault
	for _, f := range faults {
		if !slices.ContainsFunc(out, func(g Fault) bool { return reflect.DeepEqual(f, g) }) {
			out = append(out, f)
		}
	}
	return out
}

// judge is a policy with its compiled rules, for one report.
type judge struct {
	policy    Policy
	rules     []compiledRule
	waiverSet *waiverSet
}

// applyRules applies the user-defined rules to a finding. For each rule that refuses the finding, it returns a
// fault: in waived if a waiver accepts the finding for this rule, otherwise in refused.
func (j *judge) applyRules(f Finding) (refused, waived []Fault, err error) {
	for _, rule := range j.rules {
		parts, err := rule.refusedParts(f)
		if err != nil {
			return nil, nil, diag.Errorf(rule.Pos, "policy rule %q: %w", rule.Name, err)
		}
		if len(parts) == 0 {
			continue
		}
		for _, f := range j.waiverSet.waive(f.withParts(parts), rule.Name) {
			fault := f.fault(rule.Name, cmp.Or(rule.Message, rule.Expression), f.Clusters)
			if f.Waiver == "" {
				refused = append(refused, fault)
			} else {
				waived = append(waived, fault)
			}
		}
	}
	return refused, waived, nil
}

// judgedFinding is a part of a finding, with the reasons why it is refused.
type judgedFinding struct {
	Finding
	faults []Fault
}

// splitWaived splits a finding into parts, so that each part is waived or not waived as a whole. With several
// policies, a part is waived only if no policy refuses it. all contains the names of all clusters.
func splitWaived(judges []*judge, f Finding, all []string) []judgedFinding {
	parts := []judgedFinding{{Finding: f}}
	for _, j := range judges {
		var next []judgedFinding
		for _, p := range parts {
			waiver := p.Waiver
			p.Waiver = ""
			for _, g := range j.waiverSet.waive(p.Finding, f.Rule) {
				part := judgedFinding{g, slices.Clone(p.faults)}
				in, by, fails := j.policy.fails(g, all)
				if fails && g.Waiver == "" {
					part.faults = append(part.faults, g.fault(by, fmt.Sprintf("%s: %s", g.Severity, g.Message), in))
				}
				part.Waiver = cmp.Or(waiver, g.Waiver)
				next = append(next, part)
			}
		}
		parts = next
	}
	for i := range parts {
		if len(parts[i].faults) > 0 {
			parts[i].Waiver = ""
		}
	}
	return parts
}

// appliesToDiff reports whether a waiver can match a finding of this comparison. If scanned is
// false, scan results were not compared, and waivers for vulnerabilities match nothing.
func (p Policy) appliesToDiff(w diag.Waiver, scanned bool) bool {
	if !scanned && (w.Vulnerability != "" || strings.HasPrefix(w.Rule, "vulnerabilities.")) {
		return false
	}
	return p.isOwnRule(w, false) || slices.ContainsFunc(Rules(), func(r RuleInfo) bool { return diag.Matches(w.Rule, r.ID) })
}

// fails reports whether p refuses a finding. It also returns the clusters for which p refuses the finding (nil
// means all), and the field or the rule of the policy that refuses it.
func (p Policy) fails(f Finding, all []string) (in []string, by string, fails bool) {
	if f.Rule == vulnerabilityAdded && p.Vulnerabilities != nil {
		return f.Clusters, vulnerabilityAdded, slices.ContainsFunc(f.vulnerabilities(), func(v Vulnerability) bool {
			return slices.Contains(p.Vulnerabilities, v.Severity)
		})
	}
	in, fails = p.refusedClusters(f, all)
	return in, "failOn", fails
}

// refusedClusters returns the clusters for which the severity of a finding is refused (nil means
// all). The second result is false if there are none.
func (p Policy) refusedClusters(f Finding, all []string) ([]string, bool) {
	clusters := f.Clusters
	if clusters == nil {
		clusters = all
	}
	reaches := func(level Severity) bool { return level != Off && f.Severity >= level }
	if len(clusters) == 0 {
		return nil, reaches(p.FailOn)
	}
	in := slices.DeleteFunc(slices.Clone(clusters), func(name string) bool { return !reaches(p.Level(name)) })
	if len(in) == len(clusters) {
		return f.Clusters, true
	}
	return in, len(in) > 0
}

// Level returns the lowest severity that is refused for a cluster.
func (p Policy) Level(cluster string) Severity {
	for _, l := range p.Clusters {
		if anyMatches(l.Names, cluster) {
			return l.FailOn
		}
	}
	return p.FailOn
}

// Refused returns the scanner severities for which a new vulnerability is refused, without regard
// to Clusters.
func (p Policy) Refused() []string {
	if p.Vulnerabilities != nil {
		return p.Vulnerabilities
	}
	var out []string
	for _, s := range []scan.Severity{scan.Critical, scan.High, scan.Medium, scan.Low, scan.Negligible, scan.Unknown} {
		if p.FailOn != Off && severityOf(s) >= p.FailOn {
			out = append(out, s.String())
		}
	}
	return out
}

// unknownClusterNotes returns a note for each name in the policy's levels that matches no cluster.
func (p Policy) unknownClusterNotes(clusters []string) []string {
	var out []string
	for _, l := range p.Clusters {
		for _, pattern := range l.Names {
			if len(clusters) > 0 && !slices.ContainsFunc(clusters, func(name string) bool { return diag.Matches(pattern, name) }) {
				out = append(out, fmt.Sprintf("policy.clusters: no cluster matches %q", pattern))
			}
		}
	}
	return out
}

// isOwnRule reports whether a waiver names a user-defined rule. tree selects rules about objects
// instead of findings.
func (p Policy) isOwnRule(w diag.Waiver, tree bool) bool {
	return slices.ContainsFunc(p.Rules, func(r CELRule) bool { return r.Tree == tree && diag.Matches(w.Rule, r.Name) })
}

// selectWaivers returns the waivers for which keep returns true, marked as unused.
func (p Policy) selectWaivers(today string, keep func(diag.Waiver) bool) *waiverSet {
	w := &waiverSet{today: today}
	for _, one := range p.Waivers {
		if keep(one) {
			w.waivers = append(w.waivers, one)
		}
	}
	w.used, w.objects = make([]bool, len(w.waivers)), make([][]string, len(w.waivers))
	return w
}

// anyMatches reports whether any pattern matches s.
func anyMatches(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return diag.Matches(pattern, s) })
}

// compiledRule is a compiled user-defined rule.
type compiledRule struct {
	CELRule
	program *celrule.Rule
}

// CheckRules compiles the user-defined rules. The error lists the faults of all rules.
func (p Policy) CheckRules() error {
	_, err := p.compile(false)
	return err
}

// compile compiles the user-defined rules. tree selects rules about objects instead of findings.
// The error lists the faults of all rules.
func (p Policy) compile(tree bool) ([]compiledRule, error) {
	fields := cel.MapType(cel.StringType, cel.DynType)
	ofFindings, err := cel.NewEnv(cel.Variable("finding", fields), cel.Variable("object", fields), cel.Variable("before", cel.DynType), cel.Variable("after", cel.DynType), ext.Strings())
	if err != nil {
		return nil, err
	}
	ofObjects, err := cel.NewEnv(cel.Variable("object", fields), cel.Variable("operator", cel.StringType), cel.Variable("cluster", cel.StringType), ext.Strings())
	if err != nil {
		return nil, err
	}
	var faults diag.List
	var out []compiledRule
	budget := celrule.NewBudget()
	for _, r := range p.Rules {
		env := ofFindings
		if r.Tree {
			env = ofObjects
		}
		program, err := budget.Compile(env, r.Expression)
		if err != nil {
			faults.Addf(r.Pos, "policy rule %q: %w", r.Name, err)
			continue
		}
		if !r.Tree {
			known := slices.Sorted(maps.Keys(Finding{}.fields()))
			for _, field := range program.Fields("finding") {
				if !slices.Contains(known, field) {
					faults.Addf(r.Pos, "policy rule %q: unknown field %q of finding%s", r.Name, field, diag.DidYouMean(field, known))
				}
			}
		}
		if r.Tree == tree {
			out = append(out, compiledRule{r, program})
		}
	}
	return out, faults.Err()
}

// refusedParts returns the indexes in [Finding.parts] of the parts that the rule refuses. It
// evaluates each location of a finding about several objects separately.
func (r compiledRule) refusedParts(f Finding) ([]int, error) {
	all, repeated := f.parts(), len(f.locations()) > 0
	evaluate := func(f Finding) (bool, error) {
		vars := map[string]any{"finding": f.fields(), "object": celObject(f.objects.object()), "before": nil, "after": nil}
		if o := f.objects.before; o != nil {
			vars["before"] = o.Whole()
		}
		if o := f.objects.after; o != nil {
			vars["after"] = o.Whole()
		}
		return r.program.Holds(vars)
	}
	var out []int
	for i := range all {
		part := f
		if repeated {
			part = f.withParts([]int{i})
		} else if i > 0 {
			out = append(out, i) // the result for part 0 applies to all parts
			continue
		}
		holds, err := evaluate(part)
		if err != nil || !holds && !repeated {
			return nil, err
		}
		if holds {
			out = append(out, i)
		}
	}
	return out, nil
}

// celObject returns the content of an object as a CEL variable, with additional fields for its
// group, version, name and namespace. It returns an empty map for nil.
func celObject(o *Object) map[string]any {
	if o == nil {
		return map[string]any{}
	}
	out := maps.Clone(o.Whole())
	ref := o.Ref()
	for field, v := range map[string]string{"group": ref.Group, "version": ref.Version, "name": ref.Name, "namespace": ref.Namespace} {
		if _, has := out[field]; !has {
			out[field] = v
		}
	}
	return out
}

// fields returns the finding as a CEL variable.
func (f Finding) fields() map[string]any {
	d := f.document()
	return map[string]any{
		"rule": f.Rule, "family": f.family(), "severity": f.Severity.String(), "rank": int64(f.Severity), "operator": f.Operator,
		"group": f.Object.Group, "version": f.Object.Version, "kind": f.Object.Kind, "namespace": f.Object.Namespace, "name": f.Object.Name,
		"field": f.Field, "container": f.Container, "before": f.Before, "after": f.After, "message": f.Message, "path": f.Place.Path, "clusters": f.Clusters,
		"vulnerabilities": vulnerabilityProperties(d.Vulnerabilities), "bytesBefore": d.BytesBefore, "bytesAfter": d.BytesAfter,
	}
}

// vulnerabilityProperties returns vulnerabilities as CEL values.
func vulnerabilityProperties(list []Vulnerability) []map[string]any {
	out := []map[string]any{}
	for _, v := range list {
		out = append(out, map[string]any{"id": v.ID, "severity": v.Severity, "packages": v.Packages, "images": v.Images, "fixed": v.Fixed, "title": v.Title})
	}
	return out
}
