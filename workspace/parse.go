package workspace

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Parse reads quayside.yaml. What it does not say is as in [Default]. Unknown
// fields, wrong types and values that cannot work are all found, each with its
// place; the error is a diag.List.
func Parse(name string, data []byte) (*Workspace, error) {
	docs, err := yamlnode.Documents(name, data, yamlnode.Limits{Bytes: 4 << 20, Depth: 50, Nodes: 100_000})
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		w := Default()
		w.File = name
		return w, nil
	}
	if len(docs) > 1 {
		return nil, diag.List{diag.Errorf(yamlnode.At(name, docs[1]), "a second document: a workspace is one")}
	}
	f := file{Spec: *Default()}
	var errs diag.List
	header(name, docs[0], &errs)
	errs.Add(diag.Pos{File: name}, yamlnode.Decode(name, docs[0], &f))
	w := &f.Spec
	w.File, w.Fields = name, yamlnode.Positions(name, docs[0])
	w.fill()
	v := validator{w: w, errs: &errs}
	v.all()
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return w, nil
}

func header(name string, n *yaml.Node, errs *diag.List) {
	for _, want := range [][2]string{{"apiVersion", APIVersion}, {"kind", Kind}} {
		_, v := yamlnode.Field(n, want[0])
		if v == nil {
			errs.Addf(yamlnode.At(name, n), "no %s (want %s)", want[0], want[1])
		} else if got, ok := yamlnode.Text(v); ok && got != want[1] {
			errs.Addf(yamlnode.At(name, v), "%s: %q is not %s", want[0], got, want[1])
		}
	}
}

