package profile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
)

// ArgoCD is the profile for Argo CD, which renders Applications or ApplicationSets.
const ArgoCD Name = "argocd"

const (
	argoWave    = "argocd.argoproj.io/sync-wave"
	argoOptions = "argocd.argoproj.io/sync-options"
	argoHook    = "argocd.argoproj.io/hook"
	argoCompare = "argocd.argoproj.io/compare-options"

	// argoApproved is the annotation by which a user confirms that an object may be deleted.
	argoApproved = "argocd.argoproj.io/deletion-approved"

	// localServer is the URL of the cluster in which Argo CD itself runs.
	localServer = "https://kubernetes.default.svc"

	// largeObject is the size in bytes above which an object may be too large for kubectl's
	// last-applied annotation: all annotations together are limited to 256 KiB.
	largeObject = 200 << 10
)

type argoCD struct{}

// ArgoCDSettings are the fields of spec.gitops that only Argo CD uses.
type ArgoCDSettings struct {
	Project           string             `json:"project" default:"\"default\"" doc:"Argo CD project."`
	Clusters          *Registered        `json:"clusters" doc:"Argo CD: selects clusters that are registered in Argo CD, instead of the destinations in spec.clusters. A single entry in spec.clusters applies to all registered clusters; otherwise the entry with the name of the cluster applies."`
	SyncPolicy        SyncPolicy         `json:"syncPolicy" doc:"Argo CD: sync policy."`
	IgnoreDifferences []IgnoreDifference `json:"ignoreDifferences" doc:"Argo CD: fields that other controllers write."`
}

// ArgoCDCluster has the fields that only Argo CD uses, in an entry of spec.clusters. If both fields are
// empty, the destination is the cluster in which Argo CD runs.
type ArgoCDCluster struct {
	Server      string `json:"server" doc:"URL of the API server in Argo CD. Default: the cluster in which Argo CD runs."`
	Destination string `json:"destination" doc:"Name of the cluster in Argo CD, instead of server."`
}

// Annotate returns o with annotations for its sync wave and sync options.
func (argoCD) Annotate(o k8s.Object, at ApplyPosition) k8s.Object {
	var options []string
	switch {
	case k8s.IsCRD(o): // needs no options: Argo CD does not track CRDs and never prunes them
	case keepsData(o):
		options = confirmOptions()
	case !BuiltinGroup(o.Group()):
		options = []string{"SkipDryRunOnMissingResource=true"}
	}
	if at.Kept && isKeepable(o) {
		options = append(options, "Prune=false", "Delete=false")
		o = k8s.Annotate(o, map[string]string{argoCompare: "IgnoreExtraneous"}) // the Application is in sync even without the object
	}
	if textSize(map[string]any(o)) > largeObject {
		options = append(options, "ServerSideApply=true")
	}
	if at.Hook != nil {
		o = withHook(o, *at.Hook)
	} else if w := syncWave(o, at); w != 0 || !at.InPiece { // 0 is the default in Argo CD
		o = k8s.Annotate(o, map[string]string{argoWave: strconv.Itoa(w)})
	}
	have := k8s.Text(o, "metadata", "annotations", argoOptions)
	if at.Recreated {
		have = mergeOptions("Replace=true,Force=true", strings.Split(have, ","))
	}
	merged := mergeOptions(have, options)
	if merged == "" {
		return o
	}
	return k8s.With(o, merged, "metadata", "annotations", argoOptions)
}

// About returns the properties of Argo CD. Argo CD also runs Helm hooks, so annotations of Helm
// control Argo CD.
func (argoCD) About() About {
	return About{
		Tool: "Argo CD", Kind: "an Application", Namespace: "argocd", Manager: "argocd-controller",
		Directives: []Directive{
			{Tool: "Argo CD", Domains: []string{"argocd.argoproj.io", "argocd-image-updater.argoproj.io", "notifications.argoproj.io"}, Keys: []string{"app.kubernetes.io/instance"}},
			{Tool: "Helm and Argo CD", Keys: []string{"helm.sh/hook*", "helm.sh/resource-policy"}},
		},
		Appliers: []Applier{
			{Group: "argoproj.io", Kind: "Application", Paths: []string{"spec.source.path", "spec.sources.[].path"}, Targets: []string{"spec.destination.name", "spec.destination.server"}},
			{Group: "argoproj.io", Kind: "ApplicationSet", Paths: []string{
				"spec.template.spec.source.path", "spec.template.spec.sources.[].path", "spec.generators.[].git.directories.[].path",
				"spec.generators.[].matrix.generators.[].git.directories.[].path", "spec.generators.[].list.elements.[].path",
			}},
		},
		UntracksCRDs: true, RunsHooks: true, Protects: "prunes it only after confirmation",
		ControlFiles: []string{".argocd-source*.yaml", "Chart.yaml"},
	}
}

