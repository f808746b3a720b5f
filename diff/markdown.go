package diff

import (
	"cmp"
	"fmt"
	"sort"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// MaxComment is GitHub's limit for a pull-request comment in characters. We compare it with the
// size in bytes, which is never smaller.
const MaxComment = 65_536

// commentMarker is the first line of the Markdown report, an HTML comment. A bot finds its earlier
// comment by this line and updates it.
const commentMarker = "<!-- quayside:diff -->"

// Markdown returns the report for a pull-request comment. It begins with a summary. The findings of each
// operator are in a collapsible section. Findings of severity info are in a nested section. The result is
// shorter than MaxComment. If the findings do not fit, the least severe findings are only counted. Texts from
// bundles cannot break the formatting, mention users or add HTML.
func Markdown(r *Report) []byte { return []byte(markdownWithin(r, MaxComment)) }

// Comment returns the report as the pull-request comment for one workspace of a repository. dir is the path
// of the workspace. marker is the first line of the comment, unique to the workspace, and text is the rest.
// Together they are shorter than MaxComment.
func Comment(r *Report, dir string) (marker, text string) {
	marker, heading := commentHead(dir)
	limit := MaxComment - max(len(marker)-len(commentMarker), 0) - len(heading)
	return marker, heading + strings.TrimPrefix(markdownWithin(r, limit), commentMarker+"\n")
}

// FailureComment returns the pull-request comment for a workspace in which 'quayside verify' failed with
// message. The comment takes the place of the comment with the report. marker and text have the same meaning
// as in Comment.
func FailureComment(message, dir string) (marker, text string) {
	marker, heading := commentHead(dir)
	var b strings.Builder
	b.WriteString(heading + "### quayside: verify failed\n\n")
	for line := range strings.Lines(sanitize.Truncate(message, MaxComment/4)) { // a quarter, because sanitize.Code may lengthen the message
		b.WriteString(sanitize.Code(strings.TrimRight(line, "\n")) + "  \n")
	}
	b.WriteString("\nThe changes are reported when `quayside verify` succeeds.\n")
	return marker, b.String()
}

// commentHead returns the first line of the comment of a workspace, and the heading of its text.
func commentHead(dir string) (marker, heading string) {
	if dir == "." || dir == "" {
		return commentMarker, ""
	}
	return strings.TrimSuffix(commentMarker, "-->") + fileURI(dir) + " -->", "## " + sanitize.Code(sanitize.Truncate(dir, 200)) + "\n\n"
}

// markdownWithin returns the report in less than limit bytes, with as many findings as fit.
func markdownWithin(r *Report, limit int) string {
	best := renderMarkdown(r, 0)
	// The length grows with the number of findings, so a binary search finds the largest number
	// that fits.
	n := sort.Search(len(r.Findings), func(i int) bool { return len(renderMarkdown(r, i+1)) >= limit })
	if n > 0 {
		best = renderMarkdown(r, n)
	}
	if len(best) >= limit {
		best = minimalMarkdown(r)
	}
	return best
}

// Limits for a finding in bytes.
const (
	maxMarkdownValue = 4000
	maxMessage       = 20_000 // the names of all changed fields of an object
)

// Limits for the parts of the report that are not findings.
const (
	maxRows  = 60
	maxSteps = 12
	maxNotes = 20
)

// renderMarkdown returns the report with only the n most severe findings.
func renderMarkdown(r *Report, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n### quayside: %s\n\n", commentMarker, r.headline())
	fmt.Fprintf(&b, "%s → %s\n\n", sanitize.Code(sanitize.Truncate(r.Before, 100)), sanitize.Code(sanitize.Truncate(r.After, 100)))
	if line := r.resourceLine(); line != "" {
		fmt.Fprintf(&b, "%s\n\n", sanitize.Markdown(line))
	}
	markdownVerdict(&b, r)
	markdownTable(&b, r)
	shown := r.Findings[:n]
	for _, op := range r.Operators {
		markdownOperator(&b, op, op.findingsOf(shown))
	}
	if left := r.Findings[n:]; len(left) > 0 {
		fmt.Fprintf(&b, "\n%s not shown here (%s): see the JSON report.\n", pluralize(len(left), "finding is", "findings are"), formatCounts(left))
		markdownOmitted(&b, left)
	}
	markdownReading(&b, r.Reading)
	for i, removal := range r.Removals {
		if i < maxSteps {
			markdownRemoval(&b, removal)
		}
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n<details><summary>Not checked</summary>\n\n")
		for _, note := range r.Notes[:min(len(r.Notes), maxNotes)] {
			fmt.Fprintf(&b, "- %s\n", sanitize.Markdown(sanitize.Truncate(note, 300)))
		}
		b.WriteString("\n</details>\n")
	}
	return b.String()
}

// minimalMarkdown returns the shortest possible report. It is used if even a report without
// findings is too long.
func minimalMarkdown(r *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n### quayside: %s\n\nThe report is too long for a comment: see the JSON report.\n", commentMarker, r.headline())
	markdownOmitted(&b, r.Findings)
	return b.String()
}

// markdownOmitted writes a summary of the findings of medium or higher severity that do not fit.
func markdownOmitted(b *strings.Builder, findings []Finding) {
	for i, line := range omittedGroups(findings) {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "- %s\n", sanitize.Markdown(sanitize.Truncate(line, 600)))
	}
}

