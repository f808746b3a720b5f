package rules

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// readsRepository reports whether the GitOps tool reads the tree of the workspace from this repository. If this
// is unknown, it returns true.
func (s *State) readsRepository(remotes *gitrepo.Remotes) bool {
	g := s.Settings.GitOps
	if g == nil || strings.HasPrefix(g.RepoURL, "oci://") || g.SourceRef.Kind == "OCIRepository" || g.SourceRef.Kind == "Bucket" {
		return false
	}
	return g.RepoURL == "" || remotes == nil || len(remotes.URLs) == 0 || hasURL(remotes.URLs, g.RepoURL)
}

// hasURL reports whether url and one of urls are addresses of the same repository.
func hasURL(urls []string, url string) bool {
	return slices.ContainsFunc(urls, func(u string) bool { return normalURL(u) == normalURL(url) })
}

// normalURL returns the host and path of a URL as "host/owner/name", regardless of the protocol.
func normalURL(url string) string {
	url = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git"))
	if _, rest, is := strings.Cut(url, "://"); is {
		url = rest
	} else {
		url = strings.Replace(url, ":", "/", 1) // git@host:owner/name
	}
	if host, rest, _ := strings.Cut(url, "/"); strings.Contains(host, "@") {
		_, host, _ = strings.Cut(host, "@")
		url = host + "/" + rest
	}
	return url
}

// checkAddress returns an error if the GitOps tool would read the tree of another workspace, or a
// path of this repository that no workspace writes.
func checkAddress(s *State) (Findings, error) {
	w := s.Settings
	if w.Output.Repository != "" {
		return checkOtherRepository(s)
	}
	if _, isSet := w.Fields["spec.gitops.path"]; !isSet || w.GitOps == nil || s.Others == nil {
		return nil, nil
	}
	repo, err := s.Repository()
	if err != nil || repo == nil || repo.Remotes == nil || !s.readsRepository(repo.Remotes) {
		return nil, err
	}
	output, named := path.Join(s.Dir, w.OutputDir()), path.Clean(w.GitOps.Path)
	if filetree.Within(named, output) || slices.ContainsFunc(repo.Trees, func(dir string) bool { return dir == named && filetree.Within(dir, s.Dir) }) {
		return nil, nil // checkAbandonedTrees reports trees in this workspace
	}
	finding := Finding{
		Severity: Error, Code: "gitops-path", Pos: w.At("spec.gitops.path"), Hint: "set it to " + output,
		Msg: fmt.Sprintf("spec.gitops.path names %s, which no workspace writes: this workspace writes %s", named, output),
	}
	others, err := s.Others()
	for _, o := range others {
		other, err := o.Settings()
		if err == nil && filetree.Within(named, path.Join(o.Dir, other.OutputDir())) {
			finding.Msg = fmt.Sprintf("spec.gitops.path is the tree of workspace %s: the clusters of this workspace would get the operators of that workspace", o.Dir)
		}
	}
	return Findings{s.accept(finding)}, err
}

// checkOtherRepository is checkAddress for a tree in another repository. It returns an error if the GitOps tool
// reads another tree, or if another workspace of this repository writes to the same directory.
func checkOtherRepository(s *State) (Findings, error) {
	w := s.Settings
	var out Findings
	if g := w.GitOps; g != nil && g.RepoURL != "" && normalURL(g.RepoURL) != normalURL(w.Output.Repository) {
		out = append(out, s.accept(Finding{
			Severity: Error, Code: "gitops-path", Pos: w.At("spec.gitops.repoURL"), Hint: "delete it: the default is spec.output.repository",
			Msg: fmt.Sprintf("spec.gitops.repoURL names %s, but the tree is in %s", g.RepoURL, w.Output.Repository),
		}))
	}
	if g := w.GitOps; g != nil && path.Clean(g.Path) != w.Output.Path {
		out = append(out, s.accept(Finding{
			Severity: Error, Code: "gitops-path", Pos: w.At("spec.gitops.path"), Hint: "delete it: the default is spec.output.path",
			Msg: fmt.Sprintf("spec.gitops.path names %s, but the tree is in %s of %s", g.Path, w.Output.Path, w.Output.Repository),
		}))
	}
	if s.Others == nil {
		return out, nil
	}
	others, err := s.Others()
	for _, o := range others {
		other, err := o.Settings()
		if err != nil || normalURL(other.Output.Repository) != normalURL(w.Output.Repository) || other.Output.Branch != w.Output.Branch {
			continue
		}
		if filetree.Within(other.Output.Path, w.Output.Path) || filetree.Within(w.Output.Path, other.Output.Path) {
			out = append(out, s.accept(Finding{
				Severity: Error, Code: "gitops-path", Pos: w.At("spec.output.path"), Subject: o.Dir, Hint: "set spec.output.path of one of them to another directory",
				Msg: fmt.Sprintf("%s writes its tree to %s of the same repository: the trees would replace each other", o.Dir, other.Output.Path),
			}))
		}
	}
	return out, err
}

