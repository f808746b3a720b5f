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

	"github.com/quayside/quayside/internal/base/celrule"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/scan"
)

// Policy is the set of levels, waivers and rules that decide which findings fail.
type Policy struct {
	FailOn   Severity // findings of this severity or worse fail; Off: none fails
	Clusters []Level  // replace FailOn: the first level that matches a cluster decides
	Waivers  []diag.Waiver
	Rules    []CELRule // a finding that matches one of them fails, whatever its severity

	// Vulnerabilities are the scanners' severities of new vulnerabilities that fail. They
	// replace FailOn and Clusters for these findings; nil means that those decide.
	Vulnerabilities []string

	Base *Policy // another policy that has to accept a report, too; nil: none
}

// Level is the lowest severity that fails in some clusters.
type Level struct {
	Names  []string // of clusters, or prefixes with "*"
	FailOn Severity
}

// CELRule is a user-defined rule.
type CELRule struct {
	Name       string `json:"name"`
	Expression string `json:"expression"` // `finding.rule.startsWith("images.") && finding.after.contains("docker.io")`
	Message    string `json:"message,omitempty"`

	Tree bool     `json:"-"` // applies to the objects of a cluster instead of findings
	Pos  diag.Pos `json:"-"` // of the expression
}

// PolicyResult is the result of a policy.
type PolicyResult struct {
	Fail    bool           `json:"fail"`
	Faults  []Fault        `json:"faults,omitempty"`  // the reasons to fail, in the order of the findings
	Waived  []Fault        `json:"waived,omitempty"`  // refused by user-defined rules and accepted by a waiver
	Waivers []diag.Warning `json:"waivers,omitempty"` // about waivers that have expired, expire soon or match nothing
}

// Refused returns the number of refused findings, as text.
func (v *PolicyResult) Refused() string { return diag.Count(len(v.Faults), "finding") }

// Fault is one reason to fail.
type Fault struct {
	Policy   string `json:"policy"` // "failOn", or the name of a user-defined rule
	Message  string `json:"message"`
	Rule     string `json:"rule"` // of the finding
	Operator string `json:"operator,omitempty"`
	Subject  string `json:"subject,omitempty"` // "CustomResourceDefinition widgets.demo.io v1 spec.x"

	Clusters []string `json:"clusters,omitempty"` // where it fails; nil: in all clusters
	Waiver   string   `json:"waiver,omitempty"`   // the reason of the waiver that accepts it
}

func (f Finding) fault(policy, message string, clusters []string) Fault {
	return Fault{policy, message, f.Rule, f.Operator, strings.TrimSuffix(onlyIn(clusters)+f.subject(), ": "), clusters, f.Waiver}
}

// Judge returns a copy of r with the waivers and the verdict of p. A waiver of a finding's
// rule does not apply to user-defined rules that refuse the same finding: these are waived
// by their own names. With a base, each finding has to be accepted by both policies, each
// with its own waivers. Findings about a policy that changes alone are never refused. today
// is a day such as "2026-11-21". The error lists all rules that are not valid CEL, or names
// a rule that fails on a finding.
func Judge(r *Report, p Policy, today string) (*Report, error) {
	var judges []*judge
	for at := &p; at != nil; at = at.Base {
		rules, err := at.compile(false)
		if err != nil {
			return nil, err
		}
		w := at.waiving(today, func(one diag.Waiver) bool { return at.judges(one, r.scanned) })
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
		v.Faults = append(v.Faults, unique(faults)...)
	}
	if r.onlyPolicy {
		v.Faults, judges[0].waiving.used = nil, slices.Repeat([]bool{true}, len(judges[0].waiving.used))
	}
	v.Waivers = diag.Review(judges[0].waiving.waivers, judges[0].waiving.used, today)
	out.Notes = slices.Concat(r.Notes, p.strangers(r.Clusters))
	out.Operators = slices.Clone(r.Operators)
	out.arrange(r.Operators)
	v.Fail = len(v.Faults) > 0
	out.Verdict = &v
	return &out, nil
}

// unique returns faults without repetitions, which two policies may have.
func unique(faults []Fault) []Fault {
	var out []Fault
	for _, f := range faults {
		if !slices.ContainsFunc(out, func(g Fault) bool { return reflect.DeepEqual(f, g) }) {
			out = append(out, f)
		}
	}
	return out
}

// judge is one of the policies that judge a report.
type judge struct {
	policy  Policy
	rules   []compiled
	waiving *waiving
}

