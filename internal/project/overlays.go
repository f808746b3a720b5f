package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render/profile"
)

// OverlaysDir returns the directory of the team's own changes, beside the tree.
func (p *Project) OverlaysDir() string { return path.Join(p.Settings.Output, "..", layout.Overlays) }

// Overlays returns what the team changes of each cluster, as render.Cluster has it:
// "" for all pieces, the names of single ones, "resources". What belongs to no
// cluster is an error, unless another overlay takes it in: a cluster that got
// another name would lose its changes without a word.
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
		names, err := overlays(dir.FS, p.OverlaysDir(), e.Name(), p.ByOperator(), taken)
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
			faults.Addf(diag.Pos{File: at}, "no cluster is called %q (have %s): move it to the directory of the cluster that it is for, or delete it", name, strings.Join(p.Clusters(), ", "))
		}
	}
	return out, faults.Err()
}

// overlays returns the directories of a cluster that have a kustomization, and notes
// which directories beside it these take in.
func overlays(fsys fs.FS, base, cluster string, byPiece bool, taken map[string]bool) ([]string, error) {
	var out []string
	note := func(name string) error {
		dir := path.Join(cluster, name)
		k, data, err := kustomizationOf(fsys, dir)
		there := data != nil
		if err != nil || !there {
			return err
		}
		if want := types.ComponentKind; name != layout.Resources && k.Kind != want {
			return fmt.Errorf("%s: want kind: %s (apiVersion: %s), for it changes what is rendered; objects of your own go into %s/%s",
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
		// Other directories are the team's: what an overlay may be made of.
		if e.IsDir() && (strings.Contains(e.Name(), ".") || slices.Contains([]string{layout.Resources, "reporter"}, e.Name())) {
			err = errors.Join(err, note(e.Name()))
		}
	}
	return out, err
}

// ByOperator reports whether an engine applies each operator by itself.
func (p *Project) ByOperator() bool {
	tool, err := profile.Of(p.Settings.Profile)
	return err == nil && profile.PerPiece(tool, p.Settings.GitOps)
}

// forAll returns a fault for each field of a Component for all pieces that is not right
// for each of them: it would name an object that most do not have, or make one in each.
func forAll(file, dir string, k types.Kustomization, data []byte) error {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{})
	if err != nil || len(docs) != 1 {
		return err
	}
	at := diag.Fields(yamlnode.Positions(file, docs[0]))
	var faults diag.List
	wrong := func(field string) {
		faults.Addf(at.At(field, diag.Pos{File: file}), "%s is not for all pieces: put it into %s/<namespace>.<package>/ of the operator that it is for, or set spec.gitops.granularity: cluster", field, dir)
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

// kustomizationOf reads the kustomization of a directory; nil where it has none.
func kustomizationOf(fsys fs.FS, dir string) (types.Kustomization, []byte, error) {
	var k types.Kustomization
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		data, err := fs.ReadFile(fsys, path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil { // within bounds, for it may be a stranger's
			_, err = yamlnode.Documents(path.Join(dir, name), data, yamlnode.Limits{})
		}
		if err == nil {
			err = yaml.Unmarshal(data, &k)
		}
		return k, data, err
	}
	return k, nil, nil
}
