package settings

import (
	"strings"
	"time"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/window"
)

// HasWindows reports whether the workspace restricts when operators may change.
func (w *Workspace) HasWindows() bool { return w.Freeze != nil || len(w.Windows) > 0 }

// ChangeWindows returns the freeze and the windows of the workspace.
func (w *Workspace) ChangeWindows() []window.Window {
	out, _ := w.readWindows() // validated by Load
	return out
}

// readWindows converts spec.freeze and spec.windows. The error is a diag.List.
func (w *Workspace) readWindows() (out []window.Window, faults diag.List) {
	if f := w.Freeze; f != nil {
		const field = "spec.freeze"
		until, err := time.Parse(time.RFC3339, f.Until)
		if err != nil {
			faults.Addf(w.At(field+".until"), "%s.until: %q is not a time with its offset, such as 2027-01-04T08:00:00+01:00", field, f.Until)
		}
		out = append(out, window.Window{Deny: true, Until: until, Name: field, Note: f.Reason, Pos: w.At(field)})
	}
	for i, s := range w.Windows {
		field := diag.Item("spec.windows", i)
		zone, err := window.ParseZone(s.TimeZone)
		if err != nil {
			faults.Addf(w.At(field+".timeZone"), "%s.timeZone: %w", field, err)
			continue
		}
		schedule, err := window.ParseSchedule(s.Schedule, zone)
		if err != nil {
			faults.Addf(w.At(field+".schedule"), "%s.schedule: %q: %w", field, s.Schedule, err)
			continue
		}
		out = append(out, window.Window{
			Deny: s.Kind == "deny", Schedule: schedule, Duration: time.Duration(s.Duration), Name: field, Pos: w.At(field),
			Environments: s.Environments, Operators: s.Operators, Severities: s.Severities,
		})
	}
	return out, faults
}

// checkWindows validates spec.windows and spec.freeze.
func (v validator) checkWindows() {
	w := v.w
	_, faults := w.readWindows()
	for _, f := range faults {
		v.Faults.Add(f.Pos, f)
	}
	if f := w.Freeze; f != nil && strings.TrimSpace(f.Reason) == "" {
		v.Addf("spec.freeze.reason", "missing: specify the reason for the freeze")
	}
	for i, s := range w.Windows {
		field := diag.Item("spec.windows", i)
		v.Enum(field+".kind", s.Kind, "allow", "deny")
		if time.Duration(s.Duration) < time.Minute {
			v.Addf(field+".duration", "must be at least 1m, such as 4h")
		}
		for j, name := range s.Environments {
			v.checkPattern(diag.Item(field+".environments", j), name)
		}
		v.checkOperators(field+".operators", s.Operators)
		for j, name := range s.Severities {
			v.Enum(diag.Item(field+".severities", j), name, window.Severities()...)
		}
	}
}
