// Package overlay determines the input of a kustomization and builds it as stock kustomize does,
// but only from files in memory.
//
// All input is collected before the build, from the references in each kustomization, and kustomize cannot
// access other files. So the digest of an [Overlay] covers all input of its build. The size of the input is
// known before the build. A build opens no network connection and starts no program.
//
// Start from [New], [Files.Open] and [Overlay.Build].
package overlay

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Limits of a build. maxLoaded is the maximum number of bytes that are loaded. A file counts once
// for each reference to it. Each loaded kustomization counts as bytesPerKustomization, because their number
// doubles with every level if each level includes the next level twice. maxDepth is the maximum number
// of levels. It is needed because each level processes all objects of the lower levels again.
const (
	maxLoaded             = 64 << 20
	bytesPerKustomization = 1 << 10
	maxDepth              = 100
)

// Files opens kustomizations from a source. It caches them.
type Files struct {
	source   Source
	plain    map[string]bool // paths that are known not to be links
	nodes    map[string]*Overlay
	parsed   map[string]*parsedKustomization // text of a kustomization → its content
	depth    int                             // nesting depth of the current call of Open
	remote   *regexp.Regexp
	types    *admit.Types
	tolerant bool // see NewTolerant
	list     func(dir string) []string
	results  *memo.Results     // results of builds; may be nil
	previous *Files            // files to reuse, set by ReuseFrom; may be nil
	changed  map[*Overlay]bool // overlays of previous whose input has changed
}

// New returns Files for a source.
func New(source Source) *Files {
	return &Files{
		source: source, plain: map[string]bool{}, nodes: map[string]*Overlay{}, parsed: map[string]*parsedKustomization{}, types: admit.NewTypes(), changed: map[*Overlay]bool{},
		// remote matches references that kustomize treats as URLs of files or repositories.
		remote: regexp.MustCompile(`(?i)^(git::)*(ssh://|https?:|file://|[a-z][a-z0-9-]*@|github\.com[/:])`),
	}
}

// NewTolerant returns Files that skip a plugin that is a program, instead of returning an error: see
// [Overlay.Skipped]. PolicyGenerator of Open Cluster Management is evaluated. list returns the
// names of the manifests in a directory, sorted. results caches the results of builds. results may be
// nil.
func NewTolerant(source Source, list func(dir string) []string, results *memo.Results) *Files {
	f := New(source)
	f.tolerant, f.list, f.results = true, list, results
	return f
}

// Overlay is a kustomization with all input of its build.
type Overlay struct {
	Dir    string   // directory: "rendered/clusters/prod"
	File   string   // kustomization file: "rendered/clusters/prod/kustomization.yaml"
	Digest [32]byte // digest of all input of the build
	Plain  bool     // the kustomization, and those in all listed directories, only list files and directories

	Skipped []Plugin // generators and transformers in the kustomization itself that the build skips
	Sources []string // files and kustomization directories that its PolicyGenerators read
	Remote  []string // remote files and directories that the kustomization itself refers to, which are errors

	kustomization    types.Kustomization
	onlyLists        bool                         // the kustomization itself only lists resources
	hasOptionalFiles bool                         // the configuration of a plugin may refer to optional files
	generated        map[string][]generatedPolicy // files that are replaced by the output of a PolicyGenerator
	ownFiles         map[string][]byte            // File and the files that it refers to: path → content
	links            map[string]string            // path of a link → path of its target
	listedFiles      []string                     // paths of the resources that are files, in order
	children         []*Overlay                   // overlays of the directories that it refers to
	targets          []Edit                       // targets of its patches; nil if it does more than list objects and patch single ones
	fileCount        int                          // number of files listed in it and below, counted as often as they are listed
	types            *admit.Types
	results          *memo.Results
	loadedBytes      int   // bytes that the build loads
	depth            int   // number of levels, including this one
	err              error // error of Open
}

// ErrNone means that a directory has no kustomization.
var ErrNone = errors.New("no kustomization.yaml")

// ErrOutside means that a reference leads out of the source.
var ErrOutside = errors.New("is outside of the repository")

