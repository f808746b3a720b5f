// Package survey finds out how GitOps tools apply a repository. It finds:
//
//   - entry points: Applications, ApplicationSets, Flux Kustomizations, policies, and
//     kustomizations and directories that nothing else includes
//   - the objects of OLM in the repository
//   - the entry points through which each object reaches a cluster
//
// It builds a kustomization only if the changes of objects are needed. It renders a chart only if an entry
// point applies the chart or a workspace names the chart.
//
// Start from [New], [Survey.Declarations] and [NewReader].
package survey

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Survey is an overview of a repository.
type Survey struct {
	// Declarations are the objects of OLM, sorted by position, then by namespace and name.
	Declarations []Declaration

	// Charts are the objects of GitOps tools that install a chart of another repository, in the same order.
	Charts []Declaration

	// Entries are the objects of GitOps tools that apply parts of this repository, sorted by position.
	Entries []*Entry

	repo    *repository
	byFile  map[string][]int      // indexes in Declarations, by file
	applied map[string][]*Applied // entries that apply a file with declarations or entries, by file

	including map[string][]string  // directories of the kustomizations that include a file with declarations, by file; nil before first use
	holders   map[diag.Pos]*Policy // policies that contain declarations, by the position of the declaration
	generated map[string][]*Policy // policies of generators, by the files of the declarations; nil before first use
	lower     map[string]bool      // directories that another kustomization includes; nil before first use
	built     map[string][]any     // objects that a kustomization builds, by directory
}

// Entry is an object that makes a GitOps tool apply parts of a repository, or a Helm chart that
// contains such objects.
type Entry struct {
	By      string // such as `Application "etcd"`
	Pos     diag.Pos
	Applied []*Applied

	isArgo  bool     // whether it is an object of Argo CD
	built   string   // the file to declare for the object: that of the kustomization that changes it, or of the entry whose chart creates it; "": its own
	within  *Applied // the chart that creates the object; nil: none
	unknown []string // reasons why it may apply other parts, too
}

// CannotTell returns the reasons why the entry may apply more of the repository than Applied lists.
// It returns "" if there are none.
func (e *Entry) CannotTell() string { return strings.Join(e.unknown, "; ") }

// Applied is a directory or a file that an entry applies to a cluster.
type Applied struct {
	Entry   *Entry
	Pos     diag.Pos // position of the path in the entry
	Dir     string   // path in the repository; it can be a file
	Cluster string   // name, server or kubeconfig of the target cluster; empty: not set or unknown
	Guess   string   // reason why this is only a guess; empty: the entry certainly applies it
	Changes Changes
	Chart   *Chart // how the tool templates a chart in Dir; nil: it does not

	recurse          bool // whether subdirectories are included
	suspended        bool // whether the tool does not apply it now
	include, exclude string
	ignoreFile       string          // name of files with ignore patterns
	ignore           *gitrepo.Ignore // ignore patterns of the source
}

// Changes describes the changes that a tool makes to the objects that it applies.
type Changes struct {
	Namespace, NamePrefix, NameSuffix string
	Labels, Annotations               map[string]string
	Patches                           []types.Patch
	Images                            []types.Image
	Components                        []string

	DefaultNamespace string            // namespace for namespaced objects that declare none
	Substitutes      bool              // whether ${VAR} is replaced
	Substitute       map[string]string // values of variables
	SubstituteFrom   []string          // objects of a cluster with further variables, of unknown names: "Secret vars"
	Unknown          []string          // changes that cannot be known offline: "the output of a plugin"

	hidden map[string]bool // variables with an unknown value
}

// IsBuilt reports whether the tool makes the changes by a kustomization.
func (c Changes) IsBuilt() bool {
	return c.Namespace+c.NamePrefix+c.NameSuffix != "" || len(c.Labels)+len(c.Annotations)+len(c.Patches)+len(c.Images)+len(c.Components) > 0
}

