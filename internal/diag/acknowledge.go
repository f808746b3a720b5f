package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Acknowledgement is what a person knows of, and need not be told again.
type Acknowledgement struct {
	Pos     Pos
	Code    string // "namespace-expected"
	Subject string // that of the warning, or a beginning with "*"; empty: any
	Expires string // "2027-01-01", the last day it holds; empty: never
}

// covers reports whether a is for w on a day such as "2026-11-21".
func (a Acknowledgement) covers(w Warning, today string) bool {
	return a.Code == w.Code && !a.expired(today) && (matches(a.Subject, w.Subject) || matches(a.Subject, w.Pos.File))
}

func (a Acknowledgement) expired(today string) bool { return a.Expires != "" && a.Expires < today }

// matches reports whether s is pattern, which may be empty for any, or begins with
// it where it ends in "*".
func matches(pattern, s string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, prefix)
	}
	return pattern == "" || pattern == s
}

// Acknowledge returns ws with those marked that one of known covers today.
func Acknowledge(ws []Warning, known []Acknowledgement, today string) []Warning {
	out := slices.Clone(ws)
	for i, w := range out {
		out[i].Acknowledged = w.Acknowledged || slices.ContainsFunc(known, func(a Acknowledgement) bool { return a.covers(w, today) })
	}
	return out
}

// Stale returns a warning for each of known that is for a step and has expired, or
// covers none of ws, which are all warnings of that step.
func Stale(step Step, ws []Warning, known []Acknowledgement, today string) []Warning {
	var out []Warning
	for _, a := range known {
		msg := ""
		switch i := slices.IndexFunc(Codes(), func(c Code) bool { return c.ID == a.Code }); {
		case i < 0 || Codes()[i].Step != step:
			continue
		case a.expired(today):
			msg = fmt.Sprintf("%q is acknowledged until %s only: look at it again, or take this out", a.Code, a.Expires)
		case slices.ContainsFunc(ws, func(w Warning) bool { return a.covers(w, today) }):
			continue
		case a.Subject != "":
			msg = fmt.Sprintf("there is no warning %q of %q any more: take this out", a.Code, a.Subject)
		default:
			msg = fmt.Sprintf("there is no warning %q any more: take this out", a.Code)
		}
		out = append(out, Warning{Pos: a.Pos, Code: "stale-acknowledgement", Msg: msg})
	}
	return out
}
