// Package settings decodes and validates quayside.yaml, the settings of a workspace.
//
// The file is optional and every field has a default, so a [Workspace] is always complete. The
// package opens no files.
//
// The API is not stable: exported names may change in any release.
//
// Start from [Default] and [Parse].
package settings

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health/gate"
	"github.com/quayside/quayside/internal/jsonschema"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// FileName is the name of the settings file. A directory that contains it is a workspace.
const FileName = "quayside.yaml"

// LockFile is the name of the lock in a workspace.
const LockFile = "quayside.lock"

// APIVersion and Kind are the required values in quayside.yaml.
const (
	APIVersion = "quayside.dev/v1alpha1"
	Kind       = "Workspace"
)

// Workspace is the spec of quayside.yaml with all defaults.
type Workspace struct {
	Extends            string            `json:"extends" form:"nonempty" doc:"File whose settings this file inherits, in the same format, relative to this file and in the same Git repository; it may extend another file. Fields set here take precedence. 'quayside config' prints the result."`
	Declarations       []declare.Path    `json:"declarations" default:"[\"subscriptions\"]" form:"nonempty" doc:"Files or directories with declarations, each a path or a mapping. A directory with a kustomization is built; other directories are read recursively. Objects from a kustomization, or from a path with overrides: true, replace those of earlier paths. Labels and annotations of Namespaces are used; other kinds are counted and ignored, with a warning or an error if a kind looks misspelt."`
	NewDeclarations    string            `json:"newDeclarations" form:"nonempty" doc:"The path in spec.declarations that 'quayside add' and 'quayside import' write to. Default: the only listed directory inside the workspace, or else the only listed directory. If there are several, the commands ask or require --to."`
	Catalogs           []CatalogSettings `json:"catalogs" doc:"Catalogs in addition to the declared CatalogSource and ClusterCatalog objects. A catalog with the same namespace and name overrides the declared catalog."`
	GlobalCatalogs     []string          `json:"globalCatalogNamespaces" default:"[\"olm\",\"openshift-marketplace\"]" form:"nonempty" doc:"Namespaces whose catalogs are visible in all namespaces, like the global catalog namespace of OLM. A catalog in another namespace is visible only there, and one without a namespace everywhere."`
	KubernetesVersion  string            `json:"kubernetesVersion" form:"pattern=^[0-9]+\\.[0-9]+(\\.[0-9]+)?$" doc:"Version of the clusters, such as \"1.34\", which means its newest patch. If unset, checks that need it are skipped."`
	OpenShiftVersion   string            `json:"openshiftVersion" form:"pattern=^[0-9]+\\.[0-9]+(\\.[0-9]+)?$" doc:"Version of OpenShift, such as \"4.20\". Objects that OpenShift provides are not rendered. If unset, checks that need it are skipped."`
	Requirements       string            `json:"requirements" default:"\"enforce\"" form:"enum=enforce|warn" doc:"Whether install modes, minKubeVersion and maxOpenShiftVersion restrict which versions can be installed (enforce), or only cause warnings (warn)."`
	SharedDependencies bool              `json:"sharedDependencies" default:"true" doc:"Whether a dependency can be met by an operator in another namespace that watches the namespace of the dependent operator."`
	AllowOverlap       bool              `json:"allowOverlap" default:"false" doc:"Whether two installs that provide the same API may watch the same namespace."`
	AllowNames         []string          `json:"allowNames" form:"nonempty" doc:"Built-in objects of the cluster that bundles may contain, each as Kind/name, such as ClusterRole/cluster-admin or Namespace/openshift-logging."`
	Output             Output            `json:"output" doc:"Directory of the rendered tree, relative to this file, such as rendered; or a mapping."`
	Profile            profile.Name      `json:"profile" default:"\"argocd\"" doc:"The tool that applies the tree."`
	Certificates       certificates.Name `json:"certificates" doc:"Issuer of the certificates of webhooks. Default: openshift-service-ca if openshiftVersion is set, otherwise cert-manager."`
	certificates.ProviderSettings
	Provides         profile.Provides     `json:"provides" doc:"APIs and objects that all clusters have without the rendered tree. If an operator needs something that is neither in the tree nor in this list, it is reported. If openshiftVersion is set, the APIs of OpenShift are added."`
	Proxy            Proxy                `json:"proxy" doc:"Proxy settings that operators get as environment variables."`
	Mirrors          []string             `json:"mirrors" form:"nonempty" doc:"Files with mirrors, relative to this file: registries.conf, ImageDigestMirrorSet, ImageTagMirrorSet, ImageContentSourcePolicy."`
	Trust            []Trust              `json:"trust" doc:"Signatures required for images of registries. The first entry that matches an image's repository applies; images without a matching entry need no signature."`
	ImagePullSecrets []string             `json:"imagePullSecrets" form:"nonempty" doc:"Secrets that every ServiceAccount gets as imagePullSecrets."`
	CSVAnnotations   bool                 `json:"csvAnnotations" default:"false" doc:"Copies every annotation of the ClusterServiceVersion to the pod templates, as OLM does. Default: only those that a container reads."`
	PodLabels        bool                 `json:"podLabels" default:"false" doc:"Adds the labels quayside.dev/package and quayside.dev/install-namespace to the pods of Deployments, StatefulSets and DaemonSets. A change of this setting restarts the operators."`
	AggregatedRoles  bool                 `json:"aggregatedRoles" default:"true" doc:"Adds the operators' APIs to the cluster's roles admin, edit and view, as OLM does: four ClusterRoles per CRD, three per OperatorGroup."`
	HealthChecks     bool                 `json:"healthChecks" default:"false" doc:"Configures the GitOps tool to assess the health of the operators' custom resources."`
	GitOps           *profile.GitOps      `json:"gitops" doc:"Git repository that the GitOps tool applies the tree from. Default: no Application and no Flux Kustomization is rendered."`
	Recreate         []profile.Recreation `json:"recreate" doc:"Objects that an upgrade recreates, because it changes a field that the API server refuses to change. The GitOps tool deletes and creates them. An entry is for one version of an operator, and has no effect in later versions."`
	StorageMigration string               `json:"storageMigration" default:"\"auto\"" form:"enum=auto|v1|v1beta1|none" doc:"API version of the StorageVersionMigrations that migrate stored objects before an upgrade drops their version. auto: v1 if the kubernetesVersion of every cluster is at least 1.37, otherwise no migration. v1beta1 must be enabled in the cluster."`
	Clusters         []profile.Cluster    `json:"clusters" default:"[{\"name\":\"default\"}]" doc:"The clusters of this environment. Each has an overlay."`
	Reporter         Reporter             `json:"reporter" doc:"The in-cluster reporter."`
	Policy           Policy               `json:"policy" doc:"Which findings of a diff are refused."`
	Follows          string               `json:"follows" form:"nonempty" doc:"Upstream environment: its name (metadata.name, or else the name of its directory), or its directory relative to this file, such as ../dev. 'quayside promote' promotes versions from it."`
	Promotion        *Promotion           `json:"promotion" doc:"Health required in the upstream environment before 'quayside promote' promotes a version. Default: no health is required."`
	Propose          *Propose             `json:"propose" doc:"Pull requests of 'quayside propose'."`
	Windows          []Window             `json:"windows" doc:"When operators may be installed, upgraded and removed. An operator that is selected by allow windows may change only in these windows. An operator that is selected by a deny window must not change in this window."`
	Freeze           *Freeze              `json:"freeze" doc:"A time until which no operator may change."`
	Owners           []Owner              `json:"owners" doc:"Teams that own operators, for 'quayside resources --by owner'. The first entry that selects an operator applies."`
	Name             string               `json:"-"` // metadata.name
	File             string               `json:"-"` // name of the file as passed to Parse; empty for Default
	Extended         []string             `json:"-"` // files in the chain of spec.extends, relative to the workspace; the directly extended file comes first
	Fields           diag.Fields          `json:"-"` // positions of values, by field path such as "spec.catalogs[0].source"
}

