package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"

	"github.com/quayside/quayside/internal/celrule"
	"github.com/quayside/quayside/internal/diag"
)

// Policy says what a diff may bring without a person's word.
type Policy struct {
	FailOn   Severity  // findings of this severity or worse fail; Off: none does
	Clusters []Level   // in place of FailOn: the first that is for a cluster decides
	Waivers  []Waiver  // exceptions
	Rules    []CELRule // a finding for which one of them holds fails, whatever its severity

	// Vulnerabilities are the severities, as scanners have them, that fail where one
	// comes, in place of FailOn and Clusters; nil: these decide.
	Vulnerabilities []string
}

// Level is what fails in some clusters.
type Level struct {
	Names  []string // of clusters, or beginnings with "*"
	FailOn Severity
}

// Waiver lets findings of a rule pass.
type Waiver struct {
	Rule     string `json:"rule"`               // "rbac.wildcard", or "rbac.*"
	Operator string `json:"operator,omitempty"` // "namespace/package"; empty: every one
	Object   string `json:"object,omitempty"`   // name of the object; empty: every one
	Reason   string `json:"reason"`
	Expires  string `json:"expires,omitempty"` // "2027-01-01", the last day it holds; empty: never

	Clusters []string `json:"clusters,omitempty"` // names, or beginnings with "*"; nil: all

	Vulnerability string `json:"vulnerability,omitempty"` // one of its names; empty: whatever the finding is about
}

// CELRule is a rule of the user's own.
type CELRule struct {
	Name       string `json:"name"`
	Expression string `json:"expression"` // `finding.rule.startsWith("images.") && finding.after.contains("docker.io")`
	Message    string `json:"message,omitempty"`
}

// Verdict is the policy's answer.
type Verdict struct {
	Fail    bool     `json:"fail"`
	Faults  []Fault  `json:"faults,omitempty"`  // why, in the order of the findings
	Expired []Waiver `json:"expired,omitempty"` // waivers that no longer hold
	Unused  []Waiver `json:"unused,omitempty"`  // waivers that matched nothing
}

// Refused says in one line what the policy refused.
func (v *Verdict) Refused() string {
	var parts []string
	if n := len(v.Faults); n > 0 {
		parts = append(parts, diag.Count(n, "finding"))
	}
	return strings.Join(parts, ", ")
}

// Fault is one reason to fail.
type Fault struct {
	Policy   string `json:"policy"` // "failOn", or the name of a rule of the user's own
	Message  string `json:"message"`
	Rule     string `json:"rule"` // of the finding, with what it is about
	Operator string `json:"operator,omitempty"`
	Subject  string `json:"subject,omitempty"` // "CustomResourceDefinition widgets.demo.io v1 spec.x"

	Clusters []string `json:"clusters,omitempty"` // where it fails; nil: in all
}

func (f Finding) fault(policy, message string, clusters []string) Fault {
	return Fault{policy, message, f.Rule, f.Operator, strings.TrimSuffix(onlyIn(clusters)+f.subject(), ": "), clusters}
}

// Judge returns a copy of r that carries the waivers and the verdict of p.
// today is the day, "2026-11-21". Errors are about the policy itself: a waiver
// without a reason or with a bad day, a rule that is no CEL; all at once.
func Judge(r *Report, p Policy, today string) (*Report, error) {
	rules, err := p.check(today)
	if err != nil {
		return nil, err
	}
	out := *r
	out.Findings = nil
	var v Verdict
	used := make([]bool, len(p.Waivers))
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, p.waive(f, r.Clusters, today, used)...)
	}
	for _, f := range out.Findings {
		if f.Waiver != "" {
			continue
		}
		if in, by, fails := p.fails(f, r.Clusters); fails {
			v.Faults = append(v.Faults, f.fault(by, fmt.Sprintf("%s: %s", f.Severity, f.Message), in))
		}
		for _, rule := range rules {
			holds, err := rule.program.Holds(map[string]any{"finding": f.fields()})
			if err != nil {
				return nil, fmt.Errorf("policy rule %q: %w", rule.Name, err)
			}
			if holds {
				v.Faults = append(v.Faults, f.fault(rule.Name, cmp.Or(rule.Message, rule.Expression), f.Clusters))
			}
		}
	}
	for j, w := range p.Waivers {
		switch {
		case w.expired(today):
			v.Expired = append(v.Expired, w)
		case !used[j] && (r.scanned || !w.scans()):
			v.Unused = append(v.Unused, w)
		}
	}
	out.Notes = slices.Concat(r.Notes, p.strangers(r.Clusters))
	out.Operators = slices.Clone(r.Operators)
	out.arrange(r.Operators)
	v.Fail = len(v.Faults) > 0
	out.Verdict = &v
	return &out, nil
}

