package render

import (
	"cmp"
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
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render/profile"
)

// prefix returns what stands before the directories of a cluster's pieces in the
// tree: nothing where it gets what is rendered for all, else its own directory. It
// depends on settings alone.
func (t *tree) prefix(c Cluster) string {
	all := len(c.Operators) == 0 || slices.Contains(c.Operators, "*") || slices.Contains(c.Operators, "*/*")
	g := t.opt.GitOps
	registered := g != nil && g.Clusters != nil && len(t.opt.Clusters) > 1 // only by name, which Argo CD fills in
	if all && !registered && slices.Contains([]string{"", "null", "{}"}, string(c.Config)) && len(c.Overlays) == 0 {
		return ""
	}
	return path.Join(layout.Clusters, c.Name) + "/"
}

// clusters writes the list of the clusters, and for each in which something differs
// what that is.
func (t *tree) clusters() error {
	var members []profile.Member
	seen := map[string]bool{}
	if err := t.unknownOverlays(); err != nil {
		return err
	}
	held, parts := texts{}, map[string][]file{}
	for _, c := range t.opt.Clusters {
		if c.Name == "" || fileName(c.Name) != c.Name || seen[c.Name] {
			return fmt.Errorf("clusters: %q is not a name of its own in lower-case letters, digits, \"-\" and \".\"", c.Name)
		}
		seen[c.Name] = true
		told := t.toldCluster(c)
		member := profile.MemberOf(told)
		if t.engine() {
			member = t.opt.profile.Member(*t.opt.GitOps, told)
		}
		members = append(members, member)
		if told.Prefix == "" {
			continue
		}
		part, known := parts[c.key()]
		if own := len(c.Overlays) > 0; !known || own { // whose paths name the cluster
			var err error
			if part, err = t.ownPieces(c); err != nil {
				return fmt.Errorf("rendering cluster %q: %w", c.Name, err)
			}
			for i, f := range part {
				part[i].data = held.once(f.data)
			}
			if !own {
				parts[c.key()] = part
			}
		}
		for _, f := range part {
			if err := t.files.Add(told.Prefix+f.name, f.data); err != nil {
				return err
			}
		}
	}
	list, err := yamlnode.Marshal(members)
	if err != nil {
		return err
	}
	if err := t.files.Add(layout.ClustersFile, list); err != nil {
		return err
	}
	if err := t.clusterCRDs(); err != nil {
		return err
	}
	return t.whole()
}

// unknownOverlays refuses overlays of operators that a cluster does not get: their changes
// would be lost silently.
func (t *tree) unknownOverlays() error {
	var faults diag.List
	for _, c := range t.opt.Clusters {
		here, err := t.here(c)
		if err != nil {
			return fmt.Errorf("rendering cluster %q: %w", c.Name, err)
		}
		var known []string
		for _, in := range here {
			known = append(known, pieceName(in.pin))
		}
		for _, name := range c.Overlays {
			if strings.Contains(name, ".") && !slices.Contains(known, name) {
				at := diag.Pos{File: path.Join(cmp.Or(t.opt.OverlaysDir, layout.Overlays), c.Name, name)}
				faults.Add(at, diag.Hintf(at, "rename the directory to <namespace>.<package> of an operator of the cluster, or delete it",
					"overlay of an unknown operator: cluster %q does not get %s%s", c.Name, name, diag.DidYouMean(name, known)))
			}
		}
	}
	return faults.Err()
}

// toldCluster returns a cluster as the profile is told of it.
func (t *tree) toldCluster(c Cluster) profile.Cluster {
	return profile.Cluster{
		Name: c.Name, Server: c.Server, Destination: c.Destination, KubeConfig: c.KubeConfig, Values: c.Values,
		Prefix: t.prefix(c), Overlays: len(c.Overlays) > 0,
	}
}

// byCluster reports whether all that a cluster gets is applied as one: where the
// workspace says so, and where nothing is known of what applies the tree.
func (t *tree) byCluster() bool {
	return !profile.PerPiece(t.opt.profile, t.opt.GitOps)
}

// engine reports whether objects are rendered by which an engine applies the tree.
func (t *tree) engine() bool { return t.opt.GitOps != nil && t.opt.profile.Kind() != "" }

