package overlay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

const policyGroup = "policy.open-cluster-management.io"

// policyGenerator is a configuration of the plugin PolicyGenerator, without placements.
type policyGenerator struct {
	Defaults policySettings `json:"policyDefaults"`
	Policies []struct {
		policySettings
		Name      string `json:"name"`
		Manifests []struct {
			policySettings
			Path    string           `json:"path"`
			Patches []map[string]any `json:"patches"`
		} `json:"manifests"`
	} `json:"policies"`
}

// policySettings are fields that a policy inherits from the defaults, and a manifest from its policy.
type policySettings struct {
	Namespace         string `json:"namespace"`
	RemediationAction string `json:"remediationAction"`
	ComplianceType    string `json:"complianceType"`
	Disabled          *bool  `json:"disabled"`
}

// isPolicyGenerator reports whether all configurations are those of PolicyGenerator.
func isPolicyGenerator(configs []map[string]any) bool {
	return len(configs) > 0 && !slices.ContainsFunc(configs, func(c map[string]any) bool {
		group, _, _ := strings.Cut(k8s.Text(c, "apiVersion"), "/")
		return group != policyGroup || k8s.Text(c, "kind") != "PolicyGenerator"
	})
}

// addPolicies replaces the generator r, a file of PolicyGenerator, by the Policies that it generates. Each
// of them is on the line of its configuration, or after it.
func (f *Files) addPolicies(o *Overlay, r reference, file string, docs []*yamlnode.Node) error {
	var out strings.Builder
	line := 1
	for _, doc := range docs {
		data, err := yamlnode.JSON(doc)
		if err != nil {
			return err
		}
		var config policyGenerator
		if err := json.Unmarshal(data, &config); err != nil {
			return err
		}
		if len(yamlnode.NodesAt(doc, "policies.[].manifests.[]")) > maxPolicyManifests {
			return fmt.Errorf("more than %d manifests", maxPolicyManifests)
		}
		at := yamlnode.NodesAt(doc, "policies.[]")
		for i, p := range config.Policies {
			pos := diag.Pos{File: file}
			if i < len(at) {
				pos = yamlnode.At(file, at[i])
			}
			text, err := f.generatePolicy(o, config, i)
			if err != nil {
				return diag.Errorf(pos, "policy %q: %w", p.Name, err)
			}
			for ; line < pos.Line-1; line++ {
				out.WriteByte('\n')
			}
			out.WriteString("---\n")
			out.Write(text)
			out.WriteByte('\n')
			line += 2
		}
	}
	o.generated = map[string]bool{file: true}
	k := &o.kustomization // its lists are shared
	k.Generators = slices.DeleteFunc(slices.Clone(k.Generators), func(name string) bool { return name == r.name })
	if out.Len() == 0 {
		return nil
	}
	k.Resources = append(slices.Clone(k.Resources), r.name)
	return o.addFile(file, []byte(out.String()), resource)
}

// generatePolicy returns a Policy of a configuration as JSON.
func (f *Files) generatePolicy(o *Overlay, config policyGenerator, i int) ([]byte, error) {
	p := config.Policies[i]
	action := cmp.Or(p.RemediationAction, config.Defaults.RemediationAction, "inform")
	disabled := cmp.Or(p.Disabled, config.Defaults.Disabled)
	templates := []any{}
	for n, m := range p.Manifests {
		objects, err := f.manifestObjects(o, m.Path, m.Patches)
		if err != nil {
			return nil, err
		}
		compliance := cmp.Or(m.ComplianceType, p.ComplianceType, config.Defaults.ComplianceType, "musthave")
		for _, text := range objects {
			templates = append(templates, map[string]any{"objectDefinition": policyTemplate(text, fmt.Sprintf("%s%d", p.Name, n), action, compliance)})
		}
	}
	return json.Marshal(map[string]any{
		"apiVersion": policyGroup + "/v1", "kind": "Policy",
		"metadata": map[string]any{"name": p.Name, "namespace": cmp.Or(p.Namespace, config.Defaults.Namespace)},
		"spec":     map[string]any{"remediationAction": action, "disabled": disabled != nil && *disabled, "policy-templates": templates},
	})
}

// policyTemplate returns the template of a Policy for an object: the object if it is a policy itself, or
// else a ConfigurationPolicy.
func policyTemplate(text []byte, name, action, compliance string) any {
	var fields map[string]any
	if json.Unmarshal(text, &fields) != nil {
		return nil
	}
	if group, _, _ := strings.Cut(k8s.Text(fields, "apiVersion"), "/"); group == policyGroup {
		return fields
	}
	return map[string]any{
		"apiVersion": policyGroup + "/v1", "kind": "ConfigurationPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"remediationAction": action, "object-templates": []any{map[string]any{"complianceType": compliance, "objectDefinition": fields}}},
	}
}