// defaultOutput is the default directory of the rendered tree.
const defaultOutput = "rendered"

// Output is the place of the rendered tree. Its short form in YAML is the path.
type Output struct {
	Path       string `json:"path" yamlnode:"text" default:"\"rendered\"" form:"nonempty" doc:"Directory of the tree, relative to this file; with repository, from the top of that repository, where it must be set."`
	Repository string `json:"repository" doc:"URL of another Git repository, which the tree is written to. 'quayside propose --tree' commits it there. The repository of the workspace then contains the lock, but not the tree."`
	Branch     string `json:"branch" doc:"Branch of the repository that the GitOps tool reads. Default: main."`
}

// OutputDir returns the directory of the rendered tree, relative to the workspace. If the tree belongs in
// another repository, quayside renders it as if it were in this directory, but does not write it there.
func (w *Workspace) OutputDir() string {
	if w.Output.Repository != "" {
		return defaultOutput
	}
	return w.Output.Path
}

// OutputName returns the place of the rendered tree for messages.
func (w *Workspace) OutputName() string {
	if w.Output.Repository != "" {
		return w.Output.Path + " in " + w.Output.Repository
	}
	return w.Output.Path
}

// CatalogSettings is a catalog in spec.catalogs.
type CatalogSettings struct {
	Name      string           `json:"name" form:"required nonempty" doc:"Name of the CatalogSource or ClusterCatalog."`
	Namespace string           `json:"namespace" doc:"Namespace of the CatalogSource. Empty for a ClusterCatalog."`
	Source    source.Ref       `json:"source" doc:"Location of the catalog, such as \"oci:catalogs/operatorhubio\". Paths are relative to this file."`
	Helm      string           `json:"helm" doc:"Location of a catalog of Helm charts, instead of source: the URL of a chart repository (https://charts.jetstack.io), a chart in a registry (oci://ghcr.io/org/charts/chart), or a directory of charts and archives (dir:charts)."`
	Manifests *source.Releases `json:"manifests" doc:"Location of release manifests, instead of source: a directory with PACKAGE/VERSION/ (dir:releases), or package, url and versions, or git, path and tags."`
	Priority  int32            `json:"priority" default:"0" doc:"Catalogs with a higher priority are preferred for dependencies."`
}

