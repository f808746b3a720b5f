package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

// TestSigned tests that an unchanged release is accepted, and that changed files and foreign
// signatures are rejected.
func TestSigned(t *testing.T) {
	key, other := trusttest.NewKey(t), trusttest.NewKey(t)
	file := filepath.Join(t.TempDir(), "cosign.key")
	writeFile(t, file, key.Private(t, "secret"))
	o := options{signKey: file, getenv: func(string) string { return "secret" }}
	s, err := o.signer()
	if err != nil {
		t.Fatal(err)
	}
	files := newRelease(t)
	if err := signFiles(t.Context(), files, s); err != nil {
		t.Fatal(err)
	}
	again := newRelease(t)
	if err := signFiles(t.Context(), again, s); err != nil || string(again[bundleName]) != string(files[bundleName]) {
		t.Errorf("signed twice, it differs: %v", err)
	}
	archive := archiveName("1.2.3", "linux/amd64")
	forged := strings.Replace(string(files[sumsName]), sum(files[archive]), sum([]byte("forged")), 1)
	writeFile(t, file, other.Private(t, "secret"))
	foreign, err := o.signer()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := foreign.SignBlob(t.Context(), []byte(forged))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change map[string]string // "": the file is missing
		want   string            // "": accepted
	}{
		"as it is":        {},
		"an archive":      {map[string]string{archive: "forged"}, archive + " has checksum " + sum([]byte("forged"))},
		"a missing file":  {map[string]string{"krew.yaml": ""}, "krew.yaml: no such file"},
		"the checksums":   {map[string]string{archive: "forged", sumsName: forged}, "not signed with key cosign.pub, or altered"},
		"foreign key":     {map[string]string{archive: "forged", sumsName: forged, bundleName: string(theirs)}, "not signed with key cosign.pub, or altered"},
		"no signature":    {map[string]string{bundleName: ""}, "the checksums are not signed"},
		"no such bundle":  {map[string]string{bundleName: "{}"}, "not a sigstore bundle"},
		"two files wrong": {map[string]string{archive: "forged", "krew.yaml": ""}, "krew.yaml: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range files {
				text, changed := c.change[name]
				switch {
				case !changed:
					writeFile(t, filepath.Join(dir, name), data)
				case text != "":
					writeFile(t, filepath.Join(dir, name), []byte(text))
				}
			}
			err := verifyRelease(dir, trust.Key{Name: "cosign.pub", PEM: s.PublicKey()})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if name == "two files wrong" && (err == nil || !strings.Contains(err.Error(), archive)) {
				t.Errorf("the error names only one of two files: %v", err)
			}
		})
	}
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
