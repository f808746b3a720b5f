package bom_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/bom"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry/mirror"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func example() (*lockfile.File, []mirror.Image) {
	id := lockfile.NewCatalog(catalog.ID{Namespace: "olm", Name: "all"}, "image:quay.io/org/catalog:v1", digest)
	lock := lockfile.New(
		[]lockfile.Pin{
			{Namespace: "a", Package: "one", Version: "1.0.0", Bundle: "one.v1.0.0", Catalog: id, Image: "quay.io/org/one@" + digest, RequestedBy: []string{"a/one"}, Requires: []lockfile.Requirement{{Pin: "b/two", Requirement: "package two"}}},
			{Namespace: "b", Package: "two", Version: "2.0.0+x", Bundle: "two.v2", Catalog: id},
		})
	return lock, []mirror.Image{
		{Image: "busybox:1", Roles: []string{mirror.Running}, Clusters: []string{"prod"}},
		{Image: "quay.io/org/app@" + digest, Digest: digest, Roles: []string{mirror.Related}, Operators: []string{"a/one", "b/two"}},
		{Image: "quay.io/org/catalog:v1", Digest: digest, Roles: []string{mirror.Catalog}},
		{Image: "quay.io/org/one@" + digest, Digest: digest, Roles: []string{mirror.Bundle}, Operators: []string{"a/one"}},
	}
}

func text(t *testing.T, lock *lockfile.File, images []mirror.Image) []byte {
	t.Helper()
	d, err := bom.Make("stage", lock, images)
	if err != nil {
		t.Fatal(err)
	}
	data, err := d.Text()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestMake(t *testing.T) {
	lock, images := example()
	data := text(t, lock, images)
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
	escaped := "sha256%3A" + strings.TrimPrefix(digest, "sha256:")
	want := []string{
		"operator:a/one pkg:oci/one@" + escaped + "?repository_url=quay.io%2Forg%2Fone",
		"operator:b/two ",
		"catalog:olm/all@" + digest + " pkg:oci/catalog@" + escaped + "?repository_url=quay.io%2Forg%2Fcatalog",
		"image:busybox:1 pkg:oci/busybox?repository_url=docker.io%2Flibrary%2Fbusybox&tag=1",
		"image:quay.io/org/app@" + digest + " pkg:oci/app@" + escaped + "?repository_url=quay.io%2Forg%2Fapp",
		"environment > image:busybox:1 operator:a/one operator:b/two",
		"operator:a/one > catalog:olm/all@" + digest + " image:quay.io/org/app@" + digest + " operator:b/two",
		"operator:b/two > catalog:olm/all@" + digest + " image:quay.io/org/app@" + digest,
		"catalog:olm/all@" + digest + " > ",
		"image:busybox:1 > ",
		"image:quay.io/org/app@" + digest + " > ",
	}
	if g, w := strings.Join(lines, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got:\n%s\nwant:\n%s", g, w)
	}
	if !bytes.Equal(data, text(t, lock, images)) {
		t.Error("the same lock gives other bytes")
	}
	images[0].Image = "busybox:2"
	if other := text(t, lock, images); bytes.Contains(other, []byte(got.Serial)) {
		t.Error("other content has the same serial number")
	}
}

// TestSchema holds a document to CycloneDX's own schema, where QUAYSIDE_CYCLONEDX
// names a directory that has bom-1.6.schema.json and what that refers to.
func TestSchema(t *testing.T) {
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
	lock, images := example()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text(t, lock, images)))
	if err == nil {
		err = schema.Validate(doc)
	}
	if err != nil {
		t.Error(err)
	}
}