// Defaults sets the default project.
func (argoCD) Defaults(g *GitOps) { g.Project = cmp.Or(g.Project, "default") }

// NeedsSeparateDirs returns true if g selects clusters that are registered in Argo CD. The ApplicationSet
// gets only the names of such clusters.
func (argoCD) NeedsSeparateDirs(g GitOps) bool { return g.Clusters != nil }

// Removal returns the effect of removing o from the tree, according to its sync options.
func (argoCD) Removal(o k8s.Object) Removal {
	options := k8s.Text(o, "metadata", "annotations", argoOptions)
	switch {
	case strings.Contains(options, "Prune=confirm") && !k8s.IsCRD(o):
		return RemovalConfirm
	case strings.Contains(options, "Prune=confirm"), strings.Contains(options, "Prune=false"):
		return RemovalKeep
	default:
		return RemovalPrune
	}
}

// withHook returns o as a hook of the phases before or after a sync
// (argo-cd.readthedocs.io/en/stable/user-guide/resource_hooks).
func withHook(o k8s.Object, h Hook) k8s.Object {
	var phases []string
	if h.Before {
		phases = append(phases, "PreSync")
	}
	if h.After {
		phases = append(phases, "PostSync")
	}
	policies := []string{"BeforeHookCreation"}
	if h.Succeeded {
		policies = append(policies, "HookSucceeded")
	}
	if h.Failed {
		policies = append(policies, "HookFailed")
	}
	return k8s.Annotate(o, map[string]string{
		argoHook: strings.Join(phases, ","), argoHook + "-delete-policy": strings.Join(policies, ","), argoWave: strconv.Itoa(h.Weight),
	})
}

func (argoCD) Guard(o k8s.Object) k8s.Object {
	others := strings.Split(k8s.Text(o, "metadata", "annotations", argoOptions), ",")
	return k8s.With(o, mergeOptions("Prune=false", others), "metadata", "annotations", argoOptions)
}

// Applier returns the Application in the tracking annotation of Argo CD, or else in the label of
// earlier versions. Helm sets that label, too.
func (argoCD) Applier(o k8s.Object) string {
	if id, _, ok := strings.Cut(k8s.Text(o, "metadata", "annotations", "argocd.argoproj.io/tracking-id"), ":"); ok {
		return "Argo CD Application " + id
	}
	if name := k8s.Text(o, "metadata", "labels", "app.kubernetes.io/instance"); name != "" {
		return "Argo CD Application (or Helm release) " + name
	}
	return ""
}

// AnnotateInstallation sets a sync wave before the wave of the reporter, so that Argo CD applies the
// Installation even if the reporter is unhealthy.
func (argoCD) AnnotateInstallation(o k8s.Object) k8s.Object {
	return k8s.Annotate(o, map[string]string{argoWave: "-1"})
}

// Faults returns faults for missing and conflicting settings, and for clusters with the same
// destination.
func (argoCD) Faults(g GitOps, clusters []Cluster) []Fault {
	out := missingFaults(ArgoCD, "an Application", map[string]string{
		"name": g.Name, "repoURL": g.RepoURL, "revision": g.Revision, "path": g.Path, "namespace": g.Namespace, "project": g.Project,
	})
	if g.Clusters == nil {
		for i, c := range clusters {
			if c.Server != "" && c.Destination != "" {
				out = append(out, Fault{fmt.Sprintf("clusters[%d].destination", i), "conflicts with server: only one of them can be set"})
			}
		}
		return append(out, duplicateFaults(clusters, Cluster.argoAddress)...)
	}
	if !g.Clusters.Selector.isValid() {
		out = append(out, Fault{"gitops.clusters.selector", "the API server would refuse this label selector"})
	}
	if g.Inputs {
		out = append(out, Fault{"gitops.inputs", "conflicts with spec.gitops.clusters: the list of clusters comes from Argo CD"})
	}
	for i, c := range clusters {
		if field, _ := c.argoAddress(); c.Server+c.Destination != "" {
			out = append(out, Fault{fmt.Sprintf("clusters[%d].%s", i, field), "conflicts with spec.gitops.clusters: the addresses of clusters come from Argo CD"})
		}
	}
	return out
}

