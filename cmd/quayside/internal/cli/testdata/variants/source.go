package source

import (
	"context"
	"io/fs"
)

// crate is "crate:path": a directory whose bundles lie below content.
func crate() Scheme {
	return Scheme{Name: "crate", prefix: func(rest string) string { return rest + "/content" }, find: findCrate}
}

func findCrate(_ context.Context, at Resolver, _ Ref, rest string) (*Source, error) {
	return findDir(at, "crate", rest, func(c *OpenedCatalog) (_ Format, err error) {
		c.FS, err = fs.Sub(c.FS, "content")
		return bundleDirs{c.FS, nil}, err
	})
}
