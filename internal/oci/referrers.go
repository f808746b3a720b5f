package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/quayside/quayside/internal/imageref"
)

const (
	maxPages            = 32 // maximum number of pages of the list of referrers
	notarySignatureType = "application/vnd.cncf.notary.signature"
)

// referrers returns the digests of manifests that refer to an image. The function wanted selects these
// manifests by their artifact type.
func (r *upstream) referrers(ctx context.Context, repo name.Repository, digest string, wanted func(artifactType string) bool) ([]string, error) {
	var out []string
	ref := digest
	for range maxPages {
		list, next, err := r.referrersPage(ctx, repo, digest, ref)
		if err != nil || list == nil {
			return nil, err
		}
		for _, d := range list.Manifests {
			if wanted(d.ArtifactType) && imageref.IsDigest(d.Digest.String()) && !slices.Contains(out, d.Digest.String()) {
				out = append(out, d.Digest.String())
			}
		}
		if len(out) > maxSignatures {
			return nil, fmt.Errorf("%d signatures of %s exceed the limit of %d", len(out), digest, maxSignatures)
		}
		if next == "" {
			return out, nil
		}
		ref = next
	}
	return nil, fmt.Errorf("the referrers of %s have more than %d pages", digest, maxPages)
}

// referrersPage returns one page of the list of referrers, and the query for the next page. If the registry
// has no referrers API, it returns the index that clients maintain under a tag, or nil if there is no such
// index.
func (r *upstream) referrersPage(ctx context.Context, repo name.Repository, digest, ref string) (list *v1.IndexManifest, next string, err error) {
	data, header, err := r.client.fetchReferrers(ctx, repo, ref)
	if err != nil {
		return nil, "", err
	}
	if kind, _ := manifestKind(data); kind == "index" {
		next, err = nextPage(header, "/v2/"+repo.RepositoryStr()+"/referrers/", digest)
	} else if ref != digest {
		err = errors.New("a page of the registry's referrers list is missing")
	} else {
		data, err = r.getOptional(ctx, repo, strings.Replace(digest, ":", "-", 1))
	}
	if err == nil && data != nil {
		list, err = v1.ParseIndexManifest(bytes.NewReader(data))
	}
	if err != nil {
		return nil, "", fmt.Errorf("referrers of %s: %w", digest, err)
	}
	return list, next, nil
}

// mayBeBundle reports whether a referrer with this artifact type may be a sigstore bundle. It also returns
// true for the media type "empty": some registries report the type of the configuration instead of the
// artifact type.
func mayBeBundle(artifactType string) bool {
	return artifactType == "" || artifactType == "application/vnd.oci.empty.v1+json" || strings.HasPrefix(artifactType, bundleType)
}

// isAnySignature reports whether a referrer may be a signature of any kind. Copies of images include all
// such referrers.
func isAnySignature(artifactType string) bool {
	return mayBeBundle(artifactType) || artifactType == notarySignatureType
}

// nextPage returns the query for the next page from a response header, or "" after the last page. It
// returns an error if the header links to another list.
func nextPage(header http.Header, list, digest string) (string, error) {
	for _, link := range header.Values("Link") {
		target, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
		if rest = strings.ReplaceAll(rest, `"`, ""); !ok || !strings.Contains(rest, "rel=next") {
			continue
		}
		u, err := url.Parse(target)
		if err != nil || u.RawQuery == "" || u.Path != "" && !strings.HasSuffix(u.Path, list+digest) {
			return "", errors.New("the link to the next page points to another repository")
		}
		return digest + "?" + u.Query().Encode(), nil
	}
	return "", nil
}

// getOptional fetches a manifest. It returns nil if the registry does not have it.
func (r *upstream) getOptional(ctx context.Context, repo name.Repository, ref string) ([]byte, error) {
	data, err := r.client.fetchManifest(ctx, repo, ref)
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusNotFound {
		return nil, nil
	}
	return data, err
}

// fetchReferrers fetches one page of the list of referrers, with the response header. It returns
// nil if the registry has no referrers API. (go-containerregistry would fetch only the first page.)
func (c *Client) fetchReferrers(ctx context.Context, repo name.Repository, ref string) ([]byte, http.Header, error) {
	connection, err := c.connect(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	res, err := connection.get(ctx, "referrers", ref)
	if err != nil {
		return nil, nil, connection.redact(err)
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return nil, nil, nil
	}
	if err := transport.CheckError(res, http.StatusOK); err != nil {
		return nil, nil, connection.redact(err)
	}
	data, err := io.ReadAll(res.Body)
	return data, res.Header, connection.redact(err)
}
