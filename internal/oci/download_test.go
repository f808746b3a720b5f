package oci_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
)

func TestDownload(t *testing.T) {
	content, sent := "one", 0
	mux := http.NewServeMux()
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, r *http.Request) {
		tag := fmt.Sprintf("%q", content)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		w.Header().Set("ETag", tag)
		fmt.Fprint(w, content)
	})
	mux.HandleFunc("/unchanged", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 2000)) })
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/index.yaml", http.StatusFound) })
	server := httptest.NewServer(mux)
	defer server.Close()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	get := func(client *oci.Client, path, digest string) (string, error) {
		got, err := client.Download(t.Context(), server.URL+path, digest, 1000)
		if err != nil {
			return "", err
		}
		data, err := got.Read()
		if err == nil && got.Digest != store.DigestOf(data) {
			t.Errorf("%s: digest %s of %q", path, got.Digest, data)
		}
		return string(data), err
	}
	online, offline := &oci.Client{Store: s}, &oci.Client{Store: s, Offline: true}
	var missing *oci.OfflineError
	if _, err := get(offline, "/index.yaml", ""); !errors.As(err, &missing) {
		t.Errorf("offline, before the first download: got %v", err)
	}
	for _, want := range []string{"one", "one", "two"} {
		content = want
		if got, err := get(online, "/index.yaml", ""); got != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if sent != 2 {
		t.Errorf("the file was sent %d times, want 2: an unchanged file is not downloaded again", sent)
	}
	content = "three"
	if got, err := get(offline, "/index.yaml", ""); got != "two" || err != nil {
		t.Errorf("offline: got %q, %v", got, err)
	}
	if got, err := get(online, "/index.yaml", store.DigestOf([]byte("one"))); got != "one" || err != nil {
		t.Errorf("by a stored digest: got %q, %v", got, err)
	}
	if _, err := get(online, "/index.yaml", store.DigestOf([]byte("four"))); err == nil {
		t.Error("no error for content with another digest")
	}
	other := store.DigestOf([]byte("five"))
	if _, err := get(online, "/unchanged", other); err == nil {
		t.Error("no error for a server that says that content with another digest is unchanged")
	}
	if got, err := get(online, "/elsewhere", ""); got != "three" || err != nil {
		t.Errorf("redirect: got %q, %v", got, err)
	}
	for path, want := range map[string]string{"/big": "limit of 1000 bytes", "/none": "404"} {
		if _, err := get(online, path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	for _, at := range []string{"http://example.com/x", "http://10.1.2.3/x", "http://registry.local/x", "ftp://example.com/x", "file:///etc/passwd", "x"} {
		if _, err := online.Download(t.Context(), at, "", 1000); err == nil {
			t.Errorf("no error for %s", at)
		}
	}
}

// TestDownloadCredentials checks that a login is sent only to its own host. A host name without a dot must
// not be parsed as a repository of Docker Hub.
func TestDownloadCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	write(t, file, `{"auths": {"https://index.docker.io/v1/": {"auth": "aHViOnNlY3JldA=="}, "localhost": {"auth": "b3duOnNlY3JldA=="}}}`, 0o600)
	sent := ""
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent, _, _ = r.BasicAuth() }))
	defer server.Close()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	client := &oci.Client{Store: s, Credentials: &oci.Credentials{Files: []string{file}}}
	if _, err := client.Download(t.Context(), at+"/index.yaml", "", 1000); err != nil {
		t.Fatal(err)
	}
	if sent == "hub" {
		t.Error("the login of Docker Hub was sent to another host")
	}
}
