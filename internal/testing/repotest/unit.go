package repotest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// source is an operator as its Subscription declares it.
type source struct {
	name, namespace, channel string
	sub                      bool // whether the file is in a subdirectory; ignored if the unit has a kustomization
}

// layer is a kustomization of a unit.
type layer struct {
	dir                 string
	namespace, prefix   string
	component           bool
	patch, patched      string // patch: the new channel, or ""; patched: name of the patched operator, or "" for all
	replacement, config string
}

// Kinds of faults.
const (
	brokenFile          = "broken file"
	missingFile         = "missing file"
	remoteBase          = "remote base"
	brokenKustomization = "broken kustomization"
	execGenerator       = "exec generator" // its operators are still applied
)

// unit is a directory with operators.
type unit struct {
	dir     string
	sources []source
	layers  []layer // lowest first; empty: the unit is a plain directory
	fault   string
	at      int // index of the faulty layer
}

// isKustomized reports whether the unit has a kustomization.
func (u unit) isKustomized() bool { return len(u.layers) > 0 }

// top returns the directory that a tool applies: that of the highest layer or, without layers, of the unit.
func (u unit) top() string {
	if u.isKustomized() {
		return u.layers[len(u.layers)-1].dir
	}
	return u.dir
}

// file returns the file of a Subscription.
func (u unit) file(s source) string {
	switch {
	case u.isKustomized():
		return u.layers[0].dir + "/" + s.name + ".yaml"
	case s.sub:
		return u.dir + "/sub/" + s.name + ".yaml"
	default:
		return u.dir + "/" + s.name + ".yaml"
	}
}

// drawUnit draws a unit in a directory. Each of its operators gets one of the channels in forms.
func drawUnit(t *rapid.T, dir string, forms []string) unit {
	u := unit{dir: dir}
	for i := range rapid.IntRange(1, 3).Draw(t, "operators") {
		u.sources = append(u.sources, source{
			name: strings.ReplaceAll(dir, "/", "-") + string(rune('a'+i)), namespace: namespaces().Draw(t, "namespace"), channel: rapid.SampledFrom(forms).Draw(t, "channel"),
			sub: rapid.IntRange(0, 3).Draw(t, "subdirectory") == 0,
		})
	}
	names := rapid.SampledFrom([][]string{nil, {""}, {"/base", ""}, {"/base", "/overlays/prod"}, {"/base", "/mid", "/overlays/prod"}}).Draw(t, "layout")
	for _, name := range names {
		u.layers = append(u.layers, drawLayer(t, dir+name, u.sources))
	}
	return u
}

func namespaces() *rapid.Generator[string] { return rapid.SampledFrom([]string{"", "one", "two"}) }

func drawLayer(t *rapid.T, dir string, sources []source) layer {
	oneOf := func(label string, values ...string) string {
		return rapid.SampledFrom(append(values, "", "")).Draw(t, label)
	}
	l := layer{dir: dir, namespace: oneOf("transformed namespace", "one", "three"), prefix: oneOf("prefix", "x-"), patch: oneOf("patch", "patched"), replacement: oneOf("replacement", "replaced"), config: oneOf("config", "v1", "v2")}
	l.component = rapid.IntRange(0, 3).Draw(t, "component") == 0
	if rapid.Bool().Draw(t, "one target") {
		l.patched = sources[0].name
	}
	return l
}

// drawFault draws a fault of the unit.
func (u unit) drawFault(t *rapid.T) unit {
	kinds := []string{brokenFile}
	if u.isKustomized() {
		kinds = append(kinds, missingFile, remoteBase, brokenKustomization, execGenerator)
		u.at = rapid.IntRange(0, len(u.layers)-1).Draw(t, "faulty layer")
	}
	u.fault = rapid.SampledFrom(kinds).Draw(t, "fault")
	return u
}

// files returns the files of the unit.
func (u unit) files() map[string]string {
	out := map[string]string{}
	var names []string
	for _, s := range u.sources {
		out[u.file(s)] = subscription(s)
		names = append(names, s.name+".yaml")
	}
	if u.fault == brokenFile && !u.isKustomized() {
		out[u.dir+"/broken.yaml"] = "apiVersion: operators.coreos.com/v1alpha1\nkind: [\n"
	}
	for i, l := range u.layers {
		if i > 0 {
			names = []string{relative(l.dir, u.layers[i-1].dir)}
		}
		fault := ""
		if i == u.at {
			fault = u.fault
		}
		l.addFiles(out, names, fault)
	}
	return out
}

