package render

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/lockfile"
)

var whole = flag.Bool("whole", false, "test every bundle of the corpus and of its archives, not only some") //nolint:gochecknoglobals // as flags are

// TestArchives renders one in forty bundles of the corpus archives, or all with -whole, in all install modes. An
// error must name the faulty files. Rendered objects must be valid: the API server accepts them, in strict mode
// unless there was a warning about them, and kustomize builds them unchanged.
func TestArchives(t *testing.T) {
	for _, archive := range []string{"latest", "v1beta1"} {
		t.Run(archive, func(t *testing.T) {
			seen := map[string]int{}
			bundles := archivedBundles(t, archive)
			for _, name := range slices.Sorted(maps.Keys(bundles)) {
				t.Run(name, func(t *testing.T) { (&bundleTest{t: t, fsys: bundles[name], seen: seen}).test() })
			}
			for _, what := range slices.Sorted(maps.Keys(seen)) {
				t.Logf("%5d %s", seen[what], what)
			}
		})
	}
}

// archivedBundles returns the bundles of an archive by "package/version".
func archivedBundles(t *testing.T, archive string) map[string]fstest.MapFS {
	t.Helper()
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" || testing.Short() {
		t.Skip("QUAYSIDE_CORPUS is not set, or -short is set")
	}
	f, err := os.Open(filepath.Join(corpus, archive+".tar.zst"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	unpacked, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<28))
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()
	out := map[string]fstest.MapFS{}
	for files := tar.NewReader(unpacked); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.SplitN(strings.TrimPrefix(h.Name, "./"), "/", 3)
		if len(name) < 3 || h.Typeflag != tar.TypeReg {
			continue
		}
		sum := fnv.New32a()
		fmt.Fprint(sum, name[0], "/", name[1])
		if !*whole && sum.Sum32()%40 != 0 {
			continue
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		of := name[0] + "/" + name[1]
		if out[of] == nil {
			out[of] = fstest.MapFS{}
		}
		out[of][name[2]] = &fstest.MapFile{Data: data}
	}
}

// bundleTest is the test of one bundle.
type bundleTest struct {
	t    *testing.T
	fsys fstest.MapFS
	seen map[string]int // counters for the summary
}

func (s *bundleTest) test() {
	b, err := bundle.Load(s.fsys)
	if err != nil {
		s.checkRefusal("not read", err)
		return
	}
	known := map[string]bool{}
	for i, mode := range b.CSV.Modes {
		res, err := All(&lockfile.File{Pins: []lockfile.Pin{modePin(b, mode)}}, Options{AcceptedCRDs: known}, func(lockfile.Pin) (fs.FS, error) { return s.fsys, nil })
		if err != nil {
			s.checkRefusal("refused", err)
			continue
		}
		addAccepted(known, res)
		s.seen["rendered"]++
		loose := map[string]bool{} // objects that strict validation rejects, according to a warning
		for _, w := range res.Warnings {
			s.seen["warning "+w.Code]++
			if w.Code == "unknown-field" {
				of, _, _ := strings.Cut(w.Msg, ": ")
				loose[of] = true
			}
		}
		for _, r := range res.Objects {
			key := r.Object.Key()
			if k8s.IsCRD(r.Object) && i > 0 {
				continue // CRDs are equal in all modes
			}
			s.checkAccepted(r.Object, loose[key.String()] || loose[Key{Group: key.Group, Kind: key.Kind, Name: key.Name}.String()])
		}
		if i == 0 || *whole {
			checkBuiltIsRendered(s.t, res)
		}
	}
}

// checkRefusal checks that every fault in err names a file.
func (s *bundleTest) checkRefusal(how string, err error) {
	for line := range strings.Lines(err.Error()) {
		why := strings.TrimSpace(line)
		if regexp.MustCompile(`^(rendering|bundle) \S+ .*:$`).MatchString(why) {
			continue
		}
		if !regexp.MustCompile(`^(manifests|metadata)/[^:]+:.*\S`).MatchString(why) {
			s.t.Errorf("rejected without a file: %s", why)
		}
		s.t.Log(why)
	}
	s.seen[how]++
}

// checkAccepted checks that the API server's decoder accepts an object. If the API server's validation of the
// kind is available as a library, it also checks that the library accepts the object.
func (s *bundleTest) checkAccepted(o Object, loose bool) {
	data, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	decoder := kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kubejson.SerializerOptions{Strict: true})
	_, _, err = decoder.Decode(data, nil, nil)
	if err != nil && !runtime.IsNotRegisteredError(err) && !(loose && runtime.IsStrictDecodingError(err)) {
		s.t.Errorf("%s: %v", o.Key(), err)
	}
	faults := admit.Metadata(o)
	if k8s.IsCRD(o) {
		faults = append(faults, admit.CheckCRD(o)...)
	}
	if faults != nil {
		s.t.Errorf("%s: %v", o.Key(), faults)
	}
}
