// Package browser tests pages and pictures in a real Chromium. It displays them at a given width, in light or
// dark mode, and returns measurements: elements wider than the window, overlapping elements, the contrast of
// text, and others. It compares no pixels, because fonts differ between machines.
//
// The tests provide the pages. Start from [Start], [Browser.Open] and [Figures.Faults].
package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed measure.js
var measureScript string //nolint:gochecknoglobals // embedded

// Browser is a Chromium that runs until its test ends.
type Browser struct {
	ctx context.Context //nolint:containedctx // chromedp keeps a browser in one
}

// Start starts a Chromium without a window and without a network. If no Chromium is installed, it skips the test, or
// fails the test if QUAYSIDE_LOOK is "always". The variable CHROMIUM may contain another name of the executable.
func Start(t testing.TB) *Browser {
	t.Helper()
	program := findChromium()
	if program == "" {
		if os.Getenv("QUAYSIDE_LOOK") == "always" {
			t.Fatal("no Chromium is installed, and QUAYSIDE_LOOK=always")
		}
		t.Skip("no Chromium is installed (apt-get install chromium, or set CHROMIUM to its path)")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"),
		chromedp.Flag("proxy-server", "direct://"),
		chromedp.Flag("hide-scrollbars", false),
		chromedp.WSURLReadTimeout(time.Minute),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium does not run as root with a sandbox
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", program, err)
	}
	return &Browser{ctx}
}

// findChromium returns the path of a Chromium, or "" if none is installed.
func findChromium() string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// View describes how a page is displayed.
type View struct {
	Width    int  // of the window, in CSS pixels
	Dark     bool // the reader prefers dark colours
	Print    bool // as for printing
	NoScript bool // no scripts run
}

// String returns the view as a name for files and tests: "400-dark".
func (v View) String() string {
	s := fmt.Sprintf("%d-%s", v.Width, map[bool]string{false: "light", true: "dark"}[v.Dark])
	if v.Print {
		s += "-print"
	}
	if v.NoScript {
		s += "-noscript"
	}
	return s
}

// Views returns the views for every page: a phone and a desktop, light and dark.
func Views() []View {
	return []View{{Width: 400}, {Width: 400, Dark: true}, {Width: 1400}, {Width: 1400, Dark: true}}
}

// Page is a page that is open in its own tab.
type Page struct {
	ctx  context.Context //nolint:containedctx // chromedp keeps a tab in one
	view View

	mu        sync.Mutex
	errors    []string // console messages
	requested []string // requested addresses other than the file itself
}

// Open opens a file in its own tab, and closes the tab at the end of the test. The file is an HTML page or an
// SVG picture. The fragment, which may be empty, is appended to the address.
func (b *Browser) Open(t testing.TB, v View, file, fragment string) *Page {
	t.Helper()
	abs, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	at := &url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	p := &Page{ctx: ctx, view: v}
	if err := chromedp.Listen(ctx, func(event any) { p.listen(event, at.String()) }); err != nil {
		t.Fatal(err)
	}
	scheme, media := "light", ""
	if v.Dark {
		scheme = "dark"
	}
	if v.Print {
		media = "print"
	}
	address := at.String()
	if fragment != "" {
		address += "#" + fragment
	}
	if err := chromedp.Do(ctx,
		devtoolsAction(runtime.Enable, cdp.Empty{}), devtoolsAction(log.Enable, cdp.Empty{}), devtoolsAction(network.Enable, network.EnableParams{}),
		devtoolsAction(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(v.Width), Height: 800, DeviceScaleFactor: 1, Mobile: v.Width < 600}),
		devtoolsAction(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		devtoolsAction(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.NoScript}),
		chromedp.Navigate(address),
	); err != nil {
		t.Fatalf("opening %s: %v", file, err)
	}
	return p
}

// devtoolsAction returns a chromedp action that runs a command of the DevTools protocol.
func devtoolsAction[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, command, params)
		return chromedp.Void{}, err
	}
}

// listen records the requests and the console messages of a page.
func (p *Page) listen(event any, file string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Request.URL != file && !strings.HasSuffix(e.Request.URL, "/favicon.ico") {
			p.requested = append(p.requested, e.Request.URL)
		}
	case *log.EventEntryAdded:
		p.errors = append(p.errors, e.Entry.Text)
	case *runtime.EventExceptionThrown:
		p.errors = append(p.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			p.errors = append(p.errors, string(arg.Value))
		}
	}
}