// String lists the changes, except the default namespace. It returns "" if there are none.
func (c Changes) String() string {
	var out []string
	for _, f := range []struct {
		changed bool
		name    string
	}{
		{c.Namespace != "", "namespace"},
		{c.NamePrefix+c.NameSuffix != "", "names"},
		{len(c.Patches) > 0, "patches"},
		{len(c.Components) > 0, "components"},
		{len(c.Images) > 0, "images"},
		{c.Substitutes, "substitutions"},
	} {
		if f.changed {
			out = append(out, f.name)
		}
	}
	return strings.Join(append(out, c.Unknown...), ", ")
}

// Declaration is an object of OLM, or text that looks like one.
type Declaration struct {
	Pos       diag.Pos
	Kind      string
	Namespace string // empty if a kustomization or a tool sets it
	Name      string
	Package   string // empty if the object requests no operator
	Obstacle  string // reason why it is not an object in a manifest, such as "is in a Helm template"; empty if it is

	Chart    bool // whether it is one of Charts
	Selected bool // whether the label of the chart selects it as an operator
	Alone    bool // whether the object installs nothing but the chart, so that a path can select it

	templated bool       // whether a chart that is rendered creates it
	applied   []*Applied // for a templated declaration: the charts that create it
}

// IsTemplated reports whether a template of a chart creates the declaration. The position of such a
// declaration is the position of the template. A template may create several declarations.
func (d Declaration) IsTemplated() bool { return d.templated }

// IsOperator reports whether the declaration requests an operator.
func (d Declaration) IsOperator() bool {
	return d.Chart || slices.ContainsFunc(declarationKinds(), func(k declarationKind) bool { return k.kind == d.Kind && k.pkg != "" })
}

// API groups of OLM's objects and of policies.
const (
	olmGroup      = "operators.coreos.com"
	olmV1Group    = "olm.operatorframework.io"
	policyGroup   = "policy.open-cluster-management.io"
	quaysideGroup = "quayside.dev"
)

// scanner makes a survey.
type scanner struct {
	*Survey
	sources   map[string]sourceObject // source objects by kind, namespace and name
	foreign   func(url string) bool
	assumeOwn bool            // whether a source that is not found counts as this repository
	groups    [][]byte        // API groups of declarations and entries
	objects   []entryObject   // of GitOps tools
	templates []string        // files of charts that contain objects of GitOps tools
	patches   map[string]bool // files with patches of kustomizations
	listed    map[string]bool // files that kustomizations list as resources
	bindings  []binding       // of PlacementBindings
	sets      []binding       // the policies of PolicySets: kind is the name of the set

	chartTargets []string // clusters of the Applications that only install a chart of another repository

	values *valueIndex // nil: the values of variables are not looked up in the repository

	charts    *helm.Charts
	named     []*Applied                 // charts that workspaces name
	templated map[string]*templatedChart // by directory and input
	rendered  map[string]bool            // directories of charts that were templated, and of their subcharts
}

type entryObject struct {
	file string
	node *yamlnode.Node

	pos   diag.Pos // position of an object that a kustomization changes; zero for an object as in its file
	built string   // as in Entry

	within *Applied // as in Entry
}

// sourceObject is an object that names a repository, such as Flux's GitRepository. Entries refer to
// it.
type sourceObject struct {
	url     string
	ignored *gitrepo.Ignore // spec.ignore
}

func newScanner(repo *repository, foreign func(url string) bool) *scanner {
	s := &Survey{repo: repo, byFile: map[string][]int{}, applied: map[string][]*Applied{}, holders: map[diag.Pos]*Policy{}, built: map[string][]any{}}
	return &scanner{Survey: s, sources: map[string]sourceObject{}, foreign: foreign, groups: relevantGroups(), patches: map[string]bool{}, listed: map[string]bool{}, templated: map[string]*templatedChart{}}
}

// Options are optional inputs of [New]. All may be nil.
type Options struct {
	Charts  *helm.Charts   // renders charts
	Results *memo.Results  // remembers results between runs
	Index   *gitrepo.Index // index of the repository
}

