package cluster_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// pieceWriter writes the tree of an environment for an engine.
type pieceWriter interface {
	// files returns everything that is in Git.
	files(s pieceState, repository string) pieceFiles
	// parents returns what a person applies once, a document for each parent.
	parents(s pieceState, repository string) string
	// engineObjects returns the names of the Applications or Kustomizations that the
	// environment has in the end, its parents included, with the piece of each.
	engineObjects(s pieceState) map[string]string
}

// argoPieces writes ApplicationSets.
type argoPieces struct{}

// argoRetry has a failed sync tried again at the latest commit.
const argoRetry = "retry: {limit: -1, refresh: true, backoff: {duration: 2s, factor: 2, maxDuration: 10s}}"

func (w argoPieces) files(s pieceState, repository string) pieceFiles {
	files := baseTree(s)
	files["rendered/clusters.yaml"] = ""
	for _, c := range s.clusters {
		files["rendered/clusters.yaml"] += fmt.Sprintf("- cluster: %s\n  server: %q\n  own: false\n", c.name, c.server)
	}
	add := func(piece, source string, leaving bool, directories ...string) {
		files[path.Join("rendered/argocd", piece+".yaml")] = w.applicationSet(s, repository, piece, source, leaving, directories)
	}
	if s.whole {
		var crds []string
		for name := range files {
			if strings.HasPrefix(name, "rendered/crds/") {
				crds = []string{"crds", "operators", "namespaces"}
			}
		}
		add("all", "all", false, crds...)
	} else {
		for _, namespace := range s.namespaces() {
			add(namespace, path.Join("namespaces", namespace), false)
		}
		for _, p := range s.pieces() {
			var crds []string
			for _, key := range p.packages() {
				crds = append(crds, path.Join("crds", key))
			}
			add(p.name, path.Join("operators", p.name), false, crds...)
		}
		for _, key := range s.leaving {
			add(key, path.Join("leaving", key), true)
		}
	}
	if !s.bare {
		files.addDigests()
	}
	return files
}

// applicationSet returns the ApplicationSet of a piece.
func (w argoPieces) applicationSet(s pieceState, repository, piece, dir string, leaving bool, crds []string) string {
	name, automated, sources, paths := s.environment+"--"+piece, "{prune: true, selfHeal: true}", "", []string{}
	if leaving {
		name, automated = name+"--leaving", "{prune: true, selfHeal: true, allowEmpty: true}"
	}
	for _, crd := range crds {
		paths = append(paths, "/rendered/"+crd)
		if strings.HasPrefix(crd, "crds") {
			sources += fmt.Sprintf("\n      - {repoURL: %q, targetRevision: main, path: rendered/%s, directory: {recurse: true}}", repository, crd)
		}
	}
	own := fmt.Sprintf("rendered/{{if .own}}clusters/{{.cluster}}/{{end}}%s", dir)
	sources += fmt.Sprintf("\n      - {repoURL: %q, targetRevision: main, path: %q}", repository, own)
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: %[1]s, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
  - git: {repoURL: %[2]q, revision: main, files: [{path: rendered/clusters.yaml}]}
  syncPolicy: {applicationsSync: sync, preserveResourcesOnDeletion: true}
  template:
    metadata:
      name: "%[3]s-{{.cluster}}--%[4]s"
      annotations: {argocd.argoproj.io/manifest-generate-paths: %[5]q}
    spec:
      project: default
      destination: {server: "{{.server}}"}
      sources:%[6]s
      syncPolicy:
        automated: %[7]s
        %[8]s
        syncOptions: [ApplyOutOfSyncOnly=true]
`, name, repository, s.environment, piece, strings.Join(append(paths, "/"+own), ";"), sources, automated, argoRetry)
}

func (w argoPieces) parents(s pieceState, repository string) string {
	return fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %s, namespace: argocd}
spec:
  project: default
  source: {repoURL: %q, targetRevision: main, path: rendered/argocd}
  destination: {server: "https://kubernetes.default.svc", namespace: argocd}
  syncPolicy:
    automated: {prune: true, selfHeal: true}
    %s
`, s.environment, repository, argoRetry)
}

func (w argoPieces) engineObjects(s pieceState) map[string]string {
	out := map[string]string{s.environment: ""}
	for _, c := range s.clusters {
		for _, piece := range engineNames(s) {
			out[fmt.Sprintf("%s-%s--%s", s.environment, c.name, piece)] = piece
		}
	}
	return out
}

