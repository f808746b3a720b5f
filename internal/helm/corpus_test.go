package helm

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
)

// run is one call of helm template in the corpus.
type run struct {
	Code          int     `json:"rc"`
	CPU           float64 `json:"cpu_s"`
	Command       string  `json:"cmd"`
	Deterministic bool    `json:"deterministic"`
	SameAs        string  `json:"same_output_as"`
}

// exceptions maps the charts of the corpus that fail on purpose, although Helm renders them, to a part of
// the error.
func exceptions() map[string]string {
	return map[string]string{"synthetic-features": "getHostByName is refused"}
}

func isException(title string, err error) bool {
	chart, _, _ := strings.Cut(title, "/")
	reason := exceptions()[chart]
	return reason != "" && strings.Contains(err.Error(), reason)
}

// TestCorpus compares the objects of real charts with those of helm template.
func TestCorpus(t *testing.T) {
	files := corpusFiles(t)
	pool := newPool(t)
	var equal, refused, failed, skipped, others int
	var helmCPU float64
	start, own := childrenCPU(), ownCPU()
	begin := time.Now()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) != "runs.json" {
			continue
		}
		var runs struct {
			Release, Namespace string
			Runs               map[string]run
		}
		if err := json.Unmarshal(files[name], &runs); err != nil {
			t.Fatal(err)
		}
		for _, id := range slices.Sorted(maps.Keys(runs.Runs)) {
			r := runs.Runs[id]
			title := strings.TrimPrefix(path.Dir(name), "golden/") + " " + id
			if strings.Contains(r.Command, "--is-upgrade") {
				skipped++ // quayside renders a state, not an upgrade
				continue
			}
			helmCPU += r.CPU
			got, err := templateRun(t, pool, files, path.Dir(name), runs.Namespace, r)
			switch {
			case r.Code != 0 && err != nil:
				failed++
			case r.Code != 0:
				t.Errorf("%s: no error, unlike Helm: %s", title, files[path.Join(path.Dir(name), id+".stderr.txt")])
			case !r.Deterministic && err != nil && strings.Contains(err.Error(), "not deterministic"):
				refused++
				t.Logf("%s: %v", title, err)
			case err != nil && isException(title, err):
				others++
			case err != nil:
				t.Errorf("%s: %v", title, err)
			default:
				golden := files[path.Join(path.Dir(name), id+".jsonl")]
				if r.SameAs != "" && golden == nil {
					golden = files[path.Join(path.Dir(name), r.SameAs+".jsonl")]
				}
				if diff := compareGolden(got, golden); diff != "" {
					t.Errorf("%s: %s", title, diff)
					continue
				}
				equal++
				if !r.Deterministic {
					t.Logf("%s: deterministic, unlike Helm", title)
				}
			}
		}
	}
	pool.Close()
	spent := ownCPU() - own // includes reading the archives and comparing
	t.Logf("%d runs equal, %d refused as not deterministic, %d failed as in Helm, %d exceptions, %d upgrades skipped; CPU %.1f s of children and %.1f s of this test, Helm %.1f s; elapsed %v",
		equal, refused, failed, others, skipped, (childrenCPU() - start).Seconds(), spent.Seconds(), helmCPU, time.Since(begin))
}

