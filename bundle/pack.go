package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"github.com/quayside/quayside/internal/filetree"
)

// imageV1 returns the files and the labels of a bundle image. The files are the manifests, the metadata and the
// tests, without hidden files. The labels are the annotations in the metadata. imageV1 returns an error for
// symbolic links and special files.
func imageV1(fsys fs.FS) (fs.FS, map[string]string, error) {
	meta, err := readMetadata(fsys)
	if err != nil {
		return nil, nil, err
	}
	t := filetree.New()
	total := int64(0)
	for _, dir := range []string{meta.manifests, "metadata", "tests"} {
		if err := copyTree(t, fsys, dir, &total); err != nil && (dir != "tests" || !errors.Is(err, fs.ErrNotExist)) {
			return nil, nil, err
		}
	}
	labels := map[string]string{
		annotationMediaType: "registry+v1", annotationManifests: meta.manifests + "/", annotationMetadata: "metadata/",
	}
	maps.Copy(labels, meta.annotations)
	return t.FS(), labels, nil
}

// copyTree adds all files below dir to t and their sizes to total.
func copyTree(t *filetree.Tree, fsys fs.FS, dir string, total *int64) error {
	return fs.WalkDir(fsys, dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), ".") && name != ".":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		case t.Len() >= maxFiles:
			return fmt.Errorf("more than %d files", maxFiles)
		}
		data, err := readFile(fsys, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if *total += int64(len(data)); *total > maxBundleBytes {
			return fmt.Errorf("total size exceeds the limit of %d MiB", maxBundleBytes>>20)
		}
		return t.Add(name, data)
	})
}
