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
	Path  string // "manifests/etcd.crd.yaml"
	Data  []byte
	Named bool // whether the path determines the meaning of the content, so that digests cover it
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

// DigestList returns the hexadecimal sha256 digests of the manifests, sorted and one per line. The
// last line has no line break. The digest of a named manifest is followed by a space and its path.
func DigestList(ms []Manifest) []byte {
	sums := make([]string, 0, len(ms))
	for _, m := range ms {
		line := catalog.DigestOf(m.Data).Hex()
		if m.Named {
			line += " " + m.Path
		}
		sums = append(sums, line)
	}
	slices.Sort(sums)
	return []byte(strings.Join(sums, "\n"))
}

// FSFromObjects returns a registry+v1 directory for a bundle of package pkg, with the unmodified manifests and
// minimal metadata. The file name of a manifest contains its index and, for JSON, its kind and name.
func FSFromObjects(manifests [][]byte, pkg string) (fs.FS, error) {
	ms := make([]Manifest, len(manifests))
	for i, data := range manifests {
		ms[i] = Manifest{Path: fmt.Sprintf("manifests/%05d%s.yaml", i, nameSuffix(data)), Data: data}
	}
	return filesV1(ms, pkg)
}

// nameSuffix returns "-kind-name" for a manifest in JSON. It returns "" for other manifests, and if
// the suffix is not safe in a file name.
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

// filesV1 returns a registry+v1 directory with all manifests directly in manifests/.
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