// checkEngineNames returns an error for each other workspace whose Applications or Kustomizations
// have the same names in the same cluster.
func checkEngineNames(s *State) (Findings, error) {
	w := s.Settings
	if w.GitOps == nil || s.Others == nil || !s.InGit() {
		return nil, nil
	}
	others, err := s.Others()
	var out Findings
	for _, o := range others {
		other, err := o.Settings()
		if err != nil || other.GitOps == nil || other.Profile != w.Profile || other.GitOps.Name != w.GitOps.Name || other.GitOps.Namespace != w.GitOps.Namespace {
			continue
		}
		if target := sharedTarget(w, other, true); target != "" {
			at := w.At("spec.gitops.name")
			if at == w.At("spec.gitops") && !w.At("metadata.name").IsZero() {
				at = w.At("metadata.name")
			}
			out = append(out, s.accept(Finding{
				Severity: Error, Code: "gitops-name", Pos: at, Subject: o.Dir, Hint: "set metadata.name or spec.gitops.name to another name",
				Msg: fmt.Sprintf("workspace %s uses the same name prefix %q in %s: both workspaces would write the same objects of the GitOps tool", o.Dir, w.GitOps.Name, target),
			}))
		}
	}
	return out, err
}

// sharedTarget returns a cluster that both workspaces have, or "". It compares the URLs of the API servers. If
// byDefault is true, it compares clusters without a URL by kubeconfig or name. Set byDefault only if both
// workspaces use the same instance of the GitOps tool.
func sharedTarget(a, b *settings.Workspace, byDefault bool) string {
	targets := func(w *settings.Workspace) map[string]bool {
		out := map[string]bool{}
		for _, c := range w.Clusters {
			address := c.Server
			if strings.HasPrefix(address, "https://kubernetes.default.svc") { // not unique: the cluster that Argo CD runs in
				address = ""
			}
			if address == "" && byDefault {
				address = "cluster " + cmp.Or(c.KubeConfig, map[bool]string{true: "in-cluster"}[w.Profile == profile.ArgoCD], c.Name)
			}
			out[address] = true
		}
		return out
	}
	of := targets(b)
	for _, address := range slices.Sorted(maps.Keys(targets(a))) {
		if address != "" && of[address] {
			return address
		}
	}
	return ""
}

// checkOwners returns an error for each operator that another workspace installs in the same cluster. If only
// the command itself requests the operator, the error also prevents writing. Otherwise, the user edited
// declarations by hand, for example to move the operator, and a later step may fix the conflict.
func checkOwners(s *State) (Findings, error) {
	if s.Lock == nil {
		return nil, nil
	}
	var out Findings
	err := s.eachInSharedCluster(func(o Other, other *settings.Workspace, lock *lockfile.File) {
		for _, pin := range s.Lock.Pins {
			theirs, both := lock.Pin(pin.Namespace, pin.Package)
			if !both {
				continue
			}
			if server := sharedTarget(withOperator(s.Settings, pin.Key()), withOperator(other, pin.Key()), false); server != "" {
				out = append(out, s.accept(Finding{
					Severity: Error, Later: !o.declares(theirs) || s.hasRequested(pin), Code: "two-owners", Pos: s.declarationPos(pin), Subject: pin.Key(), Hint: "remove the operator from one of the workspaces, or exclude it in spec.clusters[].operators of one of them; to move it here, first remove it from the other workspace",
					Msg: fmt.Sprintf("%s is also installed by %s in %s", pin.Key(), o.Dir, server),
				}))
			}
		}
	})
	return out, err
}

