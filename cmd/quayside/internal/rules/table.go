package rules

// Part is the part of a state that a rule checks. A command evaluates rules only for parts that it loaded.
type Part string

// The parts of a state.
const (
	Settings     Part = "settings"     // settings
	Operators    Part = "operators"    // settings and lock
	Requests     Part = "requests"     // declarations and lock
	Declarations Part = "declarations" // declarations with their namespaces
	Waivers      Part = "waivers"      // settings for later steps: waivers and versions
	Locks        Part = "locks"        // lock, the locks of other workspaces
	Fresh        Part = "fresh"        // declarations and lock, without catalogs
	Addresses    Part = "addresses"    // settings, other workspaces, remotes
	Git          Part = "git"          // files of the workspace, ignored files, attributes
	Repo         Part = "repository"   // lock and repository
	Outputs      Part = "outputs"      // rendered trees in the repository
	Needs        Part = "needs"        // rendered objects, observations
	Patched      Part = "patched"      // overlays, objects of the clusters
	Selectors    Part = "selectors"    // rendered objects, overlays
	Clusters     Part = "clusters"     // objects of the clusters
	Policy       Part = "policy"       // objects of the clusters, rules of the policy
	Windows      Part = "windows"      // lock, the lock that it replaces in a merge, time
)

// Entry is a rule about a part of a state.
type Entry struct {
	ID       string
	Severity Severity // the highest of its findings
	Codes    []string // codes of its findings, for waivers; nil: no waiver can accept them
	Demands  string   // condition that the rule checks, as Markdown

	about Part
	check func(*State) (Findings, error)
}

