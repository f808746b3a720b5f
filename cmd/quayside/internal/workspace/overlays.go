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

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Overlays returns the overlays of each cluster, and warnings about their kustomizations. The names of
// overlays are as in profile.Cluster: "" for the overlay that applies to all pieces (rendered
// directories), "resources", or the name of a piece. A directory that is not named after a cluster is
// an error, unless another overlay uses it: a renamed cluster must not silently lose its overlays.
func (p *Opened) Overlays() (map[string][]string, []diag.Warning, error) {
	dir, err := p.lookup(p.Settings.OverlaysDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	entries, err := fs.ReadDir(dir.FS, ".")
	if err != nil {
		return nil, nil, err
	}
	var warnings []diag.Warning
	out, used := map[string][]string{}, map[string]bool{}
	var faults diag.List
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		names, notes, err := listOverlays(dir.FS, p.Settings.OverlaysDir(), e.Name(), p.Settings.ByOperator(), used)
		faults.Add(diag.Pos{}, err)
		warnings = append(warnings, notes...)
		if len(names) > 0 {
			out[e.Name()] = names
		}
	}
	for name := range out {
		if slices.Contains(p.Settings.ClusterNames(), name) {
			continue
		}
		if delete(out, name); !used[name] {
			at := path.Join(p.Settings.OverlaysDir(), name)
			faults.Addf(diag.Pos{File: at}, "no cluster %q (available: %s): move these overlays to the directory of a cluster, or delete them", name, strings.Join(p.Settings.ClusterNames(), ", "))
		}
	}
	return out, warnings, faults.Err()
}

// listOverlays returns the subdirectories of a cluster's directory that have a kustomization, and
// warnings about deprecated fields. In used, it marks the directories of other clusters that these
// kustomizations refer to.
func listOverlays(fsys fs.FS, base, cluster string, byPiece bool, used map[string]bool) ([]string, []diag.Warning, error) {
	var out []string
	var warnings []diag.Warning
	add := func(name string) error {
		dir := path.Join(cluster, name)
		k, data, err := readKustomization(fsys, dir)
		there := data != nil
		if err != nil || !there {
			return err
		}
		if want := types.ComponentKind; name != layout.Resources && k.Kind != want {
			return fmt.Errorf("%s: kind must be %s (apiVersion: %s), because this kustomization patches rendered objects; put your own objects into %s/%s",
				path.Join(base, dir, layout.Kustomization), want, types.ComponentVersion, path.Join(base, cluster), layout.Resources)
		}
		for _, ref := range slices.Concat(k.Resources, k.Components) {
			if top, _, below := strings.Cut(path.Join(dir, ref)+"/", "/"); below && top != cluster {
				used[top] = true
			}
		}
		out = append(out, name)
		file := path.Join(base, dir, layout.Kustomization)
		if fields := deprecatedFields(k); len(fields) > 0 {
			warnings = append(warnings, diag.Warning{Pos: diag.Pos{File: file}, Code: "deprecated-field", Msg: "kustomize has deprecated " + strings.Join(fields, ", ") + ": run 'kustomize edit fix' in this directory"})
		}
		if name == "" && byPiece {
			return checkFitsAll(file, path.Join(base, cluster), k, data)
		}
		return nil
	}
	if err := add(""); err != nil {
		return nil, nil, err
	}
	entries, err := fs.ReadDir(fsys, cluster)
	for _, e := range entries {
		// A directory with any other name is no overlay, but overlays may refer to it.
		if e.IsDir() && (strings.Contains(e.Name(), ".") || slices.Contains([]string{layout.Resources, "reporter"}, e.Name())) {
			err = errors.Join(err, add(e.Name()))
		}
	}
	return out, warnings, err
}

// deprecatedFields returns the fields of a kustomization that kustomize has marked as deprecated.
func deprecatedFields(k types.Kustomization) []string {
	var out []string
	for _, message := range *k.CheckDeprecatedFields() {
		if _, name, ok := strings.Cut(message, "'"); ok { // message: "# Warning: 'bases' is deprecated. …"
			name, _, _ = strings.Cut(name, "'")
			out = append(out, name)
		}
	}
	return out
}

// checkFitsAll returns a fault for each field that is not allowed in an overlay of all pieces. Such a field
// refers to an object that most pieces lack, or adds an object to every piece.
func checkFitsAll(file, dir string, k types.Kustomization, data []byte) error {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{})
	if err != nil || len(docs) != 1 {
		return err
	}
	at := diag.Fields(yamlnode.Positions(file, docs[0]))
	var faults diag.List
	addFault := func(field string) {
		faults.Addf(at.At(field, diag.Pos{File: file}), "%s would apply to every operator: move it to %s/<namespace>.<package>/ of one operator, or set spec.gitops.granularity: cluster", field, dir)
	}
	for i, p := range k.Patches {
		if p.Target == nil {
			addFault(fmt.Sprintf("patches[%d]", i))
		}
	}
	k.Patches, k.Images, k.Labels, k.CommonLabels, k.CommonAnnotations, k.Components = nil, nil, nil, nil, nil, nil //nolint:staticcheck // clear the permitted fields, also deprecated ones, which users still set
	k.TypeMeta, k.MetaData, k.BuildMetadata, k.SortOptions = types.TypeMeta{}, nil, nil, nil
	rest := reflect.ValueOf(k)
	for i := range rest.NumField() {
		if !rest.Field(i).IsZero() {
			name, _, _ := strings.Cut(rest.Type().Field(i).Tag.Get("json"), ",")
			addFault(name)
		}
	}
	return faults.Err()
}

// readKustomization reads the kustomization of a directory. If there is none, data is nil.
func readKustomization(fsys fs.FS, dir string) (k types.Kustomization, data []byte, err error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		data, err = fs.ReadFile(fsys, path.Join(dir, name))
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
