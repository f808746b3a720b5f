package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health/gate"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/provided"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Parse decodes and validates quayside.yaml without spec.extends. Missing fields have the values of
// [Default]. The error is a diag.List of all unknown fields, values of a wrong type, and invalid
// values.
func Parse(name string, data []byte) (*Workspace, error) {
	return Load(name, data, Repository{Dir: "."})
}

// Load decodes quayside.yaml and the files that it extends, merges them, sets defaults and validates the
// result. The error is a diag.List. The position of a fault is in the file that sets the faulty value.
func Load(name string, data []byte, repo Repository) (*Workspace, error) {
	l := loader{repo: repo}
	if !l.load(name, path.Join(repo.Dir, FileName), data) {
		return nil, l.errs.Err()
	}
	root, errs := l.mergedTree(), l.errs
	f := document{Spec: *Default()}
	errs.Add(diag.Pos{File: name}, diag.MapPositions(yamlnode.Decode(name, root, &f), l.locate))
	w := &f.Spec
	w.Name, w.File, w.Fields, w.Extended = f.Metadata.Name, name, yamlnode.Positions(name, root), l.extendedFiles()
	for field, p := range w.Fields {
		w.Fields[field] = l.locate(p)
	}
	w.setDerivedFields()
	w.setPolicyPositions()
	validator{yamlnode.Checker{Fields: w.Fields, Whole: w.At(""), Faults: &errs}, w}.check()
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return w, nil
}

// setDerivedFields cleans paths, and sets defaults that depend on other fields.
func (w *Workspace) setDerivedFields() {
	w.Output.Path = path.Clean(w.Output.Path)
	if w.Output.Repository != "" {
		setDefault(&w.Output.Branch, "main")
	}
	if w.FollowsPath() {
		w.Follows = path.Clean(w.Follows)
	}
	w.fillPromotion()
	for i := range w.Windows {
		setDefault(&w.Windows[i].TimeZone, "UTC")
	}
	if p := w.Propose; p != nil && p.Automerge != nil {
		setDefault(&p.Automerge.MaxSeverity, "low")
	}
	for i := range w.Declarations {
		if d := &w.Declarations[i]; d.Path != "" {
			d.Path = path.Clean(d.Path)
		}
	}
	for i := range w.Catalogs {
		field := diag.Item("spec.catalogs", i)
		c := &w.Catalogs[i]
		switch { // the validator reports other combinations
		case c.Source != "":
		case c.Helm != "" && c.Manifests == nil:
			c.Source, c.Helm = source.ChartRef(c.Helm), ""
			w.Fields[field+".source"] = w.Fields[field+".helm"]
		case c.Helm == "" && c.Manifests != nil:
			if ref, err := c.Manifests.Ref(); err == nil {
				c.Source, c.Manifests = ref, nil
				w.Fields[field+".source"] = w.Fields[field+".manifests"]
			}
		}
	}
	if w.NewDeclarations != "" {
		w.NewDeclarations = path.Clean(w.NewDeclarations)
	}
	if _, set := w.Fields["spec.certificates"]; !set {
		w.Certificates = certificates.Default(w.OpenShiftVersion != "")
	}
	if w.OpenShiftVersion != "" {
		w.Provides.APIs = addMissing(w.Provides.APIs, provided.OpenShiftAPIs())
		w.Provides.Objects = addMissing(w.Provides.Objects, provided.OpenShiftObjects())
	}
	if len(w.Clusters) == 0 {
		w.Clusters = Default().Clusters
	}
	for i := range w.Clusters {
		if c := &w.Clusters[i]; c.Operators == nil {
			c.Operators = []string{"*"}
		}
	}
	if w.GitOps == nil {
		return
	}
	g := w.GitOps
	setDefault(&g.Revision, cmp.Or(w.Output.Branch, "main"))
	setDefault(&g.Path, w.Output.Path)
	if g.SourceRef.Name == "" {
		setDefault(&g.RepoURL, w.Output.Repository)
	}
	setDefault(&g.Name, cmp.Or(w.Name, w.directoryName(), "quayside"))
	setDefault(&g.RemovedClusters, profile.Keep)
	setDefault(&g.Granularity, profile.PerOperator)
	setDefault(&g.Namespace, cmp.Or(w.Tool().About().Namespace, "default"))
	g.Defaults()
}

