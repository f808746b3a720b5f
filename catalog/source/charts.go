package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/charts"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci"
)

// Schemes of catalogs of charts. The scheme is everything before the second colon of a reference.
const (
	chartOCI   = "helm:oci"   // "helm:oci://ghcr.io/cloudnative-pg/charts/cloudnative-pg", a chart in a registry
	chartHTTPS = "helm:https" // "helm:https://charts.jetstack.io", a repository with an index.yaml
	chartHTTP  = "helm:http"  // the same on a loopback address or an insecure host
	chartDir   = "helm:dir"   // "helm:dir:charts", a directory of charts and archives of charts
)

// ChartRef returns the reference of a catalog of charts: the URL of a repository, "oci://registry/chart", or "dir:path".
func ChartRef(location string) Ref { return Ref("helm:" + location) }

// ChartLocation returns the location of a catalog of charts, as in ChartRef. It returns false for other catalogs.
func (r Ref) ChartLocation() (string, bool) { return strings.CutPrefix(string(r), "helm:") }

const indexFile = "index.yaml"

// findRepository returns the source of a chart repository. The Name of the source contains the index digest.
func findRepository(ctx context.Context, at Resolver, r Ref, _ string) (*Source, error) {
	base := strings.TrimPrefix(string(r), "helm:")
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the URL of a chart repository", base)
	}
	index, err := at.Download(ctx, strings.TrimSuffix(base, "/")+"/"+indexFile, "", charts.MaxIndex)
	if err != nil {
		return nil, err
	}
	return &Source{
		Name: "charts " + index.Digest,
		Open: func(context.Context) (*OpenedCatalog, error) {
			return &OpenedCatalog{
				Format: &repository{at: at, base: base, read: index.Read},
				Digest: func() (catalog.Digest, error) { return catalog.Digest(index.Digest), nil },
			}, nil
		},
	}, nil
}

// repository is a chart repository.
type repository struct {
	at    Resolver
	base  string                 // URL
	read  func() ([]byte, error) // content of the index
	index *charts.Index          // nil before the first use
}

func (r *repository) open() (*charts.Index, error) {
	if r.index != nil {
		return r.index, nil
	}
	data, err := r.read()
	if err != nil {
		return nil, err
	}
	r.index, err = charts.ReadIndex(indexFile, data)
	return r.index, err
}

// Content implements Format.
func (r *repository) Content(context.Context) (catalog.Content, error) {
	x, err := r.open()
	if err != nil {
		return catalog.Content{}, err
	}
	return x.Content(), nil
}

// Bundle implements Format. It tries the URLs of the archive in order. A repository outside private networks
// cannot have URLs in a private network.
func (r *repository) Bundle(ctx context.Context, pkg, name string, _ *catalog.Bundle) (fs.FS, error) {
	x, err := r.open()
	if err != nil {
		return nil, err
	}
	c, err := x.Chart(pkg, name)
	if err != nil {
		return nil, err
	}
	digest := strings.TrimPrefix(c.Digest, "sha256:")
	if digest != "" {
		digest = "sha256:" + digest
	}
	cause := errors.New("the index has no URL for it")
	ctx = oci.ReferredBy(ctx, r.base)
	for i, location := range c.URLs {
		var archive *oci.Downloaded
		at, err := resolveURL(r.base, location)
		if err == nil {
			archive, err = r.at.Download(ctx, at, digest, charts.MaxArchive)
		}
		if err != nil {
			if cause = fmt.Errorf("%w; %w", cause, err); i == 0 {
				cause = err
			}
			continue
		}
		if r.at.VerifyArchive != nil {
			_, repository, _ := strings.Cut(strings.TrimSuffix(r.base, "/"), "://")
			if err := r.at.VerifyArchive(ctx, repository+"/"+pkg, c.Version, at, archive.Digest); err != nil {
				return nil, err
			}
		}
		data, err := archive.Read()
		if err != nil {
			return nil, err
		}
		return charts.Archive(data)
	}
	return nil, diag.Errorf(c.Pos, "reading the archive of chart %s: %w", name, cause)
}

// resolveURL returns a URL in an index, which may be relative to the repository.
func resolveURL(base, location string) (string, error) {
	b, err := url.Parse(strings.TrimSuffix(base, "/") + "/")
	if err != nil {
		return "", err
	}
	u, err := b.Parse(location)
	if err != nil {
		return "", fmt.Errorf("%q is not a URL", location)
	}
	if u.Scheme != "https" && u.Scheme != b.Scheme {
		return "", fmt.Errorf("%q uses neither https nor the scheme of the repository", location)
	}
	return u.String(), nil
}

// findTags returns the source of a chart in a registry. The tags of the chart are its versions. The Name of
// the source contains a digest of the list of tags.
func findTags(ctx context.Context, at Resolver, _ Ref, rest string) (*Source, error) {
	repository, ok := strings.CutPrefix(rest, "//")
	if ref := imageref.Split(repository); !ok || ref.Tag != "" || ref.Digest != "" || !strings.Contains(repository, "/") {
		return nil, fmt.Errorf("%q is not the location of a chart: oci://registry/path/chart, without a version", "oci:"+rest)
	}
	tags, err := at.Tags(ctx, repository)
	if err != nil {
		return nil, err
	}
	x := charts.ReadTags(repository, tags)
	digest := catalog.DigestOf([]byte(strings.Join(tags, "\n")))
	return &Source{
		Name: "charts " + repository + " " + string(digest),
		Open: func(context.Context) (*OpenedCatalog, error) {
			return &OpenedCatalog{Format: taggedChart{x}, Digest: func() (catalog.Digest, error) { return digest, nil }}, nil
		},
	}, nil
}

// taggedChart is a chart in a registry.
type taggedChart struct{ index *charts.Index }

// Content implements Format.
func (t taggedChart) Content(context.Context) (catalog.Content, error) { return t.index.Content(), nil }

// Bundle implements Format. No bundle is embedded: each is an image.
func (taggedChart) Bundle(_ context.Context, _, name string, _ *catalog.Bundle) (fs.FS, error) {
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

func findCharts(_ context.Context, at Resolver, _ Ref, rest string) (*Source, error) {
	return findDir(at, chartDir, rest, func(c *OpenedCatalog) (Format, error) {
		return versionFiles{c.FS, charts.ReadDir, charts.Open}, nil
	})
}

// versionFiles is the format of a directory of charts or releases. read returns the index of the directory.
// open returns the content at the position of a version.
type versionFiles struct {
	fsys fs.FS
	read func(fsys fs.FS) (*charts.Index, error)
	open func(fsys fs.FS, name string) (fs.FS, error)
}

// Content implements Format.
func (d versionFiles) Content(context.Context) (catalog.Content, error) {
	x, err := d.read(d.fsys)
	if err != nil {
		return catalog.Content{}, err
	}
	return x.Content(), nil
}

// Bundle implements Format.
func (d versionFiles) Bundle(_ context.Context, pkg, name string, known *catalog.Bundle) (fs.FS, error) {
	if known != nil {
		return d.open(d.fsys, known.Pos().File)
	}
	x, err := d.read(d.fsys)
	if err != nil {
		return nil, err
	}
	c, err := x.Chart(pkg, name)
	if err != nil {
		return nil, err
	}
	return d.open(d.fsys, c.Pos.File)
}
