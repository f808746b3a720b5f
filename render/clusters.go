package render

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
)

// starter is the part of an overlay that is the user's own.
const starter = `# This file is yours: quayside wrote it once and leaves it alone from now on.
# What it renders for this cluster is in generated/; put your own patches,
# components and resources here or beside this file.
#
# patches:
# - path: more-memory.yaml
#   target: {kind: Deployment, name: etcd-operator}
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- generated
`

// clusters writes one overlay a cluster: a kustomization that is the user's,
// over one that is generated.
func (t *tree) clusters(namespaces []string) error {
	var names []string
	seen, parts, held, text := map[string]bool{}, map[string][]file{}, texts{}, []byte(starter)
	for _, c := range t.opt.Clusters {
		if c.Name == "" || fileName(c.Name) != c.Name || seen[c.Name] {
			return fmt.Errorf("clusters: %q is not a name of its own in lower-case letters, digits, \"-\" and \".\"", c.Name)
		}
		names, seen[c.Name] = append(names, c.Name), true
		dir := path.Join("clusters", c.Name)
		if err := t.files.AddStarter(path.Join(dir, kustomizationFile), text); err != nil {
			return err
		}
		part, known := parts[c.key()]
		if !known {
			var err error
			if part, err = t.overlay(c, namespaces); err != nil {
				return fmt.Errorf("rendering cluster %q: %w", c.Name, err)
			}
			for i, f := range part {
				part[i].data = held.once(f.data)
			}
			parts[c.key()] = part
		}
		for _, f := range part {
			if err := t.files.Add(path.Join(dir, "generated", f.name), f.data); err != nil {
				return err
			}
		}
	}
	if err := t.clusterCRDs(); err != nil {
		return err
	}
	if len(names) > 1 {
		return nil // the same objects several times over, which no kustomization can hold
	}
	if t.opt.Reporter != nil {
		names = append(names, path.Join(names[0], reporterDir))
	}
	return t.kustomization("clusters", names)
}

// key returns what stands for all that the objects of a cluster depend on, the
// base aside: clusters of which it is the same get the same.
func (c Cluster) key() string {
	return strings.Join(append([]string{string(c.Config)}, c.Operators...), "\x00")
}

// file is a file below some directory of the tree.
type file struct {
	name string
	data []byte
}

// texts holds texts of which many are the same.
type texts map[[sha256.Size]byte][]byte

// once returns the text that is held already where there is the same, else data.
func (t texts) once(data []byte) []byte {
	sum := sha256.Sum256(data)
	if _, held := t[sum]; !held {
		t[sum] = data
	}
	return t[sum]
}

// overlay returns the generated part of a cluster's overlay.
func (t *tree) overlay(c Cluster, namespaces []string) ([]file, error) {
	cfg, err := parseConfig(c.Config)
	if err != nil {
		return nil, err
	}
	installs, err := t.chosen(c)
	if err != nil {
		return nil, err
	}
	var operators []string
	for _, in := range installs {
		operators = append(operators, path.Join("../../../operators", in.pin.Namespace, in.pin.Package))
	}
	resources, files := t.clusterNamespaces(namespaces, installs)
	for _, f := range t.adopt(cfg, installs) {
		resources, files = append(resources, f.name), append(files, f)
	}
	fields := map[string]any{"resources": kobj.Values(append(resources, operators...)...)}
	targets, patches, err := t.patches(cfg, installs)
	if err != nil {
		return nil, err
	}
	if len(targets) > 0 {
		fields["patches"] = targets
	}
	return append(append(files, patches...), file{kustomizationFile, kustomization(fields)}), nil
}

// gets returns whether a cluster gets a CRD of the tree: those that its operators
// ship, whoever provides them, and those that quayside brings itself.
func (t *tree) gets(c Cluster) (func(crd Object) bool, error) {
	installs, err := t.chosen(c)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, o := range t.sharedCRDs() {
		names[o.Name()] = true
	}
	for _, in := range installs {
		for _, o := range in.crds {
			names[o.Name()] = true
		}
	}
	return func(crd Object) bool { return names[crd.Name()] }, nil
}