// eachInSharedCluster calls visit for each other workspace that shares a cluster with s. It skips workspaces
// whose settings or lock are unreadable, because their own commands report the error.
func (s *State) eachInSharedCluster(visit func(o Other, w *settings.Workspace, lock *lockfile.File)) error {
	if s.Others == nil {
		return nil
	}
	others, err := s.Others()
	for _, o := range others {
		w, err := o.Settings()
		if err != nil || sharedTarget(s.Settings, w, false) == "" {
			continue
		}
		if lock, err := o.Lock(); err == nil {
			visit(o, w, lock)
		}
	}
	return err
}

// hasRequested reports whether a declaration on disk requests the operator of a pin in this environment.
func (s *State) hasRequested(pin lockfile.Pin) bool {
	return s.Existing != nil && slices.ContainsFunc(s.Existing(), func(d declare.Subscription) bool {
		return slices.Contains(pin.RequestedBy, d.Key()) && (d.Only == nil || slices.Contains(d.Only, s.Settings.Title(s.Dir)))
	})
}

// declares reports whether the workspace still declares the operator of a pin, or the pin is a dependency.
func (o Other) declares(pin lockfile.Pin) bool {
	set, err := o.Declared()
	return err != nil || len(pin.RequestedBy) == 0 || slices.ContainsFunc(set.Subscriptions, func(d declare.Subscription) bool {
		return slices.Contains(pin.RequestedBy, d.Key())
	})
}

// withOperator returns a copy of settings that has only the clusters that get an operator.
func withOperator(w *settings.Workspace, operator string) *settings.Workspace {
	out := *w
	out.Clusters = slices.DeleteFunc(slices.Clone(w.Clusters), func(c profile.Cluster) bool {
		gets, err := c.Gets(operator)
		return err == nil && !gets
	})
	return &out
}

// checkRemotes returns a warning if no remote has spec.gitops.revision. It also returns a warning if the
// repository has several remotes and none of them is spec.gitops.repoURL.
func checkRemotes(s *State) (Findings, error) {
	repo, err := s.Repository()
	if err != nil || repo == nil || repo.Remotes == nil || s.Settings.GitOps == nil {
		return nil, err
	}
	g, remotes := s.Settings.GitOps, repo.Remotes
	var out []diag.Warning
	if g.RepoURL != "" && len(remotes.URLs) > 1 && !strings.HasPrefix(g.RepoURL, "oci://") && !hasURL(remotes.URLs, g.RepoURL) {
		out = append(out, diag.Warning{Pos: s.Settings.At("spec.gitops.repoURL"), Code: "gitops-remote", Msg: fmt.Sprintf("spec.gitops.repoURL differs from all remotes of this repository (%s)", diag.Some(remotes.URLs, 3))})
	}
	isCommit := len(g.Revision) == 40 || g.Revision == "HEAD" || strings.ContainsAny(g.Revision, "*^~<>=")
	if g.RepoURL != "" && !isCommit && remotes.Names != nil && !remotes.Names[strings.TrimPrefix(strings.TrimPrefix(g.Revision, "refs/heads/"), "refs/tags/")] && (len(remotes.URLs) == 1 || hasURL(remotes.URLs, g.RepoURL)) {
		out = append(out, diag.Warning{
			Pos: s.Settings.At("spec.gitops.revision"), Code: "gitops-remote",
			Msg: fmt.Sprintf("spec.gitops.revision: no remote of this repository has a branch or tag %q (available: %s)", g.Revision, diag.Some(slices.Sorted(maps.Keys(remotes.Names)), 5)),
		})
	}
	return warningsOf(s.waive(out)), nil
}
