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

// bundleDirectives lists the keys of annotations and labels that control a tool which applies
// the bundle. Bundles must not set them, because the user chooses the tool and its options.
func bundleDirectives() []profile.Directive {
	return append(profile.Directives(),
		profile.Directive{Tool: "kustomize", Domains: []string{"config.kubernetes.io", "config.k8s.io"}},
		profile.Directive{Tool: "kapp", Domains: []string{"kapp.k14s.io"}},
		profile.Directive{Tool: "kubectl", Domains: []string{"applyset.kubernetes.io", "cli-utils.sigs.k8s.io"}},
	)
}

// ControlledTool returns the tool controlled by an annotation or label with that key, or "".
func ControlledTool(key string) string { return profile.ToolOfKey(key, bundleDirectives()) }

// checkDirectives warns about annotations and labels that control tools, because rendering drops
// them. It reports each key once, and in addition each object whose selector uses such a label.
// Labels and annotations of pods are kept.
func checkDirectives(c *checker) {
	first := map[string]int{} // index of the first warning by key
	more := map[string]int{}
	check := func(pos diag.Pos, at string, keys iter.Seq[string], o ManifestObject) {
		for key := range keys {
			tool := ControlledTool(key)
			if tool == "" {
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
		check(o.Pos(), o.String()+": metadata.annotations", maps.Keys(k8s.Map(metadata, "annotations")), ManifestObject{})
		check(o.Pos(), o.String()+": metadata.labels", maps.Keys(k8s.Map(metadata, "labels")), o)
	}
	for _, d := range c.csv.Deployments {
		check(diag.Pos{File: c.csv.File}, d.Field+".label", maps.Keys(d.Labels), ManifestObject{})
	}
	for key, n := range more {
		c.warnings[first[key]].Msg += fmt.Sprintf(" (also in %s)", diag.Count(n, "more place"))
	}
}

// describeSelectors describes the objects of the bundle that select an object by its label with
// this key. It returns "" if there are none, or if the object is the zero Object.
func (c *checker) describeSelectors(of ManifestObject, key string) string {
	selectors := ""
	for _, o := range c.b.Objects {
		if selectsObject(o, of, key) {
			selectors += fmt.Sprintf("; the selector of %s uses it and no longer matches the object", o)
		}
	}
	return selectors
}

// selectsObject reports whether a selector in o matches the labels of an object and uses a key. It
// ignores most of Kubernetes' own kinds, which select pods, because pods keep their labels.
func selectsObject(o, of ManifestObject, key string) bool {
	switch o.Kind() {
	case "CustomResourceDefinition", "NetworkPolicy", "PodMonitor":
		return false
	case "ClusterRole":
		if of.Kind() != "ClusterRole" {
			return false
		}
	case "ServiceMonitor":
		if of.Kind() != "Service" {
			return false
		}
	}
	if of.Object == nil || !strings.Contains(o.Group(), ".") {
		return false
	}
	labels := apilabels.Set(k8s.TextMap(of.Object, "metadata", "labels"))
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
