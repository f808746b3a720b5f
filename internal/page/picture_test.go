package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// randomPicture returns a picture with rows and links of every kind.
func randomPicture(r *rand.Rand) Picture {
	p := Picture{Title: "t", Legend: []string{"solid", "dashed", "dotted"}}
	for i := range 1 + r.IntN(60) {
		p.Rows = append(p.Rows, Row{Text: fmt.Sprint(i), Note: "note", Style: RowStyle(r.IntN(5))})
	}
	for range r.IntN(120) {
		p.Links = append(p.Links, Link{From: r.IntN(len(p.Rows)), To: r.IntN(len(p.Rows)), Stroke: Stroke(r.IntN(3)), OnPath: r.IntN(4) == 0})
	}
	return p
}

// TestRails draws random links. Lines in one column must not meet. Every link must be part of one line, or be
// counted as undrawn. The order of the links must have no effect.
func TestRails(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := randomPicture(r)
		want := p.SVG()
		rails, columns, undrawn := p.rails()
		links := 0
		for i, a := range rails {
			links += len(a.from)
			if a.column >= columns {
				t.Errorf("seed %d: column %d of %d", seed, a.column, columns)
			}
			for _, b := range rails[:i] {
				if a.column == b.column && a.top <= b.bottom && b.top <= a.bottom {
					t.Errorf("seed %d: %v and %v lie on each other", seed, a, b)
				}
			}
			for _, from := range a.from {
				if !slices.ContainsFunc(p.Links, func(l Link) bool {
					return l.From == from && l.To == a.To && l.Stroke == a.Stroke && l.OnPath == a.OnPath
				}) {
					t.Errorf("seed %d: %d to %d is no link", seed, from, a.To)
				}
			}
		}
		loops := 0
		for _, l := range p.Links {
			if l.From == l.To {
				loops++
			}
		}
		if undrawn == 0 && links+loops != len(p.Links) {
			t.Errorf("seed %d: %d links of %d", seed, links, len(p.Links))
		}
		r.Shuffle(len(p.Links), func(i, j int) { p.Links[i], p.Links[j] = p.Links[j], p.Links[i] })
		if !bytes.Equal(want, p.SVG()) {
			t.Fatalf("seed %d: another order of links gives another picture", seed)
		}
	}
}

// TestBounds draws pictures beyond the limits.
func TestBounds(t *testing.T) {
	var p Picture
	for i := range 5000 {
		p.Rows = append(p.Rows, Row{Text: strings.Repeat("n", 2000), Depth: i})
		p.Links = append(p.Links, Link{From: 4999 - i, To: 0}, Link{From: i, To: i / 2}, Link{From: 0, To: i})
	}
	svg := string(p.SVG())
	for _, want := range []string{"3000 more rows: too many to draw", "more lines: too many to draw"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if len(svg) > 6<<20 {
		t.Errorf("%d bytes", len(svg))
	}
	if len(p.Notes) > 0 || len(p.Rows) != 5000 {
		t.Error("the picture itself was changed")
	}
}

// FuzzText puts untrusted text into all texts of a picture.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "</text><script>alert(1)</script>", `" onload="x()`, "]]>", "&lt;&#x0;", "\u202e\x00\x1b[2J", "\xff\xfe", "\ufffe\U0001ffff", "::error::x", strings.Repeat("漢", 5000), "<foreignObject>", "{{.}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := Picture{
			Title: s, Desc: s, Notes: []string{s}, Legend: []string{s},
			Rows:  []Row{{Text: s, Style: Heading}, {Text: s, Note: s}, {Text: s, Note: s, Warn: true, Depth: 1, Style: Faint}, {Text: s}},
			Links: []Link{{From: 3, To: 1}, {From: 1, To: 3}, {From: 2, To: 2}},
		}
		checkHarmless(t, p.SVG())
		page, err := p.Page(s)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.ToLower(string(page)); strings.Contains(text, "<script") || strings.Contains(text, "<img") || strings.Contains(text, "<foreignobject") {
			t.Errorf("%s", page)
		}
	})
}

// checkHarmless checks that a picture is valid XML, is not too wide, contains no scripts, and refers to no
// other resource.
func checkHarmless(t *testing.T, svg []byte) {
	t.Helper()
	elements := []string{"svg", "title", "desc", "style", "g", "rect", "circle", "path", "text", "tspan"}
	attributes := []string{"xmlns", "class", "role", "width", "height", "viewBox", "x", "y", "cx", "cy", "r", "dx", "d"}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !slices.Contains(elements, e.Name.Local) {
			t.Errorf("an element <%s>", e.Name.Local)
		}
		for _, a := range e.Attr {
			if !slices.Contains(attributes, a.Name.Local) {
				t.Errorf("<%s> has %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
			if width, _ := strconv.Atoi(a.Value); e.Name.Local == "svg" && a.Name.Local == "width" && width > 16*maxText {
				t.Errorf("%d pixels wide", width)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text         string
		first, width int
		want         []string
	}{
		{"", 0, 100, []string{""}},
		{"one two", 100, 100, []string{"one two"}},
		{"one two three", 60, 100, []string{"one two", "three"}},
		{"one two three", 0, 60, []string{"", "one two", "three"}},
		{"one verylongname two", 40, 40, []string{"one", "verylongname", "two"}},
	} {
		first, rest := wrap(c.text, c.first, c.width)
		if got := append([]string{first}, rest...); !slices.Equal(got, c.want) {
			t.Errorf("wrap(%q, %d, %d) = %q, want %q", c.text, c.first, c.width, got, c.want)
		}
	}
}