// clusterCRDs writes, where some cluster does not get every CRD, a kustomization
// of them for each cluster, over one for each package that provides some.
func (t *tree) clusterCRDs() error {
	packages := map[string][]string{} // directory → files
	lacking := map[string][]string{}  // cluster → files that it does not get
	known := map[string][]string{}    // operators → files
	for _, c := range t.opt.Clusters {
		operators := strings.Join(c.Operators, "\x00")
		files, seen := known[operators]
		if !seen {
			gets, err := t.gets(c)
			if err != nil {
				return fmt.Errorf("rendering cluster %q: %w", c.Name, err)
			}
			for _, r := range t.objects {
				if kobj.IsCRD(r.Object) && !gets(r.Object) {
					files = append(files, r.Path)
				}
			}
			known[operators] = files
		}
		if len(files) > 0 {
			lacking[c.Name] = files
		}
	}
	if t.ownCRDs = len(lacking) > 0; !t.ownCRDs {
		return nil
	}
	for _, r := range t.objects {
		if dir, file := path.Split(r.Path); kobj.IsCRD(r.Object) {
			packages[dir] = append(packages[dir], file)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		slices.Sort(packages[dir])
		if err := t.kustomization(dir, packages[dir]); err != nil {
			return err
		}
	}
	for _, c := range t.opt.Clusters {
		if err := t.chosenCRDs(path.Join("clusters", c.Name, "crds"), packages, lacking[c.Name]); err != nil {
			return err
		}
	}
	return nil
}

// chosenCRDs writes the kustomization of a cluster's CRDs to dir: the packages
// that it gets all of, and copies of what it gets of others.
func (t *tree) chosenCRDs(dir string, packages map[string][]string, lacking []string) error {
	var whole, some []string
	for _, from := range slices.Sorted(maps.Keys(packages)) {
		files := slices.DeleteFunc(slices.Clone(packages[from]), func(file string) bool { return slices.Contains(lacking, from+file) })
		if len(files) == len(packages[from]) {
			whole = append(whole, path.Join("../../..", from))
			continue
		}
		for _, file := range files {
			data, _ := t.files.Get(from + file)
			if err := t.files.Add(path.Join(dir, file), data); err != nil {
				return err
			}
		}
		some = append(some, files...)
	}
	return t.kustomization(dir, slices.Concat(whole, some))
}

// adopt returns files with the objects that the installs of a cluster have in
// common with one that the cluster does not get, in whose directory they lie, by
// name.
func (t *tree) adopt(cfg config, installs []*opened) []file {
	objects := adopted(installs)
	names := fileNames("", objects)
	var out []file
	for i, o := range objects {
		out = append(out, file{names[i], yamlnode.Encode(t.adorn(t.inCluster(cfg, o)))})
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return out
}

// adopted returns what some of the installs ship and none of them renders,
// each from the first that does.
func adopted(installs []*opened) []Object {
	there := map[Key]bool{}
	for _, in := range installs {
		for _, o := range in.objects {
			there[o.Key()] = true
		}
	}
	var out []Object
	for _, in := range installs {
		for _, o := range in.others {
			if !there[o.Key()] {
				there[o.Key()] = true
				out = append(out, o)
			}
		}
	}
	return out
}

// chosen returns the installs that a cluster gets.
func (t *tree) chosen(c Cluster) ([]*opened, error) {
	var out []*opened
	for i := range t.installs {
		ok, err := c.Gets(t.installs[i].name())
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, &t.installs[i])
		}
	}
	return out, nil
}

// Gets reports whether one of the cluster's globs names an operator. No globs name
// all.
func (c Cluster) Gets(operator string) (bool, error) {
	if len(c.Operators) == 0 {
		return true, nil
	}
	found := false
	for _, glob := range c.Operators {
		ok, err := path.Match(glob, operator)
		if err != nil {
			return false, fmt.Errorf("operators: %q: %w", glob, err)
		}
		found = found || ok || glob == "*"
	}
	return found, nil
}

// inCluster returns o with the cluster's own config and mirrors.
func (t *tree) inCluster(cfg config, o Object) Object {
	if !t.touches(cfg, o) {
		return o
	}
	want := kobj.Copy(o)
	cfg.apply(want)
	mirrorImages(want, t.opt.Mirrors)
	return want
}

// touches reports whether a cluster may change an object.
func (t *tree) touches(cfg config, o Object) bool {
	return o.Is("apps", "Deployment") && len(cfg)+len(t.opt.Mirrors) > 0
}