// New surveys a repository. It skips directories for which skip returns true, files that Git ignores, and large
// files. skip gets a file system that caches lists of directories. foreign reports whether a URL belongs to
// another repository. A missing directory is treated as empty. named returns the charts that workspaces name,
// each created with [Named]. named may search the survey for files, and may be nil.
func New(fsys fs.FS, skip func(files fs.FS, dir string) bool, foreign func(url string) bool, named func(*Survey) []*Applied, opt Options) (*Survey, error) {
	r := newRepository(fsys, nil)
	r.skip = func(dir string) bool {
		skipped := skip(r, dir)
		if skipped {
			delete(r.lists, dir)
		}
		return skipped
	}
	s := newScanner(r, foreign)
	s.charts, r.results, r.index = opt.Charts, opt.Results, opt.Index
	defer opt.Charts.Close()
	defer opt.Results.Save()
	seen := 0
	last := "" // directory of the last file
	err := gitrepo.WalkFiles(r, r.skip, func(name string, d fs.DirEntry) error {
		if seen++; seen > maxFiles {
			return fs.SkipAll
		}
		if dir := path.Dir(name); dir != last {
			last = dir
			s.addKustomization(dir)
		}
		isKustomization := slices.Contains(konfig.RecognizedKustomizationFileNames(), d.Name())
		if isKustomization || !yamlnode.HasExtension(name) && !isTemplateName(name) {
			return nil
		}
		return s.scanFile(name, d)
	})
	if err != nil {
		return nil, err
	}
	if named != nil {
		s.named = named(s.Survey)
	}
	s.finish()
	return s.Survey, nil
}

// Named returns the chart in the directory dir. A workspace names this chart in spec.declarations. pos is the
// position in its settings.
func Named(dir string, c *Chart, pos diag.Pos) *Applied {
	return &Applied{Entry: &Entry{Pos: pos}, Pos: pos, Dir: dir, Chart: c, Changes: Changes{DefaultNamespace: c.Namespace}}
}

// Find returns the files of the repository with a name, sorted.
func (s *Survey) Find(base string) []string {
	var out []string
	for dir, list := range s.repo.lists {
		if slices.ContainsFunc(list, func(d fs.DirEntry) bool { return d.Name() == base && !d.IsDir() }) {
			out = append(out, path.Join(dir, base))
		}
	}
	slices.Sort(out)
	return out
}

func (s *scanner) addKustomization(dir string) {
	k := s.repo.kustomization(dir)
	if k == nil {
		return
	}
	for _, name := range k.Patches {
		s.patches[name] = true
	}
	for _, name := range k.Resources {
		s.listed[name] = true
	}
}

// finish evaluates the objects of GitOps tools, after all files were read.
func (s *scanner) finish() {
	for _, o := range s.builtObjects() {
		s.addEntry(o)
	}
	s.templateCharts()
	s.Declarations = slices.DeleteFunc(s.Declarations, func(d Declaration) bool { return s.patches[d.Pos.File] && !s.listed[d.Pos.File] })
	slices.SortStableFunc(s.Declarations, func(a, b Declaration) int {
		return cmp.Or(a.Pos.Compare(b.Pos), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Package, b.Package))
	})
	relevant := map[string]bool{}
	s.Declarations = slices.DeleteFunc(s.Declarations, func(d Declaration) bool {
		if d.Chart {
			s.Charts = append(s.Charts, d)
			relevant[d.Pos.File] = true
		}
		return d.Chart
	})
	for i, d := range s.Declarations {
		s.byFile[d.Pos.File] = append(s.byFile[d.Pos.File], i)
		relevant[d.Pos.File] = true
	}
	for _, o := range s.objects {
		relevant[o.file] = true
	}
	for _, file := range s.templates {
		s.addChart(file)
	}
	s.bindPolicies()
	s.addPolicies()
	slices.SortStableFunc(s.Entries, func(a, b *Entry) int { return a.Pos.Compare(b.Pos) })
	charts := s.operatorCharts()
	for _, e := range s.Entries {
		for _, a := range e.Applied {
			for _, file := range charts[a.Dir] {
				if len(e.unknown) == 0 {
					e.addUnknown(chartReason(a.Dir, nil))
				}
				s.applied[file] = append(s.applied[file], a)
			}
			for file := range s.repo.appliedFiles(a) {
				if relevant[file] {
					s.applied[file] = append(s.applied[file], a)
				}
			}
		}
	}
}

