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

// Manifest is one unmodified manifest file of a bundle.
type Manifest struct {
	Path string // "manifests/etcd.crd.yaml"
	Data []byte
}

func manifestsV1(fsys fs.FS) ([]Manifest, error) {
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

// DigestList returns the sorted hexadecimal sha256 digests of the manifests, one per line,
// without a final line break.
func DigestList(ms []Manifest) []byte {
	sums := make([]string, 0, len(ms))
	for _, m := range ms {
		sums = append(sums, catalog.DigestOf(m.Data).Hex())
	}
	slices.Sort(sums)
	return []byte(strings.Join(sums, "\n"))
}

// FSFromObjects returns a registry+v1 directory with the unmodified manifests and the minimal
// metadata of a bundle of pkg. File names contain the index in manifests, and for JSON also the
// kind and the name.
func FSFromObjects(manifests [][]byte, pkg string) (fs.FS, error) {
	ms := make([]Manifest, len(manifests))
	for i, data := range manifests {
		ms[i] = Manifest{Path: fmt.Sprintf("manifests/%05d%s.yaml", i, nameSuffix(data)), Data: data}
	}
	return filesV1(ms, pkg)
}

// nameSuffix returns "-kind-name" for an object in JSON, or "" if this is not a safe file name.
func nameSuffix(data []byte) string {
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

// filesV1 returns a directory with all manifests directly below manifests/.
func filesV1(ms []Manifest, pkg string) (fs.FS, error) {
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
