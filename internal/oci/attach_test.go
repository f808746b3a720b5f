package oci_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// newSignable pushes an image and returns a client and the reference of the image by digest.
func newSignable(t *testing.T, server *ocitest.Server) (*oci.Client, string) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &oci.Client{Store: s, Retry: oci.Retry{Attempts: 1}}
	p, err := oci.Pack(fstest.MapFS{"a": {Data: []byte("a")}}, oci.PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	repo := server.Host + "/org/name"
	if err := c.Push(t.Context(), repo+":v1", p); err != nil {
		t.Fatal(err)
	}
	return c, repo + "@" + p.Digest()
}

// TestAttach attaches artifacts to an image, in registries with and without the referrers API. Each
// artifact must be attached exactly once, whatever the order and the number of calls.
func TestAttach(t *testing.T) {
	for name, server := range map[string]*ocitest.Server{"tag": ocitest.New(t), "referrers": ocitest.NewReferring(t)} {
		t.Run(name, func(t *testing.T) {
			c, ref := newSignable(t, server)
			seen := map[string]bool{}
			for range 2 {
				for _, data := range []string{`{"one":1}`, `{"two":2}`} {
					again := len(seen) == 2
					server.Requests()
					digest, sent, err := c.Attach(t.Context(), ref, oci.Attachment{Type: oci.BundleType, Data: []byte(data), Annotations: map[string]string{"a": "b"}})
					if err != nil || sent == again {
						t.Fatalf("sent %t, %v, want %t", sent, err, !again)
					}
					if asked := strings.Join(server.Requests(), "\n"); again && (strings.Contains(asked, "PUT") || strings.Contains(asked, "POST")) {
						t.Errorf("an existing artifact is sent again:\n%s", asked)
					}
					seen[digest] = true
				}
			}
			sigs, err := c.Signatures(t.Context(), ref)
			if err != nil || len(sigs) != 2 || len(seen) != 2 {
				t.Fatalf("%d bundles, %d digests, %v, want 2", len(sigs), len(seen), err)
			}
			for _, s := range sigs {
				if !seen[s.Manifest] || len(s.Bundle) == 0 {
					t.Errorf("%s with %q was not attached", s.Manifest, s.Bundle)
				}
			}
		})
	}
}

// TestAddSignature adds simple signatures to existing ones.
func TestAddSignature(t *testing.T) {
	server := ocitest.New(t)
	c, ref := newSignable(t, server)
	for i, s := range []struct {
		payload, signature string
		sent               bool
	}{{"one", "a", true}, {"one", "b", true}, {"two", "a", true}, {"one", "b", false}} {
		sent, err := c.AddSignature(t.Context(), ref, []byte(s.payload), map[string]string{"signature": s.signature})
		if err != nil || sent != s.sent {
			t.Errorf("%d: sent %t, %v, want %t", i, sent, err, s.sent)
		}
	}
	sigs, err := c.Signatures(t.Context(), ref)
	if err != nil || len(sigs) != 3 {
		t.Fatalf("%v, %v, want three signatures", sigs, err)
	}
	if s := sigs[1]; string(s.Payload) != "one" || s.Annotations["signature"] != "b" {
		t.Errorf("the second signature is %q with %v", s.Payload, s.Annotations)
	}
}

// TestAttachFaults checks that errors contain a hint, and that nothing is sent.
func TestAttachFaults(t *testing.T) {
	server := ocitest.New(t)
	c, ref := newSignable(t, server)
	repo, _, _ := strings.Cut(ref, "@")
	offline := &oci.Client{Store: c.Store, Retry: c.Retry, Offline: true}
	server.Requests()
	for name, f := range map[string]struct {
		client    *oci.Client
		ref, want string
	}{
		"by tag":    {c, repo + ":v1", "signatures need a registry image with a digest"},
		"not there": {c, repo + "@sha256:" + strings.Repeat("1", 64), "404"},
		"offline":   {offline, ref, "cannot push with --offline"},
	} {
		_, _, err := f.client.Attach(t.Context(), f.ref, oci.Attachment{Type: oci.BundleType, Data: []byte("{}")})
		_, simple := f.client.AddSignature(t.Context(), f.ref, []byte("{}"), nil)
		for _, err := range []error{err, simple} {
			if err == nil || !strings.Contains(err.Error(), f.want) {
				t.Errorf("%s: got %v, want %q", name, err, f.want)
			}
		}
	}
	if asked := strings.Join(server.Requests(), "\n"); strings.Contains(asked, "PUT") || strings.Contains(asked, "POST") {
		t.Errorf("requests:\n%s", asked)
	}
}
