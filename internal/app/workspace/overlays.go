package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
)

// OverlaysDir returns the directory of the team's own changes, beside the tree.
func (p *Project) OverlaysDir() string { return path.Join(p.Settings.Output, "..", layout.Overlays) }

// Overlays returns the overlay directories of each cluster, as in profile.Cluster: "" for all
// pieces, the names of single pieces, "resources". A directory of an unknown cluster is an
// error, unless another overlay uses it, because a renamed cluster would silently lose its
// changes.
func (p *Project) Overlays() (map[string][]string, error) {
	dir, err := p.lookup(p.OverlaysDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(dir.FS, ".")
	if err != nil {
		return nil, err
	}
	out, taken := map[string][]string{}, map[string]bool{}
	var faults diag.List
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		names, err := listOverlays(dir.FS, p.OverlaysDir(), e.Name(), p.ByOperator(), taken)
		faults.Add(diag.Pos{}, err)
		if len(names) > 0 {
			out[e.Name()] = names
		}
	}
	for name := range out {
		if slices.Contains(p.Clusters(), name) {
			continue
		}
		if delete(out, name); !taken[name] {
			at := path.Join(p.OverlaysDir(), name)
			faults.Addf(diag.Pos{File: at}, "no cluster %q (have %s): move it to the directory of its cluster, or delete it", name, strings.Join(p.Clusters(), ", "))
		}
	}
	return out, faults.Err()
}

// listOverlays returns the directories of a cluster with a kustomization. It sets taken for
// the other top directories that they use.
func listOverlays(fsys fs.FS, base, cluster string, byPiece bool, taken map[string]bool) ([]string, error) {
	var out []string
	note := func(name string) error {
		dir := path.Join(cluster, name)
		k, data, err := kustomizationOf(fsys, dir)
		there := data != nil
		if err != nil || !there {
			return err
		}
		if want := types.ComponentKind; name != layout.Resources && k.Kind != want {
			return fmt.Errorf("%s: want kind: %s (apiVersion: %s): it changes rendered objects; put your own objects into %s/%s",
				path.Join(base, dir, layout.Kustomization), want, types.ComponentVersion, path.Join(base, cluster), layout.Resources)
		}
		for _, ref := range slices.Concat(k.Resources, k.Components) {
			if top, _, below := strings.Cut(path.Join(dir, ref)+"/", "/"); below && top != cluster {
				taken[top] = true
			}
		}
		out = append(out, name)
		if name == "" && byPiece {
			return forAll(path.Join(base, dir, layout.Kustomization), path.Join(base, cluster), k, data)
		}
		return nil
	}
	if err := note(""); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(fsys, cluster)
	for _, e := range entries {
		// Other directories are parts for the team's overlays.
		if e.IsDir() && (strings.Contains(e.Name(), ".") || slices.Contains([]string{layout.Resources, "reporter"}, e.Name())) {
			err = errors.Join(err, note(e.Name()))
		}
	}
	return out, err
}

// ByOperator reports whether an engine applies each operator by itself.
func (p *Project) ByOperator() bool {
	return profile.PerPiece(p.Settings.Tool(), p.Settings.GitOps)
}

// forAll returns a fault for each field of a Component for all pieces that does not fit all
// of them: it would refer to an object that most do not have, or add one to each.
func forAll(file, dir string, k types.Kustomization, data []byte) error {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{})
	if err != nil || len(docs) != 1 {
		return err
	}
	at := diag.Fields(yamlnode.Positions(file, docs[0]))
	var faults diag.List
	wrong := func(field string) {
		faults.Addf(at.At(field, diag.Pos{File: file}), "%s would apply to every operator: move it to %s/<namespace>.<package>/ of one operator, or set spec.gitops.granularity: cluster", field, dir)
	}
	for i, p := range k.Patches {
		if p.Target == nil {
			wrong(fmt.Sprintf("patches[%d]", i))
		}
	}
	k.Patches, k.Images, k.Labels, k.CommonLabels, k.CommonAnnotations, k.Components = nil, nil, nil, nil, nil, nil //nolint:staticcheck // which users still have
	k.TypeMeta, k.MetaData, k.BuildMetadata, k.SortOptions = types.TypeMeta{}, nil, nil, nil
	rest := reflect.ValueOf(k)
	for i := range rest.NumField() {
		if !rest.Field(i).IsZero() {
			name, _, _ := strings.Cut(rest.Type().Field(i).Tag.Get("json"), ",")
			wrong(name)
		}
	}
	return faults.Err()
}

// kustomizationOf reads the kustomization of a directory; nil data if there is none.
func kustomizationOf(fsys fs.FS, dir string) (types.Kustomization, []byte, error) {
	var k types.Kustomization
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		data, err := fs.ReadFile(fsys, path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = decodeKustomization(path.Join(dir, name), data, &k)
		}
		return k, data, err
	}
	return k, nil, nil
}

// decodeKustomization decodes the first document of a kustomization file.
func decodeKustomization(file string, data []byte, into *types.Kustomization) error {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{})
	if err != nil || len(docs) == 0 {
		return err
	}
	raw, err := yamlnode.JSON(docs[0])
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
