package graph_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/catalog/graph"
	"github.com/quayside/quayside/lockfile"
)

// TestCorpus draws every package of a full-size catalog: whole, short, and from the
// middle of each channel up.
func TestCorpus(t *testing.T) {
	const tallest = 2500 // of what is drawn without --all, in pixels
	for _, p := range corpus(t, "full.tar.zst") {
		draw := func(what string, g graph.Graph, most int) {
			what = p.Name() + ", " + what
			svg := graph.SVG([]graph.Graph{g})
			sound(t, what, svg)
			if h := size(t, svg); h > most {
				t.Errorf("%s: %d high", what, h)
			}
			apart(t, what, svg)
		}
		whole := graph.Of(p, nil, nil)
		draw("whole", whole, 1<<20)
		draw("short", whole.Short(), tallest)
		for _, ch := range p.Channels() {
			walk := ch.Walk()
			i := len(walk) / 2
			pin := &lockfile.Pin{Bundle: walk[i].Name(), Channel: ch.Name()}
			var hops []string
			for _, e := range slices.Backward(walk[:i]) {
				hops = append(hops, e.Name())
			}
			draw("from the middle of "+ch.Name(), graph.Of(p, pin, hops).Short(), 500)
		}
	}
}

// size returns how high a picture is.
func size(t *testing.T, svg []byte) int {
	t.Helper()
	m := regexp.MustCompile(`^<svg [^>]* width="(\d+)" height="(\d+)"`).FindSubmatch(svg)
	if m == nil {
		t.Fatalf("%.200s", svg)
	}
	h, _ := strconv.Atoi(string(m[2]))
	return h
}

// apart fails where two boxes lie on each other.
func apart(t *testing.T, what string, svg []byte) {
	t.Helper()
	type box struct{ x, y, w, h float64 }
	var boxes []box
	for _, m := range regexp.MustCompile(`</title><rect[^>]* x="([^"]*)" y="([^"]*)" width="([^"]*)" height="([^"]*)"`).FindAllSubmatch(svg, -1) {
		var b box
		if _, err := fmt.Sscan(strings.Join([]string{string(m[1]), string(m[2]), string(m[3]), string(m[4])}, " "), &b.x, &b.y, &b.w, &b.h); err != nil {
			t.Fatal(err)
		}
		for _, o := range boxes {
			if b.x < o.x+o.w && o.x < b.x+b.w && b.y < o.y+o.h && o.y < b.y+b.h {
				t.Errorf("%s: boxes %v and %v lie on each other", what, b, o)
			}
		}
		boxes = append(boxes, b)
	}
	if len(boxes) == 0 {
		t.Errorf("%s: no boxes", what)
	}
}

// corpus returns the packages of one of the corpus's catalogs.
func corpus(t *testing.T, archive string) []*catalog.Package {
	t.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS names no directory of real operators")
	}
	f, err := os.Open(filepath.Join(root, "catalogs", archive))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := fstest.MapFS{}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "./")] = &fstest.MapFile{Data: data}
	}
	content, err := fbc.LoadFS(files)
	if err != nil {
		t.Fatal(err)
	}
	content.ID = catalog.ID{Name: "full"}
	c, err := catalog.New(content)
	if err != nil {
		t.Fatal(err)
	}
	var out []*catalog.Package
	for _, name := range c.Names() {
		p, _ := c.Package(name)
		out = append(out, p)
	}
	return out
}