// ID returns the ID of the catalog.
func (c CatalogSettings) ID() catalog.ID { return catalog.ID{Namespace: c.Namespace, Name: c.Name} }

// Trust requires signatures for catalog and bundle images in matching repositories, or for observations. A
// signature must be made with one of Keys, or by an identity whose certificate is from an authority in
// TrustRoot.
type Trust struct {
	Match          string   `json:"match" form:"required nonempty" doc:"Repository, such as quay.io/org/catalog, or for a chart of a web server, the URL without https:// and the name of the chart; a * at the end matches any text, as in quay.io/org/*. \"observations\" matches files of 'quayside status --save --sign' instead."`
	Keys           []string `json:"keys" form:"nonempty" doc:"Files with public keys, relative to this file: in PEM form, such as cosign.pub, or armored OpenPGP keys for provenance files of charts. A signature by one of them is enough."`
	Identity       string   `json:"identity" doc:"Subject of the signer's certificate, such as an e-mail address or the URL of a workflow, instead of keys."`
	IdentityRegexp string   `json:"identityRegexp" doc:"Regular expression that must match the whole subject, instead of identity."`
	Issuer         string   `json:"issuer" doc:"Issuer of the identity, such as https://token.actions.githubusercontent.com."`
	TrustRoot      string   `json:"trustRoot" doc:"trusted_root.json with the trusted certificate authorities and logs, relative to this file."`
}

// Proxy holds HTTP_PROXY, HTTPS_PROXY and NO_PROXY for operators.
type Proxy struct {
	HTTPProxy  string `json:"httpProxy" default:"\"\"" doc:"HTTP_PROXY."`
	HTTPSProxy string `json:"httpsProxy" default:"\"\"" doc:"HTTPS_PROXY."`
	NoProxy    string `json:"noProxy" default:"\"\"" doc:"NO_PROXY."`
}

// Reporter configures the in-cluster reporter.
type Reporter struct {
	Enabled        bool   `json:"enabled" default:"false" doc:"Whether the reporter is rendered."`
	Image          string `json:"image" doc:"Image of the reporter, preferably by digest. Required if the reporter is enabled."`
	Namespace      string `json:"namespace" default:"\"quayside-system\"" form:"nonempty" doc:"Namespace of the reporter."`
	LeaderElection bool   `json:"leaderElection" default:"false" doc:"Elects a leader by a Lease, so that an old and a new pod of the reporter can run at the same time."`
}