// BenchmarkCorpus templates all real charts with their default values in the child processes of a pool. It
// compares their CPU time with that of helm template, which needs a process for each chart. QUAYSIDE_HELM
// is the path of Helm. If it is empty, Helm's CPU times are those recorded in the corpus.
func BenchmarkCorpus(b *testing.B) {
	files := corpusFiles(b)
	charts := b.TempDir()
	for name, data := range files {
		if path.Ext(name) == ".tgz" {
			if err := os.WriteFile(filepath.Join(charts, path.Base(name)), data, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	var own, helm float64
	for b.Loop() {
		n := 0
		pool, others := newPool(b), 0.0
		start := ownCPU() + childrenCPU()
		for _, name := range slices.Sorted(maps.Keys(files)) {
			var runs struct {
				Namespace string
				Runs      map[string]run
			}
			if path.Base(name) != "runs.json" || json.Unmarshal(files[name], &runs) != nil || runs.Runs["default"].Code != 0 {
				continue
			}
			r := runs.Runs["default"]
			n++
			if _, err := templateRun(b, pool, files, path.Dir(name), runs.Namespace, r); err != nil {
				b.Logf("%s: %v", name, err)
			}
			before := childrenCPU()
			if program := os.Getenv("QUAYSIDE_HELM"); program != "" {
				c := exec.Command(program, strings.Fields(r.Command)[1:]...)
				c.Dir = charts
				if err := c.Run(); err != nil {
					b.Fatal(err)
				}
				r.CPU = (childrenCPU() - before).Seconds()
				others += r.CPU
			}
			helm += r.CPU
		}
		pool.Close()
		own += (ownCPU() + childrenCPU() - start).Seconds() - others
		b.ReportMetric(float64(n), "charts")
	}
	b.ReportMetric(own/float64(b.N), "cpu-s")
	b.ReportMetric(helm/float64(b.N), "helm-cpu-s")
	b.ReportMetric(own/helm, "of-helm")
}

// templateRun templates a chart with the flags of a run.
func templateRun(t testing.TB, pool *Pool, files map[string][]byte, dir, namespace string, r run) (*Rendered, error) {
	t.Helper()
	opt := Options{Namespace: namespace}
	words := strings.Fields(r.Command)
	opt.ReleaseName = words[2]
	archive, err := ReadArchive(bytes.NewReader(files["repo/"+words[3]]))
	if err != nil {
		t.Fatalf("%s: %v", words[3], err)
	}
	for i, w := range words {
		switch w {
		case "--kube-version":
			opt.KubeVersion = words[i+1]
		case "--api-versions":
			if opt.APIVersions == nil {
				opt.APIVersions = helmVersions(t)
			}
			opt.APIVersions = append(opt.APIVersions, words[i+1])
		case "-f":
			if err := yaml.Unmarshal(files[path.Join(dir, words[i+1])], &opt.Values); err != nil {
				t.Fatal(err)
			}
		}
	}
	return pool.Template(t.Context(), archive, opt)
}

// helmVersions returns the API versions that helm template offers.
func helmVersions(t testing.TB) []string {
	t.Helper()
	s := clientscheme.Scheme
	if err := errors.Join(apiextensionsv1beta1.AddToScheme(s), apiextensionsv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, gv := range s.PrioritizedVersionsAllGroups() {
		out = append(out, gv.String())
	}
	return out
}

// compareGolden describes the first differences between objects and those of Helm, or returns "".
func compareGolden(got *Rendered, golden []byte) string {
	left := map[string]int{}
	for line := range bytes.Lines(golden) {
		var o struct {
			Object map[string]any
			Source string
		}
		decodeNumbers(line, &o)
		left[canonical(o.Source, o.Object)]++
	}
	var diff []string
	for _, r := range got.Resources {
		key := canonical(r.Source, r.Object)
		if left[key]--; left[key] < 0 {
			diff = append(diff, "only here: "+key)
		}
	}
	for key, n := range left {
		if n > 0 {
			diff = append(diff, "only in Helm: "+key)
		}
	}
	slices.Sort(diff)
	for i, d := range diff {
		diff[i] = fmt.Sprintf("%.3000s", d)
	}
	return strings.Join(diff[:min(2, len(diff))], "\n")
}

func decodeNumbers(data []byte, into any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		panic(err)
	}
}

func canonical(source string, object map[string]any) string {
	data, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var again any
	decodeNumbers(data, &again)
	data, err = json.Marshal(again)
	if err != nil {
		panic(err)
	}
	return source + " " + string(data)
}

// corpusFiles returns the charts of the corpus and Helm's answers.
func corpusFiles(t testing.TB) map[string][]byte {
	t.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real charts")
	}
	f, err := os.Open(filepath.Join(root, "charts", "charts.tar.zst"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the corpus has no charts")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || strings.HasSuffix(h.Name, ".raw.yaml") {
			continue
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(strings.TrimPrefix(h.Name, "./"), "charts/")] = data
	}
}
