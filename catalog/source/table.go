package source

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/registry"
)

// Schemes returns every way to name a catalog, in the order in which messages
// list them.
func Schemes() []Scheme {
	asItIs := func(rest string) string { return rest }
	return []Scheme{
		{Name: string(registry.Remote), Kind: Image, find: findImage},
		{Name: string(registry.Layout), Kind: Image, find: findImage, claims: func(fsys fs.FS) (bool, error) { return IsLayout(fsys), nil }},
		{Name: string(registry.LayoutArchive), Kind: Image, find: findArchive},
		{Name: string(registry.DockerArchive), Kind: Image, find: findArchive},
		{Name: dir, Kind: Directory, find: findFileBased, prefix: asItIs},
		{Name: database, find: findDatabase, prefix: filepath.Dir},
		{Name: bundles, find: findBundles, prefix: asItIs, claims: claimsBundles},
		{Name: packageManifests, find: findPackageManifests, prefix: asItIs, claims: claimsPackageManifests},
	}
}

// Ref names a catalog: "oci:catalogs/prod".
type Ref string

// Pattern is the regular expression that every Ref matches, for schemas.
func (Ref) Pattern() string { return "^(" + strings.Join(names(), "|") + "):.+" }

// Check says what is wrong with a reference, by its looks alone.
func (r Ref) Check() error {
	name, rest, found := strings.Cut(string(r), ":")
	switch {
	case r == "":
		return fmt.Errorf("missing: say where the catalog is, as in %q", "oci:catalogs/operatorhubio")
	case !found || !slices.Contains(names(), name):
		return fmt.Errorf("%q does not begin with one of %s:%s", r, strings.Join(names(), ":, "), diag.DidYouMean(name, names()))
	case strings.TrimSpace(rest) == "" || rest != strings.TrimSpace(rest):
		return fmt.Errorf("%q names nothing after its colon", r)
	}
	return nil
}

// Scheme returns the scheme of a reference and what stands behind it. It is
// false where there is none of that name.
func (r Ref) Scheme() (s Scheme, rest string, ok bool) {
	name, rest, found := strings.Cut(string(r), ":")
	all := Schemes()
	i := slices.IndexFunc(all, func(s Scheme) bool { return s.Name == name })
	if i < 0 || !found {
		return s, "", false
	}
	return all[i], rest, true
}

// Kind returns what the reference names, as [Scheme.Kind] says, and what stands
// behind its scheme.
func (r Ref) Kind() (kind Kind, rest string) {
	s, rest, _ := r.Scheme()
	return s.Kind, rest
}

// Prefix returns what stands before the names of the catalog's files where they
// are named as the user does.
func (r Ref) Prefix() string {
	if s, rest, _ := r.Scheme(); s.prefix != nil {
		return s.prefix(rest)
	}
	return ""
}

// Find finds what a reference names, without reading it. The caller closes it.
func Find(ctx context.Context, at Place, r Ref) (*Source, error) {
	s, rest, ok := r.Scheme()
	if name, _, found := strings.Cut(string(r), ":"); !found {
		return nil, fmt.Errorf("source %q: want one of %s before a colon", r, strings.Join(names(), ", "))
	} else if !ok {
		return nil, fmt.Errorf("source %q: unknown scheme %q (have %s)", r, name, strings.Join(names(), ", "))
	}
	return s.find(ctx, at, r, rest)
}

// Open finds and opens what a reference names. To close the catalog is enough.
// Nothing is hashed while it is read: Digest reads it again where it has to.
func Open(ctx context.Context, at Place, r Ref) (*Catalog, error) {
	src, err := Find(ctx, at, r)
	if err != nil {
		return nil, err
	}
	c, err := src.Open(ctx)
	if err != nil {
		src.Close()
		return nil, err
	}
	if c.sums != nil {
		c.sums.off = true
	}
	if src.close != nil {
		c.close = append(c.close, src.close)
	}
	return c, nil
}

// OfDir returns the reference of a directory that was named without a scheme:
// of the first that claims it, else of a file-based catalog.
func OfDir(fsys fs.FS, path string) (Ref, error) {
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
	return Ref(dir + ":" + path), nil
}

func names() []string {
	var out []string
	for _, s := range Schemes() {
		out = append(out, s.Name)
	}
	return out
}
