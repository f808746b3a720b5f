package diff

import (
	"bytes"
	"fmt"
	"html/template"

	"github.com/quayside/quayside/internal/inert"
)

// HTML returns the report as one self-contained page: no script, no font, no
// image and no style from elsewhere.
func HTML(r *Report) ([]byte, error) {
	page, err := template.New("report").Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("reading the page template: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, htmlOf(r)); err != nil {
		return nil, fmt.Errorf("writing the page: %w", err)
	}
	return []byte(inert.Lines(b.String())), nil
}

// The page as the template sees it.
type htmlPage struct {
	Headline, Before, After string
	Counts                  []htmlCount
	Verdict                 *Verdict
	Questions               []Question
	Operators               []htmlOperator
	Removals                []htmlRemoval
	Notes                   []string
}

type htmlCount struct {
	Severity string
	N        int
}

type htmlOperator struct {
	Title, Step, Tally, Counts string
	Lists                      []string
	Open                       bool
	Groups                     []htmlGroup
}

type htmlGroup struct {
	Severity, Label, Title, Rule, Why string
	Findings                          []htmlFinding
}

type htmlFinding struct {
	Subject, Message, Before, After, Place, Waiver string
	Values                                         bool
}

type htmlRemoval struct {
	Operator string
	Steps    []Step
}

func htmlOf(r *Report) htmlPage {
	p := htmlPage{Headline: r.headline(), Before: r.Before, After: r.After, Verdict: r.Verdict, Questions: r.Questions, Notes: r.Notes}
	for _, s := range Severities() {
		p.Counts = append(p.Counts, htmlCount{s.String(), r.Count(s)})
	}
	for _, op := range r.Operators {
		one := htmlOperatorOf(op, op.of(r.Findings))
		one.Open = one.Open || len(r.Operators) <= fewOperators
		p.Operators = append(p.Operators, one)
	}
	for _, removal := range r.Removals {
		p.Removals = append(p.Removals, htmlRemoval{onlyIn(removal.Clusters) + removal.Operator, removal.Steps()})
	}
	return p
}

// fewOperators are shown open: there is nothing to choose from.
const fewOperators = 3

func htmlOperatorOf(op Operator, findings []Finding) htmlOperator {
	out := htmlOperator{Title: op.title(), Step: op.step(), Tally: op.tally(), Counts: counts(findings), Lists: op.lists()}
	for _, g := range groups(findings) {
		hg := htmlGroup{Severity: g.severity.String(), Label: g.severity.String(), Title: g.rule.Title, Rule: g.rule.ID, Why: g.rule.Why}
		if waived(g) == 1 {
			hg.Label = "waived, " + hg.Label
		} else if g.severity >= High {
			out.Open = true
		}
		for _, f := range g.findings {
			one := htmlFinding{
				Subject: f.subject(), Message: f.words(), Before: inert.Cut(f.Before, 1000), After: inert.Cut(f.After, 1000),
				Place: f.Place.String(), Waiver: f.Waiver, Values: f.values(),
			}
			if f.Place.Path == "" {
				one.Place = ""
			}
			hg.Findings = append(hg.Findings, one)
		}
		out.Groups = append(out.Groups, hg)
	}
	return out
}