// isTemplateName reports whether a file has the name of a manifest template.
func isTemplateName(name string) bool {
	return slices.Contains([]string{".j2", ".jinja", ".jinja2", ".tpl", ".tmpl", ".gotmpl", ".template"}, path.Ext(name))
}

// relevantGroups returns the API groups of declarations and entries.
func relevantGroups() [][]byte {
	var names []string
	for _, k := range declarationKinds() {
		names = append(names, k.group)
	}
	for _, a := range profile.Appliers() {
		names = append(names, a.Group)
		if a.Sources != "" {
			names = append(names, a.Sources)
		}
	}
	slices.Sort(names)
	var out [][]byte
	for _, name := range slices.Compact(names) {
		out = append(out, []byte(name))
	}
	return out
}

// isRelevant reports whether a text names one of the groups.
func isRelevant(groups [][]byte, text []byte) bool {
	return slices.ContainsFunc(groups, func(group []byte) bool { return bytes.Contains(text, group) })
}

// scanFile records the declarations and the objects of GitOps tools in a file.
func (s *scanner) scanFile(name string, d fs.DirEntry) error {
	chart, inChart := s.repo.chartOf(name)
	scanned := false
	scan := func(data []byte) (found bool, err error) {
		scanned = true
		switch {
		case !isRelevant(s.groups, data) && !bytes.Contains(data, []byte(fluxReleases)):
			return false, nil
		case inChart:
			s.addText(name, data, 1, fmt.Sprintf("is in a template of the Helm chart %q: list the chart with its values, or the object that applies the chart, in spec.declarations", chart))
			if bytes.Contains(data, []byte(argoGroup)) {
				s.templates = append(s.templates, name)
			}
			return true, nil
		case isTemplateName(name):
			s.addText(name, data, 1, "is in a template")
			return true, nil
		}
		return s.scanManifest(name, data), nil
	}
	found, err := remember(s.repo, name, d, fmt.Sprintf("survey.scanFile %t", inChart), scan)
	if found && !scanned {
		_, err = scan(s.repo.read(name))
	}
	return err
}

// scanManifest is like scanFile, for a file that does not have the name of a template. It reports whether it
// recorded something. The result depends only on data.
func (s *scanner) scanManifest(name string, data []byte) bool {
	docs, err := documents(name, data)
	if err != nil {
		obstacle := "is in a file that is not valid YAML"
		if bytes.Contains(data, []byte("{{")) {
			obstacle = "is in a template"
		}
		s.addText(name, data, 1, obstacle)
		return true
	}
	found := false
	for _, n := range docs {
		recorded := func() int { return len(s.Declarations) + len(s.objects) + len(s.bindings) + len(s.sets) }
		before := recorded()
		isSource := slices.ContainsFunc(profile.Appliers(), func(a profile.Applier) bool { return a.Sources != "" && a.Sources == groupOf(n) })
		s.scanDocument(name, n)
		found = found || isSource || recorded() > before
	}
	return found
}

func (s *scanner) scanDocument(file string, n *yamlnode.Node) {
	group, kind := groupOf(n), textAt(n, "kind")
	if d, is := chartOf(n); is {
		d.Pos = yamlnode.At(file, n)
		s.Declarations = append(s.Declarations, d)
	}
	for _, a := range profile.Appliers() {
		switch {
		case a.Sources != "" && a.Sources == group:
			ignored := gitrepo.NewIgnore()
			ignored.Parse([]byte(textAt(n, "spec.ignore")), ".")
			s.sources[sourceKey(kind, textAt(n, "metadata.namespace"), textAt(n, "metadata.name"))] = sourceObject{textAt(n, "spec.url"), ignored}
			return
		case a.Group == group && a.Kind == kind:
			s.objects = append(s.objects, entryObject{file: file, node: n})
			return
		}
	}
	if group == policyGroup && kind == "PolicyGenerator" || s.scanBinding(n) {
		return
	}
	before := len(s.Declarations)
	s.scanObject(file, n, n)
	if p := policyOf(file, n); p != nil {
		for i := range s.Declarations[before:] {
			s.holders[s.Declarations[before+i].Pos] = p
		}
	}
}

