package registry_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/registrytest"
)

// halfway is a registry's front that hands out large blobs in some way of its
// own, and notes which bytes it was asked for.
type halfway struct {
	mu     sync.Mutex
	ranges []string // of requests for a large blob; "" for the whole
	answer func(w http.ResponseWriter, data []byte, from int)
}

func (h *halfway) intercept(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !strings.Contains(r.URL.Path, "/blobs/") || r.Method != http.MethodGet {
		next.ServeHTTP(w, r)
		return
	}
	data := blobOf(r, next)
	if len(data) < 10_000 {
		_, _ = w.Write(data)
		return
	}
	from := 0
	asked := r.Header.Get("Range")
	if s, ok := strings.CutPrefix(asked, "bytes="); ok {
		first, _, _ := strings.Cut(s, "-")
		from, _ = strconv.Atoi(first)
	}
	h.mu.Lock()
	h.ranges = append(h.ranges, asked)
	answer := h.answer
	h.mu.Unlock()
	answer(w, data, from)
}

// set changes the way, and forgets what was asked.
func (h *halfway) set(answer func(w http.ResponseWriter, data []byte, from int)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer, h.ranges = answer, nil
}

func (h *halfway) asked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ranges)
}

// ranged answers as it should, with at most that many bytes before it hangs up.
func ranged(most int) func(http.ResponseWriter, []byte, int) {
	return func(w http.ResponseWriter, data []byte, from int) {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)-from))
		if from > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
			w.WriteHeader(http.StatusPartialContent)
		}
		if from+most >= len(data) {
			_, _ = w.Write(data[from:])
			return
		}
		_, _ = w.Write(data[from : from+most])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// scrambled is ranged for a blob that differs in its second half.
func scrambled(w http.ResponseWriter, data []byte, from int) {
	for i := len(data) / 2; i < len(data); i++ {
		data[i] ^= 1
	}
	ranged(len(data))(w, data, from)
}

func partialSize(t *testing.T, dir, digest string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "partial", digest[7:]))
	if err != nil {
		return 0
	}
	return info.Size()
}

// TestResumesAcrossRuns breaks a layer off in one run and fetches it in the
// next from a registry that goes on with it in some way.
func TestResumesAcrossRuns(t *testing.T) {
	whole := ranged(1 << 30)
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, data []byte, from int)
		asked  string // what run 2 asks for, blank-separated; N is where run 1 ended
		want   string // in the error of run 2
	}{
		{"goes on", whole, "bytes=N-", ""},
		{"ignores ranges", func(w http.ResponseWriter, data []byte, _ int) { whole(w, data, 0) }, "bytes=N-", ""},
		{"refuses ranges", func(w http.ResponseWriter, data []byte, from int) {
			if from > 0 {
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			whole(w, data, 0)
		}, "bytes=N- -", ""},
		{"goes on elsewhere", func(w http.ResponseWriter, data []byte, from int) {
			if from > 0 {
				from += 7
			}
			whole(w, data, from)
		}, "bytes=N- -", ""},
		{"wrong bytes, then the right ones", func() func(http.ResponseWriter, []byte, int) {
			var once sync.Once
			return func(w http.ResponseWriter, data []byte, from int) {
				answer := whole
				once.Do(func() { answer = scrambled })
				answer(w, data, from)
			}
		}(), "bytes=N- -", ""},
		{"wrong bytes", scrambled, "bytes=N- -", "the content is not what the digest names"},
		{"wrong bytes, and hangs up", func(w http.ResponseWriter, data []byte, from int) {
			for i := range data {
				data[i] ^= byte(from)
			}
			ranged(len(data)/2)(w, data, from)
		}, "bytes=N- bytes=M- - bytes=H-", "the content is not what the digest names"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := registrytest.New(t)
			p, ref := pushed(t, srv)
			front := &halfway{answer: ranged(100_000)}
			srv.Intercept(front.intercept)
			first := newClient(t)
			first.Retry.Attempts = 1
			if _, err := pull(t.Context(), first, ref); err == nil {
				t.Fatal("run 1 succeeds")
			}
			n := partialSize(t, first.Store.Dir(), p.layerID)
			if n == 0 || first.Store.Has(p.layerID) {
				t.Fatalf("run 1 leaves %d bytes", n)
			}

			front.set(tt.answer)
			second := newClient(t)
			var err error
			if second.Store, err = store.Open(first.Store.Dir()); err != nil {
				t.Fatal(err)
			}
			_, err = pull(t.Context(), second, ref)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			half := int64(len(p.layer)) / 2
			places := strings.NewReplacer("N", fmt.Sprint(n), "M", fmt.Sprint(n+half), "H", fmt.Sprint(half))
			asked := front.asked()
			want := strings.Fields(places.Replace(tt.asked))
			if len(asked) != len(want) {
				t.Fatalf("asked for %q, want %q", asked, want)
			}
			for i := range want {
				if want[i] == "-" && asked[i] != "" || want[i] != "-" && !strings.HasPrefix(asked[i], want[i]) {
					t.Errorf("asked for %q, want %q", asked, want)
				}
			}
			if left := partialSize(t, first.Store.Dir(), p.layerID); left > 0 {
				t.Errorf("%d bytes are left", left)
			}
		})
	}
}