// addMissing appends to list the elements of more that list does not contain.
func addMissing(list, more []string) []string {
	return append(list, slices.DeleteFunc(more, func(s string) bool { return slices.Contains(list, s) })...)
}

// fillPromotion sets the defaults in spec.promotion. It does nothing if spec.promotion is not set.
func (w *Workspace) fillPromotion() {
	p := w.Promotion
	if p == nil {
		return
	}
	isSet := func(field string) bool { return w.Fields["spec.promotion."+field] != diag.Pos{} }
	d := gate.DefaultCriteria()
	p.Healthy, p.Soak = cmp.Or(p.Healthy, d.Healthy), cmp.Or(p.Soak, d.Soak)
	if !isSet("clusters") {
		p.Clusters = d.Clusters
	}
	if !isSet("observedWithin") {
		p.ObservedWithin = d.Within
	}
}

// Title returns metadata.name or, if it is not set, the base name of dir, the directory of the workspace.
func (w *Workspace) Title(dir string) string { return cmp.Or(w.Name, path.Base(dir)) }

// FollowsPath reports whether Follows is the path of a directory. Otherwise, it is the name of an environment.
func (w *Workspace) FollowsPath() bool {
	return strings.Contains(w.Follows, "/") || w.Follows == "." || w.Follows == ".."
}

// directoryName returns the base name of the directory of the workspace, according to spec.gitops.path. It
// returns "" if spec.gitops.path does not end in spec.output.
func (w *Workspace) directoryName() string {
	if dir, ok := strings.CutSuffix(path.Clean(w.GitOps.Path), "/"+w.Output.Path); ok {
		return path.Base(dir)
	}
	return ""
}

// Tool returns the profile of the workspace. If spec.profile is unknown, it returns the default
// profile.
func (w *Workspace) Tool() profile.Profile {
	p, err := profile.Lookup(w.Profile)
	if err != nil {
		p, _ = profile.Lookup(profile.Name(profile.Names()[0]))
	}
	return p
}

