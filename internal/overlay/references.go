package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/filetree"
)

// kind is the kind of file that a field of a kustomization refers to.
type kind int

const (
	content   kind = iota // a file with any content
	config                // a YAML file that configures kustomize
	resource              // a file with objects, or a directory
	component             // a directory
	plugin                // a file or inline text that configures a generator or transformer
	patch                 // a file with a patch, or an inline patch
)

// reference is a value in a kustomization that refers to input of the build.
type reference struct {
	field string // "patches[1].path"
	name  string // "../more-memory.yaml"
	kind  kind
}

// isInline reports whether the value is itself a configuration or a patch, and not a path.
func (r reference) isInline() bool {
	return (r.kind == plugin || r.kind == patch) && strings.ContainsAny(r.name, "\n{")
}

// listReferences returns all references in a kustomization: the fields of types.Kustomization that
// kustomize passes to its loader.
func listReferences(k types.Kustomization) []reference {
	var out []reference
	add := func(kind kind, field string, names ...string) {
		for i, name := range names {
			out = append(out, reference{fmt.Sprintf("%s[%d]", field, i), name, kind})
		}
	}
	one := func(kind kind, field, name string) {
		if name != "" {
			out = append(out, reference{field, name, kind})
		}
	}
	add(resource, "resources", k.Resources...)
	add(component, "components", k.Components...)
	add(config, "crds", k.Crds...)
	add(config, "configurations", k.Configurations...)
	add(plugin, "generators", k.Generators...)
	add(plugin, "transformers", k.Transformers...)
	add(plugin, "validators", k.Validators...)
	one(config, "openapi.path", k.OpenAPI["path"])
	for i, p := range k.Patches {
		one(config, fmt.Sprintf("patches[%d].path", i), p.Path)
	}
	for i, p := range k.PatchesJson6902 { //nolint:staticcheck // deprecated, but kustomize still supports the field
		one(config, fmt.Sprintf("patchesJson6902[%d].path", i), p.Path)
	}
	for i, p := range k.PatchesStrategicMerge { //nolint:staticcheck // deprecated, but kustomize still supports the field
		one(patch, fmt.Sprintf("patchesStrategicMerge[%d]", i), string(p))
	}
	for i, r := range k.Replacements {
		one(config, fmt.Sprintf("replacements[%d].path", i), r.Path)
	}
	sources := func(field string, i int, from types.KvPairSources) {
		for j, name := range from.FileSources {
			if _, file, keyed := strings.Cut(name, "="); keyed {
				name = file
			}
			one(content, fmt.Sprintf("%s[%d].files[%d]", field, i, j), name)
		}
		add(content, fmt.Sprintf("%s[%d].envs", field, i), from.EnvSources...)
	}
	for i, g := range k.ConfigMapGenerator {
		sources("configMapGenerator", i, g.KvPairSources)
	}
	for i, g := range k.SecretGenerator {
		sources("secretGenerator", i, g.KvPairSources)
	}
	return out
}

// addPluginFiles adds the files that v, the configuration of a built-in plugin of kustomize, may
// refer to.
func (f *Files) addPluginFiles(o *Overlay, v any) error {
	var faults []error
	var visit func(key string, v any)
	visit = func(key string, v any) {
		switch x := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(x)) {
				visit(key, x[key])
			}
		case []any:
			for _, v := range x {
				visit(key, v)
			}
		case string:
			switch strings.ToLower(key) {
			case "path", "paths", "files", "envs", "env", "targetfilepath":
				if f.remote.MatchString(x) {
					faults = append(faults, fmt.Errorf("%q is not a local file: remote resources are not fetched", x))
				}
				if _, file, keyed := strings.Cut(x, "="); keyed {
					x = file
				}
				// Most of these strings are field paths and not file names: ignore missing files.
				at, err := f.resolveReference(o, x)
				if errors.Is(err, filetree.ErrOutside) {
					faults = append(faults, err)
				} else if data, err := f.source.ReadFile(at); err == nil {
					faults = append(faults, o.addFile(at, data, content))
				}
			}
		}
	}
	visit("", v)
	return errors.Join(faults...)
}

// resolveLinks returns the target of a path after following symbolic links. kustomize also follows
// links before it checks whether a file is inside the root directory.
func (f *Files) resolveLinks(name string) (string, error) {
	if dir, _ := path.Split(name); len(dir) > 1 && f.plain[dir[:len(dir)-1]] && fs.ValidPath(name) {
		if _, err := f.source.ReadLink(name); err != nil {
			return name, nil
		}
	}
	return filetree.ResolveLinks(name, f.source.ReadLink, "repository", f.plain)
}

// resolveReference returns the path that a reference in o leads to, and records links in o.
func (f *Files) resolveReference(o *Overlay, name string) (string, error) {
	name = path.Join(o.Dir, name)
	at, err := f.resolveLinks(name)
	if err == nil && at != name {
		if o.links == nil {
			o.links = map[string]string{}
		}
		o.links[name] = at
	}
	return at, err
}
