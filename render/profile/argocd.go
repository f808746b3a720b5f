package profile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
)

// ArgoCD has Applications, or ApplicationSets, apply the tree.
const ArgoCD Name = "argocd"

const (
	argoWave    = "argocd.argoproj.io/sync-wave"
	argoOptions = "argocd.argoproj.io/sync-options"

	// argoApproved is how a person allows that something is deleted.
	argoApproved = "argocd.argoproj.io/deletion-approved"

	// localServer is the cluster that Argo CD itself runs in.
	localServer = "https://kubernetes.default.svc"

	// largeObject is the size in bytes from which kubectl's annotation of the
	// last applied state, at most 256 KiB with all others, may not fit.
	largeObject = 200 << 10
)

type argoCD struct{}

// Adorn sets the sync wave and what a sync must mind.
func (argoCD) Adorn(o kobj.Object, at Place) kobj.Object {
	var options []string
	switch {
	case kobj.IsCRD(o) && textSize(map[string]any(o)) > largeObject:
		options = []string{"ServerSideApply=true"}
	case kobj.IsCRD(o): // Argo CD does not track them, and so never prunes them
	case keepsData(o):
		options = confirmed()
	case !BuiltinGroup(o.Group()):
		options = []string{"SkipDryRunOnMissingResource=true"}
	}
	if w := wave(o, at); w != 0 || !at.Alone { // 0 is the default of Argo CD
		o = kobj.Annotate(o, map[string]string{argoWave: strconv.Itoa(w)})
	}
	merged := mergeOptions(kobj.Text(o, "metadata", "annotations", argoOptions), options)
	if merged == "" {
		return o
	}
	return kobj.With(o, merged, "metadata", "annotations", argoOptions)
}

func (argoCD) Manager() string { return "argocd-controller" }

func (argoCD) Guard(o kobj.Object) kobj.Object {
	others := strings.Split(kobj.Text(o, "metadata", "annotations", argoOptions), ",")
	return kobj.With(o, mergeOptions("Prune=false", others), "metadata", "annotations", argoOptions)
}

// Applier knows the annotation by which Argo CD tracks what it applies, and the
// label that it used before, which Helm sets too.
func (argoCD) Applier(o kobj.Object) string {
	if id, _, ok := strings.Cut(kobj.Text(o, "metadata", "annotations", "argocd.argoproj.io/tracking-id"), ":"); ok {
		return "Argo CD Application " + id
	}
	if name := kobj.Text(o, "metadata", "labels", "app.kubernetes.io/instance"); name != "" {
		return "Argo CD Application (or Helm release) " + name
	}
	return ""
}

// AdornInstallation puts an Installation before the reporter: that it does not
// run is no reason for them to wait.
func (argoCD) AdornInstallation(o kobj.Object) kobj.Object {
	return kobj.Annotate(o, map[string]string{argoWave: "-1"})
}

func (argoCD) Namespace() string { return "argocd" }
func (argoCD) Kind() string      { return "an Application" }

// Faults wants to know the repository, and each cluster to be somewhere else.
func (argoCD) Faults(g GitOps, clusters []Cluster) []Fault {
	out := missing(ArgoCD, "an Application", map[string]string{
		"name": g.Name, "repoURL": g.RepoURL, "revision": g.Revision, "path": g.Path, "namespace": g.Namespace, "project": g.Project,
	})
	if g.Clusters == nil {
		for i, c := range clusters {
			if c.Server != "" && c.Destination != "" {
				out = append(out, Fault{fmt.Sprintf("clusters[%d].destination", i), "not beside server: a cluster is named in one way"})
			}
		}
		return append(out, twice(clusters, Cluster.argoPlace)...)
	}
	if !g.Clusters.Selector.sound() {
		out = append(out, Fault{"gitops.clusters.selector", "the API server would refuse this label selector"})
	}
	if g.Inputs {
		out = append(out, Fault{"gitops.inputs", "not beside spec.gitops.clusters: which clusters there are only Argo CD knows"})
	}
	for i, c := range clusters {
		if field, _ := c.argoPlace(); c.Server+c.Destination != "" {
			out = append(out, Fault{fmt.Sprintf("clusters[%d].%s", i, field), "not beside spec.gitops.clusters: Argo CD's own list says where clusters are"})
		}
	}
	return out
}

// argoPlace returns where Argo CD has a cluster, and the field that says so.
func (c Cluster) argoPlace() (field, place string) {
	switch {
	case c.Destination == "in-cluster":
		return "destination", localServer
	case c.Destination != "":
		return "destination", c.Destination
	default:
		return "server", strings.TrimSuffix(cmp.Or(c.Server, localServer), "/")
	}
}

