package rules

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// checkClusterOperators returns an error for each pattern of spec.clusters that matches no operator of the
// lock. There is no error if the pattern matches in another workspace with the same settings.
func checkClusterOperators(s *State) (Findings, error) {
	have := operatorKeys(s.Lock)
	if len(have) == 0 {
		return nil, nil
	}
	var faults diag.List
	for i, c := range s.Settings.Clusters {
		for j, pattern := range c.Operators {
			field := fmt.Sprintf("spec.clusters[%d].operators[%d]", i, j)
			at := s.Settings.At(field)
			if matchesOperator(pattern, have) || s.matchesElsewhere(at.File, func(_ *settings.Workspace, other Other) bool {
				lock, err := other.Lock()
				return err != nil || matchesOperator(pattern, operatorKeys(lock)) // reported there
			}) {
				continue
			}
			hint := "delete the pattern"
			if len(c.Operators) == 1 {
				hint = "delete the cluster, or name its operators: without a pattern it gets all of them"
			}
			faults.Add(at, diag.Hintf(at, hint, "%s", noOperator(field, pattern, have)))
		}
	}
	return errorsOf(faults), nil
}

// checkWaiverOperators returns an error for each misspelled operator of a waiver.
func checkWaiverOperators(s *State) (Findings, error) {
	have := operatorKeys(s.Lock)
	if len(have) == 0 {
		return nil, nil
	}
	var faults diag.List
	for field, v := range s.unmatchedWaivers(have) {
		if suggestOperator(v.Operator, have) != "" {
			faults.Addf(s.Settings.At(field), "%s", noOperator(field, v.Operator, have))
		}
	}
	return errorsOf(faults), nil
}

// unmatchedWaivers returns the waivers whose operator is not in have. The map keys are the paths of
// these operator fields. It omits inherited waivers that match in another workspace.
func (s *State) unmatchedWaivers(have []string) map[string]diag.Waiver {
	out := map[string]diag.Waiver{}
	for i, v := range s.Settings.Policy.Waivers {
		field := diag.Item("spec.policy.waivers", i) + ".operator"
		if v.Operator != "" && !anyMatches(v.Operator, have) && !s.matchesElsewhere(s.Settings.At(field).File, func(_ *settings.Workspace, other Other) bool {
			lock, err := other.Lock()
			return err != nil || anyMatches(v.Operator, operatorKeys(lock))
		}) {
			out[field] = v
		}
	}
	return out
}

// checkUnusedWaivers returns a warning for each waiver of an operator that the lock does not have. It returns
// no error, because a waiver may be merged before the upgrade that adds its operator, or after its removal.
// checkWaiverOperators reports misspelled operators.
func checkUnusedWaivers(s *State) (Findings, error) {
	var out []diag.Warning
	have := operatorKeys(s.Lock)
	for field, v := range s.unmatchedWaivers(have) {
		if suggestOperator(v.Operator, have) == "" {
			out = append(out, diag.Warning{Pos: s.Settings.At(field), Code: "waiver-unused", Msg: noOperator(field, v.Operator, have)})
		}
	}
	for i, v := range s.Settings.Policy.Waivers {
		field := diag.Item("spec.policy.waivers", i) + ".object"
		if hint := suggestOperator(v.Object, have); hint != "" && s.namesMissingOperator(v, s.Settings.At(field).File, have) {
			out = append(out, diag.Warning{Pos: s.Settings.At(field), Code: "waiver-unused", Msg: noOperator(field, v.Object, have)})
		}
	}
	return warningsOf(diag.SortWarnings(out)), nil
}