// scanObject records n if n is a declaration, and declarations nested in n. holder is the object that contains
// n, or n itself.
func (s *scanner) scanObject(file string, n, holder *yamlnode.Node) {
	if n.Kind == yamlnode.ScalarNode {
		if strings.Contains(n.Value, "\n") && isRelevant(s.groups, []byte(n.Value)) {
			s.addText(file, []byte(n.Value), n.Line+1, "is text in "+objectTitle(holder))
		}
		return
	}
	if textAt(n, "apiVersion") != "" && textAt(n, "kind") != "" {
		if d, is := declarationOf(n); is {
			d.Pos = yamlnode.At(file, n)
			if n != holder && !canHold(holder) {
				d.Obstacle = "is nested in " + objectTitle(holder)
			}
			s.Declarations = append(s.Declarations, d)
			return
		}
		holder = n
	}
	before := len(s.Declarations)
	for i, c := range n.Content {
		if n.Kind == yamlnode.SequenceNode || n.Kind == yamlnode.MappingNode && i%2 == 1 {
			s.scanObject(file, c, holder)
		}
	}
	if holder != n && strings.EqualFold(textAt(n, "complianceType"), "mustnothave") {
		for i := range s.Declarations[before:] {
			s.Declarations[before+i].Obstacle = "has complianceType mustnothave in " + objectTitle(holder)
		}
	}
}

// canHold reports whether LoadFS reads declarations that are nested in this object.
func canHold(holder *yamlnode.Node) bool {
	return groupOf(holder) == policyGroup && slices.Contains([]string{"Policy", "ConfigurationPolicy"}, textAt(holder, "kind"))
}

// declarationKind is a kind of declaration, with the paths of its fields.
type declarationKind struct {
	group, kind string
	namespace   string
	pkg         string // empty if the kind declares no operator
}

// declarationKinds returns the kinds of declarations.
func declarationKinds() []declarationKind {
	return []declarationKind{
		{olmGroup, "Subscription", "metadata.namespace", "spec.name"},
		{quaysideGroup, "Subscription", "metadata.namespace", "spec.package"},
		{policyGroup, "OperatorPolicy", "spec.subscription.namespace", "spec.subscription.name"},
		{olmV1Group, "ClusterExtension", "spec.namespace", "spec.source.catalog.packageName"},
		{olmGroup, "CatalogSource", "metadata.namespace", ""},
		{olmGroup, "OperatorGroup", "metadata.namespace", ""},
		{olmV1Group, "ClusterCatalog", "metadata.namespace", ""},
	}
}

// declarationOf returns the declaration in an object, without its position.
func declarationOf(n *yamlnode.Node) (Declaration, bool) {
	group, kind := groupOf(n), textAt(n, "kind")
	for _, k := range declarationKinds() {
		if k.group != group || k.kind != kind {
			continue
		}
		d := Declaration{Kind: kind, Namespace: textAt(n, k.namespace), Name: textAt(n, "metadata.name")}
		if k.pkg != "" {
			d.Package = textAt(n, k.pkg)
		}
		return d, true
	}
	return Declaration{}, false
}

// fluxReleases is the API group of Flux's HelmRelease.
const fluxReleases = "helm.toolkit.fluxcd.io"