// manifestObjects returns the objects of a file, of the files of a directory, or of a kustomization, with
// patches, as JSON.
func (f *Files) manifestObjects(o *Overlay, name string, patches []map[string]any) ([][]byte, error) {
	at := path.Join(o.Dir, name)
	if !fs.ValidPath(at) || f.remote.MatchString(name) {
		return nil, fmt.Errorf("%q %w", name, ErrOutside)
	}
	const virtual = "kustomization.yaml"
	dir := path.Join(o.Dir, ".quayside-policies")
	files := map[string][]byte{}
	k := types.Kustomization{}
	add := func(file string) error {
		data, err := f.source.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%q: %w", file, err)
		}
		o.Sources = append(o.Sources, file)
		own := fmt.Sprintf("%d.yaml", len(files))
		files[path.Join(dir, own)] = data
		k.Resources = append(k.Resources, own)
		return nil
	}
	exists := func(file string) bool { _, err := f.source.ReadFile(file); return err == nil }
	isKustomization := slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool { return exists(path.Join(at, name)) })
	var err error
	switch {
	case exists(at):
		err = add(at)
	case isKustomization:
		k.Resources = []string{filetree.Relative(dir, at)}
	default:
		names := f.list(at)
		if len(names) == 0 {
			return nil, fmt.Errorf("%q: %w", name, fs.ErrNotExist)
		}
		for _, file := range names {
			err = errors.Join(err, add(path.Join(at, file)))
		}
	}
	if err != nil {
		return nil, err
	}
	if len(patches) == 0 && !isKustomization {
		return objectsOf(files)
	}
	for _, p := range patches {
		more, err := policyPatches(p, files)
		if err != nil {
			return nil, err
		}
		k.Patches = append(k.Patches, more...)
	}
	if files[path.Join(dir, virtual)], err = json.Marshal(k); err != nil {
		return nil, err
	}
	isVirtual := func(file string) ([]byte, bool) { data, is := files[file]; return data, is }
	inner := NewTolerant(ReplacingSource{Dir: dir, Files: isVirtual, Base: f.source}, nil) // without generators of policies in policies
	top, err := inner.Open(dir)
	if err != nil {
		return nil, err
	}
	for sub := range top.Kustomizations() {
		if len(sub.Skipped) > 0 {
			return nil, fmt.Errorf("%q: %w", name, sub.Skipped[0].fault())
		}
		if sub != top {
			o.Sources = append(append(o.Sources, sub.Dir), sub.Files()...)
		}
	}
	n, err := top.Count()
	if err != nil {
		return nil, err
	}
	if n > maxPolicyObjects {
		return nil, fmt.Errorf("more than %d objects", maxPolicyObjects)
	}
	return top.Build()
}

// Limits of a PolicyGenerator.
const (
	maxPolicyObjects   = 1_000 // of one manifest
	maxPolicyManifests = 1_000 // of one configuration
)

// objectsOf returns the objects in files as JSON, in the order of the files' names. They may be parts of objects.
func objectsOf(files map[string][]byte) ([][]byte, error) {
	var out [][]byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		docs, err := yamlnode.Documents(name, files[name], yamlnode.Limits{})
		if err != nil {
			return nil, err
		}
		for _, n := range docs {
			text, err := yamlnode.JSON(n)
			if err != nil {
				return nil, err
			}
			out = append(out, text)
		}
	}
	return out, nil
}

// policyPatches returns the patches of kustomize for a patch of a manifest. If the files have only one
// object, that one is patched, also its name and its namespace. Otherwise the patch identifies the object.
func policyPatches(patch map[string]any, files map[string][]byte) ([]types.Patch, error) {
	object := onlyObject(files)
	if object == nil {
		text, err := json.Marshal(patch)
		return []types.Patch{{Patch: string(text)}}, err
	}
	merged := map[string]any{}
	maps.Copy(merged, patch)
	metadata := map[string]any{}
	maps.Copy(metadata, k8s.Map(patch, "metadata"))
	merged["apiVersion"], merged["kind"], merged["metadata"] = object["apiVersion"], object["kind"], metadata
	var renames []any
	for _, field := range []string{"name", "namespace"} {
		before := k8s.Text(object, "metadata", field)
		if after := k8s.Text(metadata, field); after != "" && after != before {
			renames = append(renames, map[string]any{"op": "add", "path": "/metadata/" + field, "value": after})
		}
		if metadata[field] = before; before == "" {
			delete(metadata, field)
		}
	}
	text, err := json.Marshal(merged)
	out := []types.Patch{{Patch: string(text)}}
	if len(renames) > 0 && err == nil {
		text, err = json.Marshal(renames)
		out = append(out, types.Patch{Patch: string(text), Target: &types.Selector{ResId: resid.ResId{Name: regexp.QuoteMeta(k8s.Text(object, "metadata", "name"))}}})
	}
	return out, err
}

// onlyObject returns the object in files, or nil if there are several.
func onlyObject(files map[string][]byte) map[string]any {
	var docs []*yamlnode.Node
	for name, data := range files {
		list, err := yamlnode.Documents(name, data, yamlnode.Limits{})
		if err != nil {
			return nil
		}
		docs = append(docs, list...)
	}
	if len(docs) != 1 {
		return nil
	}
	var object map[string]any
	if text, err := yamlnode.JSON(docs[0]); err != nil || json.Unmarshal(text, &object) != nil {
		return nil
	}
	return object
}
