package gitrepo_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // the checksum of packs
	"encoding/binary"
	"errors"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/testing/gittest"
)

// TestServer reads the commits of annotated, lightweight and moved tags from a server.
func TestServer(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "lamp")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, dir, "init", "--quiet", "--initial-branch=main")
	commit := func(text string) string {
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		gittest.Run(t, dir, "add", "--all")
		gittest.Run(t, dir, "commit", "--quiet", "-m", text)
		return strings.TrimSpace(gittest.Run(t, dir, "rev-parse", "HEAD"))
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	first := commit("a: 1\n")
	gittest.Run(t, dir, "tag", "v1.0.0")
	second := commit("a: 2\n")
	gittest.Run(t, dir, "tag", "-a", "-m", "annotated", "v1.1.0")
	server := httptest.NewServer(&cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}})
	defer server.Close()

	s := gitrepo.Server{URL: server.URL + "/lamp/.git", Transport: http.DefaultTransport}
	tags, err := s.Tags(t.Context())
	if err != nil || len(tags) != 2 || tags["v1.0.0"] != first || tags["v1.1.0"] != second {
		t.Fatalf("got %v, %v; want %s and %s", tags, err, first, second)
	}
	for tag, want := range map[string]string{"v1.0.0": "a: 1\n", "v1.1.0": "a: 2\n"} {
		err := s.Read(t.Context(), tag, tags[tag], func(v *gitrepo.Revision) error {
			if got, err := v.Read("a.yaml"); err != nil || string(got) != want || v.Hash() != tags[tag] {
				t.Errorf("%s: got %q, %v", tag, got, err)
			}
			if _, err := fs.ReadFile(v.FS("."), "link.yaml"); err == nil {
				t.Errorf("%s: a symbolic link is read", tag)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}
	unread := func(*gitrepo.Revision) error { return errors.New("read") }
	if err := s.Read(t.Context(), "v1.0.0", second, unread); err == nil || !strings.Contains(err.Error(), "refers to commit") {
		t.Errorf("a moved tag: %v", err)
	}
	s.URL = server.URL + "/nowhere/.git"
	if _, err := s.Tags(t.Context()); err == nil {
		t.Error("a missing repository has tags")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Tags(canceled); err == nil {
		t.Error("a canceled request succeeds")
	}
}

// TestPackLimits checks that packs with too large or too many objects are rejected before the objects are in memory.
func TestPackLimits(t *testing.T) {
	pack := func(count uint32, kind byte, size uint64, content []byte) []byte {
		var b bytes.Buffer
		b.WriteString("PACK")
		b.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 2), count))
		first := kind<<4 | byte(size&0xf)
		for size >>= 4; size > 0; size >>= 7 {
			b.WriteByte(first | 0x80)
			first = byte(size & 0x7f)
		}
		b.WriteByte(first)
		if kind == 7 { // a delta names its base
			b.Write(make([]byte, 20))
		}
		z := zlib.NewWriter(&b)
		if _, err := z.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		sum := sha1.Sum(b.Bytes()) //nolint:gosec // as above
		return append(b.Bytes(), sum[:]...)
	}
	delta := append(binary.AppendUvarint(binary.AppendUvarint(nil, 4), 1<<40), 0x90, 4)
	for name, test := range map[string]struct {
		pack []byte
		want string
	}{
		"plain":      {pack(1, 3, 4, []byte("text")), ""},
		"small":      {pack(1, 3, 4, bytes.Repeat([]byte("x"), 1<<20)), "exceeds"},
		"large":      {pack(1, 3, 1<<40, nil), "limit"},
		"many":       {pack(1<<30, 3, 4, []byte("text")), "limit"},
		"delta":      {pack(1, 7, uint64(len(delta)), delta), "limit"},
		"no numbers": {pack(1, 7, 1, []byte{0x80}), "limit"},
		"no pack":    {[]byte("text"), "pack"},
	} {
		err := gitrepo.CheckPack(bytes.NewReader(test.pack))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