// addFiles adds the files of the layer to out, with a fault such as brokenFile, or "" for none.
func (l layer) addFiles(out map[string]string, resources []string, fault string) {
	switch fault {
	case brokenFile:
		resources = append(slices.Clone(resources), "broken.yaml")
		out[l.dir+"/broken.yaml"] = "apiVersion: operators.coreos.com/v1alpha1\nkind: [\n"
	case missingFile:
		resources = append(slices.Clone(resources), "missing.yaml")
	case remoteBase:
		resources = append(slices.Clone(resources), "https://example.com/org/repository?ref=main")
	}
	if l.replacement != "" {
		resources = append(slices.Clone(resources), "settings.yaml")
		out[l.dir+"/settings.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings-" + path.Base(l.dir) + ", annotations: {config.kubernetes.io/local-config: 'true'}}\ndata: {channel: " + l.replacement + "}\n"
	}
	k := "resources: [" + strings.Join(resources, ", ") + "]\n" + field("namespace: ", l.namespace) + field("namePrefix: ", l.prefix)
	if l.component {
		k += "components: [part]\n"
		out[l.dir+"/part/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: " + patchChannel("component", "") + "\n"
	}
	k += l.patches()
	if l.replacement != "" {
		k += "replacements: [{source: {kind: ConfigMap, name: settings-" + path.Base(l.dir) + ", fieldPath: data.channel}, targets: [{select: {kind: Subscription}, fieldPaths: [spec.channel]}]}]\n"
	}
	switch fault {
	case execGenerator:
		k += "generators: [generator.yaml]\n"
		out[l.dir+"/generator.yaml"] = "apiVersion: viaduct.ai/v1\nkind: ksops\nmetadata: {name: secrets}\nfiles: [secret.enc.yaml]\n"
	case brokenKustomization:
		k += "nonsense: [\n"
	}
	out[l.dir+"/kustomization.yaml"] = k
}

// patches returns the patches of the layer.
func (l layer) patches() string {
	if l.patch+l.config == "" {
		return ""
	}
	out := "patches:\n"
	if l.patch != "" {
		out += "- " + strings.Trim(patchChannel(l.patch, l.patched), "[]") + "\n"
	}
	if l.config != "" {
		out += "- {target: {kind: Subscription}, patch: " + fmt.Sprintf("%q", "- {op: add, path: /spec/config, value: {env: [{name: MODE, value: "+l.config+"}]}}") + "}\n"
	}
	return out
}

// patchChannel returns, as a YAML list, one patch that sets the channel of an operator or, if name is "", of all.
func patchChannel(channel, name string) string {
	return "[{target: {kind: Subscription" + strings.TrimSuffix(field(", name: ", name), "\n") + "}, patch: " + fmt.Sprintf("%q", "- {op: replace, path: /spec/channel, value: "+channel+"}") + "}]"
}

// apply returns the operators in list as a build of the layer's kustomization changes them. Patches of the tool
// are applied before the replacements of the layer.
func (l layer) apply(list []Operator, tool changes) []Operator {
	out := slices.Clone(list)
	for i := range out {
		o := &out[i]
		if l.component {
			o.Channel = "component"
		}
		if l.patch != "" && (l.patched == "" || l.patched == o.Package) {
			o.Channel = l.patch
		}
		if l.config != "" {
			o.Config = l.config
		}
		if tool.patch != "" {
			o.Channel = tool.patch
		}
		if l.replacement != "" {
			o.Channel = l.replacement
		}
		if ns := or(tool.namespace, l.namespace); ns != "" {
			o.Namespace = ns
		}
		o.Name = or(tool.prefix, l.prefix) + o.Name
	}
	return out
}

// sourceOperators returns the operators as they are in the files.
func (u unit) sourceOperators() []Operator {
	var out []Operator
	for _, s := range u.sources {
		out = append(out, Operator{Namespace: s.namespace, Name: s.name, Package: s.name, Channel: s.channel, File: u.file(s)})
	}
	return out
}

// isLost reports whether the operators of the unit are lost because of its fault.
func (u unit) isLost() bool { return u.fault != "" && u.fault != execGenerator }

func subscription(s source) string {
	return fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata:\n  name: %[1]s\n%[2]sspec:\n  name: %[1]s\n  channel: %[3]s\n  source: hub\n  sourceNamespace: olm\n", s.name, field("  namespace: ", s.namespace), s.channel)
}

// field returns name and value as a line of YAML, or "" if value is empty.
func field(name, value string) string {
	if value == "" {
		return ""
	}
	return name + value + "\n"
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// relative returns the path from one directory to another directory of the same unit.
func relative(from, to string) string {
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	return path.Join(strings.Repeat("../", len(a)), strings.Join(b, "/"))
}
