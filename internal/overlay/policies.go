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

// policySettings are the fields that a policy inherits from the defaults, and that a manifest inherits from
// its policy.
type policySettings struct {
	Namespace         string `json:"namespace"`
	RemediationAction string `json:"remediationAction"`
	ComplianceType    string `json:"complianceType"`
	Disabled          *bool  `json:"disabled"`
}

// isPolicyGenerator reports whether all configurations are for PolicyGenerator.
func isPolicyGenerator(configs []map[string]any) bool {
	return len(configs) > 0 && !slices.ContainsFunc(configs, func(c map[string]any) bool {
		group, _, _ := strings.Cut(k8s.Text(c, "apiVersion"), "/")
		return group != policyGroup || k8s.Text(c, "kind") != "PolicyGenerator"
	})
}

// generatedPolicy is a Policy of a PolicyGenerator.
type generatedPolicy struct {
	pos     diag.Pos         // of its configuration
	objects []policyManifest // one object for each template of the Policy
}

// policyManifest is an object in a Policy of a PolicyGenerator.
type policyManifest struct {
	text []byte // as JSON
	file string
	node *yamlnode.Node // the object in file, before patches; nil if it is unknown
}

// addPolicies replaces the PolicyGenerator r by a file with the Policies that it generates. Each line of this
// file is a Policy. docs are the documents of file, which configures r.
func (f *Files) addPolicies(o *Overlay, r reference, file string, docs []*yamlnode.Node) error {
	var out strings.Builder
	var policies []generatedPolicy
	at := func(n *yamlnode.Node) diag.Pos { return yamlnode.At(file, n) }
	name := r.name
	if r.isInline() {
		inline := o.inlinePosition(r.field, r.name)
		at = func(n *yamlnode.Node) diag.Pos { return inline(yamlnode.At(file, n)) }
		name = strings.NewReplacer("[", "-", "]", "").Replace(".quayside-"+r.field) + ".yaml"
		file = o.path(name)
	}
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
		nodes := yamlnode.NodesAt(doc, "policies.[]")
		for i, p := range config.Policies {
			pos := at(doc)
			if i < len(nodes) {
				pos = at(nodes[i])
			}
			text, objects, err := f.generatePolicy(o, config, i)
			if err != nil {
				return diag.Errorf(pos, "policy %q: %w", p.Name, err)
			}
			policies = append(policies, generatedPolicy{pos, objects})
			fmt.Fprintf(&out, "---\n%s\n", text)
		}
	}
	if o.generated == nil {
		o.generated = map[string][]generatedPolicy{}
	}
	o.generated[file] = policies
	k := &o.kustomization // its lists are shared
	k.Generators = slices.DeleteFunc(slices.Clone(k.Generators), func(name string) bool { return name == r.name })
	if len(policies) == 0 {
		return nil
	}
	k.Resources = append(slices.Clone(k.Resources), name)
	return o.addFile(file, []byte(out.String()), resource)
}

// isGenerated reports whether a file is replaced by the output of a PolicyGenerator.
func (o *Overlay) isGenerated(file string) bool {
	_, generated := o.generated[file]
	return generated
}

// generatedPolicy returns the generated Policy in a line of a file.
func (t *Trace) generatedPolicy(file string, line int) (generatedPolicy, bool) {
	for _, o := range t.order {
		if list := o.generated[file]; line%2 == 0 && line/2 <= len(list) && line > 0 {
			return list[line/2-1], true
		}
	}
	return generatedPolicy{}, false
}

// walkPolicy sets the origins of the values of n, a generated Policy. Values of its objects are
// from the manifests, and other values from the configuration of the Policy.
func (p valueOrigins) walkPolicy(n, origin *yamlnode.Node, policy generatedPolicy) {
	for i, template := range yamlnode.NodesAt(n, "spec.policy-templates.[].objectDefinition") {
		if i >= len(policy.objects) || policy.objects[i].node == nil {
			continue
		}
		m := policy.objects[i]
		objects := []*yamlnode.Node{template}
		if objectIDOf(m.node).kind != objectIDOf(template).kind {
			objects = yamlnode.NodesAt(template, "spec.object-templates.[].objectDefinition")
		}
		if len(objects) == 1 {
			p.walk(objects[0], m.node, func(n *yamlnode.Node) diag.Pos { return yamlnode.At(m.file, n) })
		}
	}
	p.walk(n, origin, func(*yamlnode.Node) diag.Pos { return policy.pos })
}

