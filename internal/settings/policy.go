package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// setPolicyPositions sets the positions of waivers and rules, and the default of
// spec.policy.rules[].on.
func (w *Workspace) setPolicyPositions() {
	for i := range w.Policy.Waivers {
		w.Policy.Waivers[i].Pos = w.At(diag.Item("spec.policy.waivers", i))
	}
	for i := range w.Policy.Rules {
		w.Policy.Rules[i].Pos = w.At(diag.Item("spec.policy.rules", i) + ".expression")
		setDefault(&w.Policy.Rules[i].On, "diff")
	}
}

// checkRules validates the user-defined rules, including inherited ones.
func (v validator) checkRules() {
	first := map[string]string{}
	for i, r := range v.w.Policy.Rules {
		field := diag.Item("spec.policy.rules", i)
		v.Enum(field+".on", r.On, "diff", "tree")
		if r.Name == "" {
			v.Addf(field+".name", "missing: the rule needs a name for reports and waivers")
		}
		if strings.TrimSpace(r.Expression) == "" {
			v.Addf(field+".expression", "missing: write an expression that is true for refused objects")
		}
		if prev, dup := first[r.Name]; dup && r.Name != "" {
			v.Addf(field+".name", "duplicate rule %q: first at %s", r.Name, v.At(prev))
		}
		first[r.Name] = field + ".name"
	}
}

func (v validator) checkWaivers() {
	first := map[string]string{}
	for i, w := range v.w.Policy.Waivers {
		field := diag.Item("spec.policy.waivers", i)
		switch {
		case w.Rule == "":
			v.Addf(field+".rule", "missing: specify the rule to waive")
		case strings.HasPrefix(w.Rule, "waiver-"):
			v.Addf(field+".rule", "%q cannot be waived: correct or delete the waiver itself", w.Rule)
		case strings.Contains(w.Rule, "*") && !strings.HasSuffix(w.Rule, ".*"):
			v.Addf(field+".rule", "%q: * is only allowed for the rules of a family, such as rbac.*", w.Rule)
		}
		if w.Operator != "" && strings.Count(w.Operator, "/") != 1 {
			v.Addf(field+".operator", "%q is not namespace/package", w.Operator)
		}
		v.checkPattern(field+".rule", w.Rule)
		v.checkPattern(field+".operator", w.Operator)
		v.checkPattern(field+".object", w.Object)
		for j, name := range w.Clusters {
			v.checkPattern(diag.Item(field+".clusters", j), name)
		}
		if strings.TrimSpace(w.Reason) == "" {
			v.Addf(field+".reason", "missing: specify the reason for accepting the risk")
		}
		switch {
		case w.Expires == "":
			v.Addf(field+".expires", "missing: specify the last day of the waiver, such as 2027-01-01")
		case !isDate(w.Expires):
			v.Addf(field+".expires", "%q is not a day such as 2027-01-01", w.Expires)
		}
		key := w.Selectors()
		if prev, twice := first[key]; twice && w.Rule != "" {
			v.Addf(field, "duplicate waiver of %s: first at %s", key, v.At(prev))
		}
		first[key] = field
	}
}

// checkPattern adds a fault if text contains a * before its end.
func (v validator) checkPattern(field, text string) {
	if strings.Contains(strings.TrimSuffix(text, "*"), "*") {
		v.Addf(field, "%q: * is only allowed at the end", text)
	}
}

// CheckRules validates the names of rules in the policy. findings holds the names of the built-in rules. A
// user-defined rule must not have the name of a built-in rule or of a warning code. spec.policy.severity and
// waivers must refer to existing rules. The error is a diag.List.
func (w *Workspace) CheckRules(findings []string) error {
	var errs diag.List
	c := ruleChecker{w: w, findings: findings, errs: &errs}
	for _, code := range diag.Codes() {
		c.codes = append(c.codes, code.ID)
	}
	c.checkOwnRules()
	for rule := range w.Policy.Severity {
		if !slices.Contains(findings, rule) {
			c.addf("spec.policy.severity."+rule, "unknown rule %q%s", rule, diag.DidYouMean(rule, findings))
		}
	}
	for i, v := range w.Policy.Waivers {
		c.checkWaiver(diag.Item("spec.policy.waivers", i), v)
	}
	return errs.Err()
}

type ruleChecker struct {
	w                         *Workspace
	findings, codes, ownRules []string
	errs                      *diag.List
}

func (c *ruleChecker) addf(field, format string, args ...any) {
	c.errs.Addf(c.w.At(field), "%s: %s", field, fmt.Sprintf(format, args...))
}

// checkOwnRules validates and collects the names of the user-defined rules.
func (c *ruleChecker) checkOwnRules() {
	for i, r := range c.w.Policy.Rules {
		field := diag.Item("spec.policy.rules", i) + ".name"
		switch {
		case slices.Contains(c.findings, r.Name):
			c.addf(field, "%q is the name of a built-in rule: choose another name", r.Name)
		case slices.Contains(c.codes, r.Name):
			c.addf(field, "%q is the code of a warning: choose another name", r.Name)
		default:
			c.ownRules = append(c.ownRules, r.Name)
		}
	}
}

// checkWaiver validates the selectors of a waiver.
func (c *ruleChecker) checkWaiver(field string, v diag.Waiver) {
	names := slices.Concat(c.findings, c.ownRules)
	selected := slices.ContainsFunc(names, func(name string) bool { return diag.Matches(v.Rule, name) })
	switch {
	case slices.Contains(c.codes, v.Rule):
		if v.Operator+v.Field+v.Container+v.Vulnerability != "" || v.Clusters != nil {
			c.addf(field, "warnings such as %q are selected only by rule and object", v.Rule)
		}
		return
	case !selected:
		c.addf(field+".rule", "unknown rule %q%s", v.Rule, diag.DidYouMean(v.Rule, slices.Concat(names, c.codes)))
		return
	}
	if v.Object != "" && !strings.Contains(v.Object, " ") && !strings.HasSuffix(v.Object, "*") {
		c.addf(field+".object", "%q is not an object in the form of the report, such as Deployment ops/etcd", v.Object)
	}
	if v.Vulnerability != "" && !strings.HasPrefix(v.Rule, "vulnerabilities.") && !slices.Contains(c.ownRules, v.Rule) {
		c.addf(field+".vulnerability", "rule %s has no vulnerability IDs: omit vulnerability, or use a rule of vulnerabilities.*", v.Rule)
	}
}
