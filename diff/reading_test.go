package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/bundle"
)

// newCSVs returns the CSV of a version of ops/demo, as a map by operator.
func newCSVs(version string, annotations map[string]string, description string, links ...bundle.Link) map[string]*bundle.CSV {
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
		"unchanged":      {newCSVs("1.0.0", nil, "Text."), newCSVs("1.1.0", nil, "Text."), nil},
		"the same pages": {newCSVs("1.0.0", forge, "Text.", docs), newCSVs("1.1.0", forge, "Text.", docs), []Reading{{Operator: "ops/demo", Links: []ReadingLink{changes}}}},
		"a new operator": {nil, newCSVs("1.1.0", forge, "Text.", docs), []Reading{{Operator: "ops/demo", Links: []ReadingLink{
			{What: "repository", URL: "https://github.com/org/demo"}, {What: "support", URL: "https://a.example/help"}, {What: "link", Text: "Docs", URL: "https://docs.example/v1"},
		}}}},
		"other pages": {newCSVs("1.0.0", nil, "", docs), newCSVs("1.1.0", map[string]string{"support": "https://a.example/help"}, "", bundle.Link{Name: "Docs", URL: "https://docs.example/v2"}), []Reading{{Operator: "ops/demo", Links: []ReadingLink{
			{What: "support", URL: "https://a.example/help"}, {What: "link", Text: "Docs", URL: "https://docs.example/v2", Before: "https://docs.example/v1"},
		}}}},
		"a sentence and a line": {
			newCSVs("1.0.0", nil, "It runs. It walks.\n\n## Install\nApply it.\n"), newCSVs("1.1.0", nil, "It runs. It flies.\n\n## Install\nApply it.\nBack up first.\n"),
			[]Reading{{Operator: "ops/demo", Texts: []ReadingText{{Name: "description", Lines: []string{"- It walks.", "+ It flies.", "+ Back up first."}}}}},
		},
		"annotations for the installation": {
			newCSVs("1.0.0", map[string]string{"operatorframework.io/suggested-namespace": "demo", "createdAt": "2025", "capabilities": "Basic Install"}, ""),
			newCSVs("1.1.0", map[string]string{"operatorframework.io/suggested-namespace": "demo-system", "createdAt": "2026"}, ""),
			[]Reading{{Operator: "ops/demo", Texts: []ReadingText{
				{Name: "capabilities", Lines: []string{"- Basic Install"}}, {Name: "operatorframework.io/suggested-namespace", Lines: []string{"- demo", "+ demo-system"}},
			}}},
		},
		"no pages": {newCSVs("1.0.0", nil, ""), newCSVs("1.1.0", map[string]string{"repository": "javascript:alert(1)", "support": "Example, Inc."}, "", bundle.Link{Name: "x", URL: "data:text/html,x"}), []Reading{
			{Operator: "ops/demo", Texts: []ReadingText{{Name: "support", Lines: []string{"+ Example, Inc."}}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, Readings(c.before, c.after)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestReadingIsBounded checks the limits with a text in which every sentence changes, a very long line,
// and very many operators.
func TestReadingIsBounded(t *testing.T) {
	var was, is strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&was, "Old %d. ", i)
		fmt.Fprintf(&is, "New %d. ", i)
	}
	got := Readings(newCSVs("1.0.0", nil, was.String()), newCSVs("1.1.0", nil, is.String()+strings.Repeat("x", 1<<20)))
	text := got[0].Texts[0]
	if len(text.Lines) != maxSentences || text.Omitted == 0 {
		t.Errorf("%d lines, %d omitted", len(text.Lines), text.Omitted)
	}
	few := changedText(strings.Repeat("Old. ", 30), strings.Repeat("New. ", 35))
	if len(few.Lines)+few.Omitted != 65 {
		t.Errorf("%d lines and %d omitted of 65 changes", len(few.Lines), few.Omitted)
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
	var list strings.Builder
	markdownReading(&list, r.Reading)
	shown := strings.Count(list.String(), "`ops/demo-")
	if note := fmt.Sprintf("%d operators are not shown here", 5000-shown); shown == 0 || !strings.Contains(list.String(), note) {
		t.Errorf("%d operators are shown, but the text does not contain %q", shown, note)
	}
	if left := newHTMLPage(r).Omitted; len(left) != 1 || !strings.HasPrefix(left[0], fmt.Sprint(5000-len(htmlReading(r.Reading)))+" ") {
		t.Errorf("%d operators fit on the page, omitted: %q", len(htmlReading(r.Reading)), left)
	}
	if md := string(Markdown(r)); len(md) >= MaxComment || !strings.Contains(md, "operators are not shown here: see the JSON report.") {
		t.Errorf("Markdown of %d bytes", len(md))
	}
	page, err := HTML(r)
	if err != nil || len(page) > maxPage || !strings.Contains(string(page), " operators with changes are omitted to keep this page short") {
		t.Errorf("a page of %d bytes, %v", len(page), err)
	}
}

// TestReadingIsCounted checks that each format shows as many changes as fit, and the number of the
// other changes.
func TestReadingIsCounted(t *testing.T) {
	links := []ReadingLink{{What: "support", URL: "https://a.example/new", Before: "https://a.example/old"}, {What: "repository", URL: "https://b.example"}}
	for _, c := range []struct {
		in, out, left int
		title         string
	}{
		{2, 1, 0, "description: 2 added, 1 removed"}, {0, 3, 0, "description: 0 added, 3 removed"}, {40, 20, 7, "description, changed in more than 60 places"},
	} {
		text := ReadingText{Name: "description", Lines: append(slices.Repeat([]string{"+ new"}, c.in), slices.Repeat([]string{"- old"}, c.out)...), Omitted: c.left}
		if got := text.Title(); got != c.title {
			t.Errorf("got %q, want %q", got, c.title)
		}
		list := []Reading{{Operator: "ops/a", Links: links, Texts: []ReadingText{text}}, {Operator: "ops/b", Links: links[1:]}}
		var w textWriter
		w.writeReading(list)
		plain := w.out.String()
		if strings.Count(plain, "reading list") != 1 || strings.Count(plain, "(was ") != 1 || strings.Count(plain, "\n        ") != c.in+c.out+min(c.left, 1) {
			t.Errorf("got\n%s", plain)
		}
		if note := fmt.Sprintf("and %d more", c.left); strings.Contains(plain, note) != (c.left > 0) {
			t.Errorf("%q in\n%s", note, plain)
		}
		md := formatReading(list[0])
		shown := strings.Count(md, "    - `")
		if all := c.in + c.out + c.left; shown != min(all, maxSteps) || shown < all && !strings.Contains(md, fmt.Sprintf("    - and %d more\n", all-shown)) {
			t.Errorf("%d changes in\n%s", all, md)
		}
	}
}

// TestReadingIsText checks that markup in the texts of a bundle is escaped.
func TestReadingIsText(t *testing.T) {
	lie := "<script>alert(1)</script> [here](javascript:alert(1)) ``` @team \u202eback"
	r := &Report{Before: "a", After: "b", Reading: Readings(newCSVs("1.0.0", nil, "Text."), newCSVs("1.1.0", map[string]string{"support": "https://a.example/)[x](https://b.example"}, lie, bundle.Link{Name: lie, URL: "https://docs.example"}))}
	text, md := string(Text(r, false)), string(Markdown(r))
	page, err := HTML(r)
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]string{"text": text, "Markdown": md, "HTML": string(page)} {
		if strings.Contains(got, "\u202e") {
			t.Errorf("%s is not escaped:\n%s", what, got)
		}
	}
	if strings.Contains(string(page), "<script>alert") || strings.Contains(string(page), `href="javascript`) {
		t.Error("the page contains markup of a bundle")
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
