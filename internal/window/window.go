// Package window decides whether and when a change may be made: inside of windows and outside of freezes.
//
// The decision depends only on the arguments. The current time is an argument.
//
// Start from [Decide].
package window

import (
	"slices"
	"time"

	"github.com/quayside/quayside/internal/diag"
)

// Window is a time in which changes are allowed, or denied. It selects subjects by environment,
// operator and severity; an empty list selects all.
type Window struct {
	Deny     bool
	Schedule *Schedule     // when the window opens; nil: it has always been open
	Duration time.Duration // how long it stays open
	Until    time.Time     // end of a window without Schedule

	Environments, Operators, Severities []string

	Name string // field of the settings, such as "spec.windows[0]"
	Note string // reason of a freeze
	Pos  diag.Pos
}

// Subject is the change of an operator in an environment. If Severity is empty (unknown), the change may be
// made only when it may be made with every severity.
type Subject struct{ Environment, Operator, Severity string }

// Severities returns the severities of changes, lowest first.
func Severities() []string { return []string{"info", "low", "medium", "high", "critical"} }

// Decision is the result of [Decide].
type Decision struct {
	May  bool
	From time.Time // earliest time, now or later, at which the change may be made, in the time zone of the window that permits it; zero: none in the next five years
	By   *Window   // window that denies the change, or that would have to be open; nil if May is true
}

// horizon is the time in advance for which Decide searches for an allowed time, as in libraries for cron.
const horizon = 5 * 365 * 24 * time.Hour

// Decide decides whether all subjects may be changed together at a time. If allow windows select a subject, the
// subject may be changed only within one of these windows. A subject may never be changed within a deny window
// that selects it.
func Decide(windows []Window, now time.Time, subjects ...Subject) Decision {
	return decideUntil(windows, now, now.Add(horizon), withSeverities(subjects))
}

// decideUntil is Decide for subjects whose severity is known. It searches for the next time up to limit.
func decideUntil(windows []Window, now, limit time.Time, subjects []Subject) Decision {
	var d Decision
	zone := now.Location()
	for at := now; at.Before(limit); {
		by, end := blockingWindow(windows, at, limit, subjects)
		if by == nil {
			d.May, d.From = d.By == nil, at.In(zone)
			return d
		}
		if zone = time.UTC; by.Schedule != nil {
			zone = by.Schedule.zone
		}
		if d.By == nil {
			d.By = by
		}
		if end.IsZero() {
			return d
		}
		at = end
	}
	return d
}

// withSeverities replaces each subject of unknown severity by one subject for each severity.
func withSeverities(subjects []Subject) []Subject {
	var out []Subject
	for _, s := range subjects {
		if s.Severity != "" {
			out = append(out, s)
			continue
		}
		for _, s.Severity = range Severities() {
			out = append(out, s)
		}
	}
	return out
}

// blockingWindow returns a window that prevents the change of a subject at the time at. end is the time at which this
// window no longer prevents the change, or the zero time if that is after limit. by is nil if all subjects may be
// changed.
func blockingWindow(windows []Window, at, limit time.Time, subjects []Subject) (by *Window, end time.Time) {
	for _, s := range subjects {
		for i := range windows {
			if w := &windows[i]; w.Deny && w.selects(s) && w.isOpen(at) {
				return w, w.closes(at, limit)
			}
		}
	}
	for _, s := range subjects {
		if by, end = nextOpening(windows, at, s); by != nil {
			return by, end
		}
	}
	return nil, time.Time{}
}

// nextOpening returns the next allow window of a subject and the time at which it opens. It returns nil if an
// allow window of the subject is open, or if no allow window selects the subject.
func nextOpening(windows []Window, at time.Time, s Subject) (by *Window, opens time.Time) {
	for i := range windows {
		w := &windows[i]
		if w.Deny || !w.selects(s) {
			continue
		}
		if w.isOpen(at) {
			return nil, time.Time{}
		}
		if next := w.Schedule.next(at); by == nil || !next.IsZero() && (opens.IsZero() || next.Before(opens)) {
			by, opens = w, next
		}
	}
	return by, opens
}

// selects reports whether the window applies to a subject.
func (w *Window) selects(s Subject) bool {
	matches := func(patterns []string, name string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return diag.Matches(p, name) })
	}
	return matches(w.Environments, s.Environment) && matches(w.Operators, s.Operator) && matches(w.Severities, s.Severity)
}

// isOpen reports whether the window is open at a time. At the time at which it closes, the window is not open.
func (w *Window) isOpen(at time.Time) bool {
	if w.Schedule == nil {
		return at.Before(w.Until)
	}
	opened := w.Schedule.next(at.Add(-w.Duration))
	return !opened.IsZero() && !opened.After(at)
}

// closes returns the time at which an open window closes. It returns the zero time if the window is still
// open after limit, because it always opens again before it closes.
func (w *Window) closes(at, limit time.Time) time.Time {
	if w.Schedule == nil {
		return w.Until
	}
	for end := w.Schedule.next(at.Add(-w.Duration)).Add(w.Duration); !end.After(limit); {
		later := w.reopened(end)
		if later.IsZero() {
			return end
		}
		end = later.Add(w.Duration)
	}
	return time.Time{}
}

// reopened returns a time, at most end, at which the window opens and stays open beyond end. It returns the
// zero time if there is none. It tries late times first, because a window may open every minute.
func (w *Window) reopened(end time.Time) time.Time {
	for back := time.Minute; ; back *= 2 {
		back = min(back, w.Duration)
		if opened := w.Schedule.next(end.Add(-back)); !opened.IsZero() && !opened.After(end) {
			return opened
		}
		if back == w.Duration {
			return time.Time{}
		}
	}
}

// Text formats the earliest time with its time zone: "2026-12-01 22:00 Europe/Zurich".
func (d Decision) Text() string {
	return d.From.Format("2006-01-02 15:04 ") + d.From.Location().String()
}