// ClusterNames returns the names of the clusters, in the order of quayside.yaml.
func (w *Workspace) ClusterNames() []string {
	var names []string
	for _, c := range w.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// ClusterName returns name, or an error if there is no cluster with this name. If name is empty, it returns the
// name of the only cluster. Errors mention the command-line flag.
func (w *Workspace) ClusterName(name, flag string) (string, error) {
	have := w.ClusterNames()
	switch {
	case name == "" && len(have) > 1:
		return "", fmt.Errorf("there are several clusters: choose one with %s (available: %s)", flag, strings.Join(have, ", "))
	case name == "":
		return have[0], nil
	case !slices.Contains(have, name):
		return "", fmt.Errorf("no cluster %q (available: %s)%s", name, strings.Join(have, ", "), diag.DidYouMean(name, have))
	default:
		return name, nil
	}
}

// EffectiveCluster returns the settings of a cluster with the defaults of the workspace.
func (w *Workspace) EffectiveCluster(c profile.Cluster) profile.Cluster {
	return c.WithDefaults(profile.Cluster{KubernetesVersion: w.KubernetesVersion, Provides: w.Provides})
}

// OverlaysDir returns the path of the user's overlays, next to the rendered tree.
func (w *Workspace) OverlaysDir() string { return path.Join(w.OutputDir(), "..", layout.Overlays) }

// ByOperator reports whether the GitOps tool applies each operator separately.
func (w *Workspace) ByOperator() bool { return profile.PerPiece(w.Tool(), w.GitOps) }

// setDefault sets *s to value if *s is empty.
func setDefault(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// validator validates the workspace w and adds faults to its Checker.
type validator struct {
	yamlnode.Checker
	w *Workspace
}

// check validates all fields.
func (v validator) check() {
	w := v.w
	v.Enum("spec.requirements", w.Requirements, "enforce", "warn")
	v.Enum("spec.storageMigration", w.StorageMigration, "auto", "v1", "v1beta1", "none")
	v.Enum("spec.profile", string(w.Profile), profile.Names()...)
	v.Enum("spec.certificates", string(w.Certificates), certificates.Names()...)
	v.checkVersion("spec.kubernetesVersion", w.KubernetesVersion)
	v.checkVersion("spec.openshiftVersion", w.OpenShiftVersion)
	v.checkPaths()
	v.checkNewDeclarations()
	v.checkCatalogs()
	v.checkTrust()
	v.checkClusters()
	v.checkGitOps()
	v.checkCertificates()
	v.checkReporter()
	v.checkProvides("spec.provides", w.Provides)
	for i, name := range w.ImagePullSecrets {
		v.Name(diag.Item("spec.imagePullSecrets", i), name)
	}
	for i, ns := range w.GlobalCatalogs {
		v.Label(diag.Item("spec.globalCatalogNamespaces", i), ns)
	}
	for i, name := range w.AllowNames {
		if !k8s.IsReservedName(name) {
			v.Addf(diag.Item("spec.allowNames", i), "%q is not Kind/name of a built-in object of the cluster, such as ClusterRole/cluster-admin: only those need an entry", name)
		}
	}
	v.checkRecreate()
	v.checkURL("spec.proxy.httpProxy", w.Proxy.HTTPProxy)
	v.checkURL("spec.proxy.httpsProxy", w.Proxy.HTTPSProxy)
	v.checkSeverities()
	v.checkRules()
	v.checkWaivers()
	v.checkFollows()
	v.checkWindows()
	v.checkOwners()
}

// checkRecreate validates the objects to be recreated.
func (v validator) checkRecreate() {
	for i, r := range v.w.Recreate {
		field := diag.Item("spec.recreate", i)
		if strings.Count(r.Operator, "/") != 1 {
			v.Addf(field+".operator", "%q is not namespace/package", r.Operator)
		}
		if kind, _, _ := strings.Cut(r.Kind, "."); profile.LosesData(kind) {
			v.Addf(field+".kind", "a %s cannot be recreated: the data that depend on it would be lost", kind)
		}
		if v.w.Profile == profile.Plain {
			v.Addf(field, "the profile plain has no tool that recreates objects: delete the object yourself when you apply the upgrade")
		}
	}
}

func (v validator) checkVersion(field, value string) {
	if value != "" && !regexp.MustCompile(`^[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?$`).MatchString(value) {
		v.Addf(field, "%q is not a version such as \"1.34\" or \"1.34.2\"", value)
	}
}

// checkPaths validates the paths of declarations, mirrors and output. The path of the output must differ from
// the paths of the declarations.
func (v validator) checkPaths() {
	w := v.w
	for i, d := range w.Declarations {
		field := diag.Item("spec.declarations", i)
		if _, mapping := w.Fields[field+".path"]; mapping {
			field += ".path"
		}
		if !v.Require(field, d.Path) {
			continue
		}
		v.checkRelative(field, d.Path)
		if d.Path == w.OutputDir() {
			v.Addf(field, "%q is also spec.output: declarations and rendered files need separate directories", d.Path)
		}
	}
	for i, p := range w.Mirrors {
		v.checkRelative(diag.Item("spec.mirrors", i), p)
	}
	v.checkOutputRepository()
	v.checkInside("spec.output", w.Output.Path)
	if w.OutputDir() == "." {
		v.Addf("spec.output", "the workspace itself cannot be the output: choose a directory in it")
	}
	v.checkOutput()
}

// checkOutputRepository validates the repository of the output.
func (v validator) checkOutputRepository() {
	o := v.w.Output
	if o.Repository == "" {
		if o.Branch != "" {
			v.Addf("spec.output.branch", "only the tree in another repository has a branch: set spec.output.repository")
		}
		return
	}
	if hasCredentials(o.Repository) {
		v.Addf("spec.output.repository", "must not contain credentials: use GIT_TOKEN")
	}
	if strings.HasPrefix(o.Repository, "-") {
		v.Addf("spec.output.repository", "%q is not the URL of a Git repository", o.Repository)
	}
	if _, isSet := v.w.Fields["spec.output.path"]; !isSet {
		v.Addf("spec.output", "path is missing: the directory of the tree in the other repository")
	}
}

// hasCredentials reports whether the URL of a repository contains credentials. The user name of an SSH URL is none.
func hasCredentials(repository string) bool {
	u, err := url.Parse(repository)
	return err == nil && u.User != nil && (u.Scheme != "ssh" || u.User.String() != u.User.Username())
}

// checkOutput adds a fault if the output directory overlaps with .git, with the vendored images or
// with a catalog.
func (v validator) checkOutput() {
	out := strings.ToLower(v.w.OutputDir()) // in lower case, because some file systems ignore case
	for _, part := range strings.Split(out, "/") {
		if part == ".git" {
			v.Addf("spec.output", "%q is inside of .git: choose another directory", v.w.OutputDir())
			return
		}
	}
	if pathsOverlap(out, VendorDir) {
		v.Addf("spec.output", "%q contains vendored images: choose another directory", v.w.OutputDir())
	}
	for i, c := range v.w.Catalogs {
		name, ok := c.Source.Path()
		if name = strings.ToLower(path.Clean(name)); ok && name != "." && pathsOverlap(out, name) {
			v.Addf("spec.output", "%q overlaps with the catalog at %s: choose another directory", v.w.OutputDir(), v.At(diag.Item("spec.catalogs", i)+".source"))
		}
	}
}

// pathsOverlap reports whether one of two paths equals or contains the other.
func pathsOverlap(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

// VendorDir is the name of the directory with vendored images in a workspace.
const VendorDir = "quayside.vendor"

// checkRelative adds a fault unless p is a relative path with forward slashes.
func (v validator) checkRelative(field, p string) {
	if p == "" || path.IsAbs(p) || strings.Contains(p, `\`) || regexp.MustCompile(`^[A-Za-z]:`).MatchString(p) {
		v.Addf(field, "%q is not a relative path with forward slashes", p)
	}
}

// checkInside adds a fault unless p is a relative path inside of the workspace.
func (v validator) checkInside(field, p string) {
	v.checkRelative(field, p)
	if !path.IsAbs(p) && !fs.ValidPath(p) {
		v.Addf(field, "%q is outside of the workspace", p)
	}
}

func (v validator) checkCatalogs() {
	first := map[string]string{}
	for i, c := range v.w.Catalogs {
		field := diag.Item("spec.catalogs", i)
		v.Name(field+".name", c.Name)
		if c.Namespace != "" {
			v.Label(field+".namespace", c.Namespace)
		}
		if c.Manifests != nil && c.Source == "" && c.Helm == "" {
			_, err := c.Manifests.Ref()
			v.Addf(field+".manifests", "%w", err)
		} else if c.Helm != "" || c.Manifests != nil {
			v.Addf(field, "source, helm and manifests: only one of them can be set")
		} else if err := c.Source.Check(); err != nil {
			v.Addf(field+".source", "%w", err)
		}
		id := c.ID().String()
		if prev, dup := first[id]; dup && c.Name != "" {
			v.Addf(field, "duplicate catalog %q: first at %s", id, v.At(prev))
		}
		first[id] = field
	}
}

func (v validator) checkClusters() {
	first := map[string]string{}
	for i, c := range v.w.Clusters {
		field := diag.Item("spec.clusters", i)
		v.Name(field+".name", c.Name)
		if prev, dup := first[c.Name]; dup && c.Name != "" {
			v.Addf(field+".name", "duplicate cluster %q: first at %s", c.Name, v.At(prev))
		}
		first[c.Name] = field + ".name"
		v.checkVersion(field+".kubernetesVersion", c.KubernetesVersion)
		v.checkURL(field+".server", c.Server)
		v.checkProvides(field+".provides", c.Provides)
		for j, op := range c.Operators {
			if op == "" || strings.Count(op, "/") > 1 {
				v.Addf(diag.Item(field+".operators", j), "%q is neither namespace/package nor a pattern with *", op)
			}
		}
		if len(c.Values) > 0 && (v.w.GitOps == nil || !v.w.GitOps.Inputs) {
			v.Addf(field+".values", "has no effect without spec.gitops.inputs: set it to true, or remove the values")
		}
		if len(c.Config) > 0 && !bytes.HasPrefix(c.Config, []byte("{")) && string(c.Config) != "null" {
			v.Addf(field+".config", "expected a mapping")
		}
		v.checkConfig(field+".config", c.Config)
		for operator, values := range c.HelmValues {
			at := diag.Member(field+".helmValues", operator)
			if ns, pkg, ok := strings.Cut(operator, "/"); !ok || ns == "" || pkg == "" || strings.Contains(pkg, "/") {
				v.Addf(at, "%q is not an operator: expected namespace/package", operator)
			}
			if !bytes.HasPrefix(values, []byte("{")) {
				v.Addf(at, "expected a mapping")
			}
		}
	}
}

// checkConfig validates the fields of a cluster's config.
func (v validator) checkConfig(at string, raw json.RawMessage) {
	var config map[string]any
	if err := utiljson.Unmarshal(raw, &config); err != nil {
		return // not a mapping: the caller reports it
	}
	_, shape := admit.PrunePart(admit.NewTypes(), admit.Config(), config, at)
	for _, field := range shape.Unknown {
		v.Addf(admit.FieldPath(field), "unknown field")
	}
	for _, f := range shape.Wrong {
		v.Addf(admit.FieldPath(f.Field), "%s", f.Message)
	}
}

func (v validator) checkProvides(field string, p profile.Provides) {
	for i, api := range p.APIs {
		group, version, _ := strings.Cut(api, "/")
		if !yamlnode.IsDNS1123Subdomain(group) || !regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`).MatchString(version) {
			v.Addf(diag.Item(field+".apis", i), "%q is not the group and version of an API, such as cert-manager.io/v1", api)
		}
	}
	for i, object := range p.Objects {
		if _, err := provided.ParseObject(object); err != nil {
			v.Addf(diag.Item(field+".objects", i), "%w", err)
		}
	}
}

func (v validator) checkGitOps() {
	g := v.w.GitOps
	if g == nil {
		return
	}
	v.Label("spec.gitops.namespace", g.Namespace)
	if hasCredentials(g.RepoURL) && g.RepoURL != v.w.Output.Repository {
		v.Addf("spec.gitops.repoURL", "must not contain credentials: give them to the GitOps tool in a Secret")
	}
	v.checkInside("spec.gitops.path", path.Clean(g.Path))
	v.Enum("spec.gitops.granularity", g.Granularity, profile.PerOperator, profile.PerCluster)
	v.Enum("spec.gitops.removedClusters", g.RemovedClusters, profile.Keep, profile.Delete)
	if field := "spec.gitops.name"; !yamlnode.IsDNS1123Label(g.Name) {
		if g.Name == v.w.Name {
			field = "metadata.name"
		}
		v.Addf(field, "%q cannot be the prefix of object names (lower case letters, digits and -, at most 63): set spec.gitops.name", g.Name)
	}
	for _, f := range v.w.Tool().Faults(*g, v.w.Clusters) {
		v.Addf("spec."+f.Field, "%s", f.Message)
	}
}

func (v validator) checkCertificates() {
	for field, name := range v.w.Files() {
		if name != "" {
			v.checkRelative("spec."+field, name)
		}
	}
	for _, f := range v.w.Faults(v.w.Certificates) {
		v.Addf("spec."+f.Field, "%s", f.Message)
	}
}

func (v validator) checkReporter() {
	const field = "spec.reporter"
	r := v.w.Reporter
	v.Label(field+".namespace", r.Namespace)
	switch {
	case r.Enabled && r.Image == "":
		v.Addf(field+".image", "missing: build the reporter's image with 'make image' and push it to your registry")
	case r.Image != "" && !imageref.Valid(r.Image):
		v.Addf(field+".image", "%q is not an image reference such as registry.example.com/quayside-report@sha256:…", r.Image)
	}
}

// checkSeverities validates the severities in spec.policy.
func (v validator) checkSeverities() {
	severities := []string{"off", "info", "low", "medium", "high", "critical"}
	v.Enum("spec.policy.failOn", v.w.Policy.FailOn, severities...)
	for i, s := range v.w.Policy.Vulnerabilities.Added {
		v.Enum(diag.Item("spec.policy.vulnerabilities.added", i), s, "critical", "high", "medium", "low", "negligible", "unknown")
	}
	first := map[string]string{}
	for i, l := range v.w.Policy.Clusters {
		field := diag.Item("spec.policy.clusters", i)
		v.Enum(field+".failOn", l.FailOn, severities...)
		if len(l.Names) == 0 {
			v.Addf(field+".names", "missing: list the clusters, such as [\"prod-*\"]")
		}
		for j, name := range l.Names {
			at := diag.Item(field+".names", j)
			if prev, dup := first[name]; dup {
				v.Addf(at, "duplicate cluster %q: first at %s", name, v.At(prev))
			}
			first[name] = at
			if strings.Contains(strings.TrimSuffix(name, "*"), "*") {
				v.Addf(at, "%q: * is only allowed at the end", name)
			}
		}
	}
}

func (v validator) checkFollows() {
	const field = "spec.follows"
	w := v.w
	_, isSet := w.Fields[field]
	switch {
	case w.FollowsPath():
		v.checkRelative(field, w.Follows)
		if w.Follows == "." {
			v.Addf(field, "an environment cannot follow itself")
		}
	case w.Follows != "" && w.Follows == w.Name:
		v.Addf(field, "%q is this environment: it cannot follow itself", w.Follows)
	case w.Follows == "" && isSet:
		v.Addf(field, "must not be empty: set the upstream environment (for example 'follows: dev'), or omit the field")
	}
	if p := w.Promotion; p != nil {
		v.checkPromotion(p)
	}
	if p := w.Propose; p != nil && p.Draft && p.Automerge != nil {
		v.Addf("spec.propose.automerge", "a draft cannot be merged: remove spec.propose.draft or this field")
	}
}

func (v validator) checkPromotion(p *Promotion) {
	if p.Clusters < 1 {
		v.Addf("spec.promotion.clusters", "%d: must be at least 1", p.Clusters)
	}
	if p.ObservedWithin == 0 {
		v.Addf("spec.promotion.observedWithin", "must be greater than 0")
	}
	if p.Signed && !slices.ContainsFunc(v.w.Trust, func(t Trust) bool { return t.Match == trust.Observations }) {
		v.Addf("spec.promotion.signed", "no signer: add an entry with 'match: %s' to spec.trust", trust.Observations)
	}
}

func (v validator) checkURL(field, s string) {
	if s == "" {
		return
	}
	if !regexp.MustCompile(`^https?://[^\s/?#]+[^\s]*$`).MatchString(s) {
		v.Addf(field, "%q is not an http or https URL", s)
	}
}

// isDate reports whether s is a date such as 2027-01-31.
func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}
