package diag

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Waiver accepts the findings and warnings that all its selectors match, until the end of its last
// day. An empty selector matches everything.
type Waiver struct {
	Rule          string   `json:"rule" form:"required nonempty" doc:"Rule of the finding, such as rbac.wildcard, or rbac.* for the whole family; name of a rule of your own; or code of a warning, such as namespace-expected."`
	Operator      string   `json:"operator,omitempty" doc:"namespace/package. Default: every operator."`
	Object        string   `json:"object,omitempty" form:"nonempty" doc:"Object as printed in the report, such as Deployment ops/etcd; for a warning, its subject or file. A * at the end matches any text. Default: all."`
	Field         string   `json:"field,omitempty" form:"nonempty" doc:"Field as printed after the object in the report, such as v1 spec.size or secrets. Default: all."`
	Container     string   `json:"container,omitempty" form:"nonempty" doc:"Name of the container. Default: all."`
	Vulnerability string   `json:"vulnerability,omitempty" form:"nonempty" doc:"One of the names of the vulnerability, such as CVE-2026-1234. Default: all."`
	Clusters      []string `json:"clusters,omitempty" form:"nonempty" doc:"Names of clusters; a * at the end matches any text. Default: all."`
	Reason        string   `json:"reason" form:"required nonempty" doc:"Why the risk is accepted."`
	Expires       string   `json:"expires" form:"required format=date" doc:"Last day on which the waiver is valid, such as 2027-01-01, in UTC."`

	Pos Pos `json:"-"`
}

// Subject is the smallest unit that a waiver can accept. It is a warning, or a finding in one cluster about
// one field or one vulnerability.
type Subject struct {
	Rule            string
	Operator        string
	Objects         []string // names by which a waiver can select the object
	Field           string
	Container       string
	Vulnerabilities []string // names of the vulnerability, such as CVE IDs
	Cluster         string
}

// Selects reports whether all selectors of the waiver match s.
func (w Waiver) Selects(s Subject) bool {
	return Matches(w.Rule, s.Rule) &&
		(w.Operator == "" || Matches(w.Operator, s.Operator)) &&
		(w.Object == "" || slices.ContainsFunc(s.Objects, func(name string) bool { return Matches(w.Object, name) })) &&
		(w.Field == "" || w.Field == s.Field || slices.Contains(strings.Split(w.Field, ", "), s.Field)) &&
		(w.Container == "" || w.Container == s.Container) &&
		(w.Vulnerability == "" || slices.Contains(s.Vulnerabilities, w.Vulnerability)) &&
		(w.Clusters == nil || slices.ContainsFunc(w.Clusters, func(name string) bool { return Matches(name, s.Cluster) }))
}

// Expired reports whether the last day of the waiver is before today.
func (w Waiver) Expired(today string) bool { return w.Expires != "" && w.Expires < today }

// Selectors formats the selectors as text, such as "rbac.gained (operator ops/etcd)".
func (w Waiver) Selectors() string {
	var more []string
	for _, s := range [][2]string{
		{"operator", w.Operator},
		{"object", w.Object},
		{"field", w.Field},
		{"container", w.Container},
		{"vulnerability", w.Vulnerability},
		{"clusters", strings.Join(w.Clusters, " ")},
	} {
		if s[1] != "" {
			more = append(more, s[0]+" "+s[1])
		}
	}
	if len(more) == 0 {
		return w.Rule
	}
	return w.Rule + " (" + strings.Join(more, ", ") + ")"
}

// Matches reports whether s matches pattern: s equals pattern, or pattern ends in "*" and s begins with
// the text before the "*".
func Matches(pattern, s string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, prefix)
	}
	return pattern == s
}

// noticeDays is the number of days for which Review warns before a waiver expires.
const noticeDays = 14

// Review returns a warning for each waiver that has expired, that expires within 14 days, or that was not
// used. used[i] reports whether waivers[i] was used. objects[i] are the names to suggest instead of the object
// of waivers[i]. objects may be nil. today is the current day, such as "2026-11-24". If today is empty,
// no waiver expires.
func Review(waivers []Waiver, used []bool, objects [][]string, today string) []Warning {
	var out []Warning
	for i, w := range waivers {
		left := daysLeft(w.Expires, today)
		switch {
		case w.Expired(today):
			out = append(out, Warning{Pos: w.Pos, Code: "waiver-expired", Msg: fmt.Sprintf("waiver of %s expired on %s: renew or delete it", w.Selectors(), w.Expires)})
		case !used[i]:
			hint := ""
			if i < len(objects) {
				hint = DidYouMean(w.Object, objects[i])
			}
			out = append(out, Warning{Pos: w.Pos, Code: "waiver-unused", Msg: fmt.Sprintf("waiver of %s matches no finding or warning: delete it%s", w.Selectors(), hint)})
		case left >= 0 && left <= noticeDays:
			out = append(out, Warning{Pos: w.Pos, Code: "waiver-expiring", Msg: fmt.Sprintf("waiver of %s expires on %s, in %s: renew or delete it", w.Selectors(), w.Expires, Count(left, "day"))})
		}
	}
	return out
}

// daysLeft returns the number of days from today to the last day of a waiver. It returns -1 if a
// date is invalid.
func daysLeft(expires, today string) int {
	last, err := time.Parse(time.DateOnly, expires)
	now, errNow := time.Parse(time.DateOnly, today)
	if err != nil || errNow != nil {
		return -1
	}
	return int(last.Sub(now).Hours() / 24)
}

// MarkWaived returns a copy of ws in which Waived is set for the warnings that a valid waiver
// selects.
func MarkWaived(ws []Warning, waivers []Waiver, today string) []Warning {
	out := slices.Clone(ws)
	for i, w := range out {
		out[i].Waived = w.Waived || slices.ContainsFunc(waivers, func(v Waiver) bool { return !v.Expired(today) && v.Selects(warningSubject(w)) })
	}
	return out
}

// ReviewWarnings returns the results of Review for the waivers of the warnings of one step. ws are all
// warnings of the step. For step Resolving, it also reviews the waivers of warnings without a step, but
// reports only those that have expired or expire soon.
func ReviewWarnings(step Step, ws []Warning, waivers []Waiver, today string) []Warning {
	var own []Waiver
	var used []bool
	var objects [][]string
	for _, v := range waivers {
		i := slices.IndexFunc(Codes(), func(c Code) bool { return c.ID == v.Rule })
		if i < 0 {
			continue
		}
		anyStep := step == Resolving && Codes()[i].Step == OtherStep
		if anyStep || Codes()[i].Step == step {
			own = append(own, v)
			var names []string
			for _, w := range ws {
				if s := warningSubject(w); Matches(v.Rule, s.Rule) {
					names = append(names, s.Objects...)
				}
			}
			objects = append(objects, names)
			used = append(used, anyStep || slices.ContainsFunc(ws, func(w Warning) bool { return v.Selects(warningSubject(w)) }))
		}
	}
	return Review(own, used, objects, today)
}

func warningSubject(w Warning) Subject {
	return Subject{Rule: w.Code, Objects: []string{w.Subject, w.Pos.File}}
}
