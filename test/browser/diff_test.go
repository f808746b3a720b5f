package browser_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/quayside/quayside/test/browser"
)

// reports is the directory of the golden pages of diff.
const reports = "../../diff/testdata/reports/"

// pageContent is the visible content of a diff page.
type pageContent struct {
	Sections, Rows, Groups []string
	Shown, Fragment        string
	Form                   bool
}

// contentScript is a JavaScript expression that returns a [pageContent].
const contentScript = `(() => {
	const shown = (selector, of) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).map(of);
	return {
		Sections: shown("details.operator", (e) => e.dataset.name.slice(0, 20) + (e.open ? " open" : "")),
		Rows: shown(".contents tbody tr", (e) => e.querySelector("a").textContent.slice(0, 20)),
		Groups: shown(".group", (e) => e.dataset.severity),
		Shown: document.getElementById("shown").textContent, Fragment: location.hash,
		Form: document.getElementById("filter").checkVisibility(),
	};
})()`

func readContent(t *testing.T, p *browser.Page) pageContent {
	t.Helper()
	var s pageContent
	p.Eval(t, contentScript, &s)
	return s
}

// TestDiffFilters uses the filters with only the keyboard.
func TestDiffFilters(t *testing.T) {
	b := browser.Start(t)
	p := b.Open(t, browser.View{Width: 1400}, reports+"fleet.html", "")
	if s := readContent(t, p); len(s.Rows) != 5 || len(s.Sections) != 5 || s.Shown != "5 findings" || !s.Form {
		t.Fatalf("initially: %+v", s)
	}
	// The first control selects an operator. Typing the first letters of its second option selects that option.
	p.Eval(t, `document.querySelector("[name=operator]").focus()`, nil)
	p.Press(t, "databases")
	if s := readContent(t, p); len(s.Rows) != 2 || s.Fragment != "#operator=databases/etcd" || s.Shown != "3 of 5 findings" || !strings.HasSuffix(s.Sections[1], " open") {
		t.Errorf("one operator: %+v", s)
	}
	p.Press(t, kb.Tab+"c05")
	if s := readContent(t, p); len(s.Rows) != 1 || s.Fragment != "#operator=databases/etcd&cluster=c05" || s.Shown != "2 of 5 findings" {
		t.Errorf("one operator and one cluster: %+v", s)
	}
	// The third checkbox is for critical findings. No such finding is left, so clearing the checkbox changes nothing.
	p.Press(t, kb.Tab+" ")
	if s := readContent(t, p); s.Shown != "2 of 5 findings" || !strings.HasSuffix(s.Fragment, "&severity=medium,info,waived") {
		t.Errorf("without critical findings: %+v", s)
	}
	p.Press(t, kb.Tab+" ")
	if s := readContent(t, p); s.Shown != "1 of 5 findings" || !slices.Equal(s.Groups, []string{"info"}) {
		t.Errorf("without critical and medium findings: %+v", s)
	}
	for _, fault := range p.Figures(t).Faults(browser.Limits{}) {
		t.Error(fault)
	}
}

// TestDiffFromALink opens links with filters, and a link to an operator, whose section must then be open.
func TestDiffFromALink(t *testing.T) {
	b := browser.Start(t)
	for fragment, want := range map[string]struct {
		rows  int
		shown string
	}{
		"cluster=c03":                                      {4, "4 of 5 findings"},
		"cluster=c04&severity=waived":                      {1, "1 of 5 findings"},
		"severity=critical":                                {1, "1 of 5 findings"},
		"operator=nobody/nothing":                          {5, "5 findings"},
		"operator=%3Cscript%3Ealert(1)%3C/script%3E&x=%22": {5, "5 findings"},
		"op-2": {5, "5 findings"},
	} {
		p := b.Open(t, browser.View{Width: 400}, reports+"fleet.html", fragment)
		if s := readContent(t, p); len(s.Rows) != want.rows || s.Shown != want.shown {
			t.Errorf("%s: %+v", fragment, s)
		} else if fragment == "op-2" && s.Sections[1] != "databases/etcd open" {
			t.Errorf("%s is not open: %+v", fragment, s)
		}
	}
}

// TestDiffWithoutItsScript checks that a page without scripts has no form for filters, and shows all sections
// and findings.
func TestDiffWithoutItsScript(t *testing.T) {
	b := browser.Start(t)
	p := b.Open(t, browser.View{Width: 400, NoScript: true}, reports+"fleet.html", "")
	if s := readContent(t, p); s.Form || len(s.Sections) != 5 || len(s.Rows) != 5 {
		t.Errorf("%+v", s)
	}
}

// TestDiffOnPaper checks that a printed page has all sections open, with dark text on a light
// background.
func TestDiffOnPaper(t *testing.T) {
	b := browser.Start(t)
	p := b.Open(t, browser.View{Width: 700, Dark: true, Print: true}, reports+"fleet.html", "")
	p.Picture(t, "fleet-paper")
	var paper struct {
		Form, Closed bool
		Ground       string
	}
	p.Eval(t, `({
		Form: document.getElementById("filter").checkVisibility(), Ground: getComputedStyle(document.body).backgroundColor,
		Closed: [...document.querySelectorAll(".findings tbody tr")].some((e) => e.getBoundingClientRect().height === 0),
	})`, &paper)
	if paper.Form || paper.Closed || paper.Ground != "rgb(255, 255, 255)" {
		t.Errorf("%+v", paper)
	}
	for _, fault := range p.Figures(t).Faults(browser.Limits{}) {
		t.Error(fault)
	}
}
