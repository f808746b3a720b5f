package registry

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
	maxPages            = 32 // of the list of what refers to one image
	notarySignatureType = "application/vnd.cncf.notary.signature"
)

// referrers returns the digests of what refers to an image and is of a type
// that is wanted, of all pages of the list.
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
			return nil, fmt.Errorf("%d signatures of %s: at most %d are looked at", len(out), digest, maxSignatures)
		}
		if next == "" {
			return out, nil
		}
		ref = next
	}
	return nil, fmt.Errorf("the list of what refers to %s has more than %d pages", digest, maxPages)
}

// referrersPage returns one page of the list, and what to ask for the next one.
// A registry without the API for it has the list as an index below a tag; nil
// where it has none.
func (r *upstream) referrersPage(ctx context.Context, repo name.Repository, digest, ref string) (list *v1.IndexManifest, next string, err error) {
	data, header, err := r.client.fetchReferrers(ctx, repo, ref)
	if err != nil {
		return nil, "", err
	}
	if kind, _ := manifestKind(data); kind == "index" {
		next, err = nextPage(header, "/v2/"+repo.RepositoryStr()+"/referrers/", digest)
	} else if ref != digest {
		err = errors.New("a page that the registry named is not there")
	} else {
		data, err = r.ask(ctx, repo, strings.Replace(digest, ":", "-", 1))
	}
	if err == nil && data != nil {
		list, err = v1.ParseIndexManifest(bytes.NewReader(data))
	}
	if err != nil {
		return nil, "", fmt.Errorf("the list of what refers to %s: %w", digest, err)
	}
	return list, next, nil
}

// maybeBundle reports whether what is listed as of that type can be a sigstore
// bundle: some registries give the type of the manifest's configuration, which
// is empty.
func maybeBundle(artifactType string) bool {
	return artifactType == "" || artifactType == "application/vnd.oci.empty.v1+json" || strings.HasPrefix(artifactType, bundleType)
}

// anySignature is maybeBundle for who copies signatures and need not know them.
func anySignature(artifactType string) bool {
	return maybeBundle(artifactType) || artifactType == notarySignatureType
}

// nextPage returns what to ask for after a page of a list, "" after the last.
// Wherever a registry says that it lies, only the same list is asked for it.
func nextPage(header http.Header, list, digest string) (string, error) {
	for _, link := range header.Values("Link") {
		target, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
		if rest = strings.ReplaceAll(rest, `"`, ""); !ok || !strings.Contains(rest, "rel=next") {
			continue
		}
		u, err := url.Parse(target)
		if err != nil || u.RawQuery == "" || u.Path != "" && !strings.HasSuffix(u.Path, list+digest) {
			return "", errors.New("it continues in a place that is not part of it")
		}
		return digest + "?" + u.Query().Encode(), nil
	}
	return "", nil
}

// ask gets a manifest, nil where the registry has none.
func (r *upstream) ask(ctx context.Context, repo name.Repository, ref string) ([]byte, error) {
	data, err := r.client.fetchManifest(ctx, repo, ref)
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusNotFound {
		return nil, nil
	}
	return data, err
}

// fetchReferrers gets a page of the list of what refers to an image, and the
// header of the answer; nil where the registry has no such lists. The library
// reads the first page alone.
func (c *Client) fetchReferrers(ctx context.Context, repo name.Repository, ref string) ([]byte, http.Header, error) {
	way, err := c.connect(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	res, err := way.get(ctx, repo, "referrers", ref)
	if err != nil {
		return nil, nil, clean(err, repo.RegistryStr(), way.login)
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return nil, nil, nil
	}
	if err := transport.CheckError(res, http.StatusOK); err != nil {
		return nil, nil, clean(err, repo.RegistryStr(), way.login)
	}
	data, err := io.ReadAll(res.Body)
	return data, res.Header, clean(err, repo.RegistryStr(), way.login)
}