// namesMissingOperator reports whether the field object of a waiver names an operator that no
// workspace with this waiver has. file is the file with the waiver. The result is false for a
// waiver of a warning, because such waivers are reviewed together with the warnings.
func (s *State) namesMissingOperator(v diag.Waiver, file string, have []string) bool {
	isOfRule := slices.ContainsFunc(diag.Codes(), func(c diag.Code) bool { return c.ID == v.Rule && c.Step == diag.OtherStep })
	return isOfRule && strings.Count(v.Object, "/") == 1 && !strings.ContainsAny(v.Object, " *.") && !anyMatches(v.Object, have) &&
		!s.matchesElsewhere(file, func(_ *settings.Workspace, other Other) bool {
			lock, err := other.Lock()
			return err != nil || anyMatches(v.Object, operatorKeys(lock))
		})
}

// checkExpiredWaivers returns a warning for each waiver that has expired or expires soon, if the waiver is for
// a finding of 'quayside diff'. Other waivers are reviewed together with their warnings and findings.
func checkExpiredWaivers(s *State) (Findings, error) {
	own := slices.DeleteFunc(slices.Clone(s.Settings.Policy.Waivers), func(v diag.Waiver) bool {
		return slices.ContainsFunc(diag.Codes(), func(c diag.Code) bool { return c.ID == v.Rule }) ||
			slices.ContainsFunc(s.Settings.Policy.Rules, func(r settings.PolicyRule) bool { return r.Name == v.Rule })
	})
	return warningsOf(diag.Review(own, slices.Repeat([]bool{true}, len(own)), nil, s.Today)), nil
}

// ReviewShared returns ws without warnings about unused waivers that are inherited and may match in another
// workspace with the same settings.
func (s *State) ReviewShared(ws []diag.Warning) []diag.Warning {
	return slices.DeleteFunc(slices.Clone(ws), func(w diag.Warning) bool {
		i := slices.IndexFunc(s.Settings.Policy.Waivers, func(v diag.Waiver) bool { return v.Pos == w.Pos })
		return w.Code == "waiver-unused" && i >= 0 && w.Pos.File != s.Settings.File && s.mayMatchElsewhere(s.Settings.Policy.Waivers[i])
	})
}

// mayMatchElsewhere reports whether an inherited waiver may match in another workspace with the same settings.
// This is the case if the waiver names no operator, or the other workspace has the operator.
func (s *State) mayMatchElsewhere(v diag.Waiver) bool {
	name := cmp.Or(v.Operator, v.Object)
	return s.matchesElsewhere(v.Pos.File, func(_ *settings.Workspace, other Other) bool {
		lock, err := other.Lock()
		isOperator := strings.Count(name, "/") == 1 && !strings.Contains(name, " ")
		return err != nil || !isOperator || anyMatches(name, operatorKeys(lock))
	})
}

// noOperator returns the message for a field with the name of an operator that is not in the lock.
func noOperator(field, name string, have []string) string {
	hint := suggestOperator(name, have)
	if hint == "" && len(have) > 0 {
		hint = " (available: " + diag.Some(have, 5) + ")"
	}
	return fmt.Sprintf("%s: no operator %q in %s%s", field, name, settings.LockFile, hint)
}

// anyMatches reports whether pattern, a name or a pattern in the policy, matches at least one of names.
func anyMatches(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return diag.Matches(pattern, name) })
}

// operatorKeys returns the operators of a lock, including those that are being removed.
func operatorKeys(lock *lockfile.File) []string {
	var out []string
	for _, pin := range lock.Pins {
		out = append(out, pin.Key())
	}
	for _, l := range lock.Leaving {
		out = append(out, l.Key())
	}
	return out
}

func matchesOperator(pattern string, operators []string) bool {
	return slices.ContainsFunc(operators, func(name string) bool {
		gets, err := (profile.Cluster{Operators: []string{pattern}}).Gets(name)
		return err != nil || gets // render reports the error
	})
}

// suggestOperator returns the operators that a misspelled name may mean, as text for a message.
func suggestOperator(name string, have []string) string {
	for _, key := range have {
		if _, pkg, _ := strings.Cut(key, "/"); pkg == name {
			return fmt.Sprintf(" (did you mean %q?)", key)
		}
	}
	return diag.DidYouMean(name, have)
}

