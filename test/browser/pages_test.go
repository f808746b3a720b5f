package browser_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/test/browser"
)

// TestGolden checks the pages and pictures that other tests compare byte by byte.
func TestGolden(t *testing.T) {
	b := browser.Start(t)
	desk := []browser.View{{Width: 1400}, {Width: 1400, Dark: true}}
	for _, c := range []struct {
		files  string // glob, relative to the repository
		limits browser.Limits
		views  []browser.View
	}{
		{"diff/testdata/reports/*.html", browser.Limits{}, browser.Views()},
		{"catalog/graph/testdata/*.html", browser.Limits{Scrolls: true}, append(browser.Views(), browser.View{Width: 800}, browser.View{Width: 320})},
		{"catalog/graph/testdata/*.svg", browser.Limits{}, desk}, // up to 1,200 pixels wide
		{"cmd/quayside/internal/inventory/testdata/*.html", browser.Limits{Scrolls: true}, append(browser.Views(), browser.View{Width: 800})},
		{"cmd/quayside/internal/inventory/testdata/*.svg", browser.Limits{}, desk},
	} {
		files, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(c.files)))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", c.files, len(files), err)
		}
		for _, file := range files {
			checkPage(t, b, file, c.limits, c.views)
		}
	}
}

// checkPage checks a page in some views.
func checkPage(t *testing.T, b *browser.Browser, file string, limits browser.Limits, views []browser.View) {
	t.Helper()
	name := strings.ReplaceAll(filepath.Base(file), ".", "-")
	for _, view := range views {
		t.Run(name+"-"+view.String(), func(t *testing.T) {
			page := b.Open(t, view, file, "")
			page.Picture(t, name+"-"+view.String())
			for _, fault := range page.Figures(t).Faults(limits) {
				t.Error(fault)
			}
		})
	}
}
