package workspace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/waiver"
)

// placePolicy sets the positions of waivers and rules, and completes the rules.
func (w *Workspace) placePolicy() {
	for i := range w.Policy.Waivers {
		w.Policy.Waivers[i].Pos = w.At(index("spec.policy.waivers", i))
	}
	for i := range w.Policy.Rules {
		w.Policy.Rules[i].Pos = w.At(index("spec.policy.rules", i) + ".expression")
		orElse(&w.Policy.Rules[i].On, "diff")
	}
}

// rules checks the user's own rules, of which one file may have some and inherit others.
func (v validator) rules() {
	first := map[string]string{}
	for i, r := range v.w.Policy.Rules {
		field := index("spec.policy.rules", i)
		v.Enum(field+".on", r.On, "diff", "tree")
		if r.Name == "" {
			v.Addf(field+".name", "missing: name the rule, so that reports and waivers can")
		}
		if strings.TrimSpace(r.Expression) == "" {
			v.Addf(field+".expression", "missing: write an expression that is true for what is refused")
		}
		if prev, dup := first[r.Name]; dup && r.Name != "" {
			v.Addf(field+".name", "rule %q appears twice, first at %s", r.Name, v.At(prev))
		}
		first[r.Name] = field + ".name"
	}
}

func (v validator) waivers() {
	first := map[string]string{}
	for i, w := range v.w.Policy.Waivers {
		field := index("spec.policy.waivers", i)
		switch {
		case w.Rule == "":
			v.Addf(field+".rule", "missing: name the rule that is waived")
		case strings.HasPrefix(w.Rule, "waiver-"):
			v.Addf(field+".rule", "%q cannot be waived: correct or delete the waiver that it is about", w.Rule)
		case strings.Contains(w.Rule, "*") && !strings.HasSuffix(w.Rule, ".*"):
			v.Addf(field+".rule", "%q: a * stands for the rules of one family, as in rbac.*", w.Rule)
		}
		if w.Operator != "" && strings.Count(w.Operator, "/") != 1 {
			v.Addf(field+".operator", "%q is not namespace/package", w.Operator)
		}
		v.pattern(field+".rule", w.Rule)
		v.pattern(field+".operator", w.Operator)
		v.pattern(field+".object", w.Object)
		for j, name := range w.Clusters {
			v.pattern(index(field+".clusters", j), name)
		}
		if strings.TrimSpace(w.Reason) == "" {
			v.Addf(field+".reason", "missing: write down why the risk is accepted")
		}
		switch {
		case w.Expires == "":
			v.Addf(field+".expires", "missing: name the last day that the waiver holds, such as 2027-01-01")
		case !isDay(w.Expires):
			v.Addf(field+".expires", "%q is not a day such as 2027-01-01", w.Expires)
		}
		key := w.Selectors()
		if prev, twice := first[key]; twice && w.Rule != "" {
			v.Addf(field, "waiver of %s appears twice, first at %s", key, v.At(prev))
		}
		first[key] = field
	}
}

// pattern adds a fault for a * that does not stand at the end.
func (v validator) pattern(field, text string) {
	if strings.Contains(strings.TrimSuffix(text, "*"), "*") {
		v.Addf(field, "%q: a * stands at the end alone", text)
	}
}

// CheckRules checks every name of a rule in the policy against the rules of findings:
// those that severities and waivers select, and those that are given to rules of the
// user's own. Findings, own rules and warnings share one namespace of names. The error
// is a diag.List.
func (w *Workspace) CheckRules(findings []string) error {
	var errs diag.List
	c := ruleChecker{w: w, findings: findings, errs: &errs}
	for _, code := range diag.Codes() {
		c.codes = append(c.codes, code.ID)
	}
	c.own()
	for rule := range w.Policy.Severity {
		if !slices.Contains(findings, rule) {
			c.addf("spec.policy.severity."+rule, "unknown rule %q%s", rule, diag.DidYouMean(rule, findings))
		}
	}
	for i, v := range w.Policy.Waivers {
		c.waiver(index("spec.policy.waivers", i), v)
	}
	return errs.Err()
}

type ruleChecker struct {
	w                     *Workspace
	findings, codes, mine []string
	errs                  *diag.List
}

func (c *ruleChecker) addf(field, format string, args ...any) {
	c.errs.Addf(c.w.At(field), "%s: %s", field, fmt.Sprintf(format, args...))
}

// own collects the names of the user's own rules.
func (c *ruleChecker) own() {
	for i, r := range c.w.Policy.Rules {
		field := index("spec.policy.rules", i) + ".name"
		switch {
		case slices.Contains(c.findings, r.Name):
			c.addf(field, "%q is the name of a rule of findings: choose another", r.Name)
		case slices.Contains(c.codes, r.Name):
			c.addf(field, "%q is the code of a warning: choose another name", r.Name)
		default:
			c.mine = append(c.mine, r.Name)
		}
	}
}

func (c *ruleChecker) waiver(field string, v waiver.Waiver) {
	names := slices.Concat(c.findings, c.mine)
	selected := slices.ContainsFunc(names, func(name string) bool { return waiver.Matches(v.Rule, name) })
	switch {
	case slices.Contains(c.codes, v.Rule):
		if v.Operator+v.Field+v.Container+v.Vulnerability != "" || v.Clusters != nil {
			c.addf(field, "a warning such as %q is selected by rule and object alone", v.Rule)
		}
		return
	case !selected:
		c.addf(field+".rule", "unknown rule %q%s", v.Rule, diag.DidYouMean(v.Rule, slices.Concat(names, c.codes)))
		return
	}
	if v.Object != "" && !strings.Contains(v.Object, " ") && !strings.HasSuffix(v.Object, "*") {
		c.addf(field+".object", "%q is not an object as the report prints it, such as Deployment ops/etcd", v.Object)
	}
	if v.Vulnerability != "" && !strings.HasPrefix(v.Rule, "vulnerabilities.") && !slices.Contains(c.mine, v.Rule) {
		c.addf(field+".vulnerability", "findings of %s are about no vulnerability: waive one of vulnerabilities.*", v.Rule)
	}
}