// chartOf returns the object of a GitOps tool that installs a chart of another repository, without its
// position.
func chartOf(n *yamlnode.Node) (Declaration, bool) {
	d := Declaration{Kind: textAt(n, "kind"), Name: textAt(n, "metadata.name"), Chart: true}
	switch group := groupOf(n); {
	case group == fluxReleases && d.Kind == "HelmRelease":
		d.Namespace = cmp.Or(textAt(n, "spec.targetNamespace"), textAt(n, "metadata.namespace"))
		d.Package = cmp.Or(textAt(n, "spec.chart.spec.chart"), textAt(n, "spec.chartRef.name"))
		d.Alone = true
		d.Selected = IsSelected(n)
		return d, textAt(n, "spec.chart.spec.sourceRef.kind") == "HelmRepository" || textAt(n, "spec.chartRef.kind") == "OCIRepository"
	case group == argoGroup && (d.Kind == "Application" || d.Kind == "ApplicationSet"):
		spec := map[string]string{"Application": "spec.", "ApplicationSet": "spec.template.spec."}[d.Kind]
		d.Namespace = textAt(n, spec+"destination.namespace")
		d.Package = cmp.Or(textAt(n, spec+"source.chart"), textAt(n, spec+"sources.[].chart"))
		d.Alone, d.Selected = InstallsChart(n), IsSelected(n)
		return d, d.Package != "" || d.Alone
	}
	return d, false
}

// objectTitle returns the kind and the quoted name of an object for messages.
func objectTitle(n *yamlnode.Node) string {
	if textAt(n, "kind") == "" {
		return "an object without a kind"
	}
	return fmt.Sprintf("%s %q", textAt(n, "kind"), textAt(n, "metadata.name"))
}

// addText records the parts of a text that look like declarations. line is the line number of its
// first line.
func (s *scanner) addText(file string, data []byte, line int, obstacle string) {
	var groups, kinds []string
	for _, k := range declarationKinds() {
		groups, kinds = append(groups, regexp.QuoteMeta(k.group)), append(kinds, k.kind)
	}
	apiVersion := regexp.MustCompile(`^[\s-]*["']?apiVersion["']?:\s*["']?(` + strings.Join(groups, "|") + `)/`)
	kind := regexp.MustCompile(`^[\s-]*["']?kind["']?:\s*["']?(` + strings.Join(kinds, "|") + `)["']?\s*$`)
	name := regexp.MustCompile(`^\s*["']?name["']?:\s*["']?(.+?)["']?,?\s*$`)
	last := 0 // line of the last apiVersion that belongs to OLM
	var open *Declaration
	for i, text := range strings.Split(string(data), "\n") {
		switch m := kind.FindStringSubmatch(text); {
		case strings.HasPrefix(text, "---"):
			last, open = 0, nil
		case apiVersion.MatchString(text):
			last = i + 1
		case m != nil && last > 0:
			s.Declarations = append(s.Declarations, Declaration{Pos: diag.Pos{File: file, Line: line + last - 1, Col: 1}, Kind: m[1], Obstacle: obstacle})
			open, last = &s.Declarations[len(s.Declarations)-1], 0
		case open != nil && open.Name == "":
			if m := name.FindStringSubmatch(text); m != nil {
				open.Name = m[1]
			}
		}
	}
}

// addEntry evaluates an object of a GitOps tool.
func (s *scanner) addEntry(o entryObject) {
	e := &Entry{By: objectTitle(o.node), Pos: yamlnode.At(o.file, o.node), isArgo: groupOf(o.node) == argoGroup, built: o.built, within: o.within}
	if o.within != nil {
		e.built = cmp.Or(o.within.Entry.built, o.within.Entry.Pos.File)
	}
	if e.built != "" {
		e.Pos = o.pos
	}
	for _, a := range profile.Appliers() {
		if a.Group != groupOf(o.node) || a.Kind != textAt(o.node, "kind") {
			continue
		}
		switch {
		case a.Group == argoGroup && a.Kind == "Application":
			s.addApplication(e, o.node, decode(o.node), "spec")
		case a.Group == argoGroup && a.Kind == "ApplicationSet":
			s.addApplicationSet(e, o.node)
		default:
			s.addDirectories(e, o.node, a)
		}
	}
	if len(e.Applied) > 0 || len(e.unknown) > 0 {
		s.Entries = append(s.Entries, e)
	}
}