// generatePolicy returns a Policy of a configuration as JSON, and its objects.
func (f *Files) generatePolicy(o *Overlay, config policyGenerator, i int) (text []byte, all []policyManifest, err error) {
	p := config.Policies[i]
	action := cmp.Or(p.RemediationAction, config.Defaults.RemediationAction, "inform")
	disabled := cmp.Or(p.Disabled, config.Defaults.Disabled)
	templates := []any{}
	for n, m := range p.Manifests {
		objects, err := f.manifestObjects(o, m.Path, m.Patches)
		if err != nil {
			return nil, nil, err
		}
		compliance := cmp.Or(m.ComplianceType, p.ComplianceType, config.Defaults.ComplianceType, "musthave")
		all = append(all, objects...)
		for _, object := range objects {
			templates = append(templates, map[string]any{"objectDefinition": policyTemplate(object.text, fmt.Sprintf("%s%d", p.Name, n), action, compliance)})
		}
	}
	text, err = json.Marshal(map[string]any{
		"apiVersion": policyGroup + "/v1", "kind": "Policy",
		"metadata": map[string]any{"name": p.Name, "namespace": cmp.Or(p.Namespace, config.Defaults.Namespace)},
		"spec":     map[string]any{"remediationAction": action, "disabled": disabled != nil && *disabled, "policy-templates": templates},
	})
	return text, all, err
}

// policyTemplate returns the template of a Policy for an object: the object if it is a policy
// itself, otherwise a ConfigurationPolicy.
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

// manifestObjects returns the objects of a file, of the files of a directory, or of a
// kustomization, after applying patches.
func (f *Files) manifestObjects(o *Overlay, name string, patches []map[string]any) ([]policyManifest, error) {
	at := path.Join(o.Dir, name)
	if !fs.ValidPath(at) || f.remote.MatchString(name) {
		return nil, fmt.Errorf("%q %w", name, ErrOutside)
	}
	const virtual = "kustomization.yaml"
	dir := path.Join(o.Dir, ".quayside-policies")
	files := map[string][]byte{}
	var objects []policyManifest
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
		more, err := objectsOf(file, data)
		objects = append(objects, more...)
		return err
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
		return objects, nil
	}
	for _, p := range patches {
		more, err := policyPatches(p, objects)
		if err != nil {
			return nil, err
		}
		k.Patches = append(k.Patches, more...)
	}
	if files[path.Join(dir, virtual)], err = json.Marshal(k); err != nil {
		return nil, err
	}
	isVirtual := func(file string) ([]byte, bool) { data, is := files[file]; return data, is }
	inner := NewTolerant(ReplacingSource{Dir: dir, Files: isVirtual, Base: f.source}, nil, f.results) // nil: PolicyGenerators of included kustomizations are not evaluated
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
	built, err := top.BuildAtMost(maxPolicyObjects)
	if err != nil {
		return nil, err
	}
	out := make([]policyManifest, 0, len(built))
	for _, text := range built {
		m := policyManifest{text: text}
		if len(objects) == 1 && len(built) == 1 {
			m.file, m.node = objects[0].file, objects[0].node
		}
		out = append(out, m)
	}
	return out, nil
}

// Limits of a PolicyGenerator.
const (
	maxPolicyObjects   = 1_000 // of one manifest
	maxPolicyManifests = 1_000 // of one configuration
)

// objectsOf returns the objects in a file. The objects may be incomplete.
func objectsOf(file string, data []byte) ([]policyManifest, error) {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{})
	if err != nil {
		return nil, err
	}
	var out []policyManifest
	for _, n := range docs {
		text, err := yamlnode.JSON(n)
		if err != nil {
			return nil, err
		}
		out = append(out, policyManifest{text, file, n})
	}
	return out, nil
}

// policyPatches returns the kustomize patches for a patch of a manifest. If the manifest has only
// one object, the patches change this object and may also change its name and namespace. Otherwise patch must
// identify the object that it changes.
func policyPatches(patch map[string]any, objects []policyManifest) ([]types.Patch, error) {
	var object map[string]any
	if len(objects) != 1 || json.Unmarshal(objects[0].text, &object) != nil {
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
