package diff

import (
	"cmp"
	_ "embed" // for the go:embed directives
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/page"
	"github.com/quayside/quayside/internal/sanitize"
)

// maxPage is the maximum size of an HTML report in bytes. Pages of this size can still be scrolled
// in mobile browsers.
const maxPage = 4 << 20

// Template, style sheet and script of the page. The script implements the filters.
var (
	//go:embed page.html
	pageBody string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// HTML returns the report as one self-contained page: fonts, images, styles and scripts are
// embedded. The page begins with a list of operators, most severe first. It can be filtered by
// operator, cluster and severity; without JavaScript it shows everything. The page has at most
// maxPage bytes: if not all findings fit, the least severe ones are only counted.
func HTML(r *Report) ([]byte, error) {
	return page.Page{Title: "quayside: " + r.headline(), Body: pageBody, Style: pageStyle, Script: pageScript, Data: newHTMLPage(r)}.HTML()
}

// htmlPage is the data of the page template.
type htmlPage struct {
	Headline, Before, After     string
	Resources                   string // change of requests and limits in all clusters
	Counts                      []htmlCount
	Waived                      int
	Omitted                     []string // messages about items that do not fit on the page
	Verdict                     *htmlVerdict
	Filter                      bool // show the filters: at least one has several values
	Names, Clusters, Severities []string
	Operators                   []htmlOperator
	Removals                    []htmlRemoval
	Notes                       []string
	Reading                     []Reading
}

type htmlCount struct {
	Severity string
	N        int
}

type htmlVerdict struct {
	Fail, Short bool
	Title, More string
	Faults      []Fault
	Waivers     []string
}

type htmlOperator struct {
	ID                             int
	Name, In, Range, VersionChange string // In: cluster names; Range: their indexes in the list of all clusters, such as "0-2 7"; both empty for all clusters
	Summary                        string // numbers of findings and objects
	Counts                         []htmlCount
	Objects                        []htmlObjects
	Open                           bool
	Groups                         []htmlGroup
	Omitted                        string
}

// htmlObjects is a list of added or removed objects.
type htmlObjects struct {
	Title, More string
	Names       []string
}

type htmlGroup struct {
	Severity, FilterValue, Label, Title, Rule, Why, Count string // FilterValue: value for the filter by severity
	Open                                                  bool
	Findings                                              []htmlFinding
}

type htmlFinding struct {
	Subject, Message, Before, After, Place, Link, Waiver string
	Values                                               bool
}

type htmlRemoval struct {
	Name, In, Range string
	Steps           []removalStep
}

// Limits above which a section is collapsed or a list is cut. Groups of waived findings and of
// severity info are always collapsed.
const (
	maxExpandedOperators = 3  // above this number, only operators with severe findings are expanded
	maxExpandedFaults    = 10 // above this number, the list of policy faults is collapsed
	maxListedNames       = 20 // maximum number of objects in a list
)

// newHTMLPage returns the template data for a report.
func newHTMLPage(r *Report) htmlPage {
	p := htmlPage{Headline: r.changedOperators(), Before: sanitize.Truncate(r.Before, 300), After: sanitize.Truncate(r.After, 300), Counts: htmlCounts(r.Findings)}
	for _, f := range r.Findings {
		if f.Waiver != "" {
			p.Waived++
		}
	}
	p.Resources = r.resourceLine()
	p.Verdict = htmlVerdictOf(r.Verdict)
	p.setFilters(r)
	p.addOperators(r)
	plans := byteBudget(maxPage / 16)
	for _, removal := range r.Removals {
		p.Removals = append(p.Removals, htmlRemoval{sanitize.Truncate(removal.Operator, 200), clusterNames(removal.Clusters), formatRanges(removal.Clusters, r.Clusters), plans.steps(removal.steps())})
		if !plans.fit(p.Removals[len(p.Removals)-1].Name) {
			p.noteOmitted(len(r.Removals)-len(p.Removals), "uninstall plan", "uninstall plans")
			break
		}
	}
	p.Reading = htmlReading(r.Reading)
	p.noteOmitted(len(r.Reading)-len(p.Reading), "operator with changes", "operators with changes")
	budget := byteBudget(maxPage / 16)
	for _, note := range r.Notes {
		if text := sanitize.Truncate(note, 600); budget.fit(text) {
			p.Notes = append(p.Notes, text)
		}
	}
	p.noteOmitted(len(r.Notes)-len(p.Notes), "note", "notes")
	return p
}

// summary returns the numbers of findings and objects, and the change of requests and limits.
func (o OperatorReport) summary(findings []Finding) string {
	parts := []string{formatCounts(findings), o.objectCounts(), o.Resources.String()}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// noteOmitted adds a message that n items do not fit on the page. It does nothing if n is 0.
func (p *htmlPage) noteOmitted(n int, one, many string) {
	if n > 0 {
		p.Omitted = append(p.Omitted, pluralize(n, one+" is", many+" are")+" omitted to keep this page short: use -o json for everything.")
	}
}

// moreText formats the number of items omitted from a list. It returns "" if n is 0.
func moreText(n int, one, many string) string {
	if n <= 0 {
		return ""
	}
	return "and " + pluralize(n, one, many) + " more: use -o json"
}

// setFilters sets the values that the page can be filtered by.
func (p *htmlPage) setFilters(r *Report) {
	names := map[string]bool{}
	lists := byteBudget(maxPage / 16)
	for _, op := range r.Operators {
		if name := operatorTitle(op.Name); !names[name] && lists.fit(name, name) {
			names[name] = true
			p.Names = append(p.Names, name)
		}
	}
	slices.SortFunc(p.Names, func(a, b string) int { return strings.Compare(lastIfEmpty(a), lastIfEmpty(b)) })
	for _, name := range r.Clusters {
		if name = sanitize.Truncate(name, 200); lists.fit(name, name) {
			p.Clusters = append(p.Clusters, name)
		}
	}
	for _, c := range p.Counts {
		if c.N > 0 {
			p.Severities = append(p.Severities, c.Severity)
		}
	}
	if p.Waived > 0 {
		p.Severities = append(p.Severities, "waived")
	}
	p.Filter = len(p.Names) > 1 || len(p.Clusters) > 1 || len(p.Severities) > 1
}

// addOperators adds the operators and as many findings as fit, most severe first.
func (p *htmlPage) addOperators(r *Report) {
	key := func(operator string, clusters []string) string {
		return operator + "\x00" + strings.Join(clusters, "\x00")
	}
	headBudget := byteBudget(maxPage / 4)
	at, all := map[string]int{}, map[string][]Finding{}
	for _, f := range r.Findings {
		k := key(f.Operator, f.Clusters)
		all[k] = append(all[k], f)
	}
	for _, op := range r.Operators {
		k := key(op.Name, op.Clusters)
		item := htmlOperator{
			ID: len(p.Operators) + 1, Name: operatorTitle(op.Name), In: clusterNames(op.Clusters), Range: formatRanges(op.Clusters, r.Clusters), VersionChange: sanitize.Truncate(op.versionChange(), 200),
			Summary: op.summary(all[k]), Counts: htmlCounts(all[k]),
		}
		item.addObjects("added", op.Added)
		item.addObjects("removed", op.Removed)
		item.Open = len(r.Operators) <= maxExpandedOperators || slices.ContainsFunc(all[k], func(f Finding) bool { return f.Severity >= High && f.Waiver == "" })
		var names []string
		for _, o := range item.Objects {
			names = append(names, o.Names...)
		}
		if !headBudget.fit(append(names, item.Name, item.Name, item.In, item.In, item.Range, item.VersionChange, item.VersionChange)...) || !headBudget.fit(item.Summary) {
			p.noteOmitted(len(r.Operators)-len(p.Operators), "operator", "operators")
			break
		}
		at[k] = len(p.Operators)
		p.Operators = append(p.Operators, item)
	}
	shown := map[string][]Finding{}
	bodyBudget, full := byteBudget(maxPage/2), false
	var omitted []Finding
	for _, f := range r.Findings {
		k := key(f.Operator, f.Clusters)
		_, known := at[k]
		if full = full || known && !bodyBudget.fit(htmlFindingOf(f).texts()...); full || !known {
			omitted = append(omitted, f)
			continue
		}
		shown[k] = append(shown[k], f)
	}
	p.noteOmitted(len(omitted), "finding", "findings")
	p.Omitted = append(p.Omitted, omittedGroups(omitted)...)
	for k, i := range at {
		op := &p.Operators[i]
		op.Groups = htmlGroups(shown[k])
		if left := len(all[k]) - len(shown[k]); left > 0 {
			op.Omitted = fmt.Sprintf("%s of this operator omitted: use -o json for everything.", pluralize(left, "finding is", "findings are"))
		}
	}
}

// addObjects adds the list of added or removed objects, if it is not empty. change is "added" or
// "removed".
func (o *htmlOperator) addObjects(change string, refs []Ref) {
	if len(refs) == 0 {
		return
	}
	list := htmlObjects{Title: pluralize(len(refs), "object "+change, "objects "+change)}
	for _, name := range refNames(refs[:min(len(refs), maxListedNames)]) {
		list.Names = append(list.Names, sanitize.Truncate(name, 600))
	}
	list.More = moreText(len(refs)-len(list.Names), "object", "objects")
	o.Objects = append(o.Objects, list)
}

func htmlCounts(findings []Finding) []htmlCount {
	r := Report{Findings: findings}
	var out []htmlCount
	for _, s := range severities() {
		out = append(out, htmlCount{s.String(), r.Count(s)})
	}
	return out
}

func htmlVerdictOf(v *PolicyResult) *htmlVerdict {
	if v == nil {
		return nil
	}
	out := &htmlVerdict{Fail: v.Fail, Short: len(v.Faults) <= maxExpandedFaults, Title: pluralize(len(v.Faults), "finding", "findings")}
	budget := byteBudget(maxPage / 16)
	for _, f := range v.Faults {
		f = Fault{Policy: sanitize.Truncate(f.Policy, 100), Message: sanitize.Truncate(f.Message, 400), Rule: sanitize.Truncate(f.Rule, 100), Operator: sanitize.Truncate(f.Operator, 200), Subject: sanitize.Truncate(f.Subject, 300)}
		if !budget.fit(f.Policy, f.Message, f.Rule, f.Operator, f.Subject) {
			break
		}
		out.Faults = append(out.Faults, f)
	}
	out.More = moreText(len(v.Faults)-len(out.Faults), "finding", "findings")
	for _, w := range v.Waivers {
		if text := sanitize.Truncate(w.String(), 400); budget.fit(text) {
			out.Waivers = append(out.Waivers, text)
		}
	}
	return out
}

// htmlGroups returns the template data for the findings of one operator.
func htmlGroups(findings []Finding) []htmlGroup {
	var out []htmlGroup
	for _, g := range groupFindings(findings) {
		hg := htmlGroup{Severity: g.severity.String(), FilterValue: g.severity.String(), Label: g.severity.String(), Title: g.rule.Title, Rule: g.rule.ID, Why: g.rule.Why}
		if waivedRank(g) == 1 {
			hg.FilterValue, hg.Label, hg.Severity = "waived", "waived, "+hg.Label, "info"
		}
		hg.Open = hg.Severity != Info.String()
		hg.Count = pluralize(len(g.findings), "finding", "findings")
		for _, f := range g.findings {
			hg.Findings = append(hg.Findings, htmlFindingOf(f))
		}
		out = append(out, hg)
	}
	return out
}

func htmlFindingOf(f Finding) htmlFinding {
	out := htmlFinding{
		Subject: sanitize.Truncate(f.subject(), 600), Message: cutMiddle(f.fullMessage(), maxMessage),
		Waiver: sanitize.Truncate(f.Waiver, 400), Values: f.showsValues(),
	}
	if out.Values {
		out.Before, out.After = f.shownValues(maxTextValue)
	}
	if f.Place.Path != "" {
		out.Place, out.Link = sanitize.Truncate(f.Place.String(), 400), f.Link
	}
	return out
}

// texts returns all texts of a finding on the page, for computing its size.
func (f htmlFinding) texts() []string {
	out := []string{f.Subject, f.Message, f.Place, f.Link, f.Waiver}
	if f.Values {
		out = append(out, f.Before, f.After)
	}
	return out
}

// operatorTitle returns the name of an operator for the page, cut to 200 bytes.
func operatorTitle(operator string) string {
	return sanitize.Truncate(cmp.Or(operator, "(no operator)"), 200)
}

// clusterNames returns the names of clusters, cut to 600 bytes, or "" for all clusters.
func clusterNames(clusters []string) string {
	return sanitize.Truncate(strings.TrimSuffix(clusterPrefix(clusters), ": "), 600)
}

// formatRanges returns the indexes of names in list as ranges, such as "0-2 7". Both arguments must be
// sorted. It returns "" if names is empty.
func formatRanges(names, list []string) string {
	var out []string
	first, last := -1, -1
	flush := func() {
		switch {
		case first < 0:
		case first == last:
			out = append(out, strconv.Itoa(first))
		default:
			out = append(out, fmt.Sprintf("%d-%d", first, last))
		}
	}
	for _, name := range names {
		i, ok := slices.BinarySearch(list, name)
		switch {
		case !ok:
		case first >= 0 && i == last+1:
			last = i
		default:
			flush()
			first, last = i, i
		}
	}
	flush()
	return strings.Join(out, " ")
}

// byteBudget is the remaining number of bytes for one part of a page.
type byteBudget int

// itemOverhead is an upper bound for the markup of one item in bytes. An item is an operator with
// its row in the table of contents, or a finding in a group of its own.
const itemOverhead = 1800

// fit reports whether texts and their markup fit, and subtracts their size. After the first text
// that does not fit, it always returns false.
func (r *byteBudget) fit(texts ...string) bool {
	*r -= itemOverhead
	for _, s := range texts {
		*r -= byteBudget(escapedLength(s))
	}
	return *r >= 0
}

// steps returns the steps of an uninstall plan with as many lines as fit, and a note about omitted
// lines.
func (r *byteBudget) steps(list []removalStep) []removalStep {
	var out []removalStep
	for _, s := range list {
		step := removalStep{Title: s.Title}
		for i, line := range s.Lines {
			if line = sanitize.Truncate(line, 600); !r.fit(line) {
				step.Lines = append(step.Lines, moreText(len(s.Lines)-i, "line", "lines"))
				break
			}
			step.Lines = append(step.Lines, line)
		}
		out = append(out, step)
	}
	return out
}

// escapedLength returns an upper bound for the size of s on a page in bytes, after escaping for
// HTML or URLs and after replacing invisible characters.
func escapedLength(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" -./_()[]{},;", r):
			n++
		case sanitize.IsInvisible(r), r == utf8.RuneError:
			n += 12
		default:
			n += max(6, 3*utf8.RuneLen(r)) // "&#34;", or "%" and two digits for each byte
		}
	}
	return n
}