// Policy determines which findings of a diff are refused.
type Policy struct {
	FailOn   string            `json:"failOn" default:"\"high\"" form:"enum=off|info|low|medium|high|critical" doc:"The lowest severity that is refused; off refuses nothing."`
	Clusters []ClusterSeverity `json:"clusters" doc:"Other values of spec.policy.failOn for some clusters. The first entry that matches a cluster applies."`
	Waivers  []diag.Waiver     `json:"waivers" doc:"Findings and warnings that are accepted until a date."`
	Rules    []PolicyRule      `json:"rules" doc:"Your own rules, in CEL, about findings or objects."`
	Severity map[string]string `json:"severity" doc:"Severity of a rule, or of outside-window, instead of its default: off, info, low, medium, high or critical."`

	Vulnerabilities Vulnerabilities `json:"vulnerabilities" doc:"Policy for vulnerabilities that scanners find (quayside diff --scan)."`
}

// Vulnerabilities is the policy for findings about vulnerabilities.
type Vulnerabilities struct {
	Added []string `json:"added" form:"enum=critical|high|medium|low|negligible|unknown" doc:"A new vulnerability is refused if scanners rate it with one of these severities; an empty list refuses none. Default: spec.policy.failOn decides."`
}

// Promotion configures how healthy an operator must be in the upstream environment before it is promoted.
type Promotion struct {
	Healthy        gate.Share `json:"healthy" default:"\"100%\"" form:"pattern=^[0-9]+(\\.[0-9]{1,3})?%$" doc:"Required share of clusters in which the pinned version is healthy."`
	Soak           gate.Span  `json:"soak" default:"\"0s\"" doc:"Soak time: minimum time of uninterrupted health, such as 24h."`
	Clusters       int        `json:"clusters" default:"1" doc:"Minimum number of clusters."`
	ObservedWithin gate.Span  `json:"observedWithin" default:"\"24h\"" doc:"Maximum age of an observation. An older observation counts as missing."`
	Signed         bool       `json:"signed" default:"false" doc:"Whether observations must be signed, by a signer of an entry of spec.trust with 'match: observations'."`
}

// Criteria returns the rule that the gate applies.
func (p *Promotion) Criteria() gate.Criteria {
	return gate.Criteria{Healthy: p.Healthy, Soak: p.Soak, Clusters: p.Clusters, Within: p.ObservedWithin, Identified: true, Signed: p.Signed}
}

// Propose configures pull requests. Labels, Reviewers and Draft apply only to new pull requests, because people
// may change them later.
type Propose struct {
	Labels    []string   `json:"labels" form:"nonempty" doc:"Labels of a new pull request."`
	Reviewers []string   `json:"reviewers" form:"nonempty" doc:"Users who are asked to review a new pull request; team/NAME is a team of GitHub or Gitea."`
	Draft     bool       `json:"draft" default:"false" doc:"Whether a new pull request is a draft."`
	Automerge *Automerge `json:"automerge" doc:"Enables the forge's automatic merge, which waits for the required checks and reviews. Default: a person merges."`
}

// Automerge selects the pull requests that a forge merges automatically.
type Automerge struct {
	MaxSeverity string    `json:"maxSeverity" default:"\"low\"" form:"enum=off|info|low|medium|high|critical" doc:"A pull request is merged automatically only if no finding without a waiver has a higher severity; off allows no finding at all. A finding that the policy refuses, or that removes an operator, is never merged automatically."`
	After       gate.Span `json:"after" default:"\"0s\"" doc:"Minimum time since the upgrade was first proposed, such as 3d. The first run after this time enables the automatic merge."`
}