// engineNames returns the names of all pieces.
func engineNames(s pieceState) []string {
	if s.whole {
		return []string{"all"}
	}
	names := slices.Concat(s.namespaces(), s.leaving)
	for _, p := range s.pieces() {
		names = append(names, p.name)
	}
	return names
}

// fluxPieces writes Kustomizations.
type fluxPieces struct{}

func (w fluxPieces) files(s pieceState, repository string) pieceFiles {
	files := baseTree(s)
	for _, c := range s.clusters {
		prefix := w.prefix(s, c)
		add := func(piece, dir, more string, requires ...string) {
			var names []string
			for _, r := range requires {
				names = append(names, fmt.Sprintf("{name: %s--%s}", prefix, r))
			}
			files[path.Join("rendered/flux", c.name, piece+".yaml")] = w.kustomization(s, c, piece, dir, more+fmt.Sprintf("  dependsOn: [%s]\n", strings.Join(names, ", ")))
		}
		crds := map[string][]string{} // by piece
		for _, p := range s.pieces() {
			for _, key := range p.packages() {
				add(key+"--crds", path.Join("crds", key), "  prune: false\n")
				crds[p.name] = append(crds[p.name], key+"--crds")
			}
		}
		if s.whole {
			var all []string
			for _, p := range s.pieces() {
				all = append(all, crds[p.name]...)
			}
			add("all", "all", "  prune: true\n", all...)
			continue
		}
		for _, namespace := range s.namespaces() {
			add(namespace, path.Join("namespaces", namespace), "  prune: true\n")
		}
		for _, p := range s.pieces() {
			requires := slices.Concat(crds[p.name], s.requires(p))
			for _, o := range p.operators {
				if !slices.Contains(requires, o.namespace) {
					requires = append(requires, o.namespace)
				}
			}
			add(p.name, path.Join("operators", p.name), "  prune: true\n", requires...)
		}
		for _, key := range s.leaving {
			add(key, path.Join("leaving", key), "  prune: true\n")
		}
	}
	if !s.bare {
		files.addDigests()
	}
	return files
}

// prefix returns the beginning of the names of a cluster's Kustomizations. It does
// not depend on the other clusters.
func (w fluxPieces) prefix(s pieceState, c pieceCluster) string {
	if c.kubeConfig != "" {
		return s.environment + "-" + c.name
	}
	return s.environment
}

// kustomization returns the Kustomization of a piece.
func (w fluxPieces) kustomization(s pieceState, c pieceCluster, piece, dir, more string) string {
	if c.kubeConfig != "" {
		more += fmt.Sprintf("  kubeConfig: {secretRef: {name: %s}}\n", c.kubeConfig)
	}
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s--%s, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 30s
  timeout: %s
  wait: true
  deletionPolicy: Orphan
  sourceRef: {kind: GitRepository, name: %s}
  path: ./rendered/%s
%s`, w.prefix(s, c), piece, fluxTimeout, fluxSource(s), dir, more)
}

// fluxTimeout is how long Flux waits until a piece is healthy. It is short, for
// a fix in Git waits as long.
const fluxTimeout = "20s"

// fluxSource returns the name of the environment's GitRepository, which outlives
// the environment's name.
func fluxSource(s pieceState) string {
	name, _, _ := strings.Cut(s.environment, "-")
	return name
}

// parents returns one for each cluster. That of another cluster takes its
// Kustomizations along when a person deletes it, and these leave their objects.
func (w fluxPieces) parents(s pieceState, _ string) string {
	out := ""
	for _, c := range s.clusters {
		policy := "Orphan"
		if c.kubeConfig != "" {
			policy = "MirrorPrune"
		}
		out += fmt.Sprintf(`
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 30s
  prune: true
  wait: false
  deletionPolicy: %s
  sourceRef: {kind: GitRepository, name: %s}
  path: ./rendered/flux/%s
`, w.prefix(s, c), policy, fluxSource(s), c.name)
	}
	return out
}

func (w fluxPieces) engineObjects(s pieceState) map[string]string {
	out := map[string]string{}
	for _, c := range s.clusters {
		prefix := w.prefix(s, c)
		out[prefix] = ""
		for _, piece := range engineNames(s) {
			out[prefix+"--"+piece] = piece
		}
		for _, p := range s.pieces() {
			for _, key := range p.packages() {
				out[prefix+"--"+key+"--crds"] = p.name
			}
		}
	}
	return out
}
