package browser_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/test/browser"
)

// TestFaultsAreDetected checks that each fault is detected, on a page with only this fault, and that a page
// without faults passes.
func TestFaultsAreDetected(t *testing.T) {
	b := browser.Start(t)
	const head = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>x</title>` +
		`<style>:root { color-scheme: light dark } body { font: 16px/1.5 sans-serif } @media (prefers-color-scheme: dark) { .dim { color: #666 } }</style></head><body>`
	wide := strings.Repeat("wide", 200)
	for _, c := range []struct {
		name, page string
		view       browser.View
		want       []string // prefixes of the faults, in order
	}{
		{"sound", head + `<h1>A title</h1><p>Some <b>text</b>, <code>code</code>.</p><details><summary>More</summary><pre>` + wide + `</pre></details>`, browser.View{Width: 400}, nil},
		{"sound in the dark", head + `<h1>A title</h1>`, browser.View{Width: 400, Dark: true}, nil},
		{"empty", head, browser.View{Width: 400}, []string{"the page has no text"}},
		{"wide pre", head + `<pre>` + wide + `</pre>`, browser.View{Width: 400}, []string{"it scrolls sideways", "leaves the window", "is wider than its box"}},
		{"wide pre in a box that scrolls", head + `<pre style="overflow-x: auto">` + wide + `</pre>`, browser.View{Width: 400}, []string{"scrolls sideways"}},
		{"wide pre that is cut off", head + `<pre style="overflow: hidden">` + wide + `</pre>`, browser.View{Width: 400}, []string{"is cut off"}},
		{"cut off below", head + `<div style="overflow: hidden; height: 1em">a<br>b<br>c</div>`, browser.View{Width: 400}, []string{"is cut off"}},
		{"wide at one width", head + `<div style="width: 600px">x</div>`, browser.View{Width: 400}, []string{"it scrolls sideways", "leaves the window"}},
		{"wide at one width, on a desk", head + `<div style="width: 600px">x</div>`, browser.View{Width: 1400}, nil},
		{"to the left", head + `<p style="position: absolute; left: -50px; margin: 0">text</p>`, browser.View{Width: 400}, []string{"leaves the window"}},
		{"pale", head + `<p style="color: #999">text</p>`, browser.View{Width: 400}, []string{"contrast below 4.5"}},
		{"pale through opacity", head + `<div style="opacity: .4"><p>text</p></div>`, browser.View{Width: 400}, []string{"contrast below 4.5"}},
		{"pale in the dark", head + `<p class="dim">text</p>`, browser.View{Width: 400, Dark: true}, []string{"contrast below 4.5"}},
		{"pale in the dark, in the light", head + `<p class="dim">text</p>`, browser.View{Width: 400}, nil},
		{"on an image", head + `<p style="background: linear-gradient(red, blue)">text</p>`, browser.View{Width: 400}, []string{"unknown contrast"}},
		{"small", head + `<p style="font-size: 9px">text</p>`, browser.View{Width: 400}, []string{"text of 9.0 pixels"}},
		{"on each other", head + `<p>one text</p><p style="margin-top: -2.4em">another</p>`, browser.View{Width: 400}, []string{"texts overlap"}},
		{"close lines", head + `<p style="line-height: 1.1">` + strings.Repeat("one text ", 50) + `</p>`, browser.View{Width: 400}, nil},
		{"small button", head + `<button style="height: 10px; padding: 0; border: 0">x</button>`, browser.View{Width: 400}, []string{"controls too small"}},
		{"a script that fails", head + `<p>text</p><script>nothing()</script>`, browser.View{Width: 400}, []string{"errors of the browser"}},
		{"a script that fails and is not run", head + `<p>text</p><script>nothing()</script>`, browser.View{Width: 400, NoScript: true}, nil},
		{"from elsewhere", head + `<p>text</p><link rel="stylesheet" href="https://elsewhere.example/x.css">`, browser.View{Width: 400}, []string{"errors of the browser", "tries to load"}},
		{"picture", head + `<svg width="300" height="60"><g><rect x="1" y="1" width="120" height="40" fill="#024"/><text x="10" y="25" fill="#fff">name</text></g></svg>`, browser.View{Width: 400}, nil},
		{"picture, pale", head + `<svg width="300" height="60"><g><rect x="1" y="1" width="120" height="40" fill="#024"/><text x="10" y="25">name</text></g></svg>`, browser.View{Width: 400}, []string{"contrast below 4.5"}},
		{"picture, too long a name", head + `<svg width="300" height="60"><g><rect x="1" y="1" width="60" height="40" fill="#fff"/><text x="10" y="25">a long name</text></g></svg>`, browser.View{Width: 400}, []string{"is wider than its box"}},
		{"picture, names on each other", head + `<svg width="300" height="60"><text x="10" y="25">name</text><text x="20" y="28">other</text></svg>`, browser.View{Width: 400}, []string{"texts overlap"}},
		{"picture, scaled to nothing", head + `<svg width="300" height="60" viewBox="0 0 3000 600"><text x="10" y="250">name</text></svg>`, browser.View{Width: 400}, []string{"text of 1.6 pixels"}},
		{"picture, too wide", head + `<svg width="500" height="60"><text x="10" y="25">name</text></svg>`, browser.View{Width: 400}, []string{"it scrolls sideways", "leaves the window"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "page.html")
			if err := os.WriteFile(file, []byte(c.page), 0o600); err != nil {
				t.Fatal(err)
			}
			got := b.Open(t, c.view, file, "").Figures(t).Faults(browser.Limits{})
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}
