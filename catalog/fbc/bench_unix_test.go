//go:build unix

package fbc

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"runtime"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/catalog"
)

// BenchmarkLoad loads a full-size catalog. The metric of-yardstick is the processor time divided by the time in
// which encoding/json reads every token of the same bytes.
func BenchmarkLoad(b *testing.B) {
	fsys := corpusCatalog(b, "full-slim.tar.zst")
	start := cpuTime(b)
	readTokens(b, fsys)
	yardstick := cpuTime(b) - start
	before := heapBytes()
	var held *catalog.Catalog
	start = cpuTime(b)
	b.ReportAllocs()
	for b.Loop() {
		c, err := LoadFS(fsys)
		if err != nil {
			b.Fatal(err)
		}
		if held, err = catalog.New(c); err != nil {
			b.Fatal(err)
		}
	}
	each := (cpuTime(b) - start) / time.Duration(b.N)
	b.ReportMetric(each.Seconds(), "cpu-s/op")
	share := float64(each) / float64(yardstick)
	b.ReportMetric(share, "of-yardstick")
	if share > 0.25 {
		b.Errorf("reading takes %.2f of the yardstick, want at most 0.25", share)
	}
	b.ReportMetric(float64(heapBytes()-before)/(1<<20), "MB-held")
	runtime.KeepAlive(held)
	runtime.KeepAlive(fsys)
}

// cpuTime returns the processor time that the process has used.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// heapBytes returns the bytes in use on the heap.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// readTokens reads every token of every file with encoding/json.
func readTokens(tb testing.TB, fsys fs.FS) {
	tb.Helper()
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := fsys.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		dec := json.NewDecoder(f)
		for {
			if _, err := dec.Token(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkLoadYAML loads a tenth of the full-size catalog as JSON, as YAML in the style of opm, and with the
// full YAML parser. The metric of-json is the processor time divided by the time for JSON.
func BenchmarkLoadYAML(b *testing.B) {
	var asJSON, inYAML [][]byte
	files := 0
	everyFile(b, corpusCatalog(b, "full-slim.tar.zst"), func(data []byte) {
		if files++; files%10 == 0 {
			asJSON = append(asJSON, data)
			inYAML = append(inYAML, bytes.Join(convertToYAML(b, data, 0, 1, yaml.JSONToYAML), []byte("---\n")))
		}
	})
	var ruler time.Duration
	for _, bench := range []struct {
		name  string
		files [][]byte
		slow  bool
	}{{"json", asJSON, false}, {"yaml", inYAML, false}, {"yaml-full-parser", inYAML, true}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime(b)
			for b.Loop() {
				loading := newBuilder()
				loading.yaml.Slow = bench.slow
				for _, data := range bench.files {
					if err := loading.read("f", bytes.NewReader(data), nil); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := loading.content(); err != nil {
					b.Fatal(err)
				}
			}
			each := (cpuTime(b) - start) / time.Duration(b.N)
			if ruler == 0 {
				ruler = each
			}
			b.ReportMetric(each.Seconds(), "cpu-s/op")
			b.ReportMetric(float64(each)/float64(ruler), "of-json")
		})
	}
}

// BenchmarkTokens measures the yardstick of BenchmarkLoad: encoding/json reads every token of the same bytes.
func BenchmarkTokens(b *testing.B) {
	fsys := corpusCatalog(b, "full-slim.tar.zst")
	for b.Loop() {
		readTokens(b, fsys)
	}
}
