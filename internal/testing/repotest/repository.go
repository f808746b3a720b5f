// Package repotest draws random GitOps repositories for property tests, and computes what the GitOps
// tools apply from them.
package repotest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	"pgregory.net/rapid"
)

// Operator is an operator that a tool applies to a cluster.
type Operator struct {
	Namespace, Name, Package, Channel, Config string

	File    string // file of its Subscription
	Entry   string // file of the entry point; for an operator without one, its directory
	Cluster string
}

// String formats the operator without the fields File, Entry and Cluster.
func (o Operator) String() string {
	return fmt.Sprintf("%s/%s %s %s %s", o.Namespace, o.Name, o.Package, o.Channel, o.Config)
}

// Repository is a random repository.
type Repository struct {
	Paths     []string   // files of entry points, and directories without an entry point
	Faults    int        // number of faulty units
	Applied   []Operator // operators that the tools apply
	Lost      []Operator // operators that they would also apply without the faults
	Unchanged []Operator // applied operators of units without a fault
	Sources   []string   // the files of all Subscriptions

	entries []entry
}

// Draw draws a repository. If faults is true, each unit has a fault with a probability of 1/4.
func Draw(t *rapid.T, faults bool) Repository {
	var r Repository
	kinds := []string{"leaf", "application", "set", "flux"}
	for i := range rapid.IntRange(1, 4).Draw(t, "entries") {
		e := drawEntry(t, i, rapid.SampledFrom(kinds).Draw(t, "entry"))
		for n := range e.units {
			if faults && rapid.IntRange(0, 3).Draw(t, "has fault") == 0 {
				e.units[n] = e.units[n].drawFault(t)
			}
		}
		r.entries = append(r.entries, e)
	}
	r.evaluate()
	return r
}

// evaluate sets the exported fields.
func (r *Repository) evaluate() {
	*r = Repository{entries: r.entries}
	for _, e := range r.entries {
		r.Paths = append(r.Paths, e.paths()...)
		for _, u := range e.units {
			if u.fault != "" {
				r.Faults++
			}
			for _, s := range u.sources {
				r.Sources = append(r.Sources, u.file(s))
			}
			applied, sound := e.applied(u), u
			sound.fault = ""
			all := e.applied(sound)
			r.Applied = append(r.Applied, applied...)
			if u.fault == "" {
				r.Unchanged = append(r.Unchanged, applied...)
			}
			for _, o := range all {
				if !slices.Contains(applied, o) {
					r.Lost = append(r.Lost, o)
				}
			}
		}
	}
}

