package diff

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// Text returns the report for a terminal: operators with their findings, most severe first. If
// color is true, it contains ANSI escape sequences.
func Text(r *Report, color bool) []byte {
	w := textWriter{color: color}
	w.linef("%s → %s", sanitize.Line(r.Before), sanitize.Line(r.After))
	w.linef("%s", r.headline())
	if line := r.resourceLine(); line != "" {
		w.linef("%s", line)
	}
	for _, op := range r.Operators {
		w.writeOperator(op, op.findingsOf(r.Findings))
	}
	for _, removal := range r.Removals {
		w.writeRemoval(removal)
	}
	w.writeReading(r.Reading)
	w.writeVerdict(r)
	if len(r.Notes) > 0 {
		w.linef("\nnot checked")
		for _, n := range r.Notes {
			w.linef("  %s", sanitize.Line(n))
		}
	}
	return []byte(w.out.String())
}

// textWriter writes a report for a terminal.
type textWriter struct {
	out   strings.Builder
	color bool
}

func (w *textWriter) linef(format string, args ...any) {
	fmt.Fprintf(&w.out, format, args...)
	w.out.WriteByte('\n')
}

// paint colors text by severity. Without color it returns text unchanged.
func (w *textWriter) paint(s Severity, text string) string {
	codes := map[Severity]string{Critical: "1;31", High: "31", Medium: "33", Low: "36", Info: "2"}
	if !w.color || codes[s] == "" {
		return text
	}
	return "\x1b[" + codes[s] + "m" + text + "\x1b[0m"
}

func (w *textWriter) bold(text string) string {
	if !w.color {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

func (w *textWriter) writeOperator(op OperatorReport, findings []Finding) {
	w.linef("\n%s  %s  (%s)", w.bold(sanitize.Line(op.title())), sanitize.Line(op.versionChange()), op.objectCounts())
	for _, line := range op.objectLists() {
		w.linef("  %s", sanitize.Line(line))
	}
	for _, g := range groupFindings(findings) {
		label := strings.ToUpper(g.severity.String())
		if waivedRank(g) == 1 {
			label = "waived " + label
		}
		w.linef("  %s  %s [%s]", w.paint(g.severity, label), g.rule.Title, g.rule.ID)
		if g.severity > Info {
			w.linef("      %s", w.paint(Info, g.rule.Why))
		}
		for _, f := range g.findings {
			w.writeFinding(f)
		}
	}
}

// maxTextValue is the number of bytes above which the values of a finding are cut in text and HTML.
const maxTextValue = 8000

func (w *textWriter) writeFinding(f Finding) {
	if subject := sanitize.Line(f.subject()); subject != "" {
		w.linef("    - %s: %s", subject, sanitize.Line(f.fullMessage()))
	} else {
		w.linef("    - %s", sanitize.Line(f.fullMessage()))
	}
	if f.showsValues() {
		before, after := f.shownValues(maxTextValue)
		w.linef("        %s → %s", cmp.Or(sanitize.Line(before), "(none)"), cmp.Or(sanitize.Line(after), "(none)"))
	}
	if f.Place.Path != "" {
		place := f.Place.String()
		if f.Place.Removed {
			place += " (before)"
		}
		w.linef("        %s", w.paint(Info, sanitize.Line(place)))
	}
	if f.Waiver != "" {
		w.linef("        waived: %s", sanitize.Line(f.Waiver))
	}
}

func (w *textWriter) writeRemoval(r Removal) {
	w.linef("\n%s", w.bold("uninstall plan for "+sanitize.Line(clusterPrefix(r.Clusters)+r.Operator)))
	for i, s := range r.steps() {
		w.linef("  %d. %s", i+1, s.Title)
		for _, line := range s.Lines {
			w.linef("     - %s", sanitize.Line(line))
		}
	}
}

func (w *textWriter) writeVerdict(r *Report) {
	if r.Verdict == nil {
		return
	}
	v := r.Verdict
	for i, one := range v.Waivers {
		if i == 0 {
			w.linef("\nwaivers")
		}
		w.linef("  %s", sanitize.Line(one.String()))
	}
	for i, f := range v.Waived {
		if i == 0 {
			w.linef("\nwaived")
		}
		w.linef("  %s; waived: %s", w.formatFault(f), sanitize.Line(f.Waiver))
	}
	for i, f := range v.Faults {
		if i == 0 {
			w.linef("\n%s", w.paint(High, "refused by the policy"))
		}
		w.linef("  %s", w.formatFault(f))
	}
}

func (w *textWriter) formatFault(f Fault) string {
	text := sanitize.Line(f.Policy) + ": "
	if f.Operator != "" {
		text += sanitize.Line(f.Operator) + " "
	}
	return text + fmt.Sprintf("[%s] %s: %s", f.Rule, sanitize.Line(f.Subject), sanitize.Line(f.Message))
}