var errTooDeep = fmt.Errorf("kustomizations are nested deeper than %d levels", maxDepth)

// Open collects the input for building a directory. It returns an error for each reference to a missing
// file, to a file outside of the source, or to a program, with the position of the reference. Together with
// such an error, Open returns an overlay with the rest of the input, which cannot be built.
func (f *Files) Open(dir string) (*Overlay, error) {
	dir, err := f.resolveLinks(dir)
	if err != nil {
		return nil, err
	}
	if o, known := f.nodes[dir]; known {
		if o == nil {
			return nil, fmt.Errorf("%s includes itself", dir)
		}
		return o, o.err
	}
	if f.depth >= maxDepth {
		return nil, errTooDeep
	}
	if o := f.findReusable(dir); o != nil {
		return o, nil
	}
	f.nodes[dir] = nil
	f.depth++
	o, err := f.open(dir)
	f.depth--
	if o == nil || errors.Is(err, errTooDeep) { // do not cache errTooDeep: from another directory, the depth may be allowed
		delete(f.nodes, dir)
		return nil, err
	}
	f.nodes[dir], o.err = o, err
	return o, err
}

func (f *Files) open(dir string) (*Overlay, error) {
	o := &Overlay{Dir: dir, types: f.types, results: f.results, ownFiles: map[string][]byte{}}
	data, err := f.readKustomization(o)
	if err != nil {
		return nil, err
	}
	parsedFile, err := f.parse(o.File, data)
	if err != nil {
		return nil, err
	}
	o.kustomization, o.onlyLists, o.Plain, o.targets = parsedFile.kustomization, parsedFile.onlyLists, parsedFile.onlyLists, parsedFile.targets
	o.loadedBytes, o.depth = bytesPerKustomization+len(data), 1
	var faults diag.List
	for _, r := range parsedFile.references {
		if err := f.addReference(o, r); err != nil {
			faults.Add(o.position(r.field), err)
		}
	}
	faults.Add(o.position("helmCharts"), f.addCharts(o))
	if o.loadedBytes > maxLoaded {
		faults.Addf(diag.Pos{File: o.File}, "the input of the build exceeds the limit of %d MiB", maxLoaded>>20)
	}
	o.setDigest()
	return o, faults.Err()
}

// parsedKustomization is the content of a kustomization. It is shared and must not be modified.
type parsedKustomization struct {
	kustomization types.Kustomization
	onlyLists     bool
	references    []reference
	targets       []Edit // targets of its patches; nil if it does more than list resources and patch single objects
}

// parse parses the text of a kustomization. It caches the result by the text.
func (f *Files) parse(file string, data []byte) (*parsedKustomization, error) {
	if known, is := f.parsed[string(data)]; is {
		return known, nil
	}
	if _, err := yamlnode.Documents(file, data, yamlnode.Limits{}); err != nil {
		return nil, err
	}
	p := &parsedKustomization{}
	if err := p.kustomization.Unmarshal(data); err != nil {
		return nil, diag.Errorf(diag.Pos{File: file}, "%w", err)
	}
	k := types.Kustomization{TypeMeta: p.kustomization.TypeMeta, MetaData: p.kustomization.MetaData, Resources: p.kustomization.Resources} // a kustomization that only lists resources; metadata has no effect on the build
	p.onlyLists = reflect.DeepEqual(p.kustomization, k)
	if k.Patches = p.kustomization.Patches; reflect.DeepEqual(p.kustomization, k) {
		p.targets = parseTargets(k.Patches)
	}
	p.kustomization.FixKustomization()
	p.references = listReferences(p.kustomization)
	f.parsed[string(data)] = p
	return p, nil
}

// position returns the position of a field in File or, if the position of the field is unknown, the position of
// File.
func (o *Overlay) position(field string) diag.Pos {
	return o.positions().At(field, diag.Pos{File: o.File})
}

// positions returns the positions of all fields in File.
func (o *Overlay) positions() diag.Fields {
	docs, err := yamlnode.Documents(o.File, o.ownFiles[o.File], yamlnode.Limits{})
	if err != nil || len(docs) != 1 {
		return nil
	}
	return yamlnode.Positions(o.File, docs[0])
}

