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
	selections := map[string]*selection{}
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
			operators := strings.Join(append([]string{strconv.Itoa(c.nameRoom())}, c.Operators...), "\x00")
			var err error
			if selections[operators] == nil {
				selections[operators], err = t.selection(c, namespaces)
			}
			if err == nil {
				part, err = t.overlay(c, selections[operators])
			}
			if err != nil {
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
	return strings.Join(append([]string{string(c.Config), strconv.Itoa(c.nameRoom())}, c.Operators...), "\x00")
}

// nameRoom returns how long the names of the cluster's generated files may be: the
// same for all clusters with names of up to 40 bytes, so that these get the same.
func (c Cluster) nameRoom() int {
	return nameRoom(path.Join("clusters", strings.Repeat("n", max(len(c.Name), 40)), "generated"))
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

// selection is what clusters with the same operators have in common, whatever
// their config.
type selection struct {
	operators  []string // their directories, as seen from an overlay
	namespaces []string // the resources that bring them, and the files among these
	files      []file
	adopted    []adoptedObject
	changes    []changeable
}

// adoptedObject is an object that no operator of a selection renders, and its file.
type adoptedObject struct {
	file
	object Object // where the config of a cluster changes it, else nil
}

// changeable is an object of the base that the config of a cluster may change.
type changeable struct {
	object   Object // as the base has it
	mirrored Object // with the images of mirrors, which are the same in every cluster
	file     string // of the patch
	target   map[string]any
}

// selection returns what is the same in every cluster with the operators of c.
func (t *tree) selection(c Cluster, namespaces []string) (*selection, error) {
	installs, err := t.chosen(c)
	if err != nil {
		return nil, err
	}
	leaving, err := t.leavingIn(c)
	if err != nil {
		return nil, err
	}
	s := &selection{operators: t.directories(installs, leaving)}
	for _, in := range installs {
		for _, o := range in.objects {
			if changes(o) {
				name := fitName(c.nameRoom(), "patch-"+fileName(o.Kind()+"-"+o.Name()+"."+o.Namespace()))
				s.changes = append(s.changes, changeable{o, t.atMirrors(o), name, target(o)})
			}
		}
	}
	both := slices.Concat(installs, leaving)
	s.namespaces, s.files = t.clusterNamespaces(c.nameRoom(), namespaces, both)
	objects := adopted(both)
	names := fileNames(naming{room: c.nameRoom()}, objects)
	for i, o := range objects {
		a := adoptedObject{file: file{name: names[i]}}
		if changes(o) {
			a.object = t.atMirrors(o)
		} else {
			a.data = yamlnode.Encode(t.adorn(o))
		}
		s.adopted = append(s.adopted, a)
	}
	slices.SortFunc(s.adopted, func(a, b adoptedObject) int { return strings.Compare(a.name, b.name) })
	return s, nil
}

// directories returns those of the operators that a cluster gets, and of what is
// left of others, as seen from its overlay.
func (t *tree) directories(installs, leaving []*opened) []string {
	var out []string
	for _, in := range t.everything() {
		if slices.Contains(installs, in) || slices.Contains(leaving, in) {
			out = append(out, path.Join("../../../operators", in.pin.Namespace, in.pin.Package))
		}
	}
	return out
}

// overlay returns the generated part of a cluster's overlay.
func (t *tree) overlay(c Cluster, s *selection) ([]file, error) {
	cfg, err := t.config(c)
	if err != nil {
		return nil, err
	}
	resources, files := slices.Clone(s.namespaces), slices.Clone(s.files)
	for _, a := range s.adopted {
		if a.object != nil {
			a.data = yamlnode.Encode(t.adorn(cfg.applied(a.object)))
		}
		resources, files = append(resources, a.name), append(files, a.file)
	}
	fields := map[string]any{"resources": kobj.Values(append(resources, s.operators...)...)}
	targets, patches, err := patches(cfg, s.changes)
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
			file = fitName(nameRoom(dir), strings.TrimSuffix(file, extension))
			if err := t.files.Add(path.Join(dir, file), data); err != nil {
				return err
			}
			some = append(some, file)
		}
	}
	return t.kustomization(dir, slices.Concat(whole, some))
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

// config returns the config of a cluster, with the images of mirrors.
func (t *tree) config(c Cluster) (config, error) {
	cfg, err := parseConfig(c.Config)
	mirrorValues(kobj.Items(cfg, "env"), t.opt.Mirrors)
	return cfg, err
}

// inCluster returns o with a cluster's own config and mirrors; it shares with o what
// is the same.
func (t *tree) inCluster(cfg config, o Object) Object {
	if !changes(o) {
		return o
	}
	return cfg.applied(t.atMirrors(o))
}

// changes reports whether a cluster may change an object.
func changes(o Object) bool { return o.Is("apps", "Deployment") }

// patches returns what the config of a cluster changes of objects: a file each, and
// the kustomization's entries for them.
func patches(cfg config, of []changeable) (targets []any, files []file, err error) {
	for _, c := range of {
		want := cfg.applied(c.mirrored)
		if err := cfg.mounted(diag.Pos{}, want); err != nil {
			return nil, nil, err
		}
		ops := difference(nil, "", map[string]any(c.object), map[string]any(want))
		if len(ops) == 0 {
			continue
		}
		files, targets = append(files, file{c.file, yamlnode.Encode(ops)}), append(targets, map[string]any{"path": c.file, "target": c.target})
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