// Files returns the files of the repository.
func (r Repository) Files() fstest.MapFS {
	out := fstest.MapFS{}
	for _, e := range r.entries {
		for name, text := range e.files() {
			out[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return out
}

// Sound returns the repository without its faults.
func (r Repository) Sound() Repository {
	var out Repository
	for _, e := range r.entries {
		e.units = slices.Clone(e.units)
		for i := range e.units {
			e.units[i].fault = ""
		}
		out.entries = append(out.entries, e)
	}
	out.evaluate()
	return out
}

// Changed returns a later state of the repository: some operators are removed, and some units have a fault.
func (r Repository) Changed(t *rapid.T) Repository {
	var out Repository
	for _, e := range r.entries {
		e.units = slices.Clone(e.units)
		for i, u := range e.units {
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				u = u.drawFault(t)
			case 1:
				if len(u.sources) > 1 {
					u.sources = u.sources[1:]
				}
			}
			e.units[i] = u
		}
		out.entries = append(out.entries, e)
	}
	out.evaluate()
	return out
}

// changes describes the changes that a tool makes to the operators that it applies.
type changes struct {
	namespace, prefix, patch string
	defaultNamespace         string
	variable                 string // value of ${CHANNEL}
}

// entry is an entry point with the units that it applies.
type entry struct {
	kind      string
	name      string
	units     []unit
	changes   changes
	generator string     // of an ApplicationSet
	clusters  []instance // of an ApplicationSet
	recurse   bool
	include   string
	exclude   string
}

// instance is a cluster, and the destination namespace of the Applications for this cluster.
type instance struct{ cluster, namespace string }

func drawEntry(t *rapid.T, i int, kind string) entry {
	e := entry{kind: kind, name: fmt.Sprintf("e%d", i)}
	channels, units := []string{"stable", "fast"}, 1
	switch kind {
	case "flux":
		channels = append(channels, "${CHANNEL}", "${CHANNEL:=usual}")
		e.changes.variable = rapid.SampledFrom([]string{"", "variable"}).Draw(t, "variable")
		if e.changes.variable == "" {
			channels = channels[:2]
		}
	case "set":
		units = rapid.IntRange(1, 2).Draw(t, "units")
		e.generator = rapid.SampledFrom([]string{"list", "directories", "files", "matrix", "merge"}).Draw(t, "generator")
		e.clusters = []instance{{"dev", "dev-ns"}, {"prod", "prod-ns"}}[:rapid.IntRange(1, 2).Draw(t, "clusters")]
		if e.generator == "directories" || e.generator == "files" {
			e.clusters = e.clusters[:1]
		}
	}
	for n := range units {
		dir := e.name
		if kind == "set" {
			dir = fmt.Sprintf("sets/%s/u%d", e.name, n)
		}
		e.units = append(e.units, drawUnit(t, dir, channels))
	}
	e.drawChanges(t)
	return e
}

// drawChanges draws the changes of the tool. Argo CD changes only kustomizations.
func (e *entry) drawChanges(t *rapid.T) {
	kustomized := !slices.ContainsFunc(e.units, func(u unit) bool { return !u.isKustomized() })
	oneOf := func(label, value string) string { return rapid.SampledFrom([]string{"", "", value}).Draw(t, label) }
	switch {
	case e.kind == "leaf":
		return
	case e.kind == "flux" || kustomized:
		e.changes.namespace, e.changes.prefix, e.changes.patch = oneOf("tool's namespace", "target"), oneOf("tool's prefix", "t-"), oneOf("tool's patch", "tool")
	case e.kind == "application":
		e.recurse = rapid.Bool().Draw(t, "recurse")
		first := e.units[0].sources[0].name + ".yaml"
		e.include, e.exclude = oneOf("include", "*"+first), oneOf("exclude", "*"+first)
	}
	if e.kind == "application" {
		e.changes.defaultNamespace = namespaces().Draw(t, "destination namespace")
	}
	if e.kind == "set" && len(e.clusters) > 1 {
		e.changes.namespace = "" // the clusters would get the same objects
	}
}

// paths returns the paths for spec.declarations.
func (e entry) paths() []string {
	if e.kind == "leaf" {
		return []string{e.units[0].top()}
	}
	return []string{"entries/" + e.name + ".yaml"}
}

// files returns the files of the entry point and its units.
func (e entry) files() map[string]string {
	out := map[string]string{}
	for _, u := range e.units {
		maps.Copy(out, u.files())
	}
	if text := e.text(); text != "" {
		out[e.paths()[0]] = text
	}
	if e.generator == "files" {
		for _, u := range e.units {
			out["settings/"+e.name+"/"+u.name()+"/config.yaml"] = fmt.Sprintf("app: {dir: %s}\ncluster: {name: dev, namespace: dev-ns}\n", u.top())
		}
	}
	return out
}

// name returns the last element of the unit's path.
func (u unit) name() string { return u.dir[strings.LastIndex(u.dir, "/")+1:] }

// applied returns the operators of u that reach a cluster and that quayside can read.
func (e entry) applied(u unit) []Operator {
	var out []Operator
	instances := e.clusters
	if e.kind != "set" {
		instances = []instance{{"", e.changes.defaultNamespace}}
	}
	for _, i := range instances {
		for _, o := range e.built(u) {
			if e.kind != "flux" && e.kind != "leaf" {
				o.Namespace = or(o.Namespace, i.namespace)
			}
			o.Entry, o.Cluster = e.paths()[0], i.cluster
			if o.Namespace != "" && !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return out
}

// built returns the operators of u as the tool builds them, before it sets the default namespace.
func (e entry) built(u unit) []Operator {
	list := u.sourceOperators()
	switch {
	case u.isKustomized() && u.isLost(), u.isLost() && e.kind == "flux":
		return nil
	case u.isKustomized():
		for i, l := range u.layers {
			tool := changes{}
			if i == len(u.layers)-1 {
				tool = e.changes
			}
			list = l.apply(list, tool)
		}
	case e.kind == "flux":
		list = layer{}.apply(list, e.changes)
	case e.kind != "leaf":
		list = slices.DeleteFunc(list, func(o Operator) bool { return !e.selects(strings.TrimPrefix(o.File, u.dir+"/")) })
	}
	for i, o := range list {
		if strings.HasPrefix(o.Channel, "${CHANNEL") && e.kind == "flux" {
			list[i].Channel = e.changes.variable
		}
	}
	return list
}

// selects reports whether an Application applies a file of a plain directory.
func (e entry) selects(name string) bool {
	if strings.Contains(name, "/") && !e.recurse {
		return false
	}
	match := func(pattern string) bool { return strings.HasSuffix(name, strings.TrimPrefix(pattern, "*")) }
	return (e.include == "" || match(e.include)) && (e.exclude == "" || !match(e.exclude))
}