// ownPieces returns the directories of a cluster's own.
func (t *tree) ownPieces(c Cluster) ([]file, error) {
	cfg, err := t.config(c)
	if err != nil {
		return nil, err
	}
	here, err := t.here(c)
	if err != nil {
		return nil, err
	}
	adopted := t.adoptedBy(here, cfg)
	var out []file
	own := func(dir string, fields map[string]any, names []string, more []file) {
		var components []string
		// The one of all pieces is the last, as in one build of everything.
		for _, name := range append(names, "") {
			// The reporter has its own alone: it is built by itself in both granularities.
			if slices.Contains(c.Overlays, name) && (name != "" || !t.byCluster() && dir != layout.Reporter) {
				components = append(components, t.overlay(c, dir, name))
			}
		}
		if len(components) > 0 {
			fields["components"] = kobj.Values(components...)
		}
		_, patched := fields["patches"]
		same := kobj.Equal(fields["resources"], kobj.Values(above(dir, true)+dir))
		if t.byCluster() && dir != layout.Reporter && !patched && len(components) == 0 && same { // which the list of all names in the base
			return
		}
		for _, f := range append(more, file{layout.Kustomization, kustomization(fields)}) {
			out = append(out, file{path.Join(dir, f.name), f.data})
		}
	}
	for _, ns := range t.neededNamespaces(here) {
		dir := path.Join(layout.Namespaces, ns)
		own(dir, map[string]any{"resources": kobj.Values(above(dir, true) + dir)}, nil, nil)
	}
	for _, p := range t.pieces {
		if !p.gets(here) {
			continue
		}
		more := adopted[p.name]
		resources, without := t.shareOf(p, here)
		for _, f := range more {
			resources = append(resources, f.name)
		}
		fields := map[string]any{"resources": kobj.Values(resources...)}
		targets, patches, err := patches(cfg, t.changeables(p, here, c.nameRoom(p.dir())))
		if err != nil {
			return nil, err
		}
		if targets = append(without, targets...); len(targets) > 0 {
			fields["patches"] = targets
		}
		var names []string
		for _, in := range p.members {
			names = append(names, pieceName(in.pin))
		}
		own(p.dir(), fields, names, append(more, patches...))
	}
	if slices.Contains(c.Overlays, layout.Resources) && !t.byCluster() { // whose list has the team's directory itself
		own(layout.Resources, map[string]any{"resources": kobj.Values(t.overlay(c, layout.Resources, layout.Resources))}, nil, nil)
	}
	if t.opt.Reporter == nil {
		return out, nil
	}
	own(layout.Reporter, map[string]any{"resources": kobj.Values(above(layout.Reporter, true) + layout.Reporter)}, []string{layout.Reporter}, nil)
	expected, err := t.inOverlay(c)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, in := range expected {
		files = append(files, installationFile(in))
		out = append(out, file{path.Join(layout.Installations, installationFile(in)), documents(t.adornAll(t.reported(in)))})
	}
	if !t.engine() {
		out = append(out, file{path.Join(layout.Installations, layout.Kustomization), kustomization(map[string]any{"resources": kobj.Values(files...)})})
	}
	return out, nil
}

// shareOf returns the directories of a piece that a cluster gets, as seen from its own
// directory of the piece, and the patches that take out of these what it does not get:
// leftover objects of an operator that it never had.
func (t *tree) shareOf(p piece, here []*opened) (dirs []string, without []any) {
	up := above(p.dir(), true)
	whole := []string{up + p.dir()}
	for _, in := range p.members {
		switch {
		case slices.Contains(here, in):
			dirs = append(dirs, up+p.memberDir(in))
		case in.follower != "":
			for _, o := range in.objects {
				removed := kobj.New(o.APIVersion(), o.Kind(), o.Namespace(), o.Name())
				removed["$patch"] = "delete"
				without = append(without, map[string]any{"patch": string(yamlnode.Encode(removed))})
			}
		}
	}
	switch {
	case len(dirs) == len(p.members):
		return whole, nil
	case slices.Contains(dirs, whole[0]): // with all that is left of others
		return whole, without
	}
	return dirs, nil
}

// above returns the way from a directory of the tree, or of a cluster's own, to the
// tree.
func above(dir string, own bool) string {
	depth := strings.Count(dir, "/") + 1
	if own {
		depth += 2
	}
	return strings.Repeat("../", depth)
}

