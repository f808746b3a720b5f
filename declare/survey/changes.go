package survey

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
)

// Equal reports whether a and b apply the same files with the same changes, perhaps to different clusters.
func (a *Applied) Equal(b *Applied) bool {
	without := func(a Applied) Applied {
		a.Entry, a.Pos, a.Cluster, a.Guess = &Entry{isArgo: a.Entry.isArgo}, diag.Pos{}, "", ""
		return a
	}
	return reflect.DeepEqual(without(*a), without(*b))
}

// Kustomization returns the content of the kustomization file from which the tool builds a.Dir. data is the
// content of the existing file. If data is not nil, the result is data with the tool's changes. Otherwise the
// result is a new kustomization that lists resources. It is nil if the tool builds no kustomization in a.Dir.
func (a *Applied) Kustomization(data []byte, resources []string) ([]byte, error) {
	c := a.Changes
	var k types.Kustomization
	switch {
	case data != nil && !c.IsBuilt():
		return data, nil
	case data == nil && a.Entry.isArgo && c.IsBuilt():
		return nil, fmt.Errorf("%s sets spec.source.kustomize, but %q has no kustomization", a.Entry.By, a.Dir)
	case data == nil && a.Entry.isArgo:
		return nil, nil
	case data == nil:
		for _, name := range resources {
			k.Resources = append(k.Resources, filetree.Relative(a.Dir, name))
		}
	default:
		if err := k.Unmarshal(data); err != nil {
			return nil, err
		}
		k.FixKustomization()
	}
	if c.Namespace != "" {
		k.Namespace = c.Namespace
	}
	k.NamePrefix, k.NameSuffix = cmp.Or(c.NamePrefix, k.NamePrefix), cmp.Or(c.NameSuffix, k.NameSuffix)
	if len(c.Labels) > 0 {
		k.Labels = append(k.Labels, types.Label{Pairs: c.Labels})
	}
	if len(c.Annotations) > 0 {
		merged := maps.Clone(k.CommonAnnotations)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, c.Annotations)
		k.CommonAnnotations = merged
	}
	k.Patches = append(k.Patches, c.Patches...)
	k.Components = append(k.Components, c.Components...)
	for _, image := range c.Images {
		k.Images = append(slices.DeleteFunc(k.Images, func(i types.Image) bool { return i.Name == image.Name }), image)
	}
	return json.Marshal(k)
}
