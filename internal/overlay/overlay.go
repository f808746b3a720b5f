// Package overlay says what goes into the build of a kustomization, and builds
// it as stock kustomize does: out of files in memory, and of no others.
//
// Everything that a build reads is found first, by what each kustomization
// refers to, and nothing else is there when kustomize runs. So the digest of an
// [Overlay] stands for all that its build depends on, a build opens no socket and
// starts no program, and its size is known before it begins.
//
// Start from [New], [Files.Open] and [Overlay.Build].
package overlay

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// maxLoaded bounds the bytes that one build loads, each file as often as it is
// referred to, with some for each kustomization: directories that take each
// other in twice double with every level. maxDepth bounds the levels, for
// kustomize changes the objects of all those below once more in each.
const (
	maxLoaded = 64 << 20
	perVisit  = 1 << 10
	maxDepth  = 100
)

// Files is where kustomizations are read from. It keeps what it has read.
type Files struct {
	read   func(name string) ([]byte, error)
	link   func(name string) (target string, is bool)
	plain  map[string]bool // what is known to be no link
	nodes  map[string]*Overlay
	parsed map[string]*parsed // kustomizations, by their text
	depth  int                // of what is being opened
	remote *regexp.Regexp
	types  *admit.Types
	like   *Files            // nil where there are none
	unlike map[*Overlay]bool // of these, what is otherwise here
}

// New returns files that are read by their paths, slash-separated, without ".."
// and without symbolic links, of which link returns where they lead. The error of
// read is fs.ErrNotExist where there is none. With a nil link there are no links.
func New(read func(name string) ([]byte, error), link func(name string) (target string, is bool)) *Files {
	if link == nil {
		link = func(string) (string, bool) { return "", false }
	}
	return &Files{
		read: read, link: link, plain: map[string]bool{}, nodes: map[string]*Overlay{}, parsed: map[string]*parsed{}, types: admit.NewTypes(), unlike: map[*Overlay]bool{},
		// What kustomize takes for the address of a file or a repository.
		remote: regexp.MustCompile(`(?i)^(git::)*(ssh://|https?:|file://|[a-z][a-z0-9-]*@|github\.com[/:])`),
	}
}

// Overlay is a kustomization with all that goes into its build.
type Overlay struct {
	Dir    string   // "rendered/clusters/prod"
	File   string   // "rendered/clusters/prod/kustomization.yaml"
	Digest [32]byte // of everything that a build depends on, wherever it lies
	Plain  bool     // it lists files and directories, these too, and changes nothing

	k       types.Kustomization
	lists   bool              // it lists resources, and does nothing else
	asks    bool              // for files that need not be there
	own     map[string][]byte // File and the files that it refers to, by path
	links   map[string]string // where what it refers to leads, by path
	list    []string          // the paths among resources that are files, in order
	below   []*Overlay        // the directories that it refers to
	targets []Edit            // what its patches are for, where it lists and changes single objects, and does nothing else
	files   int               // that are listed in it and below, each as often as it is
	types   *admit.Types
	loaded  int // bytes
	depth   int // levels, this one too
}

// ErrNone is for a directory that is to be built and has no kustomization.
var ErrNone = errors.New("no kustomization.yaml")

var errDeep = fmt.Errorf("kustomizations build on each other more than %d deep", maxDepth)

// Open finds what goes into the build of a directory. Errors have the place of
// what is wrong: a reference to what is not there, or not in these files, or that
// would run a program.
func (f *Files) Open(dir string) (*Overlay, error) {
	dir, err := f.real(dir)
	if err != nil {
		return nil, err
	}
	if o, known := f.nodes[dir]; known {
		if o == nil {
			return nil, fmt.Errorf("%s takes itself in", dir)
		}
		return o, nil
	}
	if f.depth >= maxDepth {
		return nil, errDeep
	}
	if o := f.alike(dir); o != nil {
		return o, nil
	}
	f.nodes[dir] = nil
	f.depth++
	o, err := f.open(dir)
	f.depth--
	if err != nil {
		delete(f.nodes, dir)
		return nil, err
	}
	f.nodes[dir] = o
	return o, nil
}

