package cli_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Every linked package is initialized before a command runs. The cost is measured in allocated
// bytes, because these are similar on every machine: a megabyte takes one to two milliseconds.

// maxPackageBytes is the maximum allocation of a package that is not in heavyPackages, in bytes.
const maxPackageBytes = 80 << 10

// allocationLimit is the permitted allocation of a package.
type allocationLimit struct {
	bytes int    // rounded up from a measurement
	why   string // reason why the package is needed
}

// heavyPackages returns the packages that may allocate more than maxPackageBytes.
func heavyPackages() map[string]allocationLimit {
	const (
		signatures = "sigstore-go verifies entries of a transparency log with rekor's types"
		admission  = "apiextensions-apiserver judges definitions and custom resources as the API server does"
		rules      = "cel-go evaluates rules of bundles, definitions and policies"
	)
	return map[string]allocationLimit{
		"github.com/asaskevich/govalidator":                        {1_190_000, signatures},
		"github.com/go-openapi/strfmt":                             {200_000, signatures},
		"github.com/go-openapi/strfmt/internal/countries":          {125_000, signatures},
		"k8s.io/kube-openapi/pkg/validation/strfmt":                {525_000, admission},
		"github.com/google/gnostic-models/openapiv2":               {90_000, admission},
		"k8s.io/kube-openapi/pkg/internal/third_party/govalidator": {150_000, admission},
		"k8s.io/component-base/metrics/legacyregistry":             {265_000, admission},
		"github.com/prometheus/procfs":                             {125_000, admission},
		"k8s.io/apiserver/pkg/server/egressselector":               {85_000, admission},
		"k8s.io/api/core/v1":                                       {125_000, "the Pod Security levels, and admission"},
		"google.golang.org/protobuf/reflect/protodesc":             {215_000, rules},
		"github.com/Masterminds/semver/v3":                         {250_000, "the ranges of ClusterExtensions are defined by it"},
		"github.com/opencontainers/go-digest":                      {115_000, "go-containerregistry names images with it"},
	}
}

// forbiddenPackages returns packages that must not be linked, with their subpackages, and the reasons.
func forbiddenPackages() map[string]string {
	return map[string]string{
		"sigs.k8s.io/controller-runtime":                            "the reporter's, which is a program of its own",
		"k8s.io/client-go/kubernetes":                               "registers every kind of every group; internal/cluster reads objects as they are",
		"k8s.io/client-go/discovery":                                "brings the schemas of every group with it",
		"k8s.io/apiserver/pkg/registry":                             "a whole API server",
		"k8s.io/apiextensions-apiserver/pkg/client":                 "registers kinds that nobody asks a server for",
		"k8s.io/kubectl":                                            "registers every kind of every group",
		"github.com/google/go-containerregistry/pkg/authn/k8schain": "the libraries of three clouds",
		"github.com/aws/aws-sdk-go-v2":                              "credential helpers are programs of their own",
		"github.com/Azure/azure-sdk-for-go":                         "credential helpers are programs of their own",
		"github.com/sigstore/cosign":                                "sigstore-go verifies all that quayside does",
		"github.com/spf13/viper":                                    "quayside.yaml is read by workspace",
	}
}

// linkedPackages returns the packages of the program. The test binary has more.
func linkedPackages(t *testing.T) map[string]bool {
	t.Helper()
	list, err := exec.Command("go", "list", "-deps", "github.com/quayside/quayside/cmd/quayside").Output()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for pkg := range strings.FieldsSeq(string(list)) {
		out[pkg] = true
	}
	return out
}

// maxTotalBytes is the maximum allocation of all packages together, in bytes. Without the delay by
// package garbage, garbage collection starts at four megabytes.
const maxTotalBytes = 5 << 20

func TestInitAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which the short tests run with, has packages allocate more")
	}
	got, program := initAllocations(t), linkedPackages(t)
	maps.DeleteFunc(got, func(pkg string, _ int) bool { return !program[pkg] })
	for _, pkg := range slices.Sorted(maps.Keys(program)) {
		for bad, why := range forbiddenPackages() {
			if pkg == bad || strings.HasPrefix(pkg, bad+"/") {
				t.Errorf("%s is linked: %s", pkg, why)
			}
		}
	}
	known := heavyPackages()
	total := 0
	for _, pkg := range slices.Sorted(maps.Keys(got)) {
		n := got[pkg]
		total += n
		switch limit, ok := known[pkg]; {
		case !ok && n > maxPackageBytes:
			t.Errorf("%s allocates %d bytes during initialization: find its importer (go mod why, go list -deps), and use a lighter package", pkg, n)
		case ok && n > 2*limit.bytes: // the allocation of some packages depends on the machine
			t.Errorf("%s allocates %d bytes when it is initialized: it was borne (%s) at %d", pkg, n, limit.why, limit.bytes)
		}
	}
	for pkg, s := range known {
		if n, ok := got[pkg]; !ok || n <= maxPackageBytes/2 {
			t.Errorf("%s allocates %d bytes when it is initialized: take it off the list (%s)", pkg, n, s.why)
		}
	}
	if total > maxTotalBytes {
		t.Errorf("all packages allocate %d bytes when they are initialized: want at most %d", total, maxTotalBytes)
	}
}

// initAllocations runs the test binary as the program, and returns the number of bytes that each package
// allocated during initialization.
func initAllocations(t *testing.T) map[string]int {
	t.Helper()
	cmd := exec.Command("quayside", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for line := range strings.Lines(trace.String()) {
		var pkg string
		var at, clock float64
		var n int
		// init golang.org/x/net/trace @5.7 ms, 0.030 ms clock, 18520 bytes, 57 allocs
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes", &pkg, &at, &clock, &n); err == nil {
			got[strings.ReplaceAll(pkg, "%2e", ".")] = n
		}
	}
	if len(got) < 100 {
		t.Fatalf("the runtime reported %d packages:\n%.1000s", len(got), cmp.Or(trace.String(), "no trace"))
	}
	return got
}