// PolicyOf returns the policy in quayside.yaml.
func PolicyOf(w *settings.Workspace) (diff.Policy, error) {
	p := w.Policy
	failOn, err := diff.ParseSeverity(p.FailOn)
	if err != nil {
		return diff.Policy{}, err
	}
	out := diff.Policy{FailOn: failOn, Waivers: p.Waivers, Rules: policyRules(w)}
	for _, l := range p.Clusters {
		if failOn, err = diff.ParseSeverity(l.FailOn); err != nil {
			return out, err
		}
		out.Clusters = append(out.Clusters, diff.Level{Names: l.Names, FailOn: failOn})
	}
	if _, isSet := w.Fields["spec.policy.vulnerabilities.added"]; isSet {
		out.Vulnerabilities = append([]string{}, p.Vulnerabilities.Added...)
	}
	return out, nil
}

// policyRules returns the rules of the policy in CEL.
func policyRules(w *settings.Workspace) []diff.CELRule {
	var out []diff.CELRule
	for _, r := range w.Policy.Rules {
		out = append(out, diff.CELRule{Name: r.Name, Expression: r.Expression, Message: r.Message, Tree: r.On == "tree", Pos: r.Pos})
	}
	return out
}

// checkExpressions returns an error for each invalid rule of the policy.
func checkExpressions(s *State) (Findings, error) {
	var faults diag.List
	if rules := policyRules(s.Settings); len(rules) > 0 {
		faults.Add(diag.Pos{}, diff.Policy{Rules: rules}.CheckRules())
	}
	return errorsOf(faults), nil
}

// checkClusterNames returns an error for each cluster name or pattern in the policy that matches no cluster. It
// permits inherited settings to name clusters of other workspaces.
func checkClusterNames(s *State) (Findings, error) {
	w, have := s.Settings, s.Settings.ClusterNames()
	var faults diag.List
	check := func(field string, patterns []string) {
		for i, pattern := range patterns {
			at := w.At(diag.Item(field, i))
			if !anyMatches(pattern, have) && !s.matchesElsewhere(at.File, func(other *settings.Workspace, _ Other) bool { return anyMatches(pattern, other.ClusterNames()) }) {
				faults.Addf(at, "%s: no cluster %q in this workspace (available: %s)%s", diag.Item(field, i), pattern, strings.Join(have, ", "), diag.DidYouMean(pattern, have))
			}
		}
	}
	for i, l := range w.Policy.Clusters {
		check(diag.Item("spec.policy.clusters", i)+".names", l.Names)
	}
	for i, v := range w.Policy.Waivers {
		check(diag.Item("spec.policy.waivers", i)+".clusters", v.Clusters)
	}
	return errorsOf(faults), nil
}

// checkFollows returns an error if spec.follows names no other workspace of the Git repository. It
// does not check for ambiguous names and cycles, which 'quayside promote' reports.
func checkFollows(s *State) (Findings, error) {
	w := s.Settings
	if w.Follows == "" || !s.InGit() {
		return nil, nil // without a repository, the other workspaces are unknown
	}
	others, err := s.Others()
	if err != nil || w.FollowsPath() && slices.ContainsFunc(others, func(o Other) bool { return o.Dir == path.Join(s.Dir, w.Follows) }) {
		return nil, err
	}
	var have []string
	for _, o := range others {
		if w.FollowsPath() {
			have = append(have, filetree.Relative(s.Dir, o.Dir))
			continue
		}
		other, err := o.Settings()
		if err != nil {
			return nil, nil //nolint:nilerr // its own commands report the error
		}
		name := other.Title(o.Dir)
		if name == w.Follows {
			return nil, nil
		}
		have = append(have, name)
	}
	at := w.At("spec.follows")
	return errorsOf(diag.List{diag.Errorf(at, "spec.follows: no environment %q (available: %s)%s", w.Follows, cmp.Or(strings.Join(have, ", "), "none"), diag.DidYouMean(w.Follows, have))}), nil
}