// setDigest sets o.Digest. The digest covers every file, link and directory, with paths relative to o.
func (o *Overlay) setDigest() {
	sum := sha256.New()
	var line []byte
	note := func(name string, digest [32]byte) {
		line = strconv.AppendQuote(line[:0], filetree.Relative(o.Dir, name))
		line = append(append(append(line, ' '), digest[:]...), '\n')
		sum.Write(line)
	}
	for _, name := range o.Files() {
		note(name, sha256.Sum256(o.ownFiles[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(o.links)) {
		note(name, sha256.Sum256([]byte(filetree.Relative(o.Dir, o.links[name]))))
	}
	for _, sub := range o.children {
		note(sub.Dir, sub.Digest)
	}
	sum.Sum(o.Digest[:0])
}

// readKustomization reads the kustomization file in the directory of o and sets o.File.
func (f *Files) readKustomization(o *Overlay) ([]byte, error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		at, err := f.resolveReference(o, name)
		if err != nil {
			return nil, err
		}
		data, err := f.source.ReadFile(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case o.File != "":
			return nil, fmt.Errorf("%s contains both %s and %s", o.Dir, path.Base(o.File), name)
		}
		o.File = at
		o.ownFiles[o.File] = data
	}
	if o.File == "" {
		return nil, fmt.Errorf("%s: %w", o.Dir, ErrNone)
	}
	return o.ownFiles[o.File], nil
}

// addReference adds the file or directory that a reference leads to.
func (f *Files) addReference(o *Overlay, r reference) error {
	name := path.Join(o.Dir, r.name)
	switch {
	case f.remote.MatchString(r.name):
		o.Remote = append(o.Remote, r.name)
		hint := ""
		if f.tolerant {
			hint = localizeHint(o.Dir)
		}
		return diag.Hintf(o.position(r.field), hint, "%q is not a local file: remote resources are not fetched", r.name)
	case r.isInline() && r.kind == plugin:
		return f.addPlugins(o, r, o.File, []byte(r.name))
	case r.isInline():
		return nil
	case path.IsAbs(r.name) || !fs.ValidPath(name):
		return fmt.Errorf("%q %w", r.name, ErrOutside)
	}
	name, err := f.resolveReference(o, r.name)
	if err != nil {
		return err
	}
	listed := r.kind == resource || r.kind == component
	if sub := f.nodes[name]; sub != nil && listed {
		return o.addDirectory(sub)
	}
	data, err := f.source.ReadFile(name)
	if err != nil && (listed || r.kind == plugin && f.tolerant) {
		sub, subErr := f.Open(name)
		switch {
		case sub != nil && !listed:
			o.skip(r, Plugin{Pos: o.position(r.field), Kind: "directory " + r.name})
			return nil
		case sub != nil:
			return o.addDirectory(sub)
		case !errors.Is(subErr, ErrNone):
			return subErr
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%q: %w", r.name, fs.ErrNotExist)
	case err != nil:
		return err
	case !filetree.Within(name, o.Dir):
		return fmt.Errorf("%q resolves to %s, but kustomize only reads files below %s", r.name, name, o.Dir)
	case r.kind == plugin:
		err = f.addPlugins(o, r, name, data)
	}
	if err != nil || o.isGenerated(name) {
		return err
	}
	return o.addFile(name, data, r.kind)
}

// localizeHint returns the hint for a kustomization with remote resources: how to copy them into
// the repository.
func localizeHint(dir string) string {
	name := "localized-" + path.Base(dir)
	return fmt.Sprintf("at the top of the repository, run %q, and use %q instead", "kustomize localize --scope . "+shellWord(dir)+" "+shellWord(name), path.Join(name, dir))
}

// shellWord returns s quoted as a word for a POSIX shell, if necessary.
func shellWord(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("-_./+@:,", r) && (r > '~' || !isLetter(byte(r))) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// addDirectory adds sub, the overlay of a directory, to the input of o. If opening sub failed, it returns
// this error.
func (o *Overlay) addDirectory(sub *Overlay) error {
	o.children = append(o.children, sub)
	o.Plain = o.Plain && sub.Plain
	o.fileCount = min(o.fileCount+sub.fileCount, maxLoaded)
	o.loadedBytes = min(o.loadedBytes+sub.loadedBytes, maxLoaded+1)
	if o.depth = max(o.depth, sub.depth+1); o.depth > maxDepth {
		return errTooDeep
	}
	return sub.err
}

// addFile adds a file to the input of o. YAML with anchors must be within the limits of yamlnode,
// because kustomize limits nothing.
func (o *Overlay) addFile(name string, data []byte, kind kind) error {
	o.ownFiles[name] = data
	o.loadedBytes = min(o.loadedBytes+len(data), maxLoaded+1)
	if kind == resource {
		o.listedFiles, o.fileCount = append(o.listedFiles, name), min(o.fileCount+1, maxLoaded)
	}
	if kind == content || !mayHaveAnchor(data) {
		return nil
	}
	_, err := yamlnode.Documents(name, data, yamlnode.Limits{})
	if err != nil { // not an error: a patch may be a list
		if _, listErr := yamlnode.Documents(name, slices.Concat([]byte("list:\n"), data), yamlnode.Limits{}); listErr == nil {
			return nil
		}
	}
	return err
}

// mayHaveAnchor reports whether a text may contain a YAML anchor: an ampersand that neither follows
// a letter nor precedes white space.
func mayHaveAnchor(data []byte) bool {
	for i, b := range data {
		if b == '&' && (i == 0 || !isLetter(data[i-1])) && i+1 < len(data) && !strings.ContainsRune(" \t\r\n", rune(data[i+1])) {
			return true
		}
	}
	return false
}

func isLetter(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// All returns all files of the build: path → content. Skipped plugins are removed from the
// kustomizations.
func (o *Overlay) All() map[string][]byte {
	out := map[string][]byte{}
	for k := range o.Kustomizations() {
		maps.Copy(out, k.ownFiles)
		if len(k.Skipped)+len(k.generated) > 0 {
			out[k.File] = k.withoutSkipped()
		}
	}
	return out
}

// Files returns the paths of the kustomization file and of the files that it refers to, sorted.
func (o *Overlay) Files() []string { return slices.Sorted(maps.Keys(o.ownFiles)) }

// Data returns the content of a file that the kustomization itself refers to.
func (o *Overlay) Data(name string) []byte { return o.ownFiles[name] }

// Listing returns a key for the files listed in o and in the kustomizations below o. Two overlays
// from the same Files with equal keys list the same files.
func (o *Overlay) Listing() string {
	if len(o.listedFiles) == 0 && len(o.children) == 1 {
		return o.children[0].Listing()
	}
	parts := slices.Clone(o.listedFiles)
	for _, sub := range o.children {
		parts = append(parts, "in "+sub.Dir)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// Changes reports whether the kustomization itself does more than list resources.
func (o *Overlay) Changes() bool { return !o.onlyLists }

// IsComponent reports whether o is a kustomize component, which cannot be built alone.
func (o *Overlay) IsComponent() bool { return o.kustomization.Kind == types.ComponentKind }

// Count returns the number of objects that building o loads. An object counts once for each reference
// to it. A file without objects is an error with the position of the file.
func (o *Overlay) Count() (int, error) {
	return memo.Remember(o.results, "overlay.Count", o.input(), func() (int, error) { return countObjects(o) })
}

// input returns everything that determines the result of a build.
func (o *Overlay) input() []byte { return append(o.Digest[:], o.Dir...) }

func countObjects(o *Overlay) (int, error) {
	known := map[*Overlay]int{}
	var faults diag.List
	o.visitChildrenFirst(map[*Overlay]bool{}, func(k *Overlay) {
		n := len(k.kustomization.ConfigMapGenerator) + len(k.kustomization.SecretGenerator)
		for _, name := range k.listedFiles {
			docs, err := yamlnode.Documents(name, k.ownFiles[name], yamlnode.Limits{})
			faults.Add(diag.Pos{File: name}, err)
			n += len(flattenLists(docs))
		}
		for _, text := range k.kustomization.Generators {
			data, isFile := k.ownFiles[k.path(text)]
			if !isFile {
				data = []byte(text)
			}
			docs, err := yamlnode.Documents(k.File, data, yamlnode.Limits{})
			faults.Add(diag.Pos{File: k.File}, err)
			n += len(docs)
		}
		for _, sub := range k.children {
			n += known[sub]
		}
		known[k] = n
	})
	return known[o], faults.Err()
}

// visitChildrenFirst calls visit for each kustomization of the build, after the kustomizations that it refers
// to. It skips the kustomizations in seen, and adds the visited kustomizations to seen.
func (o *Overlay) visitChildrenFirst(seen map[*Overlay]bool, visit func(*Overlay)) {
	if seen[o] {
		return
	}
	seen[o] = true
	for _, sub := range o.children {
		sub.visitChildrenFirst(seen, visit)
	}
	visit(o)
}

// Kustomizations returns the set of all kustomizations of the build, including o.
func (o *Overlay) Kustomizations() map[*Overlay]bool {
	seen := map[*Overlay]bool{}
	o.visitChildrenFirst(seen, func(*Overlay) {})
	return seen
}

// Resources returns the listed files, sorted by path. If o only lists resources, a build returns
// exactly the objects in these files.
func (o *Overlay) Resources() []string {
	var out []string
	for k := range o.Kustomizations() {
		out = append(out, k.listedFiles...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Build returns the objects of a kustomize build as JSON, in the order of kustomize. An error has
// the position of the failed patch or, for other errors, of o.
func (o *Overlay) Build() ([][]byte, error) {
	return memo.Remember(o.results, "overlay.Build", o.input(), o.buildObjects)
}

func (o *Overlay) buildObjects() ([][]byte, error) {
	built, err := o.build(o.flatten())
	if err != nil { // build the original files, so that the error is about them
		built, err = o.build(o.All())
	}
	if err != nil {
		return nil, diag.Errorf(o.patchPosition(err.Error()), "%w", err)
	}
	return built, nil
}

// BuildAtMost is like Build, but returns an error without a build if there are more objects than the limit most.
func (o *Overlay) BuildAtMost(most int) ([][]byte, error) {
	n, err := o.Count()
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, diag.Errorf(diag.Pos{File: o.File}, "%d objects, the limit is %d", n, most)
	}
	return o.Build()
}

// path returns the path of a file that o refers to by name.
func (o *Overlay) path(name string) string {
	name = path.Join(o.Dir, name)
	return cmp.Or(o.links[name], name)
}

// build builds o from the given files.
func (o *Overlay) build(files map[string][]byte) ([][]byte, error) {
	objects, err := o.runKustomize(files)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, o := range objects.Resources() {
		data, err := encode(o.RNode)
		if err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}

// encode returns an object as JSON, like MarshalJSON. MarshalJSON is slow: it encodes the object as YAML and
// parses the result. encode calls it only for objects with empty values, which it may turn into empty strings.
func encode(o kyaml.RNode) ([]byte, error) {
	if hasEmpty(o.YNode()) {
		return o.MarshalJSON()
	}
	fields, err := o.Map()
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// hasEmpty reports whether n contains a null that is written as an empty value.
func hasEmpty(n *kyaml.Node) bool {
	return n.Kind == kyaml.ScalarNode && n.Value == "" && n.Tag == kyaml.NodeTagNull || slices.ContainsFunc(n.Content, hasEmpty)
}

// runKustomize runs kustomize on o. It converts a panic to an error, because kustomize panics on some
// patches, such as a patch that removes the name of an object.
func (o *Overlay) runKustomize(files map[string][]byte) (objects resmap.ResMap, err error) {
	defer func() {
		if r := recover(); r != nil {
			objects, err = nil, fmt.Errorf("kustomize panicked: %v", r)
		}
	}()
	links := map[string]string{}
	for k := range o.Kustomizations() {
		maps.Copy(links, k.links)
	}
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(newMemory(files, links), path.Join("/", o.Dir))
}
