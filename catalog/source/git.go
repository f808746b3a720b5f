package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/charts"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/yamlnode"
)

// findReleaseTags returns the source of a package in a Git repository. The tags of the repository are the
// versions. The Name of the source contains a digest of the list of tags.
func findReleaseTags(ctx context.Context, at Resolver, r Ref, _ string) (*Source, error) {
	location, fragment, _ := strings.Cut(strings.TrimPrefix(string(r), "manifests:git+"), "#")
	fields, err := url.ParseQuery(fragment)
	again := Releases{Git: location, Package: fields.Get("package"), Path: fields.Get("path"), Tags: fields.Get("tags")}
	if err != nil || again.Package == "" || again.Path == "" || again.Tags == "" {
		return nil, fmt.Errorf("%q is not the location of a package: git+https://host/path#package=NAME&path=DIR&tags=PATTERN", r)
	}
	if _, err := again.Ref(); err != nil {
		return nil, err
	}
	tags, err := at.GitTags(ctx, location)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(tags)
	if err != nil {
		return nil, err
	}
	digest := catalog.DigestOf(list)
	return &Source{
		Name: "releases " + string(r) + " " + string(digest),
		Open: func(context.Context) (*OpenedCatalog, error) {
			return &OpenedCatalog{
				Format: servedReleases{charts.ListTags(again.Package, again.Tags, tags), func(ctx context.Context, c charts.Chart) (fs.FS, error) {
					return at.GitFiles(ctx, location, c.Tag, c.Commit, again.Path, func(commit fs.FS) (map[string][]byte, error) {
						return limitedFiles(commit, again.Path)
					})
				}},
				Digest: func() (catalog.Digest, error) { return digest, nil },
			}, nil
		},
	}, nil
}

// limitedFiles returns the result of releaseFiles. It returns an error if the total size of the files exceeds
// charts.MaxArchive.
func limitedFiles(commit fs.FS, at string) (map[string][]byte, error) {
	files, err := releaseFiles(commit, at)
	size := 0
	for _, data := range files {
		size += len(data)
	}
	if err == nil && size > charts.MaxArchive {
		err = fmt.Errorf("more than %d MiB of manifests", charts.MaxArchive>>20)
	}
	return files, err
}

// releaseFiles returns the files of a release at a path in a repository. The path may be a file, a directory
// with a kustomization, or another directory. For a kustomization, the result is its input. For another
// directory, it is the YAML and JSON files in the directory. If a kustomization refers to files outside of the
// path, each name in the result is repositoryDir, followed by the path of the file in the repository.
func releaseFiles(commit fs.FS, at string) (map[string][]byte, error) {
	info, err := fs.Stat(commit, at)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := fs.ReadFile(commit, at)
		return map[string][]byte{path.Base(at): data}, err
	}
	o, err := overlay.New(overlay.FileFunc(func(name string) ([]byte, error) { return fs.ReadFile(commit, name) })).Open(at)
	if err == nil {
		return moveInput(o.All(), at), nil
	}
	if o != nil || !errors.Is(err, overlay.ErrNone) {
		return nil, err
	}
	dir, err := fs.Sub(commit, at)
	if err != nil {
		return nil, err
	}
	out, size := map[string][]byte{}, 0
	return out, fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !yamlnode.HasExtension(name) {
			return err
		}
		out[name], err = fs.ReadFile(dir, name)
		if size += len(out[name]); size > charts.MaxArchive {
			return fs.SkipAll // limitedFiles reports it
		}
		return err
	})
}

// repositoryDir contains the files of a kustomization that refers to files outside of its directory.
const repositoryDir = "repository"

// moveInput returns the input of the kustomization in dir, moved to the top directory.
func moveInput(files map[string][]byte, dir string) map[string][]byte {
	out, outside := map[string][]byte{}, map[string][]byte{}
	for name, data := range files {
		if inner, ok := strings.CutPrefix(name, dir+"/"); ok {
			out[inner] = data
		} else if dir == "." {
			out[name] = data
		}
		outside[path.Join(repositoryDir, name)] = data
	}
	if len(out) == len(files) {
		return out
	}
	outside["kustomization.yaml"] = fmt.Appendf(nil, "resources: [%q]\n", path.Join(repositoryDir, dir))
	return outside
}
