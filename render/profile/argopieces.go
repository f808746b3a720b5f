package profile

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
)

// generatePaths is the annotation by which Argo CD knows which commits change an
// Application. It looks at the names of changed files alone, so that each of the
// directories has to hold a file that changes in place whenever its content does.
const generatePaths = "argocd.argoproj.io/manifest-generate-paths"

// Member returns where Argo CD has the cluster.
func (argoCD) Member(g GitOps, c Cluster) Member {
	out, to := MemberOf(c), c.argoDestination()
	out.Application, out.Server, out.Name = g.ownerOf(c.Name), to.Server, to.Name
	return out
}

// argoPieces returns an ApplicationSet for each piece, and the Application that
// has Argo CD apply these.
func argoPieces(t Tree) map[string][]kobj.Object {
	var sets []kobj.Object
	for _, p := range t.Pieces {
		sets = append(sets, pieceSet(t, p))
	}
	g := t.GitOps
	all := g.object("argoproj.io/v1alpha1", "Application", named(g.owner(), parent))
	// Where it goes, as when the environment gets another name, so do the ApplicationSets:
	// theirs would take everything from those of the new name, and these from them.
	all = kobj.With(all, any(kobj.Values("resources-finalizer.argocd.argoproj.io")), "metadata", "finalizers")
	all["spec"] = map[string]any{
		"project": g.Project, "destination": map[string]any{"server": localServer, "namespace": g.Namespace},
		"source": map[string]any{"repoURL": g.RepoURL, "targetRevision": g.Revision, "path": path.Join(g.Path, layout.Pieces)},
		// The last ApplicationSet goes, too, where the last operator does.
		"syncPolicy": map[string]any{"automated": map[string]any{"prune": true, "selfHeal": true, "allowEmpty": true}, "retry": withoutEnd(nil)},
	}
	return map[string][]kobj.Object{string(ArgoCD): {all}, layout.Pieces: sets}
}

// withoutEnd returns how a sync is tried again: without refresh, Argo CD would try
// the revision that failed for ever, and not the one that mends it.
func withoutEnd(r *Retry) map[string]any {
	out := fields(cmp.Or(r, &Retry{Limit: -1, Backoff: Backoff{Duration: "10s", Factor: 2, MaxDuration: "1m"}}))
	out["refresh"] = true
	return out
}

// pieceSet returns the ApplicationSet of a piece, with an Application for each
// cluster that gets it. One that goes takes its Applications along, and they leave
// what they applied unless the workspace says otherwise.
func pieceSet(t Tree, p Piece) kobj.Object {
	g := t.GitOps
	o := g.object("argoproj.io/v1alpha1", "ApplicationSet", named(g.owner(), p.Name))
	generator, name, prefix := memberGenerator(t), "{{.application}}", "{{.prefix}}"
	destination := map[string]any{"server": `{{get . "server"}}`, "name": `{{get . "name"}}`}
	key := "cluster"
	if g.Clusters != nil {
		generator = map[string]any{"clusters": map[string]any{"selector": fields(&g.Clusters.Selector)}}
		name, prefix, key = g.Name+".{{.nameNormalized}}", "clusters/{{.name}}/", "name"
		destination = map[string]any{"server": "{{.server}}"}
		if len(t.Clusters) == 1 {
			prefix = t.Clusters[0].Prefix
		}
	}
	if p.Clusters != nil && len(t.Clusters) > 1 {
		generator["selector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": key, "operator": "In", "values": kobj.Values(p.Clusters...)}}}
	}
	metadata := map[string]any{
		"name":        named(name, p.Name),
		"annotations": map[string]any{generatePaths: watched(t, p, prefix)},
	}
	if len(g.Labels) > 0 {
		metadata["labels"] = kobj.Copy(kobj.Map(o, "metadata", "labels"))
	}
	spec := map[string]any{
		"goTemplate": true, "goTemplateOptions": kobj.Values("missingkey=error"),
		"generators": []any{generator},
		"template":   map[string]any{"metadata": metadata, "spec": pieceSpec(t, p, prefix, destination)},
		// A person's leave to delete, which would be taken off again at once.
		"preservedFields": map[string]any{"annotations": kobj.Values(argoApproved)},
	}
	if g.RemovedClusters != Delete {
		spec["syncPolicy"] = map[string]any{"preserveResourcesOnDeletion": true, "applicationsSync": "sync"}
	}
	o["spec"] = spec
	return o
}

// memberGenerator returns the generator over the list of clusters, which it holds itself
// where Argo CD cannot read a list: in an artifact.
func memberGenerator(t Tree) map[string]any {
	g := t.GitOps
	if strings.HasPrefix(g.RepoURL, "oci://") {
		var members []Member
		for _, c := range t.Clusters {
			members = append(members, argoCD{}.Member(g, c))
		}
		return map[string]any{"list": map[string]any{"elements": list(members)}}
	}
	return map[string]any{"git": map[string]any{
		"repoURL": g.RepoURL, "revision": g.Revision, "files": []any{map[string]any{"path": path.Join(g.Path, layout.ClustersFile)}},
	}}
}

// pieceSpec returns the spec of a piece's Application.
func pieceSpec(t Tree, p Piece, prefix string, destination map[string]any) map[string]any {
	policy := t.GitOps.SyncPolicy
	policy.SyncOptions = append([]string{"ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true"}, policy.SyncOptions...)
	if policy.Automated != nil {
		automated := *policy.Automated
		automated.AllowEmpty = p.Leaving
		policy.Automated = &automated
	}
	sync := fields(&policy)
	sync["retry"] = withoutEnd(t.GitOps.SyncPolicy.Retry)
	spec := map[string]any{"project": t.GitOps.Project, "destination": destination, "syncPolicy": sync}
	spec["sources"] = list(pieceSources(t, p, prefix))
	if all := t.GitOps.IgnoreDifferences; len(all) > 0 {
		spec["ignoreDifferences"] = list(all)
	}
	return spec
}

// pieceSources returns what an Application of a piece is made of: definitions, which
// Argo CD does not track, out of plain directories, and last the piece itself.
func pieceSources(t Tree, p Piece, prefix string) []Source {
	g := t.GitOps
	var dirs []string
	for _, dir := range p.CRDs {
		dirs = append(dirs, path.Join(g.Path, dir))
	}
	if p.Leaving {
		prefix = ""
	}
	dirs = append(dirs, path.Join(g.Path, prefix+p.Dir))
	var out []Source
	for _, dir := range dirs {
		out = append(out, Source{RepoURL: g.RepoURL, TargetRevision: g.Revision, Path: dir})
	}
	return out
}

// watched returns the directories whose changes concern an Application of a piece:
// all, where some of them are the team's.
func watched(t Tree, p Piece, prefix string) string {
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
		return "/" // whose overlays there are only the tree knows
	}
	return fmt.Sprintf("{{if .overlays}}/{{else}}%s{{if .prefix}};%s/{{.prefix}}%s{{end}}{{end}}", all, base, p.Dir)
}
