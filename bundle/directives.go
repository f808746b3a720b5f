package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
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
// them, which is dropped. Pods are the operator's own affair.
func checkDirectives(c *checker) {
	for _, o := range c.b.Objects {
		for _, field := range []string{"annotations", "labels"} {
			c.directives(o.Pos(), o.String()+": metadata."+field, slices.Collect(maps.Keys(child(child(o.Fields, "metadata"), field))))
		}
	}
	for _, d := range c.csv.Deployments {
		c.directives(diag.Pos{File: c.csv.File}, d.Field+".label", slices.Collect(maps.Keys(d.Labels)))
	}
}

func (c *checker) directives(pos diag.Pos, at string, keys []string) {
	for _, key := range keys {
		if tool := Steers(key); tool != "" {
			c.warnings = append(c.warnings, diag.Warning{Pos: pos, Code: "tool-directive", Msg: fmt.Sprintf(
				"%s: %q is dropped, for it steers %s: how a bundle is applied is not the bundle's to say", at, key, tool)})
		}
	}
}
