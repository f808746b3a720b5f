package bundle

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	apilabels "k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/selector"
)

// directives lists the keys of annotations and labels that tell a tool what to
// do with an object rather than say something of it, each with the tool. Which
// tool applies a bundle, and how, is for whoever installs it to say.
func directives() []directive {
	return []directive{
		{"kustomize", domains("config.kubernetes.io", "config.k8s.io")},
		{"Flux", domains("fluxcd.io")},
		{"Argo CD", domains("argocd.argoproj.io", "argocd-image-updater.argoproj.io", "notifications.argoproj.io")},
		{"Argo CD", func(prefix, name string) bool { return prefix == "app.kubernetes.io" && name == "instance" }},
		{"Helm and Argo CD", func(prefix, name string) bool {
			return prefix == "helm.sh" && (strings.HasPrefix(name, "hook") || name == "resource-policy")
		}},
		{"kapp", domains("kapp.k14s.io")},
		{"kubectl", domains("applyset.kubernetes.io", "cli-utils.sigs.k8s.io")},
	}
}

type directive struct {
	tool  string
	steer func(prefix, name string) bool // of the key prefix/name
}

// domains matches every key of the domains, and of those below them.
func domains(all ...string) func(prefix, name string) bool {
	return func(prefix, _ string) bool {
		return slices.ContainsFunc(all, func(d string) bool { return prefix == d || strings.HasSuffix(prefix, "."+d) })
	}
}

// Steers returns the tool that an annotation or a label of that key is for, ""
// where it is for none.
func Steers(key string) string {
	prefix, name, ok := strings.Cut(strings.ToLower(key), "/")
	if !ok {
		return ""
	}
	for _, d := range directives() {
		if d.steer(prefix, name) {
			return d.tool
		}
	}
	return ""
}

// checkDirectives warns of what a bundle's objects tell the tools that apply
// them, which is dropped: of each key once, and of each object that others find
// by it. Pods are the operator's own affair.
func checkDirectives(c *checker) {
	first := map[string]int{} // the warning of each key
	more := map[string]int{}
	of := func(pos diag.Pos, at string, keys iter.Seq[string], o Object) {
		for key := range keys {
			tool := Steers(key)
			if tool == "" {
				continue
			}
			finds := c.finds(o, key)
			if _, said := first[key]; said && finds == "" {
				more[key]++
				continue
			}
			if finds == "" {
				first[key] = len(c.warnings)
			}
			c.warnings = append(c.warnings, diag.Warning{Pos: pos, Code: "tool-directive", Msg: fmt.Sprintf(
				"%s: %q is dropped, for it steers %s: how a bundle is applied is not the bundle's to say%s", at, key, tool, finds)})
		}
	}
	for _, o := range c.b.Objects {
		metadata := kobj.Map(o.Object, "metadata")
		of(o.Pos(), o.String()+": metadata.annotations", maps.Keys(kobj.Map(metadata, "annotations")), Object{})
		of(o.Pos(), o.String()+": metadata.labels", maps.Keys(kobj.Map(metadata, "labels")), o)
	}
	for _, d := range c.csv.Deployments {
		of(diag.Pos{File: c.csv.File}, d.Field+".label", maps.Keys(d.Labels), Object{})
	}
	for key, n := range more {
		c.warnings[first[key]].Msg += fmt.Sprintf(" (and so in %s)", diag.Count(n, "more place"))
	}
}

// finds says which objects of the bundle find the shipped object of by its label
// with that key, "" where none does or of is none.
func (c *checker) finds(of Object, key string) string {
	finds := ""
	for _, o := range c.b.Objects {
		if selects(o, of, key) {
			finds += fmt.Sprintf("; %s finds the object by it, and will not any more", o)
		}
	}
	return finds
}

// selects reports whether a selector in o matches the labels of an object, and
// wants the one with that key. Most of Kubernetes' own kinds select pods, which
// keep theirs.
func selects(o, of Object, key string) bool {
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
	labels := apilabels.Set(kobj.TextMap(of.Object, "metadata", "labels"))
	found := false
	var walk func(v any)
	walk = func(v any) {
		m, _ := v.(map[string]any)
		list, _ := v.([]any)
		_, wanted := kobj.Map(m, "matchLabels")[key]
		wanted = wanted || slices.ContainsFunc(kobj.Items(m, "matchExpressions"), func(e map[string]any) bool { return kobj.Text(e, "key") == key })
		if s, ok := selector.Of(m); wanted && ok && s.Matches(labels) {
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
