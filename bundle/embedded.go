package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/filetree"
)

// Digest returns the digest of a bundle's content: sha256 over the sorted
// sha256 digests of its manifests' bytes. File names and metadata do not
// count, so that the same manifests have the same digest as a directory and
// embedded in a catalog.
func Digest(fsys fs.FS) (catalog.Digest, error) {
	meta, err := readMetadata(fsys)
	if err != nil {
		return "", err
	}
	names, _, err := manifestFiles(fsys, meta.manifests)
	if err != nil {
		return "", err
	}
	sums := make([]string, 0, len(names))
	for _, name := range names {
		data, err := readFile(fsys, name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		sum := sha256.Sum256(data)
		sums = append(sums, hex.EncodeToString(sum[:]))
	}
	slices.Sort(sums)
	return catalog.DigestOf([]byte(strings.Join(sums, "\n"))), nil
}

// FSFromObjects returns a bundle directory that holds the manifests as given,
// byte for byte, and just enough metadata to be read as a bundle of pkg.
func FSFromObjects(manifests [][]byte, pkg string) (fs.FS, error) {
	if pkg == "" {
		return nil, errors.New("bundle without a package")
	}
	if len(manifests) > maxFiles {
		return nil, fmt.Errorf("more than %d manifests", maxFiles)
	}
	annotations, err := json.Marshal(map[string]any{"annotations": map[string]string{
		annotationPackage: pkg, annotationManifests: "manifests/", annotationMetadata: "metadata/", annotationMediaType: "registry+v1",
	}})
	if err != nil {
		return nil, err
	}
	t := filetree.New()
	if err := t.Add("metadata/annotations.yaml", annotations); err != nil {
		return nil, err
	}
	for i, data := range manifests {
		if err := t.Add(fmt.Sprintf("manifests/%05d.yaml", i), data); err != nil {
			return nil, err
		}
	}
	return t.FS(), nil
}

// FromObjects loads a bundle from manifests that a catalog embeds.
func FromObjects(manifests [][]byte, pkg string) (*Bundle, error) {
	fsys, err := FSFromObjects(manifests, pkg)
	if err != nil {
		return nil, err
	}
	return Load(fsys)
}
