package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/charts"
	"github.com/quayside/quayside/internal/filetree"
)

// Schemes of catalogs of release manifests. The scheme is everything before the second colon of a reference.
// The fragment of a URL contains the package and its versions.
const (
	releaseDir   = "manifests:dir"   // "manifests:dir:releases", a directory with PACKAGE/VERSION/
	releaseHTTPS = "manifests:https" // "manifests:https://example.com/lamp-{version}.yaml#package=lamp&versions=1.0.0"
	releaseHTTP  = "manifests:http"  // the same on a loopback address or an insecure host

	// "manifests:git+https://example.com/lamp.git#package=lamp&path=config&tags=v*"; or http in place of https
	releaseGit      = "manifests:git+https"
	releaseGitPlain = "manifests:git+http"
)

const versionPlaceholder = "{version}"

// Releases is the location of release manifests: a directory, or the URLs or tags of one package.
type Releases struct {
	Location string   `json:"location" yamlnode:"text" doc:"A directory with PACKAGE/VERSION/ (dir:releases)."`
	Package  string   `json:"package" doc:"Name of the package at url or git. Default for git: the last part of the URL."`
	URL      string   `json:"url" doc:"URL of the manifests, with {version} in place of the version."`
	Versions []string `json:"versions" doc:"Versions at url."`
	Git      string   `json:"git" doc:"URL of a Git repository. Its tags are the versions."`
	Path     string   `json:"path" doc:"Directory with a kustomization or YAML files, or a YAML file, in the Git repository. Default: its top."`
	Tags     string   `json:"tags" doc:"Pattern of the tags, with one * in place of the version, such as operator-v*. Default: v*."`
}

// Ref returns the reference of the catalog. It returns an error for missing fields, and for fields that
// exclude each other.
func (r Releases) Ref() (Ref, error) {
	if r.Git != "" {
		return r.gitRef()
	}
	if r.Path+r.Tags != "" {
		return "", errors.New("path and tags: expected git, the URL of a repository")
	}
	if r.Location != "" {
		if r.URL+r.Package != "" || len(r.Versions) > 0 || !strings.HasPrefix(r.Location, "dir:") {
			return "", errors.New("expected dir:PATH, or the fields package, url and versions, or the fields git, path and tags")
		}
		return Ref("manifests:" + r.Location), nil
	}
	if r.Package == "" || !strings.Contains(r.URL, versionPlaceholder) || len(r.Versions) == 0 || strings.Contains(r.URL, "#") {
		return "", fmt.Errorf("expected package, url with %s, and versions", versionPlaceholder)
	}
	return Ref("manifests:" + r.URL + "#" + url.Values{"package": {r.Package}, "versions": {strings.Join(r.Versions, ",")}}.Encode()), nil
}

// gitRef returns the reference of a Git repository.
func (r Releases) gitRef() (Ref, error) {
	u, err := url.Parse(r.Git)
	at, tags := cmp.Or(r.Path, "."), cmp.Or(r.Tags, "v*")
	switch {
	case r.Location+r.URL != "" || len(r.Versions) > 0:
		return "", errors.New("git requires path and tags, and excludes location, url and versions")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsAny(r.Git, "#?"):
		return "", fmt.Errorf("git: %q is not an https:// URL", r.Git)
	case !fs.ValidPath(at):
		return "", fmt.Errorf("path: %q is not a path in the repository", r.Path)
	case strings.Count(tags, "*") != 1:
		return "", fmt.Errorf("tags: %q must have exactly one *, in place of the version", r.Tags)
	}
	pkg := cmp.Or(r.Package, strings.TrimSuffix(path.Base(u.Path), ".git"))
	return Ref("manifests:git+" + r.Git + "#" + url.Values{"package": {pkg}, "path": {at}, "tags": {tags}}.Encode()), nil
}

// findReleaseURL returns the source of a package whose versions are at URLs.
func findReleaseURL(_ context.Context, at Resolver, r Ref, _ string) (*Source, error) {
	location, fragment, _ := strings.Cut(strings.TrimPrefix(string(r), "manifests:"), "#")
	fields, err := url.ParseQuery(fragment)
	if err != nil || fields.Get("package") == "" || fields.Get("versions") == "" || !strings.Contains(location, versionPlaceholder) {
		return nil, fmt.Errorf("%q is not the location of a package: https://host/path-%s.yaml#package=NAME&versions=LIST", location, versionPlaceholder)
	}
	x := charts.ListReleases(fields.Get("package"), strings.Split(fields.Get("versions"), ","))
	return &Source{
		Name: "releases " + string(r),
		Open: func(context.Context) (*OpenedCatalog, error) {
			return &OpenedCatalog{
				Format: servedReleases{x, func(ctx context.Context, c charts.Chart) (fs.FS, error) {
					return downloadRelease(ctx, at, strings.ReplaceAll(location, versionPlaceholder, url.PathEscape(c.Version)))
				}},
				Digest: func() (catalog.Digest, error) { return catalog.DigestOf([]byte(r)), nil },
			}, nil
		},
	}, nil
}

// servedReleases is a package on a server. fetch downloads a version.
type servedReleases struct {
	index *charts.Index
	fetch func(ctx context.Context, c charts.Chart) (fs.FS, error)
}

// Content implements Format.
func (r servedReleases) Content(context.Context) (catalog.Content, error) {
	return r.index.Content(), nil
}

// Bundle implements Format.
func (r servedReleases) Bundle(ctx context.Context, pkg, name string, _ *catalog.Bundle) (fs.FS, error) {
	c, err := r.index.Chart(pkg, name)
	if err != nil {
		return nil, err
	}
	return r.fetch(ctx, c)
}

// downloadRelease returns the manifests at a URL.
func downloadRelease(ctx context.Context, from Resolver, at string) (fs.FS, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", at)
	}
	file, err := from.Download(ctx, at, "", charts.MaxArchive)
	if err != nil {
		return nil, err
	}
	data, err := file.Read()
	if err != nil {
		return nil, err
	}
	base := path.Base(u.Path)
	if !strings.HasSuffix(base, ".yaml") && !strings.HasSuffix(base, ".yml") && !strings.HasSuffix(base, ".json") {
		base = "manifests.yaml"
	}
	t := filetree.New()
	err = t.Add(base, data)
	return t.FS(), err
}

func findReleases(_ context.Context, at Resolver, _ Ref, rest string) (*Source, error) {
	return findDir(at, releaseDir, rest, func(c *OpenedCatalog) (Format, error) {
		return versionFiles{c.FS, charts.ReadReleases, fs.Sub}, nil
	})
}
