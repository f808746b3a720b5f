package bundle

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	apilabels "k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// bundleDirectives returns the annotation and label keys that control the tool that applies the
// bundle. Bundles must not set them, because the user chooses the tool and its options.
func bundleDirectives() []profile.Directive {
	return append(profile.Directives(),
		profile.Directive{Tool: "kustomize", Domains: []string{"config.kubernetes.io", "config.k8s.io"}},
		profile.Directive{Tool: "kapp", Domains: []string{"kapp.k14s.io"}},
		profile.Directive{Tool: "kubectl", Domains: []string{"applyset.kubernetes.io", "cli-utils.sigs.k8s.io"}},
		profile.Directive{Tool: "quayside", Domains: []string{k8s.Domain}},
	)
}

// keptAnnotation prevents Helm from deleting an object. Rendering replaces it with the annotation of the GitOps tool.
const keptAnnotation = "helm.sh/resource-policy"

// ControlledTool returns the name of the tool that an annotation or label with this key controls,
// or "" if there is none.
func ControlledTool(key string) string { return profile.ToolOfKey(key, bundleDirectives()) }

// checkDirectives warns about annotations and labels that control tools. Rendering drops them. There is one
// warning for each key, and one for each object whose dropped label is used by a selector. checkDirectives
// ignores labels and annotations of pods, because rendering keeps them.
func checkDirectives(c *checker) {
	first := map[string]int{} // key → index of its first warning in c.warnings
	more := map[string]int{}
	check := func(pos diag.Pos, at string, keys iter.Seq[string], o ManifestObject, kept bool) {
		for key := range keys {
			tool := ControlledTool(key)
			if tool == "" || key == keptAnnotation && kept {
				continue
			}
			selectors := c.describeSelectors(o, key)
			if _, reported := first[key]; reported && selectors == "" {
				more[key]++
				continue
			}
			if selectors == "" {
				first[key] = len(c.warnings)
			}
			c.warnings = append(c.warnings, diag.Warning{Pos: pos, Code: "tool-directive", Minor: selectors == "", Msg: fmt.Sprintf(
				"%s: %q ignored: bundles must not control %s%s", at, key, tool, selectors)})
		}
	}
	for _, o := range c.b.Objects {
		metadata := k8s.Map(o.Object, "metadata")
		check(o.Pos(), o.String()+": metadata.annotations", maps.Keys(k8s.Map(metadata, "annotations")), ManifestObject{}, o.Kept && profile.IsKept(o.Object))
		check(o.Pos(), o.String()+": metadata.labels", maps.Keys(k8s.Map(metadata, "labels")), o, false)
	}
	for _, d := range c.csv.Deployments {
		check(diag.Pos{File: c.csv.File}, d.Field+".label", maps.Keys(d.Labels), ManifestObject{}, false)
	}
	for key, n := range more {
		c.warnings[first[key]].Msg += fmt.Sprintf(" (also in %s)", diag.Count(n, "more place"))
	}
}

// checkReservedKeys warns about quayside's keys in labels, annotations and selectors below the metadata of an object,
// such as in a pod template. Rendering drops quayside's keys only from the metadata itself. Elsewhere it keeps them: a
// selector without the key would match other objects, and a program may read the annotations of its pod.
func checkReservedKeys(c *checker) {
	var walk func(pos diag.Pos, at string, v any)
	walk = func(pos diag.Pos, at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if k8s.IsOwnKey(key) {
					c.warnings = append(c.warnings, diag.Warning{Pos: pos, Code: "reserved-key", Msg: fmt.Sprintf("%s: key %q is reserved for quayside, which does not read it here", at, key)})
				}
				walk(pos, at+"."+key, v[key])
			}
		case []any:
			for i, e := range v {
				walk(pos, diag.Item(at, i), e)
			}
		}
	}
	for _, o := range c.b.Objects {
		for _, field := range slices.Sorted(maps.Keys(o.Object)) {
			if field != "metadata" {
				walk(o.Pos(), o.String()+": "+field, o.Object[field])
			}
		}
	}
	csv := diag.Pos{File: c.csv.File}
	for _, d := range c.csv.Deployments {
		walk(csv, d.Field+".spec", d.Spec)
	}
	for _, key := range slices.Sorted(maps.Keys(c.csv.Annotations)) { // may be copied to pod templates
		if k8s.IsOwnKey(key) {
			c.warnf("reserved-key", "metadata.annotations: key %q is reserved for quayside, which does not read it here", key)
		}
	}
}

// describeSelectors returns a suffix for a warning about a label that rendering drops. The suffix lists the
// objects of the bundle whose selectors use the label key and match the object labelled. It is "" if there are
// no such objects, or if labelled is the zero value.
func (c *checker) describeSelectors(labelled ManifestObject, key string) string {
	selectors := ""
	for _, o := range c.b.Objects {
		if selectsObject(o, labelled, key) {
			selectors += fmt.Sprintf("; the selector of %s uses this label, so the selector no longer matches the object", o)
		}
	}
	return selectors
}

// selectsObject reports whether a selector in o uses the label with this key and matches the object labelled. It
// returns false for most kinds of Kubernetes itself: they select pods, and rendering keeps the labels of pods.
func selectsObject(o, labelled ManifestObject, key string) bool {
	switch o.Kind() {
	case "CustomResourceDefinition", "NetworkPolicy", "PodMonitor":
		return false
	case "ClusterRole":
		if labelled.Kind() != "ClusterRole" {
			return false
		}
	case "ServiceMonitor":
		if labelled.Kind() != "Service" {
			return false
		}
	}
	if labelled.Object == nil || !strings.Contains(o.Group(), ".") {
		return false
	}
	labels := apilabels.Set(k8s.TextMap(labelled.Object, "metadata", "labels"))
	found := false
	var walk func(v any)
	walk = func(v any) {
		m, _ := v.(map[string]any)
		list, _ := v.([]any)
		_, wanted := k8s.Map(m, "matchLabels")[key]
		wanted = wanted || slices.ContainsFunc(k8s.Items(m, "matchExpressions"), func(e map[string]any) bool { return k8s.Text(e, "key") == key })
		if s, ok := k8s.SelectorOf(m); wanted && ok && s.Matches(labels) {
			found = true
		}
		for _, e := range m {
			walk(e)
		}
		for _, e := range list {
			walk(e)
		}
	}
	walk(map[string]any(o.Object))
	return found
}
