package inventory_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/lockfile"
)

const bomDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func bomExample() (*lockfile.File, []inventory.Image) {
	id := lockfile.NewCatalog(catalog.ID{Namespace: "olm", Name: "all"}, "image:quay.io/org/catalog:v1", bomDigest)
	lock := lockfile.New(
		[]lockfile.Pin{
			{Namespace: "a", Package: "one", Version: "1.0.0", Bundle: "one.v1.0.0", Catalog: id, Image: "quay.io/org/one@" + bomDigest, RequestedBy: []string{"a/one"}, Requires: []lockfile.Requirement{{Pin: "b/two", Requirement: "package two"}}},
			{Namespace: "b", Package: "two", Version: "2.0.0+x", Bundle: "two.v2", Catalog: id},
		})
	return lock, []inventory.Image{
		{Image: "busybox:1", Roles: []string{inventory.RoleRunning}, Clusters: []string{"prod"}},
		{Image: "quay.io/org/app@" + bomDigest, Digest: bomDigest, Roles: []string{inventory.RoleRelated}, Operators: []string{"a/one", "b/two"}},
		{Image: "quay.io/org/catalog:v1", Digest: bomDigest, Roles: []string{inventory.RoleCatalog}},
		{Image: "quay.io/org/one@" + bomDigest, Digest: bomDigest, Roles: []string{inventory.RoleBundle}, Operators: []string{"a/one"}},
	}
}

func bomText(t *testing.T, lock *lockfile.File, images []inventory.Image) []byte {
	t.Helper()
	d, err := inventory.NewBOM("stage", lock, images)
	if err != nil {
		t.Fatal(err)
	}
	data, err := d.Text()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestNewBOM(t *testing.T) {
	lock, images := bomExample()
	data := bomText(t, lock, images)
	var got struct {
		Serial     string `json:"serialNumber"`
		Components []struct {
			Ref  string `json:"bom-ref"`
			Purl string `json:"purl"`
		} `json:"components"`
		Dependencies []struct {
			Ref  string   `json:"ref"`
			Uses []string `json:"dependsOn"`
		} `json:"dependencies"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range got.Components {
		lines = append(lines, c.Ref+" "+c.Purl)
	}
	for _, d := range got.Dependencies {
		lines = append(lines, d.Ref+" > "+strings.Join(d.Uses, " "))
	}
	escaped := "sha256%3A" + strings.TrimPrefix(bomDigest, "sha256:")
	want := []string{
		"operator:a/one pkg:oci/one@" + escaped + "?repository_url=quay.io%2Forg%2Fone",
		"operator:b/two ",
		"catalog:olm/all@" + bomDigest + " pkg:oci/catalog@" + escaped + "?repository_url=quay.io%2Forg%2Fcatalog",
		"image:busybox:1 pkg:oci/busybox?repository_url=docker.io%2Flibrary%2Fbusybox&tag=1",
		"image:quay.io/org/app@" + bomDigest + " pkg:oci/app@" + escaped + "?repository_url=quay.io%2Forg%2Fapp",
		"environment > image:busybox:1 operator:a/one operator:b/two",
		"operator:a/one > catalog:olm/all@" + bomDigest + " image:quay.io/org/app@" + bomDigest + " operator:b/two",
		"operator:b/two > catalog:olm/all@" + bomDigest + " image:quay.io/org/app@" + bomDigest,
		"catalog:olm/all@" + bomDigest + " > ",
		"image:busybox:1 > ",
		"image:quay.io/org/app@" + bomDigest + " > ",
	}
	if g, w := strings.Join(lines, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got:\n%s\nwant:\n%s", g, w)
	}
	if !bytes.Equal(data, bomText(t, lock, images)) {
		t.Error("the same lock gives other bytes")
	}
	images[0].Image = "busybox:2"
	if other := bomText(t, lock, images); bytes.Contains(other, []byte(got.Serial)) {
		t.Error("other content has the same serial number")
	}
}

// TestBOMSchema validates a document with the schema of CycloneDX. The directory QUAYSIDE_CYCLONEDX contains
// bom-1.6.schema.json and the schemas that this schema refers to.
func TestBOMSchema(t *testing.T) {
	dir := os.Getenv("QUAYSIDE_CYCLONEDX")
	if dir == "" {
		t.Skip("QUAYSIDE_CYCLONEDX is not set")
	}
	c := jsonschema.NewCompiler()
	for name, file := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schema*.json"} {
		found, err := filepath.Glob(filepath.Join(dir, file))
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s in %s", file, dir)
		}
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err == nil {
			err = c.AddResource("http://cyclonedx.org/schema/"+name, doc)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	lock, images := bomExample()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(bomText(t, lock, images)))
	if err == nil {
		err = schema.Validate(doc)
	}
	if err != nil {
		t.Error(err)
	}
}