// Table returns all rules.
func Table() []Entry {
	return []Entry{
		{"policy-expressions", Error, nil, "The expressions in `spec.policy.rules` are valid.", Settings, checkExpressions},
		{"cluster-names", Error, nil, "Each name and pattern in `spec.policy.clusters` matches a cluster.", Settings, checkClusterNames},
		{"followed-environment", Error, nil, "`spec.follows` names another workspace of the repository.", Settings, checkFollows},
		{"window-environments", Error, nil, "Each environment of `spec.windows` is a workspace of the repository.", Settings, checkWindowEnvironments},
		{"future-versions", Error, nil, "`kubernetesVersion` and `openshiftVersion` are versions that can exist.", Settings, checkFutureVersions},
		{"old-versions", Warning, []string{"old-version"}, "`kubernetesVersion` has the APIs of the rendered manifests.", Waivers, checkOldVersions},
		{"cluster-operators", Error, nil, "Each pattern in `operators` of a cluster matches a locked operator.", Operators, checkClusterOperators},
		{"window-operators", Error, nil, "The operators of `spec.windows` are not misspelled.", Operators, checkWindowOperators},
		{"waiver-operators", Error, nil, "The operator of a waiver is not misspelled.", Operators, checkWaiverOperators},
		{"unused-waivers", Warning, nil, "The operator of a waiver is in the lock.", Waivers, checkUnusedWaivers},
		{"expired-waivers", Warning, nil, "No waiver of a finding has expired.", Waivers, checkExpiredWaivers},
		{"deleted-lock", Error, nil, "The work tree has the lock that `HEAD` has.", Requests, checkDeletedLock},
		{"misspelled-apis", Error, nil, "The API of a locked operator's declaration is not misspelled.", Requests, checkMisspelled},
		{"dropped-paths", Error, nil, "`spec.declarations` includes the declaration of each locked operator that still has one.", Requests, checkDroppedPaths},
		{"only-environments", Error, nil, "`spec.only` of a declaration names workspaces of the repository that read it.", Requests, checkOnly},
		{"promotion", Error, []string{aheadCode}, "Each bundle of an environment with `spec.follows` is or was in the upstream environment; operators that the upstream environment does not declare are exempt.", Locks, checkPromotion},
		{"requirements", Error, []string{"requirement"}, "Every locked operator supports its install mode and the versions of Kubernetes and OpenShift; with `spec.requirements: warn`, a violation is a warning.", Locks, checkRequirements},
		{"declared-twice", Error, nil, "A package is declared once in a namespace.", Declarations, checkDuplicates},
		{"freshness", Error, []string{"stale-lock"}, "The lock agrees with the declarations; in commands that only read the lock, a difference is a warning.", Fresh, checkFreshness},
		{"address", Error, []string{"gitops-path"}, "`spec.gitops.path` names the tree of this workspace, if it is in this repository.", Addresses, checkAddress},
		{"engine-names", Error, []string{"gitops-name"}, "No two workspaces have Applications or Kustomizations with the same name in one cluster.", Addresses, checkEngineNames},
		{"one-owner", Error, []string{"two-owners"}, "No two workspaces install the same operator in the cluster with the same address.", Locks, checkOwners},
		{"one-crd", Error, []string{"two-owners"}, "No two workspaces have different specs of one CRD for the cluster with the same address.", Addresses, checkSharedCRDs},
		{"remotes", Warning, []string{"gitops-remote"}, "A remote has the branch or tag in `spec.gitops.revision`. If the repository has several remotes, `spec.gitops.repoURL` is one of them.", Addresses, checkRemotes},
		{"in-git", Error, []string{"not-in-git"}, "Git does not ignore the lock, the tree, and the files that they are made from.", Git, checkIgnored},
		{"git-attributes", Error, nil, "No Git attribute changes the content of the lock, the tree, the overlays or other manifests in a checkout.", Git, checkAttributes},
		{"still-applied", Error, []string{"still-applied"}, "No GitOps tool applies the declaration of an operator that quayside renders.", Repo, checkStillApplied},
		{"abandoned-trees", Error, []string{"abandoned-tree"}, "Each rendered tree is the `spec.output` of a workspace; it is an error only if `spec.gitops.path` names the tree.", Outputs, checkAbandonedTrees},
		{"ignored-observations", Warning, []string{"not-checked"}, "Each observation can be used for a cluster of the workspace.", Needs, checkObservations},
		{"unmet-needs", Error, []string{"missing-api", "missing-config", "missing-namespace", "missing-object", "missing-olm", "pod-security"}, "Each cluster has the APIs and objects that its operators need; a missing Secret or ConfigMap that an operator may create itself is a warning.", Needs, checkNeeds},
		{"schema", Error, []string{"contested-field", "invalid-object"}, "The objects of a cluster, after overlays, have only known fields, valid values and all required fields; a field that does not keep its value is a warning.", Patched, checkPatched},
		{"gone-images", Warning, []string{"image-gone"}, "No image that a cluster pulls is known to be missing from its registry.", Needs, checkGoneImages},
		{"recreate", Error, []string{"outdated-recreate"}, "Each entry in `spec.recreate` is for the locked version of an operator, and selects an object; an entry for another version is a warning.", Needs, checkRecreate},
		{"unused-overlays", Error, []string{"unused-overlay"}, "The build of a cluster uses each YAML file in `overlays/`; a finding is an error only if the name of a directory is almost that of a cluster.", Needs, checkUnusedOverlays},
		{"selectors", Error, nil, "Patches in overlays and settings of the GitOps tool select an object.", Selectors, checkSelectors},
		{"overlays", Error, nil, "Overlays build, and each custom resource of yours has its CRD in the cluster.", Clusters, checkOverlays},
		{"windows", Error, []string{OutsideWindow}, "A change is merged in a window of `spec.windows`, and after `spec.freeze`; a finding is an error only if `spec.policy.failOn` refuses the severity that `spec.policy.severity` sets.", Windows, checkWindows},
		{"policy-rules", Error, nil, "The rules in `spec.policy.rules` with `on: tree` accept all objects.", Policy, checkPolicy},
	}
}

// Evaluate returns the findings of the rules about a part. If a rule cannot be evaluated, Evaluate returns the
// error.
func Evaluate(s *State, about Part) (Findings, error) {
	var out Findings
	for _, r := range Table() {
		if r.about != about {
			continue
		}
		found, err := r.check(s)
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Rule = r.ID
		}
		out = append(out, found...)
	}
	return out, nil
}

// Check evaluates the rules about a part and returns their errors. about must be a part whose rules have no
// warnings.
func Check(s *State, about Part) error {
	found, err := Evaluate(s, about)
	if err != nil {
		return err
	}
	return found.Err()
}
