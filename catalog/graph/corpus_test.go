package graph_test

import (
	"archive/tar"
	"errors"
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

// TestCorpus renders every package of a full-size catalog: the whole graph, the short graph, and the
// short graph with a pin in the middle of each channel. Every version must have a box, and no picture
// may be too wide.
func TestCorpus(t *testing.T) {
	for _, p := range corpus(t, "full.tar.zst") {
		whole := graph.New(p, nil, nil)
		graphs := []graph.Graph{whole, whole.Short()}
		for _, ch := range p.Channels() {
			walk := ch.Walk()
			i := len(walk) / 2
			pin := &lockfile.Pin{Bundle: walk[i].Name(), Channel: ch.Name()}
			var hops []string
			for _, e := range slices.Backward(walk[:i]) {
				hops = append(hops, e.Name())
			}
			graphs = append(graphs, graph.New(p, pin, hops).Short())
		}
		for i, g := range graphs {
			versions := 0
			for _, ch := range g.Channels {
				versions += len(ch.Nodes)
			}
			svg, err := graph.Print("svg", []graph.Graph{g}, true)
			if err != nil {
				t.Fatal(err)
			}
			size := regexp.MustCompile(`^<svg [^>]* width="(\d+)"`).FindStringSubmatch(svg)
			if size == nil {
				t.Fatalf("%s: %.200s", p.Name(), svg)
			}
			if width, _ := strconv.Atoi(size[1]); width > 800 {
				t.Errorf("%s %d: %d wide", p.Name(), i, width)
			}
			if n := strings.Count(svg, "<circle"); n != versions {
				t.Errorf("%s %d: %d dots of %d versions", p.Name(), i, n, versions)
			}
			if more := regexp.MustCompile(`\d+ more lines?`).FindString(svg); more != "" {
				t.Logf("%s %d: %s", p.Name(), i, more)
			}
		}
	}
}

// corpus returns the packages of one of the corpus's catalogs.
func corpus(t *testing.T, archive string) []*catalog.Package {
	t.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not a directory of real operators")
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
