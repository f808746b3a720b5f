package repotest

import (
	"fmt"
	"strings"
)

// text returns the YAML of the entry point's object, such as an Application, or "" if there is no object.
func (e entry) text() string {
	switch e.kind {
	case "application":
		return fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: %s}\nspec:\n", e.name) + e.applicationSpec("  ", e.units[0].top(), "", e.changes.defaultNamespace)
	case "flux":
		return e.flux()
	case "set":
		return e.applicationSet()
	default:
		return ""
	}
}

// applicationSpec returns the fields of an Application's spec.
func (e entry) applicationSpec(indent, dir, cluster, namespace string) string {
	lines := []string{
		fmt.Sprintf("destination: {name: '%s', namespace: '%s'}", cluster, namespace),
		"source:",
		"  path: '" + dir + "'",
	}
	if c := e.changes; c.namespace+c.prefix+c.patch != "" {
		lines = append(lines, "  kustomize:")
		for _, f := range [][2]string{{"namespace", c.namespace}, {"namePrefix", c.prefix}} {
			if f[1] != "" {
				lines = append(lines, "    "+f[0]+": "+f[1])
			}
		}
		if c.patch != "" {
			lines = append(lines, "    patches: "+patchChannel(c.patch, ""))
		}
	}
	if e.recurse || e.include+e.exclude != "" {
		lines = append(lines, "  directory:", fmt.Sprintf("    recurse: %t", e.recurse))
		for _, f := range [][2]string{{"include", e.include}, {"exclude", e.exclude}} {
			if f[1] != "" {
				lines = append(lines, "    "+f[0]+": '"+f[1]+"'")
			}
		}
	}
	return indent + strings.Join(lines, "\n"+indent) + "\n"
}

func (e entry) flux() string {
	c := e.changes
	out := fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: flux-system}\nspec:\n  path: ./%s\n  sourceRef: {kind: GitRepository, name: x}\n", e.name, e.units[0].top())
	out += field("  targetNamespace: ", c.namespace) + field("  namePrefix: ", c.prefix)
	if c.patch != "" {
		out += "  patches: " + patchChannel(c.patch, "") + "\n"
	}
	if c.variable != "" {
		out += "  postBuild: {substitute: {CHANNEL: " + c.variable + "}}\n"
	}
	return out
}

// applicationSet returns the YAML of an ApplicationSet. With the generator e.generator, it makes an Application
// for each unit and cluster.
func (e entry) applicationSet() string {
	dir, cluster, namespace := "{{dir}}", "{{name}}", "{{namespace}}"
	elements := func(fields func(u unit, i instance) string) string {
		var list []string
		for _, u := range e.units {
			for _, i := range e.clusters {
				list = append(list, fields(u, i))
			}
		}
		return "{list: {elements: [" + strings.Join(list, ", ") + "]}}"
	}
	generator := ""
	switch e.generator {
	case "list":
		generator = elements(func(u unit, i instance) string {
			return fmt.Sprintf("{dir: %s, name: %s, namespace: %s}", u.top(), i.cluster, i.namespace)
		})
	case "directories":
		var list []string
		for _, u := range e.units {
			list = append(list, "{path: '"+strings.Replace(u.top(), "/u", "/[u]", 1)+"'}")
		}
		generator = "{git: {directories: [" + strings.Join(list, ", ") + ", {path: other/*, exclude: true}]}}"
		dir, cluster, namespace = "{{path}}", "dev", "dev-ns"
	case "files":
		generator = "{git: {files: [{path: 'settings/" + e.name + "/**/config.yaml'}]}}"
		dir, cluster, namespace = "{{app.dir}}", "{{cluster.name}}", "{{cluster.namespace}}"
	case "matrix":
		dirs := elements(func(u unit, _ instance) string { return "{dir: " + u.top() + "}" })
		clusters := elements(func(_ unit, i instance) string {
			return fmt.Sprintf("{name: %s, namespace: %s}", i.cluster, i.namespace)
		})
		generator = "{matrix: {generators: [" + clusters + ", " + dirs + "]}}"
	case "merge":
		all := elements(func(u unit, i instance) string {
			return fmt.Sprintf("{key: %s-%s, dir: %s, name: %s, namespace: none}", u.name(), i.cluster, u.top(), i.cluster)
		})
		more := elements(func(u unit, i instance) string {
			return fmt.Sprintf("{key: %s-%s, namespace: %s}", u.name(), i.cluster, i.namespace)
		})
		generator = "{merge: {mergeKeys: [key], generators: [" + all + ", " + more + "]}}"
	}
	return fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: %s}\nspec:\n  generators: [%s]\n  template:\n    metadata: {name: x}\n    spec:\n", e.name, generator) +
		e.applicationSpec("      ", dir, cluster, namespace)
}
