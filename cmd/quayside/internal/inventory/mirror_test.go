package inventory_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/lockfile"
)

const imageDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func exampleLock() *lockfile.File {
	id := lockfile.NewCatalog(catalog.ID{Namespace: "olm", Name: "all"}, "image:quay.io/org/catalog:v1", imageDigest)
	return lockfile.New(
		[]lockfile.Pin{
			{Namespace: "a", Package: "one", Catalog: id, Image: "quay.io/org/one@" + imageDigest, RelatedImages: []catalog.RelatedImage{
				{Image: "quay.io/org/one@" + imageDigest}, {Image: "quay.io/org/app:v1"},
			}},
			{Namespace: "b", Package: "two", Catalog: id, RelatedImages: []catalog.RelatedImage{{Image: "quay.io/org/app:v1"}}},
			{Namespace: "c", Package: "three", Catalog: lockfile.Catalog{ID: catalog.ID{Namespace: "olm", Name: "dir"}, Source: "dir:here"}},
		})
}

func TestListImages(t *testing.T) {
	got := inventory.ListImages(exampleLock(), nil)
	want := []inventory.Image{
		{Image: "quay.io/org/app:v1", Roles: []string{"related"}, Operators: []string{"a/one", "b/two"}},
		{Image: "quay.io/org/catalog:v1", Digest: imageDigest, Roles: []string{"catalog"}},
		{Image: "quay.io/org/one@" + imageDigest, Digest: imageDigest, Roles: []string{"bundle"}, Operators: []string{"a/one"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestListImagesOfClusters lists the images of two groups of clusters: one lacks some operators, the other runs
// an image that is not in the lock.
func TestListImagesOfClusters(t *testing.T) {
	got := inventory.ListImages(exampleLock(), []inventory.ClusterImages{
		{Clusters: []string{"c1", "c3"}, Operators: []string{"a/one", "b/two"}, Runs: []inventory.RunningImage{{Image: "quay.io/org/app:v1", Operator: "a/one"}, {Image: "nginx:1", Operator: ""}}},
		{Clusters: []string{"c2"}, Operators: []string{"a/one"}, Runs: []inventory.RunningImage{{Image: "quay.io/org/app:v1", Operator: "a/one"}, {Image: "evil.example.com/app@" + imageDigest, Operator: "a/one"}, {Image: "nginx:1", Operator: ""}}},
		{Clusters: []string{"c4"}, Runs: []inventory.RunningImage{{Image: "nginx:1", Operator: ""}}},
	})
	want := []inventory.Image{
		{Image: "evil.example.com/app@" + imageDigest, Digest: imageDigest, Roles: []string{"running"}, Operators: []string{"a/one"}, Clusters: []string{"c2"}},
		{Image: "nginx:1", Roles: []string{"running"}},
		{Image: "quay.io/org/app:v1", Roles: []string{"related"}, Operators: []string{"a/one", "b/two"}, Clusters: []string{"c1", "c2", "c3"}},
		{Image: "quay.io/org/catalog:v1", Digest: imageDigest, Roles: []string{"catalog"}},
		{Image: "quay.io/org/one@" + imageDigest, Digest: imageDigest, Roles: []string{"bundle"}, Operators: []string{"a/one"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPlanCopies(t *testing.T) {
	type route struct{ From, To string }
	for _, c := range []struct {
		name, to string
		want     []route
	}{
		{"ok/registry", "registry.example.com/mirror", []route{
			{"quay.io/org/app:v1", "registry.example.com/mirror/org/app:v1"},
			{"quay.io/org/catalog@" + imageDigest, "registry.example.com/mirror/org/catalog:v1"},
			{"quay.io/org/one@" + imageDigest, "registry.example.com/mirror/org/one:image-" + imageDigest[len("sha256:"):]},
		}},
		{"ok/layout", "oci:stick", []route{
			{"quay.io/org/app:v1", "oci:stick:quay.io/org/app:v1"},
			{"quay.io/org/catalog@" + imageDigest, "oci:stick:quay.io/org/catalog:v1"},
			{"quay.io/org/one@" + imageDigest, "oci:stick:quay.io/org/one@" + imageDigest},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			copies, err := inventory.PlanCopies(inventory.ListImages(exampleLock(), nil), c.to)
			if err != nil {
				t.Fatal(err)
			}
			var got []route
			for _, p := range copies {
				got = append(got, route{p.From, p.To})
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for name, c := range map[string]struct {
		images []inventory.Image
		to     string
		want   string
	}{
		"error/no registry": {nil, "registry.example.com/a@b", "must be a registry"},
		"error/one name": {
			[]inventory.Image{{Image: "a.example.com/op:1"}, {Image: "b.example.com/op:1"}},
			"r.example.com",
			"a.example.com/op:1 and b.example.com/op:1 would both become r.example.com/op:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := inventory.PlanCopies(c.images, c.to); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestNewMirrorSets(t *testing.T) {
	copies, err := inventory.PlanCopies(inventory.ListImages(exampleLock(), nil), "r.example.com")
	if err != nil {
		t.Fatal(err)
	}
	got, err := inventory.NewMirrorSets(copies)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]int{"kind: ImageDigestMirrorSet": 1, "kind: ImageTagMirrorSet": 1, "source: quay.io/org/one": 1, "source: quay.io/org/app": 2} {
		if n := strings.Count(string(got), kind+"\n"); n != want {
			t.Errorf("%d times %q, want %d:\n%s", n, kind, want, got)
		}
	}
}

// TestNewMirrorFiles writes the copies in each format, and reads them as spec.mirrors.
func TestNewMirrorFiles(t *testing.T) {
	images := []inventory.Image{{Image: "quay.io/org/app:v1"}, {Image: "quay.io/other/one@" + imageDigest}, {Image: "docker.io/library/busybox:1"}}
	for _, to := range []string{"r.example.com", "r.example.com:5000/a/b"} {
		copies, err := inventory.PlanCopies(images, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"registries.yaml", "certs.d"} {
			files, err := inventory.NewMirrorFiles(name, copies)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for file, data := range files {
				m, err := oci.ParseMirrors(file, data)
				if err != nil {
					t.Fatalf("%s: %v\n%s", file, err, data)
				}
				for _, r := range m.Rewrites() {
					if !r.Tags || !r.Digests {
						t.Errorf("%s: %+v", file, r)
					}
					got[r.Prefix] = r.Mirror
				}
			}
			if d := cmp.Diff(map[string]string{"quay.io": to, "docker.io": to}, got); d != "" {
				t.Errorf("%s: -want +got\n%s", name, d)
			}
		}
	}
}

// TestInvalidImage checks that only the image with the invalid name fails. The other images are copied. Mirror
// sets and lists for other tools omit the invalid name.
func TestInvalidImage(t *testing.T) {
	images := []inventory.Image{{Image: "oci://quay.io/a/shim:v1", Operators: []string{"a/one"}}, {Image: "quay.io/a/b:v1"}}
	copies, err := inventory.PlanCopies(images, "r.example.com")
	if err != nil || len(copies) != 2 {
		t.Fatalf("%d copies, %v", len(copies), err)
	}
	if c := copies[0]; c.State != inventory.CopyFailed || c.Err == nil || !strings.Contains(c.Error, "needed by a/one") {
		t.Errorf("the copy of an invalid name is %+v", c)
	}
	if c := copies[1]; c.State != inventory.CopyPlanned || c.To != "r.example.com/a/b:v1" {
		t.Errorf("the other copy is %+v", c)
	}
	sets, err := inventory.NewMirrorSets(copies)
	if err != nil || strings.Contains(string(sets), "shim") || !strings.Contains(string(sets), "quay.io/a/b") {
		t.Errorf("mirror sets: %v\n%s", err, sets)
	}
	list, err := inventory.NewImageSetConfiguration(images)
	if err != nil || strings.Contains(string(list), "shim") || !strings.Contains(string(list), "quay.io/a/b") {
		t.Errorf("image set: %v\n%s", err, list)
	}
}