// fails reports whether the severity of a finding fails, in which of all clusters,
// nil for all of them, and by which word of the policy.
func (p Policy) fails(f Finding, all []string) (in []string, by string, fails bool) {
	if f.Rule == vulnerabilityAdded && p.Vulnerabilities != nil {
		return f.Clusters, vulnerabilityAdded, slices.ContainsFunc(f.Vulnerabilities, func(v Vulnerability) bool {
			return slices.Contains(p.Vulnerabilities, v.Severity)
		})
	}
	in, fails = p.reached(f, all)
	return in, "failOn", fails
}

// reached reports whether a finding reaches the level of any of all clusters, and of
// which; nil for all of them.
func (p Policy) reached(f Finding, all []string) ([]string, bool) {
	whole := f.Clusters
	if whole == nil {
		whole = all
	}
	reaches := func(level Severity) bool { return level != Off && f.Severity >= level }
	if len(whole) == 0 {
		return nil, reaches(p.FailOn)
	}
	in := slices.DeleteFunc(slices.Clone(whole), func(name string) bool { return !reaches(p.level(name)) })
	if len(in) == len(whole) {
		return f.Clusters, true
	}
	return in, len(in) > 0
}

// level returns what fails in a cluster.
func (p Policy) level(cluster string) Severity {
	for _, l := range p.Clusters {
		if anyMatches(l.Names, cluster) {
			return l.FailOn
		}
	}
	return p.FailOn
}

// strangers says which names of the policy's levels are of none of the clusters.
func (p Policy) strangers(clusters []string) []string {
	var out []string
	for _, l := range p.Clusters {
		for _, pattern := range l.Names {
			if len(clusters) > 0 && !slices.ContainsFunc(clusters, func(name string) bool { return matches(pattern, name) }) {
				out = append(out, fmt.Sprintf("no cluster is called %q: what the policy says to fail on there holds nowhere", pattern))
			}
		}
	}
	return out
}

// waive returns a finding with the reason of the first waiver that covers it:
// as several findings where waivers cover it in some clusters only. all are the
// clusters, and used is set for every waiver that covers any of it.
func (p Policy) waive(f Finding, all []string, today string, used []bool) []Finding {
	whole := f.Clusters
	if whole == nil {
		whole = all
	}
	in := func(names []string, w Waiver, is bool) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return w.in(name) != is })
	}
	var out []Finding
	left, done := whole, false
	for j, w := range p.Waivers {
		if !w.covers(f) || w.Clusters != nil && len(in(whole, w, true)) == 0 {
			continue
		}
		used[j] = true
		here := in(left, w, true)
		if done || w.expired(today) || w.Clusters != nil && len(here) == 0 {
			continue
		}
		waived := f
		waived.Waiver, done = w.Reason, len(here) == len(left)
		if len(here) < len(whole) {
			waived.Clusters = here
		}
		out, left = append(out, waived), in(left, w, false)
	}
	if done {
		return out
	}
	if len(out) > 0 {
		f.Clusters = left
	}
	return append(out, f)
}

