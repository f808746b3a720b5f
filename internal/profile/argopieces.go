package profile

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
)

// generatePaths is the annotation with the paths that an Application depends on. Argo CD compares these paths
// only with the names of changed files. So whenever the content of one of these directories changes, a file
// directly in the directory must change.
const generatePaths = "argocd.argoproj.io/manifest-generate-paths"

// ArgoCDMember are the fields of clusters.yaml that only Argo CD uses.
type ArgoCDMember struct {
	Application string `json:"application,omitempty" doc:"Argo CD: prefix of the names of its Applications."`
	Server      string `json:"server,omitempty" doc:"Argo CD: URL of the API server."`
	Name        string `json:"name,omitempty" doc:"Argo CD: name of the cluster, instead of its URL."`
}

// Member returns the entry of a cluster in clusters.yaml, with its destination.
func (argoCD) Member(g GitOps, c Cluster) Member {
	out, destination := MemberOf(c), c.argoDestination()
	out.Application, out.Server, out.Name = g.ownerOf(c.Name), destination.Server, destination.Name
	return out
}

// argoPieces returns an ApplicationSet for each piece, and the Application that applies the ApplicationSets.
func argoPieces(t Tree) map[string][]k8s.Object {
	var sets []k8s.Object
	for _, p := range t.Pieces {
		sets = append(sets, pieceSet(t, p))
	}
	g := t.GitOps
	all := g.newObject("argoproj.io/v1alpha1", "Application", objectName(g.owner(), parentPiece))
	// If this Application is deleted, for example because the environment was renamed, the ApplicationSets must
	// also be deleted. Otherwise, the old and the new ApplicationSets would manage the same objects.
	all = k8s.With(all, any(k8s.Values("resources-finalizer.argocd.argoproj.io")), "metadata", "finalizers")
	all["spec"] = map[string]any{
		"project": g.Project, "destination": map[string]any{"server": localServer, "namespace": g.Namespace},
		"source": map[string]any{"repoURL": g.RepoURL, "targetRevision": g.Revision, "path": path.Join(g.Path, layout.Pieces)},
		// allowEmpty: when the last operator is removed, there are no more ApplicationSets.
		"syncPolicy": map[string]any{"automated": map[string]any{"prune": true, "selfHeal": true, "allowEmpty": true}, "retry": unlimitedRetry(nil)},
	}
	return map[string][]k8s.Object{string(ArgoCD): {all}, layout.Pieces: sets}
}

// unlimitedRetry returns the retry policy r for syncs or, if r is nil, a policy without a limit.
// With refresh, Argo CD retries with the newest revision. Otherwise it would retry the failed
// revision forever, even if a newer revision repairs the fault.
func unlimitedRetry(r *Retry) map[string]any {
	out := fieldMap(cmp.Or(r, &Retry{Limit: -1, Backoff: Backoff{Duration: "10s", Factor: 2, MaxDuration: "1m"}}))
	out["refresh"] = true
	return out
}

// pieceSet returns the ApplicationSet of a piece, which creates an Application for each cluster.
// Deleting the ApplicationSet deletes the Applications, but by default not the objects that they applied.
func pieceSet(t Tree, p Piece) k8s.Object {
	g := t.GitOps
	o := g.newObject("argoproj.io/v1alpha1", "ApplicationSet", objectName(g.owner(), p.Name))
	generator, name, prefix := memberGenerator(t), "{{.application}}", "{{.prefix}}"
	destination := map[string]any{"server": `{{get . "server"}}`, "name": `{{get . "name"}}`}
	key := "cluster"
	if g.Clusters != nil {
		generator = map[string]any{"clusters": map[string]any{"selector": fieldMap(&g.Clusters.Selector)}}
		name, prefix, key = g.Name+".{{.nameNormalized}}", "clusters/{{.name}}/", "name"
		destination = map[string]any{"server": "{{.server}}"}
		if len(t.Clusters) == 1 {
			prefix = t.Clusters[0].Prefix
		}
	}
	if p.Clusters != nil && len(t.Clusters) > 1 {
		generator["selector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": key, "operator": "In", "values": k8s.Values(p.Clusters...)}}}
	}
	metadata := map[string]any{
		"name":        objectName(name, p.Name),
		"annotations": map[string]any{generatePaths: watchedPaths(t, p, prefix)},
	}
	if len(g.Labels) > 0 {
		metadata["labels"] = k8s.Copy(k8s.Map(o, "metadata", "labels"))
	}
	spec := map[string]any{
		"goTemplate": true, "goTemplateOptions": k8s.Values("missingkey=error"),
		"generators": []any{generator},
		"template":   map[string]any{"metadata": metadata, "spec": pieceSpec(t, p, prefix, destination)},
		// Keep this annotation: the controller would otherwise remove a user's confirmation of a
		// deletion at once.
		"preservedFields": map[string]any{"annotations": k8s.Values(argoApproved)},
	}
	if g.RemovedClusters != Delete {
		spec["syncPolicy"] = map[string]any{"preserveResourcesOnDeletion": true, "applicationsSync": "sync"}
	}
	o["spec"] = spec
	return o
}

