package lockfile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/lockfile"
)

func sampleLock() *lockfile.File {
	hub := lockfile.NewCatalog(catalog.ID{Namespace: "olm", Name: "hub"}, "oci:catalogs/hub", catalog.DigestOf([]byte("hub")))
	return lockfile.New([]lockfile.Pin{
		{
			Namespace: "my-etcd", Package: "etcd", Channel: "singlenamespace-alpha", Version: "0.9.4", Bundle: "etcdoperator.v0.9.4",
			Image: "quay.io/x/etcd@" + string(catalog.DigestOf([]byte("etcd"))), Identity: "key sha256:0123", Catalog: hub, InstallMode: catalog.OwnNamespace,
			WatchNamespaces: []string{"my-etcd"}, OperatorGroup: "og", Approval: "Automatic", Replaces: "etcdoperator.v0.9.2",
			Skipped:     []string{"etcdoperator.v0.9.3"},
			Config:      []byte(`{"env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"x"}}}],"nodeSelector":{"on":"yes"},"tolerations":[[],{}],"n":1.5,"m":12345678901234567890}`),
			RequestedBy: []string{"my-etcd/etcd"},
			Requires:    []lockfile.Requirement{{Requirement: `olm.package.required x ">=1"`, Pin: "a/b"}, {Requirement: "olm.gvk.required cert/v1 Cert", Pin: "apps/cert"}},
			RelatedImages: []catalog.RelatedImage{
				{Name: "etcd", Image: "quay.io/coreos/etcd@sha256:66a37fd61a06a43969854ee6d3e21087a98b93838e284a6086b13917f96b0d9b"},
				{Image: "busybox"},
			},
			Properties: []catalog.Property{
				{Type: "olm.package", Value: json.RawMessage(`{"version":"0.9.4","packageName":"etcd"}`)},
				{Type: "olm.maxOpenShiftVersion", Value: json.RawMessage(`4.10`)},
				{Type: "olm.maxOpenShiftVersion", Value: json.RawMessage(`"4.10"`)},
			},
			Declaration: catalog.DigestOf([]byte("declaration")),
		},
		{
			Namespace: "apps", Package: "cert", Version: "1.0", Bundle: "no", Hold: "broken: # 3\nsee \"x\"",
			Catalog:     lockfile.Catalog{ID: catalog.ID{Name: "cluster"}, Source: "image:quay.io/x/cluster:latest", Digest: catalog.DigestOf([]byte("cluster")), Identity: "builder@example.com"},
			InstallMode: catalog.AllNamespaces, ContentDigest: catalog.DigestOf([]byte("cert")),
		},
	})
}

func ignorePos() cmp.Option {
	return cmp.Options{cmpopts.IgnoreTypes(diag.Pos{}, diag.Fields{})}
}

func TestRoundTrip(t *testing.T) {
	for name, f := range map[string]*lockfile.File{"full": sampleLock(), "empty": lockfile.New(nil)} {
		text := lockfile.Format(f)
		got, err := lockfile.Parse("quayside.lock", text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if d := cmp.Diff(f, got, ignorePos(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
		if again := lockfile.Format(got); string(again) != string(text) {
			t.Errorf("%s: not canonical: %s", name, cmp.Diff(string(text), string(again)))
		}
	}
}

// TestGoldenText fixes the canonical bytes, because a change of the format would change every committed lock.
func TestGoldenText(t *testing.T) {
	const file = "testdata/sample.lock"
	got := lockfile.Format(sampleLock())
	goldentest.Compare(t, file, got)
}

// TestPositions checks the position of each field of a pin in a parsed lock.
func TestPositions(t *testing.T) {
	text := lockfile.Format(sampleLock())
	f, err := lockfile.Parse("quayside.lock", text)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, pin := range f.Pins {
		for _, field := range []string{"namespace", "package", "version", "bundle", "catalog", "installMode", "checksum"} {
			at := pin.Fields[field]
			if at.Line == 0 {
				t.Errorf("%s: %s has no position", pin.Key(), field)
				continue
			}
			if line := lines[at.Line-1]; !strings.HasPrefix(line[at.Col-1:], field+":") {
				t.Errorf("%s: %s is not at %v: %q", pin.Key(), field, at, line)
			}
		}
	}
}

// TestChecksum compares Pin.Checksum with the checksum in the formatted lock, for parsed and new pins.
func TestChecksum(t *testing.T) {
	text := lockfile.Format(sampleLock())
	parsed, err := lockfile.Parse("quayside.lock", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, pin := range append(parsed.Pins, sampleLock().Pins...) {
		if want := "  checksum: " + string(pin.Checksum()) + "\n"; !strings.Contains(string(text), want) {
			t.Errorf("%s/%s: no %q in\n%s", pin.Namespace, pin.Package, want, text)
		}
	}
}