// Eval evaluates a JavaScript expression in the page. Unless into is nil, it must be a pointer to the place for
// the result, as for json.Unmarshal. The page's content security policy does not apply to the expression.
func (p *Page) Eval(t testing.TB, expression string, into any) {
	t.Helper()
	expression = strings.TrimRight(expression, "\n;")
	if into == nil {
		if err := chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](expression)); err != nil {
			t.Fatalf("evaluating %.80s: %v", expression, err)
		}
		return
	}
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("JSON.stringify("+expression+")"))
	if err != nil {
		t.Fatalf("evaluating %.80s: %v", expression, err)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("evaluating %.80s: %v in %s", expression, err, text)
	}
}

// Press presses keys, one after the other: text, and the keys of github.com/chromedp/chromedp/kb.
func (p *Page) Press(t testing.TB, keys string) {
	t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.KeyEvent(keys)); err != nil {
		t.Fatalf("pressing %q: %v", keys, err)
	}
}

// Picture writes a PNG of the whole page to the directory QUAYSIDE_PICTURES, for inspection. It
// does nothing if the variable is not set.
func (p *Page) Picture(t testing.TB, name string) {
	t.Helper()
	dir := os.Getenv("QUAYSIDE_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatalf("taking a picture of %s: %v", name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Figures are the measurements of a page. Each list contains a few words of up to twenty elements, in the order
// of the page. If there are more elements, the last entry is their number.
type Figures struct {
	Width       int     `json:"-"`           // of the window, in CSS pixels
	ScrollWidth int     `json:"scrollWidth"` // of the page; if it is greater than Width, the page scrolls sideways
	Height      int     `json:"height"`      // of the page
	Texts       int     `json:"texts"`       // number of visible pieces of text
	Contrast    float64 `json:"contrast"`    // lowest contrast of a text with its background, from 1 to 21, as in WCAG 2
	Font        float64 `json:"font"`        // smallest font size, in CSS pixels

	Beyond    []string `json:"beyond"`    // elements and texts that extend beyond the left or right edge of the window
	Overflows []string `json:"overflows"` // elements wider than their box; in pictures, texts that extend beyond their box
	Clipped   []string `json:"clipped"`   // elements that are partly cut off
	Scrolls   []string `json:"scrolls"`   // elements that scroll sideways by themselves
	Overlaps  []string `json:"overlaps"`  // overlapping texts
	Contrasts []string `json:"contrasts"` // texts with a contrast below 4.5
	Unknown   []string `json:"unknown"`   // texts on an image or a gradient, whose contrast cannot be computed
	Small     []string `json:"small"`     // controls smaller than 24 by 24

	Errors []string `json:"errors"` // errors reported by the browser
	Asked  []string `json:"asked"`  // addresses that the page tried to load
}

// Figures measures the page as it is now.
func (p *Page) Figures(t testing.TB) Figures {
	t.Helper()
	f := Figures{Width: p.view.Width} // a phone widens the window to the width of the page
	p.Eval(t, measureScript, &f)
	p.mu.Lock()
	defer p.mu.Unlock()
	f.Errors, f.Asked = slices.Clone(p.errors), slices.Clone(p.requested)
	return f
}

// Limits are the permitted deviations of a page. The zero value contains the usual limits.
type Limits struct {
	Scrolls bool    // parts of it may scroll sideways, such as a wide picture
	Font    float64 // the smallest permitted font size, in CSS pixels; 0 means 12
}

// Faults returns the faults of a page, one line for each kind, or nil. A page without text is a
// fault.
func (f Figures) Faults(l Limits) []string {
	var out []string
	if f.Texts == 0 {
		out = append(out, "the page has no text")
	}
	if f.ScrollWidth > f.Width {
		out = append(out, fmt.Sprintf("it scrolls sideways: %d wide in a window of %d", f.ScrollWidth, f.Width))
	}
	least := l.Font
	if least == 0 {
		least = 12
	}
	if f.Texts > 0 && f.Font < least-0.01 {
		out = append(out, fmt.Sprintf("text of %.1f pixels, less than %g", f.Font, least))
	}
	scrolls := f.Scrolls
	if l.Scrolls {
		scrolls = nil
	}
	for _, list := range []struct {
		what string
		of   []string
	}{
		{"leaves the window", f.Beyond},
		{"is wider than its box", f.Overflows},
		{"is cut off", f.Clipped},
		{"scrolls sideways", scrolls},
		{"texts overlap", f.Overlaps},
		{"contrast below 4.5", f.Contrasts},
		{"unknown contrast", f.Unknown},
		{"controls too small", f.Small},
		{"errors of the browser", f.Errors},
		{"tries to load", f.Asked},
	} {
		if len(list.of) > 0 {
			out = append(out, list.what+": "+strings.Join(list.of, "; "))
		}
	}
	return out
}
