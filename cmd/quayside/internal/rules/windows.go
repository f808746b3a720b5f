package rules

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/window"
	"github.com/quayside/quayside/lockfile"
)

// OutsideWindow is the code of a change outside of its windows. It is also a valid key of spec.policy.severity.
const OutsideWindow = "outside-window"

// Rollouts returns the operators that a change of the lock installs, upgrades or removes, sorted. It omits
// rollbacks to lower versions, because windows do not apply to them.
func Rollouts(before, after *lockfile.File) []string {
	var out []string
	for _, c := range lockfile.Diff(before, after) {
		if c.Package == "" || c.Leaving != "" || c.Pruned || c.Kind == lockfile.Changed {
			continue
		}
		old, had := before.Pin(c.Namespace, c.Package)
		now, has := after.Pin(c.Namespace, c.Package)
		if !had || !has || now.CompareVersions(old) >= 0 {
			out = append(out, c.Namespace+"/"+c.Package)
		}
	}
	return out
}

// MergeWindow decides whether the change from s.Merged to s.Lock may be merged at s.Now.
func MergeWindow(s *State) window.Decision {
	if s.Merged == nil || s.Lock == nil {
		return window.Decision{May: true, From: s.Now}
	}
	var subjects []window.Subject
	for _, operator := range Rollouts(s.Merged, s.Lock) {
		if s.overrides(operator) == "" {
			subjects = append(subjects, s.subject(operator))
		}
	}
	return window.Decide(s.Settings.ChangeWindows(), s.Now, subjects...)
}

// UpgradeWindow decides whether an upgrade of an operator may be merged at s.Now, whatever diff finds about it.
func UpgradeWindow(s *State, operator string) window.Decision {
	return window.Decide(s.Settings.ChangeWindows(), s.Now, s.subject(operator))
}

// subject returns the properties of an operator's change that windows are matched against.
func (s *State) subject(operator string) window.Subject {
	severity := s.Severities[operator]
	if severity == "" && s.Severities != nil {
		severity = diff.Info.String()
	}
	return window.Subject{Environment: s.Settings.Title(s.Dir), Operator: operator, Severity: severity}
}

// overrides returns the reason why an operator was pinned outside of its windows, or "".
func (s *State) overrides(operator string) string {
	for _, pin := range s.Lock.Pins {
		if pin.Key() == operator {
			return pin.OutsideWindow
		}
	}
	return ""
}

// WindowText describes a decision that denies a change: the time from which it may be merged, and the reason.
func WindowText(d window.Decision) string {
	text := "may be merged from " + d.Text()
	if d.From.IsZero() {
		text = "may not be merged in the next five years"
	}
	switch {
	case d.By.Note != "":
		return fmt.Sprintf("%s: frozen (%s)", text, d.By.Note)
	case d.By.Deny:
		return fmt.Sprintf("%s: %s denies it until then", text, d.By.Name)
	default:
		return fmt.Sprintf("%s: %s is closed", text, d.By.Name)
	}
}

// checkWindows returns a finding for each operator that s.Lock installs, upgrades or removes in
// comparison with s.Merged although the operator's windows do not permit this at s.Now. The finding
// is an error if spec.policy.severity assigns a severity that spec.policy.failOn refuses.
func checkWindows(s *State) (Findings, error) {
	if s.Merged == nil || s.Lock == nil || s.Now.IsZero() {
		return nil, nil
	}
	severity, err := s.windowSeverity()
	if err != nil {
		return nil, err
	}
	var out Findings
	windows := s.Settings.ChangeWindows()
	for _, operator := range Rollouts(s.Merged, s.Lock) {
		d := window.Decide(windows, s.Now, s.subject(operator))
		if d.May {
			continue
		}
		f := Finding{
			Severity: severity, Code: OutsideWindow, Pos: d.By.Pos, Subject: operator, Msg: operator + " " + WindowText(d),
			Hint: "wait, or run the command that changed the lock with --outside-window REASON",
		}
		if reason := s.overrides(operator); reason != "" {
			f.Severity, f.Msg = Warning, operator+" is changed outside of its windows: "+reason
		}
		out = append(out, s.accept(f))
	}
	return out, nil
}

// windowSeverity returns the severity of changes outside of their windows.
func (s *State) windowSeverity() (Severity, error) {
	text, isSet := s.Settings.Policy.Severity[OutsideWindow]
	if !isSet {
		return Warning, nil
	}
	severity, err := diff.ParseSeverity(text)
	if err != nil {
		return "", err
	}
	failOn, err := diff.ParseSeverity(s.Settings.Policy.FailOn)
	if err != nil || failOn == diff.Off || severity < failOn {
		return Warning, err
	}
	return Error, nil
}

// checkWindowEnvironments returns an error for each environment of a window that is no workspace of the
// repository. If the settings of a workspace cannot be read, its name is unknown, and checkWindowEnvironments
// returns nil. That workspace's own commands report the error.
func checkWindowEnvironments(s *State) (Findings, error) {
	named := slices.ContainsFunc(s.Settings.Windows, func(w settings.Window) bool { return len(w.Environments) > 0 })
	if !named || s.Others == nil || !s.InGit() {
		return nil, nil
	}
	others, err := s.Others()
	if err != nil {
		return nil, err
	}
	have := []string{s.Settings.Title(s.Dir)}
	for _, o := range others {
		if w, err := o.Settings(); err == nil {
			have = append(have, w.Title(o.Dir))
		}
	}
	complete := len(have) == len(others)+1
	slices.Sort(have)
	have = slices.Compact(have)
	var faults diag.List
	for i, w := range s.Settings.Windows {
		for j, pattern := range w.Environments {
			if field := diag.Item(diag.Item("spec.windows", i)+".environments", j); complete && !anyMatches(pattern, have) {
				faults.Addf(s.Settings.At(field), "%s: no environment %q (available: %s)%s", field, pattern, diag.Some(have, 5), diag.DidYouMean(pattern, have))
			}
		}
	}
	return errorsOf(faults), nil
}

// checkWindowOperators returns an error for each misspelled operator of a window.
func checkWindowOperators(s *State) (Findings, error) {
	have := operatorKeys(s.Lock)
	var faults diag.List
	for i, w := range s.Settings.Windows {
		for j, pattern := range w.Operators {
			field := diag.Item(diag.Item("spec.windows", i)+".operators", j)
			at := s.Settings.At(field)
			if !anyMatches(pattern, have) && suggestOperator(pattern, have) != "" && !s.matchesElsewhere(at.File, func(_ *settings.Workspace, other Other) bool {
				lock, err := other.Lock()
				return err != nil || anyMatches(pattern, operatorKeys(lock))
			}) {
				faults.Addf(at, "%s", noOperator(field, pattern, have))
			}
		}
	}
	return errorsOf(faults), nil
}