func (f *Files) open(dir string) (*Overlay, error) {
	o := &Overlay{Dir: dir, types: f.types, own: map[string][]byte{}}
	data, err := f.kustomization(o)
	if err != nil {
		return nil, err
	}
	said, err := f.parse(o.File, data)
	if err != nil {
		return nil, err
	}
	o.k, o.lists, o.Plain, o.targets = said.k, said.lists, said.lists, said.targets
	o.loaded, o.depth = perVisit+len(data), 1
	var faults diag.List
	for _, r := range said.references {
		if err := f.follow(o, r); err != nil {
			faults.Add(o.at(r.field), err)
		}
	}
	if len(o.k.HelmCharts) > 0 {
		faults.Addf(o.at("helmCharts"), "Helm charts are not rendered here, for that runs a program: render them into a file and list that")
	}
	if o.loaded > maxLoaded {
		faults.Addf(diag.Pos{File: o.File}, "a build of it loads more than %d MiB", maxLoaded>>20)
	}
	o.digest()
	return o, faults.Err()
}

// parsed is what the text of a kustomization says. What shares one changes none
// of it.
type parsed struct {
	k          types.Kustomization
	lists      bool
	references []reference
	targets    []Edit // of its patches, where it lists and changes single objects, and does nothing else
}

// parse reads the text of a kustomization, equal ones once.
func (f *Files) parse(file string, data []byte) (*parsed, error) {
	if known, is := f.parsed[string(data)]; is {
		return known, nil
	}
	if _, err := yamlnode.Documents(file, data, yamlnode.Limits{}); err != nil {
		return nil, err
	}
	p := &parsed{}
	if err := p.k.Unmarshal(data); err != nil {
		return nil, diag.Errorf(diag.Pos{File: file}, "%w", err)
	}
	k := types.Kustomization{TypeMeta: p.k.TypeMeta, MetaData: p.k.MetaData, Resources: p.k.Resources} // metadata is of the file alone
	p.lists = reflect.DeepEqual(p.k, k)
	if k.Patches = p.k.Patches; reflect.DeepEqual(p.k, k) {
		p.targets = targets(k.Patches)
	}
	p.k.FixKustomization()
	p.references = references(p.k)
	f.parsed[string(data)] = p
	return p, nil
}

// at returns the place of a field of File, else of File.
func (o *Overlay) at(field string) diag.Pos { return o.positions().At(field, diag.Pos{File: o.File}) }

// positions returns the places of the fields of File.
func (o *Overlay) positions() diag.Fields {
	docs, err := yamlnode.Documents(o.File, o.own[o.File], yamlnode.Limits{})
	if err != nil || len(docs) != 1 {
		return nil
	}
	return yamlnode.Positions(o.File, docs[0])
}