// argoAddress returns the destination of a cluster, and the field of spec.clusters that contains
// it.
func (c Cluster) argoAddress() (field, address string) {
	switch {
	case c.Destination == "in-cluster":
		return "destination", localServer
	case c.Destination != "":
		return "destination", c.Destination
	default:
		return "server", strings.TrimSuffix(cmp.Or(c.Server, localServer), "/")
	}
}

// Apply returns the Applications and ApplicationSets of a tree.
//
// With granularity operator, there is an ApplicationSet for each piece, and an Application that applies the
// ApplicationSets. With granularity cluster, each cluster has an Application for the operators and an
// Application for the reporter. The Application for the operators applies CRDs from a plain directory.
// ApplicationSets create these Applications in three cases:
//   - There are several clusters.
//   - The clusters are the clusters registered in Argo CD.
//   - The objects must be deleted together with the Application.
func (argoCD) Apply(t Tree) (map[string][]k8s.Object, map[string][]byte) {
	files := map[string][]byte{}
	if t.HealthChecks {
		files[path.Join(string(ArgoCD), "argocd-cm-patch.yaml")] = healthScripts(t)
	}
	if t.GitOps.Granularity != PerCluster {
		return argoPieces(t), files
	}
	var out []k8s.Object
	for _, part := range argoParts(t) {
		if len(t.Clusters) > 1 || t.GitOps.Clusters != nil || t.GitOps.RemovedClusters == Delete {
			out = append(out, applicationSet(t, part))
			continue
		}
		c := t.Clusters[0]
		destination := c.argoDestination()
		o := t.GitOps.newObject("argoproj.io/v1alpha1", "Application", t.GitOps.clusterPartName(c.Name, part))
		o["spec"] = applicationSpec(t, part, c.Name, c.Prefix, fieldMap(&destination))
		out = append(out, o)
	}
	files[path.Join(string(ArgoCD), t.GitOps.Name, "README.md")] = []byte(environmentReadme)
	return map[string][]k8s.Object{string(ArgoCD): out}, files
}

// environmentReadme is the only file in a directory that is a source of all Applications of one environment.
// If the environment is renamed, the directory is removed, so that old Applications apply nothing. Otherwise
// old and new Applications would manage the same objects. Old Applications may remain, because an
// ApplicationSet may be configured to keep its Applications, or because the garbage collector misses some.
const environmentReadme = "The Applications of this environment use this directory as a source, but apply none of its files.\n" +
	"If the environment is renamed, this directory is removed. Applications of the old name that\n" +
	"still exist then fail instead of applying old manifests.\n"

// argoDestination returns the destination for the Applications of a cluster.
func (c Cluster) argoDestination() Destination {
	if c.Destination != "" {
		return Destination{Name: c.Destination}
	}
	return Destination{Server: cmp.Or(c.Server, localServer)}
}

// applicationSet returns the ApplicationSet that creates an Application for each cluster. By
// default, the ApplicationSet deletes no Applications, and the objects that an Application applied remain
// when the Application is deleted.
func applicationSet(t Tree, part string) k8s.Object {
	o := t.GitOps.newObject("argoproj.io/v1alpha1", "ApplicationSet", t.GitOps.partName(part))
	var elements []any
	for _, c := range t.Clusters {
		destination := c.argoDestination()
		element := fieldMap(&destination)
		element["application"], element["cluster"], element["prefix"] = t.GitOps.clusterPartName(c.Name, part), c.Name, c.Prefix
		elements = append(elements, element)
	}
	generator := map[string]any{"list": map[string]any{"elements": elements}}
	name, cluster, prefix := "{{.application}}", "{{.cluster}}", "{{.prefix}}"
	destination := map[string]any{"server": `{{get . "server"}}`, "name": `{{get . "name"}}`}
	if r := t.GitOps.Clusters; r != nil {
		generator = map[string]any{"clusters": map[string]any{"selector": fieldMap(&r.Selector)}}
		name, cluster, prefix = t.GitOps.Name+registeredSeparator(t.GitOps)+"{{.nameNormalized}}-"+part, "{{.name}}", "clusters/{{.name}}/"
		destination = map[string]any{"server": "{{.server}}"}
		if len(t.Clusters) == 1 {
			cluster, prefix = t.Clusters[0].Name, t.Clusters[0].Prefix
		}
	}
	metadata := map[string]any{"name": name}
	if len(t.GitOps.Labels) > 0 {
		metadata["labels"] = k8s.Copy(k8s.Map(o, "metadata", "labels"))
	}
	spec := map[string]any{
		"goTemplate": true, "goTemplateOptions": k8s.Values("missingkey=error"),
		"generators": []any{generator},
		"template":   map[string]any{"metadata": metadata, "spec": applicationSpec(t, part, cluster, prefix, destination)},
		// Keep this annotation: the controller would otherwise remove a user's confirmation of a
		// deletion at once.
		"preservedFields": map[string]any{"annotations": k8s.Values(argoApproved)},
	}
	if t.GitOps.RemovedClusters != Delete {
		spec["syncPolicy"] = map[string]any{"preserveResourcesOnDeletion": true, "applicationsSync": "create-update"}
	}
	o["spec"] = spec
	return o
}