// overlay returns the way from a directory of a cluster's own to the team's changes
// of that name, "" being those of all pieces.
func (t *tree) overlay(c Cluster, dir, name string) string {
	return above(dir, true) + path.Join("..", layout.Overlays, c.Name, name)
}

// key returns what stands for all that the pieces of a cluster depend on, the base
// and the team's changes aside: clusters of which it is the same get the same.
func (c Cluster) key() string {
	return strings.Join(append([]string{string(c.Config), strconv.Itoa(max(len(c.Name), usualName))}, c.Operators...), "\x00")
}

// usualName is the length in bytes up to which the names of clusters make no difference: their
// patches have the same file names.
const usualName = 24

// nameRoom returns the length that file names in the directory of a cluster may have.
func (c Cluster) nameRoom(dir string) int {
	return nameRoom(path.Join(layout.Clusters, strings.Repeat("n", max(len(c.Name), usualName)), dir))
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

// changeable is an object of the base that the config of a cluster may change.
type changeable struct {
	object Object // as the base has it
	file   string // of the patch
	target map[string]any
}

// changeables returns what the config of a cluster may change of the operators of a
// piece that it gets, with the names of patches of at most room bytes.
func (t *tree) changeables(p piece, here []*opened, room int) []changeable {
	var out []changeable
	for _, in := range p.members {
		if in.follower == "" && slices.Contains(here, in) {
			out = append(out, t.changeablesOf(p, in, room)...)
		}
	}
	return out
}

func (t *tree) changeablesOf(p piece, in *opened, room int) []changeable {
	key := fmt.Sprintf("%s %d", in.name(), room)
	if known, is := t.changes[key]; is {
		return known
	}
	var out []changeable
	n := naming{room: room}
	if p.memberDir(in) == p.dir() { // whose name says both
		n.namespace, n.pkg = in.pin.Namespace, in.pin.Package
	}
	for _, o := range in.objects {
		if changes(o) {
			out = append(out, changeable{o, n.patchFile(o), target(o)})
		}
	}
	t.changes[key] = out
	return out
}

// adoptedBy returns, by piece, files with what operators of a cluster ship and an
// operator renders that the cluster does not get, each once.
func (t *tree) adoptedBy(here []*opened, cfg config) map[string][]file {
	out, all := map[string][]file{}, adopted(here)
	for _, p := range t.pieces {
		var objects []Object
		for _, o := range all {
			if slices.ContainsFunc(p.members, func(in *opened) bool { return in == o.by }) {
				objects = append(objects, o.object)
			}
		}
		names := fileNames(naming{room: nameRoom(path.Join(layout.Clusters, strings.Repeat("n", 40), p.dir()))}, objects)
		for i, o := range objects {
			out[p.name] = append(out[p.name], file{names[i], yamlnode.Encode(t.adorn(t.inCluster(cfg, o)))})
		}
		slices.SortFunc(out[p.name], func(a, b file) int { return strings.Compare(a.name, b.name) })
	}
	return out
}

// whole writes the lists of all that a cluster gets in one, where that is how it is
// applied. Each names directories alone, so that it changes where an operator or a
// Namespace comes or goes.
func (t *tree) whole() error {
	if !t.byCluster() {
		return nil
	}
	written := map[string]bool{}
	for _, c := range t.opt.Clusters {
		prefix := t.prefix(c)
		if written[prefix] {
			continue
		}
		written[prefix] = true
		here, err := t.here(c)
		if err != nil {
			return err
		}
		up := above(layout.All, prefix != "")
		var resources []string
		add := func(dir string) { resources = append(resources, t.nearest(prefix, "../", up, dir)) }
		for _, ns := range t.neededNamespaces(here) {
			add(path.Join(layout.Namespaces, ns))
		}
		for _, p := range t.pieces {
			if p.gets(here) {
				add(p.dir())
			}
		}
		if slices.Contains(c.Overlays, layout.Resources) {
			resources = append(resources, up+path.Join("..", layout.Overlays, c.Name, layout.Resources))
		}
		fields := marked(resources, nil)
		if slices.Contains(c.Overlays, "") {
			fields["components"] = kobj.Values(up + path.Join("..", layout.Overlays, c.Name))
		}
		if err := t.files.Add(path.Join(prefix, layout.All, layout.Kustomization), kustomization(fields)); err != nil {
			return err
		}
		if t.engine() {
			continue
		}
		if err := t.top(c); err != nil {
			return err
		}
	}
	return nil
}

// top writes the list of everything that a cluster gets, definitions and the reporter
// too, for kubectl apply -k.
func (t *tree) top(c Cluster) error {
	prefix, up := t.prefix(c), ""
	if prefix != "" {
		up = "../../"
	}
	var resources []string
	for _, dir := range t.crdsOf(c) {
		if own, is := strings.CutPrefix(dir, prefix); is {
			resources = append(resources, own)
			continue
		}
		resources = append(resources, up+dir)
	}
	resources = append(resources, layout.All)
	if t.opt.Reporter != nil {
		for _, dir := range []string{layout.Reporter, layout.Installations} {
			resources = append(resources, t.nearest(prefix, "", up, dir))
		}
	}
	return t.kustomization(path.Join(".", prefix), resources)
}

// nearest returns the way to a directory: to a cluster's own, where that has it, else
// to that of the tree.
func (t *tree) nearest(prefix, near, up, dir string) string {
	if _, own := t.files.Get(path.Join(prefix, dir, layout.Kustomization)); own && prefix != "" {
		return near + dir
	}
	return up + dir
}

// crdsOf returns the directories of definitions that a cluster gets, each of which
// has a kustomization.
func (t *tree) crdsOf(c Cluster) []string {
	if own := path.Join(layout.Clusters, c.Name, layout.CRDs); t.ownCRDs {
		return []string{own}
	}
	dirs := map[string]bool{}
	for _, r := range t.objects {
		if kobj.IsCRD(r.Object) {
			dirs[path.Dir(r.Path)] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// gets returns whether a cluster gets a CRD of the tree: those that its operators
// ship, whoever provides them, and those that quayside brings itself.
func (t *tree) gets(c Cluster) (func(crd Object) bool, error) {
	if !t.byCluster() {
		return t.getsWithPieces(c)
	}
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

// getsWithPieces is as gets where the definitions of a package go, as one directory,
// with each piece that ships some of them.
func (t *tree) getsWithPieces(c Cluster) (func(crd Object) bool, error) {
	here, err := t.here(c)
	if err != nil {
		return nil, err
	}
	var dirs []string
	if t.opt.Reporter != nil {
		dirs = append(dirs, path.Join(layout.CRDs, sharedPackage))
	}
	for _, p := range t.pieces {
		if p.gets(here) {
			dirs = append(dirs, t.pieceCRDs(p)...)
		}
	}
	return func(crd Object) bool { return slices.Contains(dirs, t.crdDirs[crd.Name()]) }, nil
}

// clusterCRDs writes, where all that a cluster gets is applied as one and some
// cluster does not get every CRD, a kustomization of them for each cluster, over one
// for each package that provides some. These are there, too, where no engine
// applies them as plain directories.
func (t *tree) clusterCRDs() error {
	if !t.byCluster() {
		return nil
	}
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
	if t.ownCRDs = len(lacking) > 0; !t.ownCRDs && t.engine() {
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
	if !t.ownCRDs {
		return nil
	}
	for _, c := range t.opt.Clusters {
		if err := t.chosenCRDs(path.Join(layout.Clusters, c.Name, layout.CRDs), packages, lacking[c.Name]); err != nil {
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

// adoptedObject is an object that no operator of a cluster renders, and the first that
// ships it.
type adoptedObject struct {
	object Object
	by     *opened
}

// adopted returns what some of the installs ship and none of them renders,
// each from the first that does.
func adopted(installs []*opened) []adoptedObject {
	there := map[Key]bool{}
	for _, in := range installs {
		for _, o := range in.objects {
			there[o.Key()] = true
		}
	}
	var out []adoptedObject
	for _, in := range installs {
		for _, o := range in.others {
			if !there[o.Key()] {
				there[o.Key()] = true
				out = append(out, adoptedObject{o, in})
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

// inCluster returns o with a cluster's own config; it shares with o what is the same.
func (t *tree) inCluster(cfg config, o Object) Object {
	if !changes(o) {
		return o
	}
	return cfg.applied(o)
}

// changes reports whether a cluster may change an object.
func changes(o Object) bool { return o.Is("apps", "Deployment") }

// patches returns what the config of a cluster changes of objects: a file each, and
// the kustomization's entries for them.
func patches(cfg config, of []changeable) (targets []any, files []file, err error) {
	for _, c := range of {
		want := cfg.applied(c.object)
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