// digest fills in the digest: of every file and directory and where it lies as
// seen from o.
func (o *Overlay) digest() {
	sum := sha256.New()
	var line []byte
	note := func(name string, digest [32]byte) {
		line = strconv.AppendQuote(line[:0], relative(o.Dir, name))
		line = append(append(append(line, ' '), digest[:]...), '\n')
		sum.Write(line)
	}
	for _, name := range o.Files() {
		note(name, sha256.Sum256(o.own[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(o.links)) {
		note(name, sha256.Sum256([]byte(relative(o.Dir, o.links[name]))))
	}
	for _, sub := range o.below {
		note(sub.Dir, sub.Digest)
	}
	sum.Sum(o.Digest[:0])
}

// relative returns a path as seen from a directory; both are clean and relative.
func relative(dir, name string) string {
	if rest, below := strings.CutPrefix(name, dir+"/"); below {
		return rest
	}
	rel, _ := filepath.Rel(dir, name)
	return filepath.ToSlash(rel)
}

// kustomization reads the file of a directory that says what is to be built.
func (f *Files) kustomization(o *Overlay) ([]byte, error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		at, err := f.from(o, name)
		if err != nil {
			return nil, err
		}
		data, err := f.read(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case o.File != "":
			return nil, fmt.Errorf("%s holds both %s and %s", o.Dir, path.Base(o.File), name)
		}
		o.File = at
		o.own[o.File] = data
	}
	if o.File == "" {
		return nil, fmt.Errorf("%s: %w", o.Dir, ErrNone)
	}
	return o.own[o.File], nil
}

// follow takes in what o refers to.
func (f *Files) follow(o *Overlay, r reference) error {
	name := path.Join(o.Dir, r.name)
	switch {
	case f.remote.MatchString(r.name):
		return fmt.Errorf("%q is not among these files: what lies elsewhere is not fetched", r.name)
	case r.inline() && r.kind == plugin:
		return f.plugins(o, o.File, []byte(r.name))
	case r.inline():
		return nil
	case path.IsAbs(r.name) || !fs.ValidPath(name):
		return fmt.Errorf("%q lies outside of the repository", r.name)
	}
	name, err := f.from(o, r.name)
	if err != nil {
		return err
	}
	listed := r.kind == resource || r.kind == component
	if sub := f.nodes[name]; sub != nil && listed {
		return o.takeIn(sub)
	}
	data, err := f.read(name)
	if err != nil && listed {
		sub, subErr := f.Open(name)
		if subErr == nil {
			return o.takeIn(sub)
		}
		if !errors.Is(subErr, ErrNone) {
			return subErr
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%q is not there: %w", r.name, fs.ErrNotExist)
	case err != nil:
		return err
	case !within(name, o.Dir):
		return fmt.Errorf("%q leads to %s, and kustomize takes files from %s and below alone", r.name, name, o.Dir)
	case r.kind == plugin:
		err = f.plugins(o, name, data)
	}
	return errors.Join(err, o.take(name, data, r.kind))
}

// takeIn adds a directory to those that o builds on.
func (o *Overlay) takeIn(sub *Overlay) error {
	o.below = append(o.below, sub)
	o.Plain = o.Plain && sub.Plain
	o.files = min(o.files+sub.files, maxLoaded)
	o.loaded = min(o.loaded+sub.loaded, maxLoaded+1)
	if o.depth = max(o.depth, sub.depth+1); o.depth > maxDepth {
		return errDeep
	}
	return nil
}

// take adds a file to those that a build reads. YAML with anchors is held to the
// bounds of yamlnode, since kustomize has none.
func (o *Overlay) take(name string, data []byte, kind kind) error {
	o.own[name] = data
	o.loaded = min(o.loaded+len(data), maxLoaded+1)
	if kind == resource {
		o.list, o.files = append(o.list, name), min(o.files+1, maxLoaded)
	}
	if kind == content || !mayAlias(data) {
		return nil
	}
	_, err := yamlnode.Documents(name, data, yamlnode.Limits{})
	if err != nil { // unless it is a list, as a patch may be
		if _, listErr := yamlnode.Documents(name, slices.Concat([]byte("list:\n"), data), yamlnode.Limits{}); listErr == nil {
			return nil
		}
	}
	return err
}

// mayAlias reports whether a text may hold an anchor of YAML: its mark neither
// stands within a word nor alone, as it does in prose.
func mayAlias(data []byte) bool {
	for i, b := range data {
		if b == '&' && (i == 0 || !letter(data[i-1])) && i+1 < len(data) && !strings.ContainsRune(" \t\r\n", rune(data[i+1])) {
			return true
		}
	}
	return false
}

func letter(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// All returns the files that go into a build, by path.
func (o *Overlay) All() map[string][]byte {
	out := map[string][]byte{}
	for k := range o.Kustomizations() {
		maps.Copy(out, k.own)
	}
	return out
}

// Files returns the paths of File and of the files that it refers to, sorted.
func (o *Overlay) Files() []string { return slices.Sorted(maps.Keys(o.own)) }

// Data returns the content of a file that o itself refers to.
func (o *Overlay) Data(name string) []byte { return o.own[name] }

// Listing returns what stands for the files that are listed in o and below: of two
// overlays of the same files of which it is the same, these are the same.
func (o *Overlay) Listing() string {
	if len(o.list) == 0 && len(o.below) == 1 {
		return o.below[0].Listing()
	}
	parts := slices.Clone(o.list)
	for _, sub := range o.below {
		parts = append(parts, "in "+sub.Dir)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// Changes reports whether o itself does more than list resources.
func (o *Overlay) Changes() bool { return !o.lists }

// IsComponent reports whether o is a part of others and cannot be built by itself.
func (o *Overlay) IsComponent() bool { return o.k.Kind == types.ComponentKind }

// Count returns how many objects a build of o begins with, each as often as it is
// referred to. The error has the place of what holds no objects.
func (o *Overlay) Count() (int, error) {
	known := map[*Overlay]int{}
	var faults diag.List
	o.inOrder(map[*Overlay]bool{}, func(k *Overlay) {
		n := len(k.k.ConfigMapGenerator) + len(k.k.SecretGenerator)
		for _, name := range k.list {
			docs, err := yamlnode.Documents(name, k.own[name], yamlnode.Limits{})
			faults.Add(diag.Pos{File: name}, err)
			n += len(unlisted(docs))
		}
		for _, text := range k.k.Generators {
			data, isFile := k.own[k.path(text)]
			if !isFile {
				data = []byte(text)
			}
			docs, err := yamlnode.Documents(k.File, data, yamlnode.Limits{})
			faults.Add(diag.Pos{File: k.File}, err)
			n += len(docs)
		}
		for _, sub := range k.below {
			n += known[sub]
		}
		known[k] = n
	})
	return known[o], faults.Err()
}

// inOrder calls visit with every kustomization that goes into the build of o,
// each once, after those that it builds on.
func (o *Overlay) inOrder(seen map[*Overlay]bool, visit func(*Overlay)) {
	if seen[o] {
		return
	}
	seen[o] = true
	for _, sub := range o.below {
		sub.inOrder(seen, visit)
	}
	visit(o)
}

// Kustomizations returns o and every kustomization that goes into its build,
// each once.
func (o *Overlay) Kustomizations() map[*Overlay]bool {
	seen := map[*Overlay]bool{}
	o.inOrder(seen, func(*Overlay) {})
	return seen
}

// Resources returns the files that are listed, in path order: where o is Plain,
// their objects are all that a build brings.
func (o *Overlay) Resources() []string {
	var out []string
	for k := range o.Kustomizations() {
		out = append(out, k.list...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Build returns the objects that kustomize builds of o, in its order, as JSON. An
// error has the place of the patch that it names, else of o.
func (o *Overlay) Build() ([][]byte, error) {
	built, err := o.build(o.flat())
	if err != nil { // told of the files as they are
		built, err = o.build(o.All())
	}
	if err != nil {
		return nil, diag.Errorf(o.place(err.Error()), "%w", err)
	}
	return built, nil
}

// path returns where what o refers to lies.
func (o *Overlay) path(name string) string {
	name = path.Join(o.Dir, name)
	return cmp.Or(o.links[name], name)
}

// build builds o of files in place of its own.
func (o *Overlay) build(files map[string][]byte) ([][]byte, error) {
	objects, err := o.run(files)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, o := range objects.Resources() {
		data, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}

// run has kustomize build o. Some patches that it does not expect, such as those
// that take the name from an object, have it panic: that is an error as any other.
func (o *Overlay) run(files map[string][]byte) (objects resmap.ResMap, err error) {
	defer func() {
		if r := recover(); r != nil {
			objects, err = nil, fmt.Errorf("kustomize cannot build this and panics: %v", r)
		}
	}()
	fsys := linked{filesys.MakeFsInMemory(), map[string]string{}}
	for k := range o.Kustomizations() {
		maps.Copy(fsys.links, k.links)
	}
	for name, data := range files {
		if err := fsys.WriteFile("/"+name, data); err != nil {
			return nil, err
		}
	}
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, path.Join("/", o.Dir))
}
