package diff

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// mount is the use of a volume by a container.
type mount struct {
	container   string
	sub         string // path in the volume; "" means all of it
	writable    bool
	propagation string
}

// mountsOf returns the uses of a volume in a pod. For an unused volume, it returns one read-only use.
func mountsOf(spec map[string]any, volume string) []mount {
	var out []mount
	for _, list := range k8s.ContainerLists() {
		for _, c := range k8s.Items(spec, list) {
			for _, m := range k8s.Items(c, "volumeMounts") {
				if k8s.Text(m, "name") != volume {
					continue
				}
				sub := path.Clean("/" + k8s.Text(m, "subPath"))
				if m["subPathExpr"] != nil {
					sub = "/" // its value is only known in the container
				}
				out = append(out, mount{k8s.Text(c, "name"), sub, !k8s.True(m, "readOnly"), k8s.Text(m, "mountPropagation")})
			}
			for _, m := range k8s.Items(c, "volumeDevices") {
				if k8s.Text(m, "name") == volume {
					out = append(out, mount{k8s.Text(c, "name"), "/", true, ""})
				}
			}
		}
	}
	if len(out) == 0 {
		out = []mount{{sub: "/"}}
	}
	return out
}

// covers reports whether use m of a volume reaches at least the same files as use o.
func (m mount) covers(o mount) bool {
	rank := []string{"", "None", "HostToContainer", "Bidirectional"}
	return isPathIn(o.sub, m.sub) && (m.writable || !o.writable) && (m.propagation == o.propagation || slices.Index(rank, m.propagation) >= max(slices.Index(rank, o.propagation), 2) || slices.Index(rank, o.propagation) < 2)
}

