package diff

import (
	"cmp"
	_ "embed" // for the go:embed directives
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/base/page"
)

// MaxPage is the maximum length of a page of HTML, in bytes: mobile browsers can still
// scroll it.
const MaxPage = 4 << 20

// The page, its style and its script, which filters the findings.
var (
	//go:embed page.html
	pageBody string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// HTML returns the report as one self-contained page without external fonts, images,
// styles or scripts. It begins with a list of the operators, worst first. Its script
// filters by operator, cluster and severity; the page is readable without it. The page is
// at most MaxPage long: it omits and counts the mildest findings that do not fit.
func HTML(r *Report) ([]byte, error) {
	return page.Page{Title: "quayside: " + r.headline(), Body: pageBody, Style: pageStyle, Script: pageScript, Data: htmlOf(r)}.HTML()
}

// htmlPage is the data of the template.
type htmlPage struct {
	Headline, Before, After     string
	Counts                      []htmlCount
	Waived                      int
	Left                        []string // omitted for lack of space
	Verdict                     *htmlVerdict
	Filter                      bool // at least one filter has several values
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
	ID                    int
	Name, In, Range, Step string // In: names of clusters; Range: their indexes in the list of all, "0-2 7"; both empty for all
	Words                 string // counts of findings and objects
	Counts                []htmlCount
	Objects               []htmlObjects
	Open                  bool
	Groups                []htmlGroup
	Left                  string
}

// htmlObjects is a list of the objects that are added or removed.
type htmlObjects struct {
	Title, More string
	Names       []string
}

type htmlGroup struct {
	Severity, Kind, Label, Title, Rule, Why, Words string // Kind: the filter value
	Open                                           bool
	Findings                                       []htmlFinding
}

type htmlFinding struct {
	Subject, Message, Before, After, Place, Link, Waiver string
	Values                                               bool
}

type htmlRemoval struct {
	Name, In, Range string
	Steps           []Step
}

// Up to fewOperators operators, all are expanded. Up to fewFaults reasons of the policy,
// the list of reasons is. Groups of severity info and waived ones are collapsed.
const (
	fewOperators = 3
	fewFaults    = 10
	fewNames     = 20 // in each list of objects
)

func htmlOf(r *Report) htmlPage {
	p := htmlPage{Headline: r.movers(), Before: inert.Cut(r.Before, 300), After: inert.Cut(r.After, 300), Counts: htmlCounts(r.Findings)}
	for _, f := range r.Findings {
		if f.Waiver != "" {
			p.Waived++
		}
	}
	p.Verdict = htmlVerdictOf(r.Verdict)
	p.filter(r)
	p.operators(r)
	plans := room(MaxPage / 16)
	for _, removal := range r.Removals {
		p.Removals = append(p.Removals, htmlRemoval{inert.Cut(removal.Operator, 200), inOf(removal.Clusters), formatRanges(removal.Clusters, r.Clusters), plans.steps(removal.Steps())})
		if !plans.takes(p.Removals[len(p.Removals)-1].Name) {
			p.left(len(r.Removals)-len(p.Removals), "uninstall plan", "uninstall plans")
			break
		}
	}
	p.Reading = htmlReading(r.Reading)
	p.left(len(r.Reading)-len(p.Reading), "operator with changes", "operators with changes")
	said := room(MaxPage / 16)
	for _, note := range r.Notes {
		if text := inert.Cut(note, 600); said.takes(text) {
			p.Notes = append(p.Notes, text)
		}
	}
	p.left(len(r.Notes)-len(p.Notes), "note", "notes")
	return p
}

// left notes that n items are omitted for lack of space.
func (p *htmlPage) left(n int, one, many string) {
	if n > 0 {
		p.Left = append(p.Left, pluralize(n, one+" is", many+" are")+" omitted to keep this page short: use -o json for everything.")
	}
}

// moreText returns the number of items omitted from a list, as a phrase; "" if n is 0.
func moreText(n int, one, many string) string {
	if n <= 0 {
		return ""
	}
	return "and " + pluralize(n, one, many) + " more: use -o json"
}

// filter sets the values of the filters.
func (p *htmlPage) filter(r *Report) {
	names := map[string]bool{}
	lists := room(MaxPage / 16)
	for _, op := range r.Operators {
		if name := nameOf(op.Name); !names[name] && lists.takes(name, name) {
			names[name] = true
			p.Names = append(p.Names, name)
		}
	}
	slices.SortFunc(p.Names, func(a, b string) int { return strings.Compare(lastIfEmpty(a), lastIfEmpty(b)) })
	for _, name := range r.Clusters {
		if name = inert.Cut(name, 200); lists.takes(name, name) {
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

// operators adds the operators and as many findings as fit, the worst of all operators
// first.
func (p *htmlPage) operators(r *Report) {
	key := func(operator string, clusters []string) string {
		return operator + "\x00" + strings.Join(clusters, "\x00")
	}
	heads := room(MaxPage / 4)
	at, all := map[string]int{}, map[string][]Finding{}
	for _, f := range r.Findings {
		k := key(f.Operator, f.Clusters)
		all[k] = append(all[k], f)
	}
	for _, op := range r.Operators {
		k := key(op.Name, op.Clusters)
		one := htmlOperator{
			ID: len(p.Operators) + 1, Name: nameOf(op.Name), In: inOf(op.Clusters), Range: formatRanges(op.Clusters, r.Clusters), Step: inert.Cut(op.step(), 200),
			Words: strings.TrimPrefix(formatCounts(all[k])+"; "+op.tally(), "; "), Counts: htmlCounts(all[k]),
		}
		one.add("added", op.Added)
		one.add("removed", op.Removed)
		one.Open = len(r.Operators) <= fewOperators || slices.ContainsFunc(all[k], func(f Finding) bool { return f.Severity >= High && f.Waiver == "" })
		var names []string
		for _, o := range one.Objects {
			names = append(names, o.Names...)
		}
		if !heads.takes(append(names, one.Name, one.Name, one.In, one.In, one.Range, one.Step, one.Step)...) || !heads.takes(one.Words) {
			p.left(len(r.Operators)-len(p.Operators), "operator", "operators")
			break
		}
		at[k] = len(p.Operators)
		p.Operators = append(p.Operators, one)
	}
	shown := map[string][]Finding{}
	body, full := room(MaxPage/2), false
	var omitted []Finding
	for _, f := range r.Findings {
		k := key(f.Operator, f.Clusters)
		_, has := at[k]
		if full = full || has && !body.takes(htmlFindingOf(f).texts()...); full || !has {
			omitted = append(omitted, f)
			continue
		}
		shown[k] = append(shown[k], f)
	}
	p.left(len(omitted), "finding", "findings")
	p.Left = append(p.Left, omittedGroups(omitted)...)
	for k, i := range at {
		op := &p.Operators[i]
		op.Groups = htmlGroups(shown[k])
		if left := len(all[k]) - len(shown[k]); left > 0 {
			op.Left = fmt.Sprintf("%s of this operator omitted: use -o json for everything.", pluralize(left, "finding is", "findings are"))
		}
	}
}

// add adds the list of the objects with a change; no list if there are none.
func (o *htmlOperator) add(change string, refs []Ref) {
	if len(refs) == 0 {
		return
	}
	list := htmlObjects{Title: pluralize(len(refs), "object "+change, "objects "+change)}
	for _, name := range refNames(refs[:min(len(refs), fewNames)]) {
		list.Names = append(list.Names, inert.Cut(name, 600))
	}
	list.More = moreText(len(refs)-len(list.Names), "object", "objects")
	o.Objects = append(o.Objects, list)
}

func htmlCounts(findings []Finding) []htmlCount {
	r := Report{Findings: findings}
	var out []htmlCount
	for _, s := range Severities() {
		out = append(out, htmlCount{s.String(), r.Count(s)})
	}
	return out
}

func htmlVerdictOf(v *PolicyResult) *htmlVerdict {
	if v == nil {
		return nil
	}
	out := &htmlVerdict{Fail: v.Fail, Short: len(v.Faults) <= fewFaults, Title: pluralize(len(v.Faults), "finding", "findings")}
	said := room(MaxPage / 16)
	for _, f := range v.Faults {
		f = Fault{Policy: inert.Cut(f.Policy, 100), Message: inert.Cut(f.Message, 400), Rule: inert.Cut(f.Rule, 100), Operator: inert.Cut(f.Operator, 200), Subject: inert.Cut(f.Subject, 300)}
		if !said.takes(f.Policy, f.Message, f.Rule, f.Operator, f.Subject) {
			break
		}
		out.Faults = append(out.Faults, f)
	}
	out.More = moreText(len(v.Faults)-len(out.Faults), "finding", "findings")
	for _, w := range v.Waivers {
		if text := inert.Cut(w.String(), 400); said.takes(text) {
			out.Waivers = append(out.Waivers, text)
		}
	}
	return out
}

// htmlGroups returns the findings of one operator for the template.
func htmlGroups(findings []Finding) []htmlGroup {
	var out []htmlGroup
	for _, g := range groupFindings(findings) {
		hg := htmlGroup{Severity: g.severity.String(), Kind: g.severity.String(), Label: g.severity.String(), Title: g.rule.Title, Rule: g.rule.ID, Why: g.rule.Why}
		if countWaived(g) == 1 {
			hg.Kind, hg.Label, hg.Severity = "waived", "waived, "+hg.Label, "info"
		}
		hg.Open = hg.Severity != Info.String()
		hg.Words = pluralize(len(g.findings), "finding", "findings")
		for _, f := range g.findings {
			hg.Findings = append(hg.Findings, htmlFindingOf(f))
		}
		out = append(out, hg)
	}
	return out
}

func htmlFindingOf(f Finding) htmlFinding {
	out := htmlFinding{
		Subject: inert.Cut(f.subject(), 600), Message: inert.Cut(f.words(), 1000), Before: inert.Cut(f.Before, 1000), After: inert.Cut(f.After, 1000),
		Waiver: inert.Cut(f.Waiver, 400), Values: f.values(),
	}
	if f.Place.Path != "" {
		out.Place, out.Link = inert.Cut(f.Place.String(), 400), f.Link
	}
	return out
}

func (f htmlFinding) texts() []string {
	out := []string{f.Subject, f.Message, f.Place, f.Link, f.Waiver}
	if f.Values {
		out = append(out, f.Before, f.After)
	}
	return out
}

func nameOf(operator string) string { return inert.Cut(cmp.Or(operator, "(no operator)"), 200) }

// inOf returns the names of clusters; "" for all.
func inOf(clusters []string) string {
	return inert.Cut(strings.TrimSuffix(onlyIn(clusters), ": "), 600)
}

// formatRanges returns the indexes of names in a sorted list: "0-2 7"; "" for no names.
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

// room is the number of bytes left for one part of a page.
type room int

// frame is an upper bound of the markup around any entry: an operator with its row in the
// contents, or a finding that is alone in its group.
const frame = 1800

// takes reports whether texts and their markup fit, and subtracts their length. After a
// text that does not fit, no other fits.
func (r *room) takes(texts ...string) bool {
	*r -= frame
	for _, s := range texts {
		*r -= room(escapedLength(s))
	}
	return *r >= 0
}

// steps returns the part of a plan that fits, and notes the omitted lines.
func (r *room) steps(list []Step) []Step {
	var out []Step
	for _, s := range list {
		one := Step{Title: s.Title}
		for i, line := range s.Lines {
			if line = inert.Cut(line, 600); !r.takes(line) {
				one.Lines = append(one.Lines, moreText(len(s.Lines)-i, "line", "lines"))
				break
			}
			one.Lines = append(one.Lines, line)
		}
		out = append(out, one)
	}
	return out
}

// escapedLength returns the maximum length of a text in a page, in bytes: escaped for
// HTML or, beyond ASCII, for an address, with invisible characters replaced.
func escapedLength(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" -./_()[]{},;", r):
			n++
		case inert.IsInvisible(r), r == utf8.RuneError:
			n += 12
		default:
			n += max(6, 3*utf8.RuneLen(r)) // "&#34;", or "%" and two digits for each byte
		}
	}
	return n
}
