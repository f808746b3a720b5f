package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/bundle"
)

func said(version string, annotations map[string]string, description string, links ...bundle.Link) map[string]*bundle.CSV {
	return map[string]*bundle.CSV{"ops/demo": {Name: "demo.v" + version, Version: version, Annotations: annotations, Description: description, Links: links}}
}

func TestReadings(t *testing.T) {
	forge := map[string]string{"repository": "https://github.com/org/demo", "support": "https://a.example/help"}
	docs := bundle.Link{Name: "Docs", URL: "https://docs.example/v1"}
	changes := ReadingLink{What: "changes", Text: "v1.0.0...v1.1.0", URL: "https://github.com/org/demo/compare/v1.0.0...v1.1.0"}
	for name, c := range map[string]struct {
		before, after map[string]*bundle.CSV
		want          []Reading
	}{
		"nothing said":   {said("1.0.0", nil, "Text."), said("1.1.0", nil, "Text."), nil},
		"the same pages": {said("1.0.0", forge, "Text.", docs), said("1.1.0", forge, "Text.", docs), []Reading{{Operator: "ops/demo", Links: []ReadingLink{changes}}}},
		"a new operator": {nil, said("1.1.0", forge, "Text.", docs), []Reading{{Operator: "ops/demo", Links: []ReadingLink{
			{What: "repository", URL: "https://github.com/org/demo"}, {What: "support", URL: "https://a.example/help"}, {What: "link", Text: "Docs", URL: "https://docs.example/v1"},
		}}}},
		"other pages": {said("1.0.0", nil, "", docs), said("1.1.0", map[string]string{"support": "https://a.example/help"}, "", bundle.Link{Name: "Docs", URL: "https://docs.example/v2"}), []Reading{{Operator: "ops/demo", Links: []ReadingLink{
			{What: "support", URL: "https://a.example/help"}, {What: "link", Text: "Docs", URL: "https://docs.example/v2", Before: "https://docs.example/v1"},
		}}}},
		"a sentence and a line": {
			said("1.0.0", nil, "It runs. It walks.\n\n## Install\nApply it.\n"), said("1.1.0", nil, "It runs. It flies.\n\n## Install\nApply it.\nBack up first.\n"),
			[]Reading{{Operator: "ops/demo", Texts: []ReadingText{{What: "description", Lines: []string{"- It walks.", "+ It flies.", "+ Back up first."}}}}},
		},
		"annotations for who installs it": {
			said("1.0.0", map[string]string{"operatorframework.io/suggested-namespace": "demo", "createdAt": "2025", "capabilities": "Basic Install"}, ""),
			said("1.1.0", map[string]string{"operatorframework.io/suggested-namespace": "demo-system", "createdAt": "2026"}, ""),
			[]Reading{{Operator: "ops/demo", Texts: []ReadingText{
				{What: "capabilities", Lines: []string{"- Basic Install"}}, {What: "operatorframework.io/suggested-namespace", Lines: []string{"- demo", "+ demo-system"}},
			}}},
		},
		"no pages": {said("1.0.0", nil, ""), said("1.1.0", map[string]string{"repository": "javascript:alert(1)", "support": "Example, Inc."}, "", bundle.Link{Name: "x", URL: "data:text/html,x"}), []Reading{
			{Operator: "ops/demo", Texts: []ReadingText{{What: "support", Lines: []string{"+ Example, Inc."}}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, Readings(c.before, c.after)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestReadingIsBounded has a text that changes in every sentence, one that is one
// endless line, and very many operators.
func TestReadingIsBounded(t *testing.T) {
	var was, is strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&was, "Old %d. ", i)
		fmt.Fprintf(&is, "New %d. ", i)
	}
	got := Readings(said("1.0.0", nil, was.String()), said("1.1.0", nil, is.String()+strings.Repeat("x", 1<<20)))
	text := got[0].Texts[0]
	if len(text.Lines) != maxSentences || text.Left == 0 {
		t.Errorf("%d lines, %d left", len(text.Lines), text.Left)
	}
	for _, line := range text.Lines {
		if len(line) > maxSentence+2 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	r := &Report{Before: "a", After: "b"}
	for i := range 5000 {
		one := got[0]
		one.Operator = fmt.Sprintf("ops/demo-%d", i)
		r.Reading = append(r.Reading, one)
	}
	if md := string(Markdown(r)); len(md) >= MaxComment || !strings.Contains(md, "operators are not shown here: the JSON report has all.") {
		t.Errorf("Markdown of %d bytes", len(md))
	}
	page, err := HTML(r)
	if err != nil || len(page) > MaxPage || !strings.Contains(string(page), " operators with changes are omitted to keep this page short") {
		t.Errorf("a page of %d bytes, %v", len(page), err)
	}
}

// TestReadingIsText has a bundle that would rather be markup.
func TestReadingIsText(t *testing.T) {
	lie := "<script>alert(1)</script> [here](javascript:alert(1)) ``` @team \u202eback"
	r := &Report{Before: "a", After: "b", Reading: Readings(said("1.0.0", nil, "Text."), said("1.1.0", map[string]string{"support": "https://a.example/)[x](https://b.example"}, lie, bundle.Link{Name: lie, URL: "https://docs.example"}))}
	text, md := string(Text(r, false)), string(Markdown(r))
	page, err := HTML(r)
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]string{"text": text, "Markdown": md, "HTML": string(page)} {
		if strings.Contains(got, "\u202e") {
			t.Errorf("%s turns the line:\n%s", what, got)
		}
	}
	if strings.Contains(string(page), "<script>alert") || strings.Contains(string(page), `href="javascript`) {
		t.Error("the page holds markup of a bundle")
	}
	for _, want := range []string{
		"  - [support](https://a.example/%29%5Bx%5D%28https://b.example)\n",
		"\n    - ```` + <script>alert(1)</script> [here](javascript:alert(1)) ``` @team \\u202eback ````\n",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q in:\n%s", want, md)
		}
	}
}