// Apply returns, by piece, an ApplicationSet of each below a parent; else by
// cluster an Application of the CRDs, a plain directory that no overlay touches,
// and of the overlay, in the order of their sync waves, and one of the reporter.
// These are made by ApplicationSets where there are several clusters, or where
// deleting an Application is to delete what it applied.
func (argoCD) Apply(t Tree) (map[string][]kobj.Object, map[string][]byte) {
	beside := map[string][]byte{}
	if t.HealthChecks {
		beside[path.Join(string(ArgoCD), "argocd-cm-patch.yaml")] = healthScripts(t)
	}
	if t.GitOps.Granularity != PerCluster {
		return argoPieces(t), beside
	}
	var out []kobj.Object
	for _, part := range argoParts(t) {
		if len(t.Clusters) > 1 || t.GitOps.Clusters != nil || t.GitOps.RemovedClusters == Delete {
			out = append(out, applicationSet(t, part))
			continue
		}
		c := t.Clusters[0]
		destination := c.argoDestination()
		o := t.GitOps.object("argoproj.io/v1alpha1", "Application", t.GitOps.namedOf(c.Name, part))
		o["spec"] = applicationSpec(t, part, c.Name, c.Prefix, fields(&destination))
		out = append(out, o)
	}
	beside[path.Join(string(ArgoCD), t.GitOps.Name, "README.md")] = []byte(ofEnvironment)
	return map[string][]kobj.Object{string(ArgoCD): out}, beside
}

// ofEnvironment keeps a directory for the Applications of an environment of this
// name, which do nothing where one of their sources is not there. Those of an
// earlier name may be left: an ApplicationSet that deletes none gives them up
// when it is deleted, and the garbage collector does not find all of them first.
// They and those of the new name would forever take everything from each other.
const ofEnvironment = "The Applications of this environment read this directory, and apply nothing of it.\n" +
	"When the environment gets another name it goes, and Applications of the old name,\n" +
	"where any are left, do nothing more.\n"

// argoDestination returns where an Application of the cluster goes.
func (c Cluster) argoDestination() Destination {
	if c.Destination != "" {
		return Destination{Name: c.Destination}
	}
	return Destination{Server: cmp.Or(c.Server, localServer)}
}

// applicationSet returns one that makes an Application for each cluster. Unless
// the workspace says otherwise, it deletes none, and those that go with it, or by
// hand, leave what they applied.
func applicationSet(t Tree, part string) kobj.Object {
	o := t.GitOps.object("argoproj.io/v1alpha1", "ApplicationSet", t.GitOps.named(part))
	var elements []any
	for _, c := range t.Clusters {
		destination := c.argoDestination()
		element := fields(&destination)
		element["application"], element["cluster"], element["prefix"] = t.GitOps.namedOf(c.Name, part), c.Name, c.Prefix
		elements = append(elements, element)
	}
	generator := map[string]any{"list": map[string]any{"elements": elements}}
	name, cluster, prefix := "{{.application}}", "{{.cluster}}", "{{.prefix}}"
	destination := map[string]any{"server": `{{get . "server"}}`, "name": `{{get . "name"}}`}
	if r := t.GitOps.Clusters; r != nil {
		generator = map[string]any{"clusters": map[string]any{"selector": fields(&r.Selector)}}
		name, cluster, prefix = t.GitOps.Name+registeredJoint(t.GitOps)+"{{.nameNormalized}}-"+part, "{{.name}}", "clusters/{{.name}}/"
		destination = map[string]any{"server": "{{.server}}"}
		if len(t.Clusters) == 1 {
			cluster, prefix = t.Clusters[0].Name, t.Clusters[0].Prefix
		}
	}
	metadata := map[string]any{"name": name}
	if len(t.GitOps.Labels) > 0 {
		metadata["labels"] = kobj.Copy(kobj.Map(o, "metadata", "labels"))
	}
	spec := map[string]any{
		"goTemplate": true, "goTemplateOptions": kobj.Values("missingkey=error"),
		"generators": []any{generator},
		"template":   map[string]any{"metadata": metadata, "spec": applicationSpec(t, part, cluster, prefix, destination)},
		// A person's leave to delete, which would be taken off again at once.
		"preservedFields": map[string]any{"annotations": kobj.Values(argoApproved)},
	}
	if t.GitOps.RemovedClusters != Delete {
		spec["syncPolicy"] = map[string]any{"preserveResourcesOnDeletion": true, "applicationsSync": "create-update"}
	}
	o["spec"] = spec
	return o
}

// registeredJoint returns the joint before a name that only Argo CD knows.
func registeredJoint(g GitOps) string {
	dash, dot := g.joint(false), g.joint(true)
	if dash == dot {
		return dot
	}
	return `{{if contains "." .nameNormalized}}` + dot + "{{else}}" + dash + "{{end}}"
}

// applicationSpec returns the spec of one part's Application of a cluster.
func applicationSpec(t Tree, part, cluster, prefix string, destination map[string]any) map[string]any {
	g := t.GitOps
	policy := g.SyncPolicy
	policy.Retry = cmp.Or(policy.Retry, &Retry{Limit: 5, Backoff: Backoff{Duration: "15s", Factor: 2, MaxDuration: "3m"}})
	policy.SyncOptions = slices.Concat([]string{"ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true"}, policy.SyncOptions)
	spec := map[string]any{"project": g.Project, "destination": destination, "syncPolicy": fields(&policy)}
	spec["sources"] = list(argoSources(t, part, cluster, prefix))
	if all := t.GitOps.IgnoreDifferences; len(all) > 0 {
		spec["ignoreDifferences"] = list(all)
	}
	return spec
}