// isPathIn reports whether a clean absolute path is dir or below it.
func isPathIn(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// String returns the use for display.
func (m mount) String() string {
	text := "read-only"
	if m.writable {
		text = "writable"
	}
	if m.propagation != "" && m.propagation != "None" {
		text += ", propagation " + m.propagation
	}
	if m.container != "" {
		text += " in container " + m.container
	}
	return text
}

// volumeReach is a source of a volume outside of the pod, such as a directory of the node.
type volumeReach struct {
	rule   string
	source string // identifies the directory, claim or other source outside the pod
	text   string // for display
	dir    string // directory of the node, for rule pods.host-path
}

// volumeReaches returns the sources of a volume outside of the pod. A volume of an unknown type counts as such
// a source.
func (d podDiff) volumeReaches(v map[string]any) []volumeReach {
	var out []volumeReach
	for _, typ := range sortedKeys(v) {
		source := asMap(v[typ])
		switch typ {
		case "name", "emptyDir", "configMap", "downwardAPI", "image":
		case "ephemeral":
			for _, from := range claimSources(d.c, d.p.after, k8s.Map(source, "volumeClaimTemplate", "spec")) {
				out = append(out, volumeReach{"pods.volume", typ + " " + from, "the volume has the data of " + from + ", which does not belong to this operator", ""})
			}
		case "secret": // rule pods.secret
		case "hostPath":
			dir := path.Clean("/" + k8s.Text(source, "path"))
			out = append(out, volumeReach{"pods.host-path", dir, "the node's " + dir + " is mounted", dir})
		case "persistentVolumeClaim":
			claim := k8s.Text(source, "claimName")
			if !ownsName(d.c, d.p.after, "PersistentVolumeClaim", claim) {
				out = append(out, volumeReach{"pods.volume", typ + " " + claim, "the pod uses PersistentVolumeClaim " + claim + ", which does not belong to this operator", ""})
			}
		case "projected":
			for _, s := range k8s.Items(source, "sources") {
				out = append(out, projectedReaches(s)...)
			}
		default:
			out = append(out, volumeReach{"pods.volume", typ + " " + formatValue(source), "volume of type " + strings.TrimSpace(typ+" "+k8s.Text(source, "driver")), ""})
		}
	}
	return out
}

// claimSources returns the sources from which a PersistentVolumeClaim gets existing data of others: volumes,
// claims, snapshots and other objects. spec is the spec of the claim, in the namespace of o.
func claimSources(c *comparison, o *Object, spec map[string]any) []string {
	var out []string
	if name := k8s.Text(spec, "volumeName"); name != "" {
		out = append(out, "PersistentVolume "+name)
	}
	for _, field := range []string{"dataSource", "dataSourceRef"} {
		ref := k8s.Map(spec, field)
		kind, name, namespace := k8s.Text(ref, "kind"), k8s.Text(ref, "name"), k8s.Text(ref, "namespace")
		if name != "" && (namespace != "" && namespace != o.Key().Namespace || !ownsName(c, o, kind, name)) {
			out = append(out, kind+" "+name)
		}
	}
	return slices.Compact(out)
}

// projectedReaches is volumeReaches for a source of a projected volume.
func projectedReaches(s map[string]any) []volumeReach {
	var out []volumeReach
	for _, typ := range sortedKeys(s) {
		source := asMap(s[typ])
		switch audience := k8s.Text(source, "audience"); {
		case slices.Contains([]string{"configMap", "downwardAPI", "secret"}, typ), typ == "serviceAccountToken" && audience == "":
		case typ == "serviceAccountToken":
			out = append(out, volumeReach{"pods.volume", typ + " " + audience, "the pod gets a token for " + audience, ""})
		default:
			out = append(out, volumeReach{"pods.volume", typ + " " + formatValue(source), "the volume has a source of type " + strings.TrimSpace(typ+" "+k8s.Text(source, "signerName")), ""})
		}
	}
	return out
}

// compareVolumes reports volumes through which the pod newly reaches something outside of the pod. It compares
// each volume and its mounts with all volumes and mounts of the old pod.
func (d podDiff) compareVolumes() {
	type use struct {
		volumeReach
		mount
	}
	uses := func(spec, volume map[string]any) []use {
		var out []use
		for _, r := range d.volumeReaches(volume) {
			for _, m := range mountsOf(spec, k8s.Text(volume, "name")) {
				if r.dir != "" {
					m.sub = path.Join(r.dir, m.sub)
					r.source = ""
				}
				out = append(out, use{r, m})
			}
		}
		return out
	}
	var had []use
	names := map[string]bool{}
	for _, v := range k8s.Items(d.old, "volumes") {
		names[k8s.Text(v, "name")] = true
		had = append(had, uses(d.old, v)...)
	}
	for _, v := range k8s.Items(d.now, "volumes") {
		name := k8s.Text(v, "name")
		at := d.at.field("volumes").named(name)
		told := map[string]bool{}
		for _, u := range uses(d.now, v) {
			if told[u.text] || slices.ContainsFunc(had, func(h use) bool { return h.rule == u.rule && h.source == u.source && h.covers(u.mount) }) {
				continue
			}
			told[u.text] = true
			f := Finding{After: u.String(), Message: fmt.Sprintf("%s (%s)", u.text, u.mount), explains: []fieldPath{at}}
			if u.dir != "" {
				f.After = u.dir
			}
			if names[name] {
				f.explains = noField()
			}
			d.add(u.rule, "volumes."+name, at, f)
		}
	}
	d.comparePropagation()
}

// comparePropagation reports mounts that newly have Bidirectional propagation: the node sees mounts inside them.
func (d podDiff) comparePropagation() {
	for _, v := range k8s.Items(d.now, "volumes") {
		name := k8s.Text(v, "name")
		for _, m := range mountsOf(d.now, name) {
			if m.propagation == "Bidirectional" && v["hostPath"] == nil && !slices.ContainsFunc(mountsOf(d.old, name), func(o mount) bool { return o.propagation == m.propagation }) {
				d.add("pods.volume", "volumes."+name, d.at.field("volumes").named(name), Finding{After: m.String(), Message: "mounts of the container reach the node (" + m.String() + ")", explains: noField()})
			}
		}
	}
}