// registeredSeparator returns a template for the separator before the name of a registered cluster.
// A template is needed because only Argo CD has the name.
func registeredSeparator(g GitOps) string {
	dash, dot := g.clusterSeparator(false), g.clusterSeparator(true)
	if dash == dot {
		return dot
	}
	return `{{if contains "." .nameNormalized}}` + dot + "{{else}}" + dash + "{{end}}"
}

// applicationSpec returns the spec of the Application for one part of the tree in one cluster.
func applicationSpec(t Tree, part, cluster, prefix string, destination map[string]any) map[string]any {
	g := t.GitOps
	policy := g.SyncPolicy
	policy.Retry = cmp.Or(policy.Retry, &Retry{Limit: 5, Backoff: Backoff{Duration: "15s", Factor: 2, MaxDuration: "3m"}})
	policy.SyncOptions = slices.Concat([]string{"ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true"}, policy.SyncOptions)
	spec := map[string]any{"project": g.Project, "destination": destination, "syncPolicy": fieldMap(&policy)}
	spec["sources"] = fieldMaps(argoSources(t, part, cluster, prefix))
	if all := t.GitOps.IgnoreDifferences; len(all) > 0 {
		spec["ignoreDifferences"] = fieldMaps(all)
	}
	return spec
}

// argoParts returns the parts of the tree that have an Application for each cluster.
func argoParts(t Tree) []string {
	if t.Reporter != nil {
		return []string{"operators", layout.Reporter}
	}
	return []string{"operators"}
}

// argoSources returns the sources of the Application for one part of the tree in one cluster. The
// last source is the directory with environmentReadme.
func argoSources(t Tree, part, cluster, prefix string) []ApplicationSource {
	g := t.GitOps
	source := func(dir string) ApplicationSource {
		return ApplicationSource{RepoURL: g.RepoURL, TargetRevision: g.Revision, Path: path.Join(g.Path, dir)}
	}
	environment := source(path.Join(string(ArgoCD), g.Name))
	environment.Directory = &Directory{Exclude: "*"}
	if part == layout.Reporter {
		return []ApplicationSource{source(prefix + layout.Installations), source(prefix + layout.Reporter), environment}
	}
	crds := source(t.crdsDir(cluster))
	if !t.OwnCRDs {
		crds.Directory = &Directory{Recurse: true}
	}
	return []ApplicationSource{crds, source(prefix + layout.All), environment}
}

// fieldMaps returns each element of a list as a map of its JSON fields (see fieldMap).
func fieldMaps[T any](of []T) []any {
	var out []any
	for _, v := range of {
		out = append(out, fieldMap(&v))
	}
	return out
}

// confirmOptions returns the sync options for objects whose deletion loses data. PruneLast is
// needed because Argo CD applies nothing in the same or a later sync wave while it waits for a confirmation,
// not even the upgraded CRD of another operator.
func confirmOptions() []string { return []string{"Prune=confirm", "PruneLast=true", "Delete=confirm"} }

// mergeOptions appends the options in more to those in have, separated by commas. It omits options whose
// names are in have.
func mergeOptions(have string, more []string) string {
	var out, names []string
	for _, option := range append(strings.Split(have, ","), more...) {
		option = strings.TrimSpace(option)
		name, _, _ := strings.Cut(option, "=")
		if option != "" && !slices.Contains(names, name) {
			out, names = append(out, option), append(names, name)
		}
	}
	return strings.Join(out, ",")
}