// fill completes what depends on other fields, or stands in a list.
func (w *Workspace) fill() {
	w.Output = path.Clean(w.Output)
	for i := range w.Declarations {
		w.Declarations[i] = path.Clean(w.Declarations[i])
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
	orElse(&g.Revision, "main")
	orElse(&g.Path, w.Output)
	orElse(&g.Project, "default")
	orElse(&g.SourceRef.Kind, "GitRepository")
	if w.Profile == "flux" {
		orElse(&g.Namespace, "flux-system")
	} else {
		orElse(&g.Namespace, "argocd")
	}
	orElse(&g.SourceRef.Namespace, g.Namespace)
}

func orElse(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

type validator struct {
	w    *Workspace
	errs *diag.List
}

func (v validator) addf(field, format string, args ...any) {
	v.errs.Addf(v.w.At(field), field+": "+format, args...)
}

func (v validator) all() {
	w := v.w
	v.enum("spec.requirements", w.Requirements, "enforce", "warn")
	v.enum("spec.profile", w.Profile, "argocd", "flux", "plain")
	v.enum("spec.certificates", w.Certificates, "cert-manager", "openshift-service-ca", "secret")
	v.enum("spec.policy.failOn", w.Policy.FailOn, "off", "info", "low", "medium", "high", "critical")
	v.version("spec.kubernetesVersion", w.KubernetesVersion)
	v.version("spec.openshiftVersion", w.OpenShiftVersion)
	v.paths()
	v.catalogs()
	v.trust()
	v.clusters()
	v.gitops()
	v.certificateSecret()
	v.reporter()
	for i, name := range w.ImagePullSecrets {
		v.name(index("spec.imagePullSecrets", i), name)
	}
	v.url("spec.proxy.httpProxy", w.Proxy.HTTPProxy)
	v.url("spec.proxy.httpsProxy", w.Proxy.HTTPSProxy)
	v.waivers()
}

func (v validator) enum(field, got string, allowed ...string) {
	if !slices.Contains(allowed, got) {
		v.addf(field, "%q is not one of %s%s", got, strings.Join(allowed, ", "), diag.DidYouMean(got, allowed))
	}
}

func (v validator) version(field, got string) {
	if got != "" && !regexp.MustCompile(`^[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?$`).MatchString(got) {
		v.addf(field, "%q is not a version such as \"1.34\" or \"1.34.2\"", got)
	}
}

// paths keeps what quayside reads as declarations and what it writes inside of
// the workspace, and apart.
func (v validator) paths() {
	w := v.w
	for i, p := range w.Declarations {
		v.inside(index("spec.declarations", i), p)
		if p == w.Output {
			v.addf(index("spec.declarations", i), "%q is spec.output too: declarations and rendered files need places of their own", p)
		}
	}
	for i, p := range w.Mirrors {
		v.relative(index("spec.mirrors", i), p)
	}
	v.inside("spec.output", w.Output)
	if w.Output == "." {
		v.addf("spec.output", "the workspace itself cannot be the output: name a directory in it")
	}
}

func (v validator) relative(field, p string) {
	if p == "" || path.IsAbs(p) || strings.Contains(p, `\`) || regexp.MustCompile(`^[A-Za-z]:`).MatchString(p) {
		v.addf(field, "%q is not a relative path with forward slashes", p)
	}
}

func (v validator) inside(field, p string) {
	v.relative(field, p)
	if !path.IsAbs(p) && !fs.ValidPath(p) {
		v.addf(field, "%q lies outside of the workspace", p)
	}
}

func (v validator) catalogs() {
	first := map[string]string{}
	for i, c := range v.w.Catalogs {
		field := index("spec.catalogs", i)
		v.name(field+".name", c.Name)
		if c.Namespace != "" {
			v.label(field+".namespace", c.Namespace)
		}
		v.source(field+".source", c.Source)
		id := c.ID().String()
		if prev, dup := first[id]; dup && c.Name != "" {
			v.addf(field, "catalog %q stands twice, first at %s", id, v.w.At(prev))
		}
		first[id] = field
	}
}

// Schemes returns the kinds of catalog source, without their colon.
func Schemes() []string {
	return []string{"image", "oci", "oci-archive", "docker-archive", "dir", "sqlite", "bundles", "package-manifests"}
}

func (v validator) source(field, s string) {
	scheme, rest, found := strings.Cut(s, ":")
	switch {
	case s == "":
		v.addf(field, "missing: say where the catalog is, as in \"oci:catalogs/operatorhubio\"")
	case !found || !slices.Contains(Schemes(), scheme):
		v.addf(field, "%q does not begin with one of %s:%s", s, strings.Join(Schemes(), ":, "), diag.DidYouMean(scheme, Schemes()))
	case strings.TrimSpace(rest) == "" || rest != strings.TrimSpace(rest):
		v.addf(field, "%q names nothing after its colon", s)
	}
}

func (v validator) clusters() {
	first := map[string]string{}
	for i, c := range v.w.Clusters {
		field := index("spec.clusters", i)
		v.name(field+".name", c.Name)
		if prev, dup := first[c.Name]; dup && c.Name != "" {
			v.addf(field+".name", "cluster %q stands twice, first at %s", c.Name, v.w.At(prev))
		}
		first[c.Name] = field + ".name"
		v.version(field+".kubernetesVersion", c.KubernetesVersion)
		v.url(field+".server", c.Server)
		for j, op := range c.Operators {
			if op == "" || strings.Count(op, "/") > 1 {
				v.addf(index(field+".operators", j), "%q is neither namespace/package nor a pattern with *", op)
			}
		}
		if len(c.Config) > 0 && !bytes.HasPrefix(c.Config, []byte("{")) && string(c.Config) != "null" {
			v.addf(field+".config", "want a mapping")
		}
	}
}

func (v validator) gitops() {
	g := v.w.GitOps
	if g == nil {
		return
	}
	v.enum("spec.gitops.sourceRef.kind", g.SourceRef.Kind, "GitRepository", "OCIRepository", "Bucket")
	v.label("spec.gitops.namespace", g.Namespace)
	v.inside("spec.gitops.path", path.Clean(g.Path))
	switch {
	case v.w.Profile == "argocd" && g.RepoURL == "":
		v.addf("spec.gitops.repoURL", "missing: the argocd profile needs it to render an Application")
	case v.w.Profile == "flux" && g.SourceRef.Name == "":
		v.addf("spec.gitops.sourceRef.name", "missing: the flux profile needs it to render a Kustomization")
	}
}

func (v validator) certificateSecret() {
	const field = "spec.certificateSecret"
	c := v.w.CertificateSecret
	if c == (CertificateSecret{}) {
		return
	}
	if v.w.Certificates != "secret" {
		v.addf(field, "only beside spec.certificates: secret")
	}
	if name := strings.Replace(c.Name, "%s", "x", 1); c.Name != "" && !yamlnode.IsDNS1123Subdomain(name) {
		v.addf(field+".name", "%q is not a Kubernetes name, with %%s once or not at all", c.Name)
	}
	if c.CAFile != "" {
		v.relative(field+".caFile", c.CAFile)
	}
	if c.CASecret == "" {
		return
	}
	if c.CAFile != "" {
		v.addf(field+".caSecret", "not beside spec.certificateSecret.caFile: the CA comes from one place")
	}
	ns, name, _ := strings.Cut(c.CASecret, "/")
	if !yamlnode.IsDNS1123Label(ns) || !yamlnode.IsDNS1123Subdomain(name) {
		v.addf(field+".caSecret", "%q is not namespace/name", c.CASecret)
	}
}

func (v validator) reporter() {
	const field = "spec.reporter"
	r := v.w.Reporter
	v.label(field+".namespace", r.Namespace)
	switch {
	case r.Enabled && r.Image == "":
		v.addf(field+".image", "missing: there is no image that would do for everyone; build one with make image and push it to your registry")
	case r.Image != "" && !isImage(r.Image):
		v.addf(field+".image", "%q is not the reference of an image, such as registry.example.com/quayside-report@sha256:…", r.Image)
	}
}

// isImage reports whether a container runtime can read s as the reference of an
// image: a pod with another one never starts.
func isImage(s string) bool {
	const part = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	const host = `(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/`
	return len(s) <= 512 && regexp.MustCompile(`^(?:`+host+`)?`+part+`(?:/`+part+`)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64}|@sha512:[0-9a-f]{128})?$`).MatchString(s)
}

func (v validator) waivers() {
	for i, waiver := range v.w.Policy.Waivers {
		field := index("spec.policy.waivers", i)
		if waiver.Rule == "" {
			v.addf(field+".rule", "missing: name the rule that is waived")
		}
		if waiver.Operator != "" && strings.Count(waiver.Operator, "/") != 1 {
			v.addf(field+".operator", "%q is not namespace/package", waiver.Operator)
		}
		if waiver.Expires == "" {
			continue
		}
		if !isDay(waiver.Expires) {
			v.addf(field+".expires", "%q is not a day such as 2027-01-01", waiver.Expires)
		}
	}
}

func (v validator) name(field, s string) {
	if s == "" {
		v.addf(field, "missing")
	} else if !yamlnode.IsDNS1123Subdomain(s) {
		v.addf(field, "%q is not a Kubernetes name (lower case letters, digits, - and .)", s)
	}
}

func (v validator) label(field, s string) {
	if !yamlnode.IsDNS1123Label(s) {
		v.addf(field, "%q is not a namespace's name (lower case letters, digits and -, at most 63)", s)
	}
}

func (v validator) url(field, s string) {
	if s == "" {
		return
	}
	if !regexp.MustCompile(`^https?://[^\s/?#]+[^\s]*$`).MatchString(s) {
		v.addf(field, "%q is not an http or https URL", s)
	}
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// isDay reports whether s is a day of the calendar, as in 2027-01-31.
func isDay(s string) bool {
	m := regexp.MustCompile(`^([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`).FindStringSubmatch(s)
	if m == nil {
		return false
	}
	year, _ := strconv.Atoi(m[1]) // the pattern admits digits only
	leap := year%4 == 0 && (year%100 != 0 || year%400 == 0)
	switch m[2] {
	case "04", "06", "09", "11":
		return m[3] != "31"
	case "02":
		return m[3] < "29" || m[3] == "29" && leap
	}
	return true
}
