package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const version = "v1.2.3"

func newBuilds(modified string) []build {
	var out []build
	for _, p := range releasePlatforms() {
		out = append(out, build{p, []byte("program for " + p), &debug.BuildInfo{
			GoVersion: "go1.26.8",
			Main:      debug.Module{Path: "github.com/quayside/quayside", Version: version},
			Deps:      []*debug.Module{{Path: "github.com/Some/module", Version: "v2.0.0", Sum: "h1:1KrZg61W6TWSxuNZ37Xy49ps13NUovb66QLprthtwi4="}},
			Settings:  []debug.BuildSetting{{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: modified}},
		}})
	}
	return out
}

func newRelease(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := buildRelease(newBuilds("false"), map[string][]byte{"LICENSE": []byte("licence"), "README.md": []byte("read me")}, "https://example.com/dl", false)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRelease compares the checksums with the files, and checks the content of each archive.
func TestRelease(t *testing.T) {
	files := newRelease(t)
	if !reflect.DeepEqual(files, newRelease(t)) {
		t.Error("a second build gives another release")
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(files[sumsName])) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = digest
	}
	for name, data := range files {
		if name != sumsName && listed[name] != sum(data) {
			t.Errorf("%s: sum %q, want %q", name, listed[name], sum(data))
		}
	}
	if len(listed) != len(files)-1 {
		t.Errorf("%d files are listed of %d", len(listed), len(files)-1)
	}
	for _, p := range releasePlatforms() {
		name := archiveName("1.2.3", p)
		program, want := "quayside", map[string]string{"LICENSE": "licence", "README.md": "read me"}
		if strings.HasPrefix(p, "windows/") {
			program += ".exe"
		}
		want[program] = "program for " + p
		got := contents(t, name, files[name])
		pages := 0
		maps.DeleteFunc(got, func(file, text string) bool {
			page := strings.HasPrefix(file, "man/man1/quayside") && strings.Contains(text, `"Jan 2026" "quayside 1.2.3"`)
			if page {
				pages++
			}
			return page
		})
		if !maps.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if (pages > 1) == strings.HasPrefix(p, "windows/") {
			t.Errorf("%s: holds %d manual pages of this version", name, pages)
		}
	}
}

// contents returns the files of an archive.
func contents(t *testing.T, name string, data []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	if strings.HasSuffix(name, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			out[f.Name] = string(text)
		}
		return out
	}
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF { //nolint:errorlint // tar returns it unwrapped
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if executable := h.Mode == 0o755; executable != strings.HasPrefix(h.Name, "quayside") {
			t.Errorf("%s: %s has the mode %o", name, h.Name, h.Mode)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(text)
	}
}

// TestManifests tests that the archives in the manifests are files of the release, with the
// correct checksums.
func TestManifests(t *testing.T) {
	files := newRelease(t)
	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(files["krew.yaml"], &plugin); err != nil {
		t.Fatal(err)
	}
	const baseURL = "https://example.com/dl/v1.2.3/"
	var got []string
	for _, p := range plugin.Spec.Platforms {
		platform := p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]
		got = append(got, platform)
		name, ok := strings.CutPrefix(p.URI, baseURL)
		if !ok || p.SHA256 != sum(files[name]) || name != archiveName("1.2.3", platform) {
			t.Errorf("krew, %s: %s with %s is no file of the release", platform, p.URI, p.SHA256)
		}
		if _, ok := contents(t, name, files[name])[p.Bin]; !ok {
			t.Errorf("krew, %s: %s is not in the archive", platform, p.Bin)
		}
	}
	if !slices.Equal(got, releasePlatforms()) || plugin.Spec.Version != version {
		t.Errorf("krew: %q of %s, want %q of %s", got, plugin.Spec.Version, releasePlatforms(), version)
	}
	for _, p := range releasePlatforms() {
		name := archiveName("1.2.3", p)
		want := "      url \"" + baseURL + name + "\"\n      sha256 \"" + sum(files[name]) + "\"\n"
		if strings.Contains(string(files["quayside.rb"]), want) == strings.HasPrefix(p, "windows/") {
			t.Errorf("the formula has %s wrong:\n%s", p, files["quayside.rb"])
		}
	}
}

func TestBillOfMaterials(t *testing.T) {
	var d struct {
		Metadata   struct{ Component struct{ Purl string } }
		Components []struct {
			Purl   string
			Hashes []struct{ Alg, Content string }
		}
	}
	if err := json.Unmarshal(newRelease(t)["quayside_1.2.3_sbom.cdx.json"], &d); err != nil {
		t.Fatal(err)
	}
	if d.Metadata.Component.Purl != "pkg:golang/github.com/quayside/quayside@v1.2.3" || len(d.Components) != 2 {
		t.Fatalf("%+v", d)
	}
	if m := d.Components[1]; m.Purl != "pkg:golang/github.com/some/module@v2.0.0" || len(m.Hashes) != 1 || m.Hashes[0].Content != "d4aad983ad56e93592c6e359dfb5f2e3da6cd77354a2f6fae902e9aed86dc22e" {
		t.Errorf("%+v", m)
	}
}

// TestRefused tests that a release requires a known commit without local changes.
func TestRefused(t *testing.T) {
	if _, err := buildRelease(newBuilds("true"), nil, "", false); err == nil || !strings.Contains(err.Error(), "changes that are not committed") {
		t.Errorf("with changes: %v", err)
	}
	if _, err := buildRelease(newBuilds("true"), nil, "", true); err != nil {
		t.Errorf("a snapshot: %v", err)
	}
	unknown := newBuilds("false")
	unknown[0].info.Settings = nil
	if _, err := buildRelease(unknown, nil, "", true); err == nil || !strings.Contains(err.Error(), "unknown commit") {
		t.Errorf("without a commit: %v", err)
	}
}