// TestResumesFromElsewhere lets the source go on where a mirror broke off.
func TestResumesFromElsewhere(t *testing.T) {
	source, near := registrytest.New(t), registrytest.New(t)
	p, ref := pushed(t, source)
	if err := newClient(t).Push(t.Context(), near.Host+"/org/catalog:v1", p.Packed); err != nil {
		t.Fatal(err)
	}
	front, behind := &halfway{answer: ranged(100_000)}, &halfway{answer: ranged(1 << 30)}
	near.Intercept(front.intercept)
	source.Intercept(behind.intercept)
	c := newClient(t)
	c.Retry.Attempts = 1
	var err error
	c.Mirrors, err = registry.ParseMirrors("m.conf", []byte("[[registry]]\nlocation = \""+source.Host+"\"\n[[registry.mirror]]\nlocation = \""+near.Host+"\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t.Context(), c, ref); err != nil {
		t.Fatal(err)
	}
	if asked := behind.asked(); len(asked) != 1 || asked[0] == "" {
		t.Errorf("the source was asked for %q, want the rest", asked)
	}
}

// TestKilledMidLayer kills a process in the middle of a layer: the next one
// asks for the rest.
func TestKilledMidLayer(t *testing.T) {
	const text = "QUAYSIDE_TEST_PULL"
	if ref, dir, ok := strings.Cut(os.Getenv(text), " "); ok {
		s, err := store.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pull(t.Context(), &registry.Client{Store: s}, ref)
		t.Fatal("not killed: ", err)
	}
	srv := registrytest.New(t)
	p, ref := pushed(t, srv)
	release := make(chan struct{})
	front := &halfway{answer: func(w http.ResponseWriter, data []byte, _ int) {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:150_000])
		w.(http.Flusher).Flush()
		<-release
	}}
	srv.Intercept(front.intercept)
	c := newClient(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledMidLayer$")
	cmd.Env = append(os.Environ(), text+"="+ref+" "+c.Store.Dir())
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); partialSize(t, c.Store.Dir(), p.layerID) < 150_000; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 2*time.Minute {
			t.Error("the other process does not come to the middle")
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	close(release)
	if said.Len() > 0 {
		t.Errorf("the other process: %s", said.String())
	}

	front.set(ranged(1 << 30))
	if im, err := pull(t.Context(), c, ref); err != nil || im.Digest() != p.Digest() {
		t.Error(err)
	}
	if asked := front.asked(); len(asked) != 1 || !strings.HasPrefix(asked[0], "bytes=150000-") {
		t.Errorf("asked for %q", asked)
	}
	for _, kind := range []string{"partial", "tmp"} {
		if left, err := os.ReadDir(filepath.Join(c.Store.Dir(), kind)); err == nil && len(left) > 0 {
			t.Errorf("%s holds %v", kind, left)
		}
	}
}
