package source

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/oci"
)

// Schemes returns all schemes, in the order in which messages list them.
func Schemes() []Scheme {
	return []Scheme{
		{Name: string(oci.Remote), image: true, pulled: true, find: findImage},
		{Name: string(oci.Layout), image: true, find: findImage, claims: func(fsys fs.FS) (bool, error) { return IsLayout(fsys), nil }},
		{Name: string(oci.LayoutArchive), image: true, find: findArchive},
		{Name: string(oci.DockerArchive), image: true, find: findArchive},
		{Name: dirScheme, dir: true, plain: true, find: findFileBased},
		{Name: fileHTTPS, served: true, find: findServed},
		{Name: fileHTTP, served: true, find: findServed},
		{Name: sqliteScheme, find: findDatabase, prefix: filepath.Dir},
		{Name: bundlesScheme, dir: true, find: findBundles, claims: claimsBundles},
		{Name: packageManifestsScheme, dir: true, find: findPackageManifests, claims: claimsPackageManifests},
		{Name: chartDir, dir: true, find: findCharts},
		{Name: chartOCI, served: true, find: findTags},
		{Name: chartHTTPS, served: true, find: findRepository},
		{Name: chartHTTP, served: true, find: findRepository},
		{Name: releaseDir, dir: true, find: findReleases},
		{Name: releaseHTTPS, served: true, find: findReleaseURL},
		{Name: releaseHTTP, served: true, find: findReleaseURL},
		{Name: releaseGit, served: true, find: findReleaseTags},
		{Name: releaseGitPlain, served: true, find: findReleaseTags},
	}
}

// Ref is a reference to a catalog, such as "oci:catalogs/prod".
type Ref string

// Pattern returns a regular expression that all valid references match, for JSON schemas.
func (Ref) Pattern() string { return "^(" + strings.Join(schemeNames(), "|") + "):.+" }

// Check validates the syntax of a reference.
func (r Ref) Check() error {
	name, _, _ := strings.Cut(string(r), ":")
	_, rest, found := r.Scheme()
	switch {
	case r == "":
		return fmt.Errorf("missing: specify the location of the catalog, such as %q", "oci:catalogs/operatorhubio")
	case !found:
		return fmt.Errorf("%q does not start with one of %s:%s", r, strings.Join(schemeNames(), ":, "), diag.DidYouMean(name, schemeNames()))
	case strings.TrimSpace(rest) == "" || rest != strings.TrimSpace(rest):
		return fmt.Errorf("%q has no location after the colon", r)
	case diag.HasLogin(string(r)):
		return fmt.Errorf("%q must not have a user name or a password: log in to the host, as for images", diag.Redact(string(r)))
	}
	return nil
}

// Scheme returns the scheme of a reference and the part after the colon. It returns false if the
// scheme is unknown.
func (r Ref) Scheme() (s Scheme, rest string, ok bool) {
	for _, s := range Schemes() {
		if rest, ok := strings.CutPrefix(string(r), s.Name+":"); ok {
			return s, rest, true
		}
	}
	return s, "", false
}

// IsRemote reports whether the catalog is an image in a registry. Only such a catalog can be pinned
// by digest, signed and vendored.
func (r Ref) IsRemote() bool {
	s, _, _ := r.Scheme()
	return s.pulled
}

// IsServed reports whether the catalog is at the URL of a server, and is not an image.
func (r Ref) IsServed() bool {
	s, _, _ := r.Scheme()
	return s.served
}

// Argument returns the reference as an argument for commands that accept a directory or an image. One of the
// results dir and image contains it, the other is empty. For other references, both are empty.
func (r Ref) Argument() (dir, image string) {
	switch s, rest, _ := r.Scheme(); {
	case s.plain:
		return rest, ""
	case s.image:
		return "", string(r)
	}
	return "", ""
}

// Path returns the path of a catalog that is a file or directory, without tag and digest. It
// returns false for other catalogs.
func (r Ref) Path() (string, bool) {
	s, rest, ok := r.Scheme()
	if !ok || s.pulled || s.served {
		return "", false
	}
	if colon := strings.LastIndexAny(rest, ":@"); colon > strings.LastIndex(rest, "/") {
		rest = rest[:colon]
	}
	return rest, true
}

// MapPath returns the reference with its path replaced by move(path). A reference without a path is
// returned unchanged.
func (r Ref) MapPath(move func(string) string) Ref {
	s, rest, ok := r.Scheme()
	if !ok || s.pulled || s.served {
		return r
	}
	return Ref(s.Name + ":" + move(rest))
}

// Directory returns the path of a catalog that is a directory. It returns false for other catalogs.
func (r Ref) Directory() (string, bool) {
	s, rest, _ := r.Scheme()
	return rest, s.dir && rest != ""
}

// Prefix returns the path to prepend to the names of the catalog's files in messages, or "" for an
// image.
func (r Ref) Prefix() string {
	switch s, rest, _ := r.Scheme(); {
	case s.dir:
		return rest
	case s.prefix != nil:
		return s.prefix(rest)
	}
	return ""
}

// Find returns the source of a reference without loading the catalog. The caller must close the
// source.
func Find(ctx context.Context, at Resolver, r Ref) (*Source, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	s, rest, _ := r.Scheme()
	return s.find(ctx, at, r, rest)
}

// Open finds and opens the catalog of a reference. Closing the catalog also
// closes the source.
func Open(ctx context.Context, at Resolver, r Ref) (*OpenedCatalog, error) {
	src, err := Find(ctx, at, r)
	if err != nil {
		return nil, err
	}
	c, err := src.Open(ctx)
	if err != nil {
		src.Close()
		return nil, err
	}
	if src.close != nil {
		c.close = append(c.close, src.close)
	}
	return c, nil
}

// DirRef returns a reference to a directory that was given without a scheme. The scheme is the
// first one that claims the directory, or else that of file-based catalogs.
func DirRef(fsys fs.FS, path string) (Ref, error) {
	for _, s := range Schemes() {
		if s.claims == nil {
			continue
		}
		ok, err := s.claims(fsys)
		if err != nil {
			return "", err
		}
		if ok {
			return Ref(s.Name + ":" + path), nil
		}
	}
	return Ref(dirScheme + ":" + path), nil
}

func schemeNames() []string {
	var out []string
	for _, s := range Schemes() {
		out = append(out, s.Name)
	}
	return out
}
