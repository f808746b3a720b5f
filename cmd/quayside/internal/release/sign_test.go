package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/testing/trusttest"
)

// TestSigned tests that an unchanged release is accepted, and that changed files and foreign
// signatures are rejected.
func TestSigned(t *testing.T) {
	const archive = "quayside_1.2.3_linux_amd64.tar.gz"
	key, other := trusttest.NewKey(t), trusttest.NewKey(t)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	keyFile, otherFile := write("cosign.key", key.Private(t, "secret")), write("other.key", other.Private(t, "secret"))
	pub := write("cosign.pub", key.Public)
	signed := func(keyFile, text string) string {
		t.Helper()
		file, bundle := write("text", []byte(text)), filepath.Join(dir, "bundle")
		if err := run(t.Context(), []string{"sign", keyFile, file, bundle}, "secret"); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(bundle)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	files := map[string]string{archive: "archive", "quayside_1.2.3_darwin_arm64.tar.gz": "other"}
	for name, text := range maps.Clone(files) {
		files[sumsName] += sum([]byte(text)) + "  " + name + "\n"
	}
	files[bundleName] = signed(keyFile, files[sumsName])
	if again := signed(keyFile, files[sumsName]); again != files[bundleName] {
		t.Error("signed twice, it differs")
	}
	forged := strings.Replace(files[sumsName], sum([]byte("archive")), sum([]byte("forged")), 1)
	path := sum([]byte("archive")) + "  ../" + archive + "\n"
	for name, c := range map[string]struct {
		change map[string]string // "": the file is missing
		want   []string          // empty: accepted
	}{
		"as it is":        {},
		"an archive":      {map[string]string{archive: "forged"}, []string{archive + " has checksum " + sum([]byte("forged"))}},
		"a missing file":  {map[string]string{archive: ""}, []string{archive + ": no such file"}},
		"the checksums":   {map[string]string{archive: "forged", sumsName: forged}, []string{"not signed with key " + pub + ", or altered"}},
		"foreign key":     {map[string]string{archive: "forged", sumsName: forged, bundleName: signed(otherFile, forged)}, []string{"not signed with key " + pub + ", or altered"}},
		"no signature":    {map[string]string{bundleName: ""}, []string{"the checksums are not signed"}},
		"no such bundle":  {map[string]string{bundleName: "{}"}, []string{"not a sigstore bundle"}},
		"a path":          {map[string]string{sumsName: path, bundleName: signed(keyFile, path)}, []string{"is not a checksum and a file name"}},
		"two files wrong": {map[string]string{archive: "forged", "quayside_1.2.3_darwin_arm64.tar.gz": ""}, []string{archive + " has checksum", "darwin_arm64.tar.gz: no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			release := t.TempDir()
			for name, text := range files {
				if changed, ok := c.change[name]; ok {
					text = changed
				}
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(release, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := run(t.Context(), []string{"check", release, pub}, "")
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}