// patches returns what a cluster changes of the objects of its installs: a file
// each, and the kustomization's entries for them.
func (t *tree) patches(cfg config, installs []*opened) (targets []any, files []file, err error) {
	for _, in := range installs {
		for _, o := range in.objects {
			if !t.touches(cfg, o) {
				continue
			}
			want := t.inCluster(cfg, o)
			if err := cfg.mounted(diag.Pos{}, want); err != nil {
				return nil, nil, err
			}
			ops := difference(nil, "", map[string]any(o), map[string]any(want))
			if len(ops) == 0 {
				continue
			}
			f := file{"patch-" + fileName(o.Kind()+"-"+o.Name()+"."+o.Namespace()) + ".yaml", yamlnode.Encode(ops)}
			files, targets = append(files, f), append(targets, map[string]any{"path": f.name, "target": target(o)})
		}
	}
	return targets, files, nil
}

// target returns what selects one object in a kustomization, and no other.
func target(o Object) map[string]any {
	_, version, _ := strings.Cut(o.APIVersion(), "/")
	// The name is an expression, in which a dot is any character.
	out := map[string]any{"group": o.Group(), "version": version, "kind": o.Kind(), "name": regexp.QuoteMeta(o.Name())}
	if o.Namespace() != "" {
		out["namespace"] = o.Namespace()
	}
	return out
}

// difference appends the JSON patch operations that turn a into b: objects
// field by field, lists of the same length item by item, all else whole.
func difference(ops []any, at string, a, b any) []any {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		for _, key := range keysOf(x, y) {
			here := at + "/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
			from, had := x[key]
			to, has := y[key]
			switch {
			case !has:
				ops = append(ops, map[string]any{"op": "remove", "path": here})
			case !had:
				ops = append(ops, map[string]any{"op": "add", "path": here, "value": to})
			default:
				ops = difference(ops, here, from, to)
			}
		}
		return ops
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			ops = difference(ops, at+"/"+strconv.Itoa(i), x[i], y[i])
		}
		return ops
	}
	if kobj.Equal(a, b) {
		return ops
	}
	return append(ops, map[string]any{"op": "replace", "path": at, "value": b})
}

// keysOf returns the keys of either object, sorted.
func keysOf(a, b map[string]any) []string {
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// mirrorImages replaces the images of an object's pods by their mirrors: those
// of containers, and those in environment variables and arguments, from where
// operators take what they run. It changes o.
func mirrorImages(o Object, mirrors []Mirror) {
	for _, pod := range []map[string]any{kobj.Map(o, "spec", "template", "spec"), kobj.Map(o, "spec", "jobTemplate", "spec", "template", "spec")} {
		for _, c := range kobj.Containers(pod) {
			if image := kobj.Text(c, "image"); image != "" {
				c["image"] = mirrored(image, imageref.Split(image).String(), mirrors)
			}
			for _, env := range kobj.Items(c, "env") {
				if value := kobj.Text(env, "value"); value != "" {
					env["value"] = mirroredText(value, mirrors)
				}
			}
			for _, key := range []string{"command", "args"} {
				list, _ := c[key].([]any)
				for i, v := range list {
					if s, ok := v.(string); ok {
						list[i] = mirroredText(s, mirrors)
					}
				}
			}
		}
	}
}

// Mirrored returns where a cluster pulls an image from, given by its full name.
func Mirrored(image string, mirrors []Mirror) string { return mirrored(image, image, mirrors) }

// mirrored returns an image's reference at the most specific mirror of its full
// name, and as it stands where it has none.
func mirrored(stands, image string, mirrors []Mirror) string {
	best := -1
	for i, m := range mirrors {
		byDigest := strings.Contains(image, "@")
		if _, ok := imageref.Below(image, m.Source); !ok || m.DigestOnly && !byDigest || m.TagOnly && byDigest {
			continue
		}
		if best < 0 || len(m.Source) > len(mirrors[best].Source) {
			best = i
		}
	}
	if best < 0 {
		return stands
	}
	rest, _ := imageref.Below(image, mirrors[best].Source)
	return mirrors[best].Mirror + rest
}

// mirroredText replaces every image that stands in a text by itself.
func mirroredText(s string, mirrors []Mirror) string {
	var out strings.Builder
	for s != "" {
		end := strings.IndexFunc(s, imageref.Ends)
		if end < 0 {
			end = len(s)
		}
		if word := s[:end]; strings.Contains(word, "/") && strings.ContainsAny(word, ":@") {
			out.WriteString(mirrored(word, word, mirrors))
		} else {
			out.WriteString(word)
		}
		s = s[end:]
		if s != "" {
			out.WriteString(s[:1])
			s = s[1:]
		}
	}
	return out.String()
}