// argoParts returns what a cluster has an Application of each.
func argoParts(t Tree) []string {
	if t.Reporter != nil {
		return []string{"operators", layout.Reporter}
	}
	return []string{"operators"}
}

// argoSources returns what an Application of one part of a cluster is made of. The
// environment's own directory is the last.
func argoSources(t Tree, part, cluster, prefix string) []Source {
	g := t.GitOps
	source := func(dir string) Source {
		return Source{RepoURL: g.RepoURL, TargetRevision: g.Revision, Path: path.Join(g.Path, dir)}
	}
	environment := source(path.Join(string(ArgoCD), g.Name))
	environment.Directory = &Directory{Exclude: "*"}
	if part == layout.Reporter {
		return []Source{source(prefix + layout.Installations), source(prefix + layout.Reporter), environment}
	}
	crds := source(t.crdsDir(cluster))
	if !t.OwnCRDs {
		crds.Directory = &Directory{Recurse: true}
	}
	return []Source{crds, source(prefix + layout.All), environment}
}

// list returns the fields of each value.
func list[T any](of []T) []any {
	var out []any
	for _, v := range of {
		out = append(out, fields(&v))
	}
	return out
}

// confirmed returns the options of what holds data. It goes last: while Argo CD
// waits for a person, it does nothing that belongs to the same sync wave or to a
// later one, such as the upgrade of another operator's CRD.
func confirmed() []string { return []string{"Prune=confirm", "PruneLast=true", "Delete=confirm"} }

// mergeOptions adds those of more whose name is not among the comma-separated
// options yet.
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

// wave returns the sync wave of an object, by its place in phases. A wave waits
// until all before it are healthy, so that nothing may stand before what makes it
// so: the operators that others need come before these, with their own
// certificates beside their programs. Beside its programs an operator also has the
// custom resources of what runs before it: either may wait for the other. What an
// operator that is followed ran by stops before anything of its follower is there,
// definitions included.
func wave(o kobj.Object, at Place) int {
	if at.Alone {
		return waveAlone(at)
	}
	begin := min(at.Level, maxLevel) * levelWaves
	switch {
	case o.Is("", "Namespace"):
		return -40
	case kobj.IsCRD(o):
		return -30
	case at.Stopped:
		return -35
	case at.First && certificate(o):
		return firstWaves
	case at.First:
		return firstWaves + phaseWave(o)/10
	case certificate(o):
		return begin - 15
	case at.Whose == Foreign && custom(o):
		return lastWave
	case at.Whose == Required && custom(o), at.Whose == Nobodys && Phase(o) == len(phases()):
		return begin
	}
	return begin + phaseWave(o)
}

// waveAlone returns the sync wave of an object of a piece. There is but one: while a
// wave waits until those before it are healthy, Argo CD does not look at the commit that
// mends them, and it may not notice that a definition is there, for it does not track
// definitions. Within a wave it applies kinds in their order, and waits for definitions.
// Only what must not work any more stops before.
func waveAlone(at Place) int {
	if at.Stopped {
		return -1
	}
	return 0
}

const (
	// firstWaves is the wave of the programs that issue certificates, two from
	// either end of those of their operators.
	firstWaves = -25

	// levelWaves is how far the waves of the programs lie apart of an operator and of
	// one that it comes after. More than maxLevel of these in a row are not told apart.
	levelWaves = 50
	maxLevel   = 100

	// lastWave is that of what comes after all operators.
	lastWave = (maxLevel + 1) * levelWaves
)

// phaseWave returns the wave of an object among those of its operator, from -20
// to 20.
func phaseWave(o kobj.Object) int {
	switch p := Phase(o); {
	case slices.Contains([]string{"ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, o.Kind()) && BuiltinGroup(o.Group()):
		return -20
	case p < workloadPhase:
		return -10
	case p == workloadPhase:
		return 0
	case p < len(phases()):
		return 10
	default:
		return 20
	}
}

// healthScript says in Lua when a custom resource of a provided API is ready: by
// its Ready or Available condition, where it has one.
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

// healthScripts returns a patch of Argo CD's own settings that teaches it the
// health of the provided APIs. It is not part of what the tree applies.
func healthScripts(t Tree) []byte {
	data := map[string]any{}
	for _, api := range t.APIs {
		data["resource.customizations.health."+api.Group+"_"+api.Kind] = healthScript
	}
	o := kobj.New("v1", "ConfigMap", t.GitOps.Namespace, "argocd-cm")
	o["data"] = data
	return append([]byte("# A patch for Argo CD's settings; nothing in this tree applies it.\n"), yamlnode.Encode(o)...)
}

// textSize returns about as many bytes as v has in JSON.
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