// memberGenerator returns the generator that lists the clusters. If the source is an OCI artifact,
// the list is inline, because Argo CD cannot read a list from an artifact.
func memberGenerator(t Tree) map[string]any {
	g := t.GitOps
	if strings.HasPrefix(g.RepoURL, "oci://") {
		var members []Member
		for _, c := range t.Clusters {
			members = append(members, argoCD{}.Member(g, c))
		}
		return map[string]any{"list": map[string]any{"elements": fieldMaps(members)}}
	}
	return map[string]any{"git": map[string]any{
		"repoURL": g.RepoURL, "revision": g.Revision, "files": []any{map[string]any{"path": path.Join(g.Path, layout.ClustersFile)}},
	}}
}

func pieceSpec(t Tree, p Piece, prefix string, destination map[string]any) map[string]any {
	policy := t.GitOps.SyncPolicy
	policy.SyncOptions = append([]string{"ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true"}, policy.SyncOptions...)
	if policy.Automated != nil {
		automated := *policy.Automated
		automated.AllowEmpty = p.Leaving
		policy.Automated = &automated
	}
	sync := fieldMap(&policy)
	sync["retry"] = unlimitedRetry(t.GitOps.SyncPolicy.Retry)
	spec := map[string]any{"project": t.GitOps.Project, "destination": destination, "syncPolicy": sync}
	spec["sources"] = fieldMaps(pieceSources(t, p, prefix))
	if all := t.GitOps.IgnoreDifferences; len(all) > 0 {
		spec["ignoreDifferences"] = fieldMaps(all)
	}
	return spec
}

// pieceSources returns the sources of the Application of a piece: first the plain directories of CRDs, then
// the piece. CRDs are first because Argo CD does not track them.
func pieceSources(t Tree, p Piece, prefix string) []ApplicationSource {
	g := t.GitOps
	var dirs []string
	for _, dir := range p.CRDs {
		dirs = append(dirs, path.Join(g.Path, dir))
	}
	if p.Leaving {
		prefix = ""
	}
	dirs = append(dirs, path.Join(g.Path, prefix+p.Dir))
	var out []ApplicationSource
	for _, dir := range dirs {
		out = append(out, ApplicationSource{RepoURL: g.RepoURL, TargetRevision: g.Revision, Path: dir})
	}
	return out
}

// watchedPaths returns the directories that the Application of a piece depends on, separated by ";". With
// overlays, the Application depends on all directories.
func watchedPaths(t Tree, p Piece, prefix string) string {
	if p.Leaving {
		return path.Join("/", t.GitOps.Path, p.Dir)
	}
	base := path.Join("/", t.GitOps.Path)
	var dirs []string
	for _, dir := range append(p.CRDs[:len(p.CRDs):len(p.CRDs)], p.Dir) {
		dirs = append(dirs, path.Join(base, dir))
	}
	all := strings.Join(dirs, ";")
	if t.GitOps.Clusters != nil {
		if prefix == "" {
			return all
		}
		return "/" // all directories: which overlays exist is only known in the tree
	}
	return fmt.Sprintf("{{if .overlays}}/{{else}}%s{{if .prefix}};%s/{{.prefix}}%s{{end}}{{end}}", all, base, p.Dir)
}
