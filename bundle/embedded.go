package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/filetree"
)

// Manifest is one file of a bundle's manifests as it is.
type Manifest struct {
	Path string // "manifests/etcd.crd.yaml"
	Data []byte
}

// Manifests returns the manifests of the bundle at the root of fsys, in the
// order of their paths: the bytes that [Digest] counts.
func Manifests(fsys fs.FS) ([]Manifest, error) {
	meta, err := readMetadata(fsys)
	if err != nil {
		return nil, err
	}
	names, _, err := manifestFiles(fsys, meta.manifests)
	if err != nil {
		return nil, err
	}
	out := make([]Manifest, 0, len(names))
	for _, name := range names {
		data, err := readFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, Manifest{Path: name, Data: data})
	}
	return out, nil
}

// DigestList returns the hexadecimal sha256 of each manifest, sorted, one a
// line, without a line break at the end.
func DigestList(ms []Manifest) []byte {
	sums := make([]string, 0, len(ms))
	for _, m := range ms {
		sums = append(sums, catalog.DigestOf(m.Data).Hex())
	}
	slices.Sort(sums)
	return []byte(strings.Join(sums, "\n"))
}

// FSFromObjects returns a bundle directory that holds the manifests as given,
// byte for byte, and just enough metadata to be read as a bundle of pkg. Files
// are named by their place in manifests, and by what they hold where that is
// JSON.
func FSFromObjects(manifests [][]byte, pkg string) (fs.FS, error) {
	ms := make([]Manifest, len(manifests))
	for i, data := range manifests {
		ms[i] = Manifest{Path: fmt.Sprintf("manifests/%05d%s.yaml", i, heldBy(data)), Data: data}
	}
	return FSFromManifests(ms, pkg)
}

// heldBy returns "-kind-name" of an object in JSON, as far as that can stand in
// the name of a file.
func heldBy(data []byte) string {
	var o struct {
		Kind     string
		Metadata struct{ Name string }
	}
	text := ""
	if json.Unmarshal(data, &o) == nil {
		text = "-" + o.Kind + "-" + o.Metadata.Name
	}
	if len(text) > 200 || strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
		return ""
	}
	return strings.ToLower(strings.TrimRight(text, ".-"))
}

// FSFromManifests is FSFromObjects for manifests with paths of their own, all
// directly below manifests/.
func FSFromManifests(ms []Manifest, pkg string) (fs.FS, error) {
	if pkg == "" {
		return nil, errors.New("bundle without a package")
	}
	if len(ms) > maxFiles {
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
	for _, m := range ms {
		if err := t.Add("manifests/"+path.Base(m.Path), m.Data); err != nil {
			return nil, err
		}
	}
	return t.FS(), nil
}