// in reports whether the waiver holds for a cluster.
func (w Waiver) in(cluster string) bool {
	return w.Clusters == nil || anyMatches(w.Clusters, cluster)
}

func anyMatches(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, s) })
}

// compiled is a rule, ready to run.
type compiled struct {
	CELRule
	program *celrule.Rule
}

// check returns the rules, compiled, or all faults of the policy.
func (p Policy) check(today string) ([]compiled, error) {
	var faults []string
	if !isDay(today) {
		faults = append(faults, fmt.Sprintf("day %q: want a date like 2027-01-31", today))
	}
	for _, w := range p.Waivers {
		if strings.TrimSpace(w.Reason) == "" {
			faults = append(faults, fmt.Sprintf("waiver of %q: a reason is needed", w.Rule))
		}
		if w.Expires != "" && !isDay(w.Expires) {
			faults = append(faults, fmt.Sprintf("waiver of %q: expires %q: want a date like 2027-01-31", w.Rule, w.Expires))
		}
		if w.Vulnerability != "" && !matches(w.Rule, vulnerabilityAdded) {
			faults = append(faults, fmt.Sprintf("waiver of %q: only findings of %s are about one vulnerability", w.Rule, vulnerabilityAdded))
		}
		if !w.known() {
			faults = append(faults, fmt.Sprintf("waiver of %q: there is no such rule", w.Rule))
		}
	}
	env, err := cel.NewEnv(cel.Variable("finding", cel.MapType(cel.StringType, cel.DynType)), ext.Strings())
	if err != nil {
		return nil, err
	}
	var out []compiled
	budget := celrule.NewBudget()
	for _, r := range p.Rules {
		program, err := budget.Compile(env, r.Expression)
		if err != nil {
			faults = append(faults, fmt.Sprintf("policy rule %q: %v", r.Name, err))
			continue
		}
		out = append(out, compiled{r, program})
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(faults, "\n"))
	}
	return out, nil
}

func (w Waiver) known() bool {
	return slices.ContainsFunc(Rules(), func(r Rule) bool { return matches(w.Rule, r.ID) })
}

// scans reports whether the waiver is for what scanners find, and so of no use where
// they are not asked.
func (w Waiver) scans() bool {
	return w.Vulnerability != "" || strings.HasPrefix(w.Rule, "vulnerabilities.")
}

func (w Waiver) covers(f Finding) bool {
	return matches(w.Rule, f.Rule) && (w.Operator == "" || matches(w.Operator, f.Operator)) && (w.Object == "" || matches(w.Object, f.Object.Name)) &&
		(w.Vulnerability == "" || f.calls(w.Vulnerability))
}

// matches reports whether s is pattern, or begins with it where it ends in "*".
func matches(pattern, s string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, prefix)
	}
	return pattern == s
}

func (w Waiver) expired(today string) bool { return w.Expires != "" && w.Expires < today }

// isDay reports whether s is a date like 2027-01-31.
func isDay(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// fields returns the finding as CEL sees it.
func (f Finding) fields() map[string]any {
	return map[string]any{
		"rule": f.Rule, "family": f.Family(), "severity": f.Severity.String(), "rank": int64(f.Severity), "operator": f.Operator,
		"group": f.Object.Group, "version": f.Object.Version, "kind": f.Object.Kind, "namespace": f.Object.Namespace, "name": f.Object.Name,
		"field": f.Field, "before": f.Before, "after": f.After, "message": f.Message, "path": f.Place.Path, "clusters": f.Clusters,
		"vulnerabilities": exposures(f.Vulnerabilities), "bytesBefore": f.BytesBefore, "bytesAfter": f.BytesAfter,
	}
}

// exposures returns vulnerabilities as CEL sees them.
func exposures(list []Vulnerability) []map[string]any {
	out := []map[string]any{}
	for _, v := range list {
		out = append(out, map[string]any{"id": v.ID, "severity": v.Severity, "packages": v.Packages, "images": v.Images, "fixed": v.Fixed, "title": v.Title})
	}
	return out
}