// addDirs adds the directory a.Dir to the entry e. If parts of the path are unknown, it adds every directory of
// the repository that matches the known parts.
func (s *scanner) addDirs(e *Entry, a Applied, complete func(*Applied)) {
	dirs := []string{a.Dir}
	switch fixed := fixedDir(a.Dir); {
	case fixed == a.Dir:
	case fixed == "." || strings.Contains(a.Dir, "{{"):
		e.addUnknown(fmt.Sprintf("its path %s is not available offline", strings.ReplaceAll(a.Dir, unknownText, "*")))
		return
	default:
		pattern := strings.ReplaceAll(a.Dir, unknownText, "*")
		a.Guess = "its path " + pattern + " is not available offline"
		dirs = slices.DeleteFunc(s.repo.dirsBelow(fixed), func(dir string) bool { return !matchDir(pattern, dir) })
	}
	a.Cluster = known(a.Cluster)
	for _, dir := range dirs {
		if !fs.ValidPath(dir) {
			continue
		}
		one := a
		one.Dir = dir
		complete(&one)
		e.Applied = append(e.Applied, &one)
	}
}

// isForeign reports whether a URL belongs to another repository.
func (s *scanner) isForeign(url string) bool {
	return url != "" && !strings.Contains(url, unknownText) && !strings.Contains(url, "{{") && s.foreign(url)
}

// addChart adds the directories that the values of a Helm chart name, if a template of the chart contains an
// Application and nothing in the repository deploys the chart. These directories are guesses: the chart may or
// may not apply them.
func (s *scanner) addChart(template string) {
	chart, _ := s.repo.chartOf(template)
	if s.rendered[chart] {
		return
	}
	title := fmt.Sprintf("Helm chart %q", chart)
	if slices.ContainsFunc(s.Entries, func(e *Entry) bool { return e.By == title }) {
		return
	}
	e := &Entry{By: title, Pos: diag.Pos{File: template, Line: 1, Col: 1}}
	for _, d := range s.repo.list(chart) {
		if !strings.HasPrefix(d.Name(), "values") || !yamlnode.HasExtension(d.Name()) {
			continue
		}
		file := path.Join(chart, d.Name())
		docs, err := documents(file, s.repo.read(file))
		if err != nil {
			continue
		}
		for _, n := range docs {
			s.addNamedDirs(e, file, n)
		}
	}
	fixed := regexp.MustCompile(`(?m)^\s*-?\s*path:\s*["']?([^\s"'{}]+)["']?\s*$`)
	for _, m := range fixed.FindAllStringSubmatch(string(s.repo.read(template)), -1) {
		s.addNamedDir(e, e.Pos, m[1])
	}
	if len(e.Applied) > 0 {
		s.Entries = append(s.Entries, e)
	}
}

// operatorCharts returns the templates with operators, by the directory of their Helm chart.
func (s *Survey) operatorCharts() map[string][]string {
	out := map[string][]string{}
	for _, d := range s.Declarations {
		chart, in := s.repo.chartOf(d.Pos.File)
		if in && !d.templated && d.IsOperator() && !slices.Contains(out[chart], d.Pos.File) {
			out[chart] = append(out[chart], d.Pos.File)
		}
	}
	return out
}

// addNamedDirs adds the directories whose paths occur as texts in n.
func (s *scanner) addNamedDirs(e *Entry, file string, n *yamlnode.Node) {
	if text, ok := yamlnode.Text(n); ok {
		s.addNamedDir(e, yamlnode.At(file, n), text)
	}
	for _, c := range n.Content {
		s.addNamedDirs(e, file, c)
	}
}

func (s *scanner) addNamedDir(e *Entry, pos diag.Pos, text string) {
	dir := cleanDir(text)
	if dir == "." || text == "" || strings.ContainsAny(text, " \n") || !s.repo.isDir(dir) {
		return
	}
	e.Applied = append(e.Applied, &Applied{Entry: e, Pos: pos, Dir: dir, Guess: "nothing in the repository deploys the chart, so that its values are unknown"})
}
