package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

// Record contains the results of all runs of a plan, for example for a change ticket.
type Record struct {
	Plan       string                 `json:"plan"` // digest of the plan
	ClusterUID string                 `json:"clusterUID"`
	Operators  []plan.Operator        `json:"operators"`
	Skipped    []plan.SkippedOperator `json:"skipped"`
	Steps      []StepReport           `json:"steps"`
	Downtime   int64                  `json:"olmDowntime"` // total, in milliseconds
	Stopped    []k8s.Ref              `json:"stopped"`
	Probes     []verify.ProbeResult   `json:"probes"` // results of all runs
	Accepted   []AcceptedFinding      `json:"accepted"`
	Ways       []Way                  `json:"ways"`
	Error      string                 `json:"error,omitempty"` // error of the last run
}

// StepReport is the part of a Record about one step.
type StepReport struct {
	StepResult
	Title string     `json:"title"`
	Began *time.Time `json:"began,omitempty"`
	Ended *time.Time `json:"ended,omitempty"`
}

// AcceptedFinding is a finding that the user accepted so that the run could continue.
type AcceptedFinding struct {
	Time    time.Time      `json:"time"`
	Step    int            `json:"step"`
	Finding verify.Finding `json:"finding"`
	Reason  string         `json:"reason"`
}

// NewRecord returns the record after a run.
func NewRecord(p *plan.Plan, j *Journal, res *Progress) *Record {
	out := &Record{
		Plan: Digest(p), ClusterUID: p.ClusterUID, Operators: p.Operators, Skipped: p.Skipped, Steps: []StepReport{}, Downtime: res.Downtime,
		Stopped: res.Stopped, Probes: []verify.ProbeResult{}, Accepted: []AcceptedFinding{}, Ways: res.Ways, Error: res.Error,
	}
	for i, s := range res.Steps {
		step := StepReport{StepResult: s, Title: p.Steps[i].Title}
		for _, e := range j.entries {
			switch {
			case e.Step != s.Number:
			case e.Event == Began && step.Began == nil:
				step.Began = &e.Time
			case e.Event == Ended:
				step.Ended = &e.Time
			}
		}
		out.Steps = append(out.Steps, step)
	}
	for _, e := range j.entries {
		if e.Event == Skipped && e.Finding != nil {
			out.Accepted = append(out.Accepted, AcceptedFinding{e.Time, e.Step, *e.Finding, e.Message})
		}
		for _, r := range e.Probes {
			i := slices.IndexFunc(out.Probes, func(sum verify.ProbeResult) bool { return sum.Kind == r.Kind })
			if i < 0 {
				out.Probes = append(out.Probes, r)
				continue
			}
			sum := &out.Probes[i]
			sum.Targets, sum.Unprobed = max(sum.Targets, r.Targets), max(sum.Unprobed, r.Unprobed)
			sum.Probes, sum.Failures = sum.Probes+r.Probes, sum.Failures+r.Failures
			sum.LongestGap, sum.Failure = max(sum.LongestGap, r.LongestGap), cmp.Or(sum.Failure, r.Failure)
		}
	}
	return out
}

// JSON returns the report as JSON.
func (r *Record) JSON() []byte {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		panic(err) // impossible: a record contains only plain values
	}
	return append(text, '\n')
}

// Markdown returns the report as Markdown.
func (r *Record) Markdown() []byte {
	var b strings.Builder
	line := func(format string, args ...any) {
		for i, a := range args {
			if text, ok := a.(string); ok {
				args[i] = strings.ReplaceAll(sanitize.Line(text), "|", "\\|")
			}
		}
		fmt.Fprintf(&b, format+"\n", args...)
	}
	line("# Operators leave OLM\n\n- Plan: %s\n- Cluster: %s (UID of Namespace kube-system)\n- OLM was stopped for %s", r.Plan, r.ClusterUID, FormatMilliseconds(r.Downtime))
	if len(r.Stopped) > 0 {
		line("- **OLM is still stopped**")
	}
	if r.Error != "" {
		line("- The last run ended early: %s", r.Error)
	}
	line("\n## Operators\n\n| Operator | Version | Result |\n| --- | --- | --- |")
	for _, op := range r.Operators {
		line("| %s | %s | leaves OLM |", op.Namespace+"/"+op.Package, op.CSV)
	}
	for _, op := range r.Skipped {
		line("| %s | | stays with OLM: %s |", op.Namespace+"/"+op.Package, strings.Join(op.Reasons, "; "))
	}
	line("\n## Steps\n\n| Step | Title | State | Began | Ended |\n| ---: | --- | --- | --- | --- |")
	for _, s := range r.Steps {
		line("| %d | %s | %s | %s | %s |", s.Number, s.Title, string(s.State), timeOf(s.Began), timeOf(s.Ended))
	}
	line("\n## Probes\n")
	if len(r.Probes) == 0 {
		line("No probes were made.")
	} else {
		line("| Kind | Targets | Not probed | Probes | Failures | Longest gap | First failure |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |")
	}
	for _, p := range r.Probes {
		line("| %s | %d | %d | %d | %d | %s | %s |", string(p.Kind), p.Targets, p.Unprobed, p.Probes, p.Failures, FormatMilliseconds(p.LongestGap), p.Failure)
	}
	line("\n## Findings\n")
	none := true
	for _, s := range r.Steps {
		for _, f := range s.Findings {
			none = false
			line("- Step %d: %s", s.Number, f.Message)
		}
	}
	for _, a := range r.Accepted {
		none = false
		line("- Step %d: %s. Accepted on %s: %s", a.Step, a.Finding.Message, timeOf(&a.Time), a.Reason)
	}
	if none {
		line("None.")
	}
	return []byte(b.String())
}

// FormatMilliseconds formats a duration, such as "1m2.3s".
func FormatMilliseconds(n int64) string {
	return (time.Duration(n) * time.Millisecond).Round(100 * time.Millisecond).String()
}

func timeOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