func markdownVerdict(b *strings.Builder, r *Report) {
	if v := r.Verdict; v != nil {
		if v.Fail {
			fmt.Fprintf(b, "**Refused by the policy**: %s.\n\n", pluralize(len(v.Faults), "finding", "findings"))
		} else {
			b.WriteString("Accepted by the policy.\n\n")
		}
		for _, w := range v.Waivers[:min(len(v.Waivers), maxNotes)] {
			fmt.Fprintf(b, "- %s\n", sanitize.Markdown(sanitize.Truncate(w.String(), 200)))
		}
		if len(v.Waivers) > 0 {
			b.WriteString("\n")
		}
	}
}

func markdownTable(b *strings.Builder, r *Report) {
	if len(r.Operators) == 0 {
		return
	}
	b.WriteString("| Operator | Version | Critical | High | Medium | Low | Info |\n|---|---|--:|--:|--:|--:|--:|\n")
	for i, op := range r.Operators {
		if i == maxRows {
			fmt.Fprintf(b, "| and %d more | | | | | | |\n", len(r.Operators)-maxRows)
			break
		}
		fmt.Fprintf(b, "| %s | %s |", tableCell(op.title()), tableCell(op.versionChange()))
		operatorReport := Report{Findings: op.findingsOf(r.Findings)}
		for _, s := range severities() {
			if n := operatorReport.Count(s); n > 0 {
				fmt.Fprintf(b, " %d |", n)
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
}

func tableCell(s string) string {
	return strings.ReplaceAll(sanitize.Code(sanitize.Truncate(s, 120)), "|", "\\|")
}

func markdownOperator(b *strings.Builder, op OperatorReport, findings []Finding) {
	if len(findings) == 0 {
		return
	}
	open := ""
	if findings[0].Severity >= High && findings[0].Waiver == "" {
		open = " open"
	}
	fmt.Fprintf(b, "\n<details%s><summary><b>%s</b> %s: %s</summary>\n", open, sanitize.HTML(sanitize.Truncate(op.title(), 120)), sanitize.HTML(sanitize.Truncate(op.versionChange(), 120)), formatCounts(findings))
	for i, line := range op.objectLists() {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "- %s\n", sanitize.Markdown(sanitize.Truncate(line, 600)))
	}
	var severe, info []Finding
	for _, f := range findings {
		if f.Severity > Info {
			severe = append(severe, f)
		} else {
			info = append(info, f)
		}
	}
	markdownGroups(b, severe)
	if len(severe) > 0 && len(info) > 0 {
		fmt.Fprintf(b, "\n<details><summary>%s</summary>\n", formatCounts(info))
		markdownGroups(b, info)
		b.WriteString("\n</details>\n")
	} else {
		markdownGroups(b, info)
	}
	b.WriteString("\n</details>\n")
}

// markdownGroups writes findings, grouped by severity and rule.
func markdownGroups(b *strings.Builder, findings []Finding) {
	for _, g := range groupFindings(findings) {
		label := g.severity.String()
		if waivedRank(g) == 1 {
			label = "waived, " + label
		}
		fmt.Fprintf(b, "\n**%s**: %s (%s)\n", label, g.rule.Title, sanitize.Code(g.rule.ID))
		if g.severity > Info {
			fmt.Fprintf(b, "_%s_\n", sanitize.Markdown(g.rule.Why))
		}
		b.WriteString("\n")
		for _, f := range g.findings {
			markdownFinding(b, f)
		}
	}
}

func markdownFinding(b *strings.Builder, f Finding) {
	b.WriteString("- ")
	if s := f.subject(); s != "" {
		b.WriteString(sanitize.Code(sanitize.Truncate(s, 200)) + ": ")
	}
	b.WriteString(sanitize.Markdown(cutMiddle(f.fullMessage(), maxMessage)))
	if f.showsValues() {
		before, after := f.shownValues(maxMarkdownValue)
		fmt.Fprintf(b, " (%s → %s)", sanitize.Code(cmp.Or(before, "none")), sanitize.Code(cmp.Or(after, "none")))
	}
	if f.Place.Path != "" {
		b.WriteString(" " + sanitize.Code(sanitize.Truncate(f.Place.String(), 200)))
	}
	if f.Waiver != "" {
		b.WriteString("; waived: " + sanitize.Markdown(sanitize.Truncate(f.Waiver, 200)))
	}
	b.WriteString("\n")
}

func markdownRemoval(b *strings.Builder, r Removal) {
	fmt.Fprintf(b, "\n<details open><summary><b>Uninstall plan of %s</b></summary>\n\n", sanitize.HTML(sanitize.Truncate(clusterPrefix(r.Clusters)+r.Operator, 120)))
	for i, s := range r.steps() {
		fmt.Fprintf(b, "%d. %s\n", i+1, s.Title)
		for j, line := range s.Lines {
			if j == maxSteps {
				fmt.Fprintf(b, "   - and %d more\n", len(s.Lines)-maxSteps)
				break
			}
			fmt.Fprintf(b, "   - %s\n", sanitize.Markdown(sanitize.Truncate(line, 300)))
		}
	}
	b.WriteString("\n</details>\n")
}
