package oci_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/servertest"
)

// referrer returns an entry of a list of manifests that refer to the example image.
func referrer(t *testing.T, kind string, i int) map[string]any {
	return newReferrer(example(t).digest, kind, i)
}

func newReferrer(subject, kind string, i int) map[string]any {
	text := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{},"layers":[],"subject":{"digest":%q},"annotations":{"n":"%d"}}`, subject, i)
	return map[string]any{
		"mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": kind,
		"digest": store.DigestOf([]byte(text)), "size": len(text), "text": text,
	}
}

// serveReferrers serves a list of referrers in pages, and their manifests by digest. link returns the
// Link header for page n+1.
func serveReferrers(pages [][]map[string]any, link func(r *http.Request, n int) string) servertest.Intercept {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		for _, page := range pages {
			for _, d := range page {
				if strings.HasSuffix(r.URL.Path, "/manifests/"+d["digest"].(string)) {
					fmt.Fprint(w, d["text"])
					return
				}
			}
		}
		if !strings.Contains(r.URL.Path, "/referrers/") {
			next.ServeHTTP(w, r)
			return
		}
		var n int
		_, _ = fmt.Sscan(r.URL.Query().Get("page"), &n)
		if n+1 < len(pages) {
			w.Header().Set("Link", link(r, n+1))
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		_ = json.NewEncoder(w).Encode(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": pages[n]})
	}
}

func TestReferrersPages(t *testing.T) {
	const bundle = oci.BundleKind + ".v0.3+json"
	var many [][]map[string]any
	for i := range oci.MaxPages + 1 {
		many = append(many, []map[string]any{referrer(t, "sbom", i)})
	}
	crowd := []map[string]any{}
	for i := range oci.MaxSignatures + 1 {
		crowd = append(crowd, referrer(t, bundle, i))
	}
	pages := [][]map[string]any{
		{referrer(t, bundle, 1), referrer(t, "application/spdx+json", 2)},
		{referrer(t, "application/spdx+json", 3)},
		{referrer(t, oci.NotaryKind, 4), referrer(t, bundle, 5), referrer(t, bundle, 1)},
	}
	relative := func(r *http.Request, n int) string { return fmt.Sprintf(`<%s?page=%d&n=2>; rel="next"`, r.URL.Path, n) }
	for _, tt := range []struct {
		name  string
		pages [][]map[string]any
		link  func(r *http.Request, n int) string
		want  []int // numbers of the referrers; nil: an error
		fault string
	}{
		{"one page", pages[2:], relative, []int{4, 5, 1}, ""},
		{"pages", pages, relative, []int{1, 4, 5}, ""},
		{"about another image", [][]map[string]any{{newReferrer(zeroDigest, bundle, 1), referrer(t, bundle, 2)}}, relative, []int{2}, ""},
		{"query alone", pages, func(_ *http.Request, n int) string { return fmt.Sprintf(`<?page=%d>; rel=next`, n) }, []int{1, 4, 5}, ""},
		{"by whole address", pages, func(r *http.Request, n int) string {
			return fmt.Sprintf(`<http://%s%s?page=%d>; rel="next"`, r.Host, r.URL.Path, n)
		}, []int{1, 4, 5}, ""},
		{"another host's name", pages, func(r *http.Request, n int) string {
			return fmt.Sprintf(`<https://elsewhere.invalid%s?page=%d>; rel="next"`, r.URL.Path, n)
		}, []int{1, 4, 5}, ""},
		{"another list", pages, func(_ *http.Request, n int) string {
			return fmt.Sprintf(`</v2/other/referrers/x?page=%d>; rel="next"`, n)
		}, nil, "the link to the next page points to another repository"},
		{"for ever", pages[:2], func(r *http.Request, _ int) string { return relative(r, 0) }, nil, "have more than 32 pages"},
		{"too many pages", many, relative, nil, "have more than 32 pages"},
		{"too many signatures", [][]map[string]any{crowd[:40], crowd[40:]}, relative, nil, "65 signatures of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := ocitest.NewReferring(t)
			p, _ := pushExample(t, srv)
			srv.Intercept(serveReferrers(tt.pages, tt.link))
			image := srv.Host + "/org/catalog@" + p.digest
			got, err := newClient(t).SignatureImages(t.Context(), image)
			if tt.want == nil {
				if err == nil || !strings.Contains(err.Error(), tt.fault) || !strings.Contains(err.Error(), image) {
					t.Errorf("got %v, %v, want %q", got, err, tt.fault)
				}
				if n := len(srv.Requests()); n > oci.MaxPages+10 {
					t.Errorf("%d requests", n)
				}
				return
			}
			var want []oci.VendoredImage
			for _, i := range tt.want {
				digest := referrer(t, "", i)["digest"].(string)
				want = append(want, oci.VendoredImage{Name: srv.Host + "/org/catalog@" + digest, Digest: digest})
			}
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}

// TestReferrersFallback checks that the client reads the list under a tag if the registry has no referrers
// API. It tries every status by which registries report that the API is missing.
func TestReferrersFallback(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotImplemented} {
		srv := ocitest.New(t)
		p, _ := pushExample(t, srv)
		one := referrer(t, oci.BundleKind+".v0.3+json", 1)
		putManifest(t, srv.Host, "org/catalog", one["digest"].(string), one["text"].(string))
		delete(one, "text")
		list, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{one}})
		if err != nil {
			t.Fatal(err)
		}
		putManifest(t, srv.Host, "org/catalog", strings.Replace(p.digest, ":", "-", 1), string(list))
		srv.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.Contains(r.URL.Path, "/referrers/") {
				w.WriteHeader(status)
				return
			}
			next.ServeHTTP(w, r)
		})
		got, err := newClient(t).SignatureImages(t.Context(), srv.Host+"/org/catalog@"+p.digest)
		if err != nil || len(got) != 1 || got[0].Digest != one["digest"] {
			t.Errorf("%d: got %v, %v", status, got, err)
		}
	}
	srv := ocitest.New(t)
	p, _ := pushExample(t, srv)
	if got, err := newClient(t).SignatureImages(t.Context(), srv.Host+"/org/catalog@"+p.digest); err != nil || len(got) != 0 {
		t.Errorf("unsigned: got %v, %v", got, err)
	}
	if !slices.ContainsFunc(srv.Requests(), func(r string) bool { return strings.HasSuffix(r, ".sig") }) {
		t.Error("the tag of a signature was not requested")
	}
}