// syncWave returns the sync wave of an object. Argo CD begins a wave when all objects of earlier
// waves are healthy. So an object must not be in an earlier wave than the objects that make it healthy:
//
//   - The workloads of a replaced operator stop before any object of its successor is applied,
//     including CRDs.
//   - Required operators and their certificates are in earlier waves than their dependents.
//   - If an operator ships custom resources of an operator at an earlier position, these custom resources
//     are in the same wave as the workloads of the shipping operator, because the custom resources and the
//     workloads may wait for each other.
func syncWave(o k8s.Object, at ApplyPosition) int {
	if at.InPiece {
		return pieceWave(at)
	}
	begin := min(at.Level, maxLevel) * levelWaves
	switch {
	case o.Is("", "Namespace"):
		return -40
	case k8s.IsCRD(o):
		return -30
	case at.Stopped:
		return -35
	case at.Issuer && isCertificate(o):
		return issuerWave
	case at.Issuer:
		return issuerWave + phaseWave(o)/10
	case isCertificate(o):
		return begin - 15
	case at.Provider == OtherOperator && isCustomResource(o):
		return lastWave
	case at.Provider == EarlierOperator && isCustomResource(o), at.Provider == NoOperator && Phase(o) == len(syncPhases()):
		return begin
	}
	return begin + phaseWave(o)
}

// pieceWave returns the sync wave of an object in a piece. All objects share one wave, except
// workloads to be stopped, for two reasons. While Argo CD waits for a wave, it ignores a commit that repairs
// the wave. And Argo CD may not notice that a CRD of an earlier wave exists, because it does not track CRDs.
// Within a wave, it applies kinds in a fixed order and waits for CRDs.
func pieceWave(at ApplyPosition) int {
	if at.Stopped {
		return -1
	}
	return 0
}

const (
	// issuerWave is the wave for the workloads of operators that issue certificates. The other objects of these
	// operators are at most two waves away.
	issuerWave = -25

	// levelWaves is the number of waves between the workloads of consecutive levels of operators.
	// Levels above maxLevel have the same waves.
	levelWaves = 50
	maxLevel   = 100

	// lastWave is a wave after the waves of all operators.
	lastWave = (maxLevel + 1) * levelWaves
)

// phaseWave returns the wave of an object relative to the wave of the workloads of its operator, from -20 to
// 20.
func phaseWave(o k8s.Object) int {
	switch p := Phase(o); {
	case slices.Contains([]string{"ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, o.Kind()) && BuiltinGroup(o.Group()):
		return -20
	case p < workloadPhase:
		return -10
	case p == workloadPhase:
		return 0
	case p < len(syncPhases()):
		return 10
	default:
		return 20
	}
}

// healthScript is a health check for custom resources, in Lua. The condition Ready or Available, if it
// exists, determines the health.
const healthScript = `local known, ready = false, false
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, c in ipairs(obj.status.conditions) do
    if (c.type == "Degraded" or c.type == "Failed") and c.status == "True" then
      return {status = "Degraded", message = c.message or c.reason or c.type}
    end
    if c.type == "Ready" or c.type == "Available" then
      known = true
      ready = ready or c.status == "True"
    end
  end
end
if known and not ready then
  return {status = "Progressing", message = "not ready yet"}
end
return {status = "Healthy"}
`

// healthScripts returns a patch for the ConfigMap of Argo CD, with health checks for the custom
// resources of the operators. The user applies the patch.
func healthScripts(t Tree) []byte {
	data := map[string]any{}
	for _, api := range t.APIs {
		data["resource.customizations.health."+api.Group+"_"+api.Kind] = healthScript
	}
	o := k8s.New("v1", "ConfigMap", t.GitOps.Namespace, "argocd-cm")
	o["data"] = data
	return append([]byte("# Patch for the ConfigMap argocd-cm of Argo CD. Apply it yourself: no Application includes it.\n"), yamlnode.Encode(o)...)
}

// textSize returns the approximate size of v as JSON in bytes.
func textSize(v any) int {
	size := 2
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			size += len(key) + 4 + textSize(e)
		}
	case []any:
		for _, e := range v {
			size += 1 + textSize(e)
		}
	case string:
		size += len(v)
	default:
		size += 4
	}
	return size
}
