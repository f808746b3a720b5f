package diff

import (
	"archive/tar"
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/lockfile"
)

var whole = flag.Bool("whole", false, "test every upgrade and object of the corpus, not only some") //nolint:gochecknoglobals // a flag

// beforePower is the number of findings of at least high severity in all published upgrades, before diff
// rated changes by the power that they grant.
const beforePower = 966

// honest is a published version of an operator with its objects.
type honest struct {
	operator, version string
	objects           []map[string]any
	namespace         string // the one with the most objects of all versions
}

// published caches the result of honestVersions, because unpacking the archives takes most of the time
// of the tests.
var published []*honest //nolint:gochecknoglobals // shared by two tests

// honestVersions returns the versions in the archives of charts and releases, sorted by operator
// and version.
func honestVersions(t testing.TB) []*honest {
	t.Helper()
	if published != nil {
		return published
	}
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set")
	}
	of, namespaces := map[string]*honest{}, map[string]int{}
	for _, archive := range []string{"charts", "releases"} {
		f, err := os.Open(filepath.Join(root, "charts", archive+".tar.zst"))
		if err != nil {
			t.Skip(err)
		}
		defer f.Close()
		z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<28))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		for files := tar.NewReader(z); ; {
			h, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(h.Name, "charts/golden/")
			parts := strings.Split(strings.TrimPrefix(name, "releases/"), "/")
			if len(parts) < 3 || archive == "charts" && path.Base(name) != "default.jsonl" || path.Ext(name) != ".jsonl" || parts[0] == "synthetic-features" {
				continue
			}
			key := archive + " " + parts[0] + " " + parts[1]
			if of[key] == nil {
				of[key] = &honest{operator: archive + "/" + parts[0], version: parts[1]}
			}
			lines := bufio.NewScanner(files)
			lines.Buffer(nil, 64<<20)
			for lines.Scan() {
				content, err := Content(lines.Bytes())
				if err != nil {
					t.Fatal(err)
				}
				if inner := asMap(content["object"]); inner != nil {
					content = inner
				}
				of[key].objects = append(of[key].objects, content)
				if namespace := k8s.Text(content, "metadata", "namespace"); namespace != "" {
					namespaces[of[key].operator+" "+namespace]++
				}
			}
		}
	}
	for _, h := range of {
		most := 0
		for _, key := range sortedKeys(namespaces) {
			if namespace, ok := strings.CutPrefix(key, h.operator+" "); ok && namespaces[key] > most {
				h.namespace, most = namespace, namespaces[key]
			}
		}
		h.namespace = cmp.Or(h.namespace, "ops")
	}
	published = slices.SortedFunc(maps.Values(of), func(a, b *honest) int {
		x, err1 := semver.NewVersion(a.version)
		y, err2 := semver.NewVersion(b.version)
		if err1 != nil || err2 != nil {
			return cmp.Or(strings.Compare(a.operator, b.operator), strings.Compare(a.version, b.version))
		}
		return cmp.Or(strings.Compare(a.operator, b.operator), x.Compare(y))
	})
	return published
}

// state returns the state of a cluster with only this version.
func (h *honest) state(t testing.TB) State {
	t.Helper()
	pkg := path.Base(h.operator)
	operator := h.namespace + "/" + pkg
	s := State{Name: h.version, KubernetesVersion: "1.34", Pins: []lockfile.Pin{{Namespace: h.namespace, Package: pkg, Version: h.version}}}
	seen := map[k8s.Key]bool{}
	for _, content := range h.objects {
		for _, field := range []string{"annotations", "labels"} { // as render does
			maps.DeleteFunc(k8s.Map(content, "metadata", field), func(key string, _ any) bool { return bundle.ControlledTool(key) != "" })
		}
		o := Object{Operator: operator, Path: "rendered/" + pkg + ".yaml", Content: content}
		if key := o.Key(); key.Kind != "" && key.Name != "" && !seen[key] {
			seen[key] = true
			s.Objects = append(s.Objects, o)
		}
	}
	return s
}

// TestGoldenHonestUpgrades counts the false positives of the rules: the findings of at least high severity in
// published upgrades. With -whole, it compares the counts of all upgrades with testdata.
func TestGoldenHonestUpgrades(t *testing.T) {
	all := honestVersions(t)
	counts, upgrades := map[string]int{}, 0
	for i, now := range all {
		if i == 0 || all[i-1].operator != now.operator || !*whole && i%30 != 0 {
			continue
		}
		upgrades++
		for _, f := range compare(t, all[i-1].state(t), now.state(t)).Findings {
			counts[f.Severity.String()+" "+f.Rule]++
			counts[f.Severity.String()]++
			if f.Severity >= High {
				t.Logf("%s %s → %s: %s %s %s: %s", now.operator, all[i-1].version, now.version, f.Severity, f.Rule, f.subject(), f.Message)
			}
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d upgrades\n", upgrades)
	for _, k := range sortedKeys(counts) {
		fmt.Fprintf(&out, "%5d %s\n", counts[k], k)
	}
	if *whole {
		goldentest.Compare(t, filepath.Join("testdata", "honest.txt"), []byte(out.String()))
		if n := counts["critical"] + counts["high"]; n > beforePower*110/100 {
			t.Errorf("%d findings of at least high severity", n)
		}
	} else if upgrades == 0 {
		t.Error("no upgrades")
	}
	t.Log(out.String())
}