// applyRules returns a fault for each user-defined rule that refuses a finding.
func (j *judge) applyRules(f Finding) (refused, waived []Fault, err error) {
	for _, rule := range j.rules {
		parts, err := rule.parts(f)
		if err != nil {
			return nil, nil, diag.Errorf(rule.Pos, "policy rule %q: %w", rule.Name, err)
		}
		if len(parts) == 0 {
			continue
		}
		for _, f := range j.waiving.waive(f.only(parts), rule.Name) {
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

// judgedFinding is a part of a finding with the reasons to refuse it.
type judgedFinding struct {
	Finding
	faults []Fault
}

// splitWaived splits a finding by the waivers of all policies. A part has the reason of a
// waiver if no policy refuses it.
func splitWaived(judges []*judge, f Finding, all []string) []judgedFinding {
	parts := []judgedFinding{{Finding: f}}
	for _, j := range judges {
		var next []judgedFinding
		for _, p := range parts {
			waiver := p.Waiver
			p.Waiver = ""
			for _, g := range j.waiving.waive(p.Finding, f.Rule) {
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

// judges reports whether a waiver applies to findings of a diff. Without scan results,
// waivers of vulnerabilities do not apply yet.
func (p Policy) judges(w diag.Waiver, scanned bool) bool {
	if !scanned && (w.Vulnerability != "" || strings.HasPrefix(w.Rule, "vulnerabilities.")) {
		return false
	}
	return p.own(w, false) || slices.ContainsFunc(Rules(), func(r Rule) bool { return diag.Matches(w.Rule, r.ID) })
}

// fails reports whether a finding fails, and returns the clusters (nil means all) and the
// policy field or rule that decides.
func (p Policy) fails(f Finding, all []string) (in []string, by string, fails bool) {
	if f.Rule == vulnerabilityAdded && p.Vulnerabilities != nil {
		return f.Clusters, vulnerabilityAdded, slices.ContainsFunc(f.Vulnerabilities, func(v Vulnerability) bool {
			return slices.Contains(p.Vulnerabilities, v.Severity)
		})
	}
	in, fails = p.reached(f, all)
	return in, "failOn", fails
}

// reached reports whether a finding reaches the level of any cluster, and returns these
// clusters; nil means all.
func (p Policy) reached(f Finding, all []string) ([]string, bool) {
	whole := f.Clusters
	if whole == nil {
		whole = all
	}
	reaches := func(level Severity) bool { return level != Off && f.Severity >= level }
	if len(whole) == 0 {
		return nil, reaches(p.FailOn)
	}
	in := slices.DeleteFunc(slices.Clone(whole), func(name string) bool { return !reaches(p.Level(name)) })
	if len(in) == len(whole) {
		return f.Clusters, true
	}
	return in, len(in) > 0
}

// Level returns the lowest severity that fails in a cluster.
func (p Policy) Level(cluster string) Severity {
	for _, l := range p.Clusters {
		if anyMatches(l.Names, cluster) {
			return l.FailOn
		}
	}
	return p.FailOn
}

// Refused returns the scanners' severities of new vulnerabilities that fail in general.
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

// strangers returns notes about names of the policy's levels that match no cluster.
func (p Policy) strangers(clusters []string) []string {
	var out []string
	for _, l := range p.Clusters {
		for _, pattern := range l.Names {
			if len(clusters) > 0 && !slices.ContainsFunc(clusters, func(name string) bool { return diag.Matches(pattern, name) }) {
				out = append(out, fmt.Sprintf("policy.clusters: no cluster %q", pattern))
			}
		}
	}
	return out
}

// own reports whether a waiver is for a user-defined rule about objects (tree) or
// findings.
func (p Policy) own(w diag.Waiver, tree bool) bool {
	return slices.ContainsFunc(p.Rules, func(r CELRule) bool { return r.Tree == tree && diag.Matches(w.Rule, r.Name) })
}

// waiving returns some waivers of the policy, all unused.
func (p Policy) waiving(today string, which func(diag.Waiver) bool) *waiving {
	w := &waiving{today: today}
	for _, one := range p.Waivers {
		if which(one) {
			w.waivers = append(w.waivers, one)
		}
	}
	w.used = make([]bool, len(w.waivers))
	return w
}

func anyMatches(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return diag.Matches(pattern, s) })
}

// compiled is a compiled rule.
type compiled struct {
	CELRule
	program *celrule.Rule
}

// compile compiles the rules about objects (tree) or findings. The error lists the faults
// of all rules.
func (p Policy) compile(tree bool) ([]compiled, error) {
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
	var out []compiled
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
		if r.Tree == tree {
			out = append(out, compiled{r, program})
		}
	}
	return out, faults.Err()
}

// parts returns the parts of a finding that the rule refuses, by their indexes in
// [Finding.parts]: each place of a finding about several objects is judged by itself.
func (r compiled) parts(f Finding) ([]int, error) {
	all := f.parts()
	one := func(f Finding) (bool, error) {
		vars := map[string]any{"finding": f.fields(), "object": celObject(cmp.Or(f.is, f.was)), "before": nil, "after": nil}
		if f.was != nil {
			vars["before"] = f.was.Whole()
		}
		if f.is != nil {
			vars["after"] = f.is.Whole()
		}
		return r.program.Holds(vars)
	}
	var out []int
	for i := range all {
		which := f
		if len(f.spots) > 0 {
			which = f.only([]int{i})
		} else if i > 0 {
			out = append(out, i) // of the same object
			continue
		}
		holds, err := one(which)
		if err != nil || !holds && len(f.spots) == 0 {
			return nil, err
		}
		if holds {
			out = append(out, i)
		}
	}
	return out, nil
}

// celObject returns the content of an object as a CEL variable, with its group, version, name
// and namespace; empty for nil.
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
	return map[string]any{
		"rule": f.Rule, "family": f.Family(), "severity": f.Severity.String(), "rank": int64(f.Severity), "operator": f.Operator,
		"group": f.Object.Group, "version": f.Object.Version, "kind": f.Object.Kind, "namespace": f.Object.Namespace, "name": f.Object.Name,
		"field": f.Field, "container": f.Container, "before": f.Before, "after": f.After, "message": f.Message, "path": f.Place.Path, "clusters": f.Clusters,
		"vulnerabilities": vulnerabilityProperties(f.Vulnerabilities), "bytesBefore": f.BytesBefore, "bytesAfter": f.BytesAfter,
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