const pageTemplate = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>quayside: {{.Headline}}</title>
<style>
:root { color-scheme: light dark; --line: #d0d7de; --soft: #f6f8fa; --dim: #57606a; --critical: #a40e26; --high: #cf222e; --medium: #9a6700; --low: #0969da; --info: #57606a; }
@media (prefers-color-scheme: dark) { :root { --line: #30363d; --soft: #161b22; --dim: #8b949e; --critical: #ff7b72; --high: #f85149; --medium: #d29922; --low: #58a6ff; --info: #8b949e; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
code, .values { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
p { margin: .2rem 0; } .dim { color: var(--dim); }
.counts { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1rem 0; padding: 0; list-style: none; }
.counts li { border: 1px solid var(--line); border-radius: 6px; padding: .3rem .9rem; text-align: center; }
.counts b { display: block; font-size: 1.4rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .8rem 0; }
summary { cursor: pointer; padding: .6rem .9rem; background: var(--soft); border-radius: 6px; }
details > div { padding: 0 .9rem .9rem; }
ul.findings { margin: .4rem 0; padding-left: 1.2rem; } ul.findings > li { margin: .4rem 0; }
.values { display: grid; grid-template-columns: 4rem 1fr; background: var(--soft); border-radius: 6px; padding: .3rem .6rem; margin: .2rem 0; white-space: pre-wrap; }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 1rem; padding: 0 .6rem; font-size: .8rem; font-weight: 600; }
.critical { color: var(--critical); } .high { color: var(--high); } .medium { color: var(--medium); } .low { color: var(--low); } .info { color: var(--info); }
.verdict { border-left: 4px solid var(--high); padding: .4rem .9rem; margin: 1rem 0; background: var(--soft); } .verdict.pass { border-color: var(--low); }
</style>
</head>
<body>
<h1>{{.Headline}}</h1>
<p class="dim"><code>{{.Before}}</code> → <code>{{.After}}</code></p>
<ul class="counts">{{range .Counts}}<li class="{{.Severity}}"><b>{{.N}}</b>{{.Severity}}</li>{{end}}</ul>
{{with .Verdict}}<div class="verdict{{if not .Fail}} pass{{end}}">{{if .Fail}}<b>The policy says no.</b>{{else}}The policy lets this pass.{{end}}
{{range .Faults}}<p><code>{{.Policy}}</code> {{.Operator}} <code>{{.Rule}}</code> {{.Subject}}: {{.Message}}</p>{{end}}
{{range .Expired}}<p>The waiver of <code>{{.Rule}}</code> expired on {{.Expires}}: {{.Reason}}</p>{{end}}
{{range .Unused}}<p>The waiver of <code>{{.Rule}}</code> matches nothing: {{.Reason}}</p>{{end}}</div>{{end}}
{{if .Questions}}<h3>Outside the accepted budget</h3><ul>{{range .Questions}}<li>{{.Text}}</li>{{end}}</ul>{{end}}
{{range .Operators}}<details{{if .Open}} open{{end}}>
<summary><b>{{.Title}}</b> {{.Step}} <span class="dim">{{.Counts}}{{if .Counts}}; {{end}}{{.Tally}}</span></summary>
<div>{{range .Lists}}<p>{{.}}</p>{{end}}{{range .Groups}}
<h3><span class="badge {{.Severity}}">{{.Label}}</span> {{.Title}} <code class="dim">{{.Rule}}</code></h3>
<p class="dim">{{.Why}}</p>
<ul class="findings">{{range .Findings}}
<li>{{if .Subject}}<code>{{.Subject}}</code>: {{end}}{{.Message}}{{if .Values}}
<div class="values"><span class="dim">before</span><span>{{or .Before "(none)"}}</span><span class="dim">after</span><span>{{or .After "(none)"}}</span></div>{{end}}{{if .Place}}
<p class="dim"><code>{{.Place}}</code></p>{{end}}{{if .Waiver}}<p>waived: {{.Waiver}}</p>{{end}}</li>{{end}}
</ul>{{end}}
</div>
</details>{{end}}
{{range .Removals}}<details open><summary><b>Uninstall plan of {{.Operator}}</b></summary><div><ol>{{range .Steps}}
<li>{{.Title}}<ul>{{range .Lines}}<li>{{.}}</li>{{end}}</ul></li>{{end}}</ol></div></details>{{end}}
{{if .Notes}}<h3>Not checked</h3><ul class="dim">{{range .Notes}}<li>{{.}}</li>{{end}}</ul>{{end}}
</body>
</html>
`