// Window is a recurring time in which operators may change, or must not change.
type Window struct {
	Kind         string    `json:"kind" form:"required enum=allow|deny" doc:"Whether operators may change while the window is open (allow), or may not (deny)."`
	Schedule     string    `json:"schedule" form:"required nonempty" doc:"Start of the window: a cron expression with five fields, such as \"0 22 * * 1-4\"."`
	Duration     gate.Span `json:"duration" form:"required" doc:"Duration of the window, such as 4h."`
	TimeZone     string    `json:"timeZone" default:"\"UTC\"" form:"nonempty" doc:"Time zone of the schedule, such as Europe/Zurich."`
	Environments []string  `json:"environments" form:"nonempty" doc:"Environments to which the window applies, for settings that several environments extend; a * at the end matches any text. Default: all."`
	Operators    []string  `json:"operators" form:"nonempty" doc:"Operators to which the window applies, as namespace/package; a * at the end matches any text. Default: all."`
	Severities   []string  `json:"severities" form:"enum=info|low|medium|high|critical" doc:"Changes to which the window applies, by their most severe finding without a waiver; a change without findings is info. Default: all."`
}

// Owner is a team that owns operators.
type Owner struct {
	Name      string   `json:"name" form:"required nonempty" doc:"Name of the owner."`
	Operators []string `json:"operators" form:"required nonempty" doc:"Operators, as namespace/package; a * at the end matches any text."`
}

// Freeze is a time until which no operator may change.
type Freeze struct {
	Until  string `json:"until" form:"required nonempty" doc:"End of the freeze, such as 2027-01-04T08:00:00+01:00."`
	Reason string `json:"reason" form:"required nonempty" doc:"Reason for the freeze."`
}

// ClusterSeverity is FailOn for some clusters.
type ClusterSeverity struct {
	Names  []string `json:"names" form:"required nonempty" doc:"Names of clusters; a * at the end matches any text."`
	FailOn string   `json:"failOn" form:"required enum=off|info|low|medium|high|critical" doc:"Lowest severity that is refused in these clusters; off refuses nothing."`
}

// PolicyRule is a user-defined rule: it refuses the findings or objects for which its expression is
// true.
type PolicyRule struct {
	Name       string `json:"name" form:"required nonempty" doc:"Name of the rule in reports and waivers."`
	Expression string `json:"expression" form:"required nonempty" doc:"CEL expression; true refuses the finding or object, such as finding.rule.startsWith('images.') && !finding.after.startsWith('quay.io/')."`
	Message    string `json:"message" doc:"Text that the report shows for a refused finding or object."`
	On         string `json:"on" default:"\"diff\"" form:"enum=diff|tree" doc:"diff: the expression is evaluated for each finding of a diff. tree: it is evaluated by 'quayside verify' for each object of a cluster."`

	Pos diag.Pos `json:"-"` // position of the expression
}

// Default returns the settings of a workspace without a quayside.yaml. The caller may modify the
// result.
func Default() *Workspace {
	return &Workspace{
		Declarations: []declare.Path{{Path: "subscriptions"}}, GlobalCatalogs: []string{"olm", "openshift-marketplace"}, Requirements: "enforce", SharedDependencies: true, AggregatedRoles: true, Output: Output{Path: defaultOutput},
		Profile: profile.Name(profile.Names()[0]), Certificates: certificates.Default(false), StorageMigration: "auto", Clusters: []profile.Cluster{{Name: "default", Operators: []string{"*"}}},
		Reporter: Reporter{Namespace: "quayside-system"}, Policy: Policy{FailOn: "high"},
	}
}

// At returns the position of the value of a field such as "spec.catalogs[0].source". If the field is not set,
// At returns the position of the nearest enclosing field, or of the file if there is none.
func (w *Workspace) At(field string) diag.Pos {
	return w.Fields.At(field, diag.Pos{File: w.File})
}

// document is the content of quayside.yaml.
type document struct {
	APIVersion string    `json:"apiVersion" form:"required const=quayside.dev/v1alpha1" doc:"quayside.dev/v1alpha1"`
	Kind       string    `json:"kind" form:"required const=Workspace" doc:"Workspace"`
	Metadata   metadata  `json:"metadata" yamlnode:"open" doc:"Any metadata; only name is used."`
	Spec       Workspace `json:"spec" doc:"The settings. Every field has a default."`
}

type metadata struct {
	Name string `json:"name" doc:"Name of the environment."`
}

// Schema returns the published JSON schema of quayside.yaml.
func Schema() []byte {
	return jsonschema.Of("https://quayside.dev/schema/workspace.schema.json", "quayside workspace", document{})
}
