package diag

// Step is the part of a command that reports a warning.
type Step string

// The steps. Unused waivers can be detected only for warnings that belong to a step.
const (
	Resolving Step = "resolve" // declarations, catalogs and lock
	Rendering Step = "render"  // the tree of a lock
	OtherStep Step = ""        // anything else
)

// Code is a kind of warning.
type Code struct {
	ID      string // stable identifier, such as "no-operatorgroup"
	Step    Step
	Meaning string // explanation for the documentation
}

// Codes returns all kinds of warnings, sorted by step, then by ID.
func Codes() []Code {
	return []Code{
		{"ahead-of-upstream", Resolving, "An operator has a bundle that the environment which this one follows has never had: an error."},
		{"bad-skip-range", Resolving, "The skipRange of a bundle is invalid and ignored."},
		{"broken-catalog", Resolving, "A catalog cannot be used: its operators are held back at their versions."},
		{"bundle-default-channel", Resolving, "No bundle in a directory of bundles names an existing default channel, so another channel is used as default."},
		{"bundle-gap", Resolving, "The upgrade edges of bundles in a directory do not form one graph, so the bundles are linked in version order."},
		{"changed-later", Resolving, "An object of a GitOps tool, or another kustomization, changes operators of a declared path."},
		{"channel-hop", Resolving, "A subscription without a channel resolves to a bundle outside the default channel."},
		{"cycle", Resolving, "The upgrade edges of a channel form a cycle."},
		{"declaration-in-tree", Resolving, "A declaration is in a directory that the GitOps tool applies, so the tool creates it in the cluster."},
		{"declined", Resolving, "A person reverted the upgrade of an operator, or closed its pull request: 'quayside propose' does not propose it again."},
		{"deprecated", Resolving, "A package, channel or bundle that is pinned is deprecated."},
		{"downgrade", Resolving, "An operator is held back: its only candidates are older."},
		{"dropped", Resolving, "The catalog no longer has the bundle that an operator is pinned to."},
		{"fallback", Resolving, "A new operator gets an older version than the preferred one."},
		{"held", Resolving, "A requested upgrade is blocked."},
		{"helm-templates", Resolving, "Declarations in the templates of a Helm chart are not read."},
		{"leftovers", Resolving, "Leftover objects of a replaced operator are rendered until its successor is observed ready."},
		{"lifecycle", Resolving, "A catalog's support dates are invalid and ignored."},
		{"moved", Resolving, "An operator is upgraded along with a requested upgrade."},
		{"no-declarations", Resolving, "No operator is declared: the directory is missing or all declarations were removed."},
		{"no-operatorgroup", Resolving, "A namespace has a Subscription of OLM but no OperatorGroup."},
		{"no-solution", Resolving, "The upgrade of an operator has no solution: 'quayside propose' holds it back."},
		{"no-state", Resolving, "A ClusterServiceVersion in the declarations is a manifest of a bundle, not an object exported from a cluster."},
		{"no-target", Resolving, "A patch or another field of a kustomization selects no object, so kustomize ignores it."},
		{"not-built", Resolving, "A kustomization cannot be built, and is ignored because it clearly contains no declarations."},
		{"not-declared", Resolving, "A file is ignored, although it may contain declarations or refer to some."},
		{"not-fetched", Resolving, "A bundle cannot be fetched or verified: 'quayside propose' holds its operator back."},
		{"not-followed", Resolving, "An operator is not at the version of the upstream environment's lock."},
		{"not-listed", Resolving, "A declaration is next to a kustomization that does not list it."},
		{"not-read", Resolving, "A declaration cannot be read: its operator stays at its version, or is not locked."},
		{"not-rendered", Resolving, "An upgrade cannot be rendered: 'quayside propose' holds its operator back."},
		{"orphan", Resolving, "An operator that was pinned as a dependency is no longer required."},
		{"other-kinds", Resolving, "The declarations contain objects of kinds that are not used."},
		{"overlap", Resolving, "Two installs provide the same API to the same namespaces, which spec.allowOverlap allows."},
		{"plugin-skipped", Resolving, "A generator or transformer of a kustomization is a program or renders a Helm chart, so it is skipped."},
		{"policy-informs", Resolving, "An OperatorPolicy has remediationAction inform, but its operator is still treated as declared."},
		{"replaces-nothing", Resolving, "A declaration replaces an operator that is not in the lock."},
		{"requirement", Resolving, "A locked operator cannot run with the versions or namespaces of the settings and declarations: an error, unless spec.requirements is warn."},
		{"selector-ignored", Resolving, "An OperatorGroup has both a selector and target namespaces."},
		{"service-account", Resolving, "The ServiceAccount of an OperatorGroup is ignored."},
		{"state-differs", Resolving, "The status of a subscription and the lock have different versions."},
		{"stored-versions", Resolving, "The CRDs of two bundles cannot be compared: an upgrade that drops a stored version is not held back."},
		{"stranded", Resolving, "The channel has newer bundles, but no upgrade edge from the installed bundle."},
		{"unchecked", Resolving, "The clusters' version is not set, so a requirement of an operator is not checked."},
		{"uninstalling", Resolving, "An operator that is no longer required remains in the lock until its objects are deleted from the clusters."},
		{"unknown-api", Resolving, "An object's API group or version looks misspelled."},
		{"unusable-bundle", Resolving, "A candidate bundle cannot be used."},
		{"upgrade-waits", Resolving, "No branch was created for an upgrade: it conflicts with another upgrade that has a branch."},
		{"withdrawn", Resolving, "A catalog no longer has the package or channel of an operator, which is held back."},

		{"bundle-file-skipped", Rendering, "A file of a bundle is neither YAML nor JSON."},
		{"conversion-webhook-outside", Rendering, "The Service of a CRD's conversion webhook is not in the bundle."},
		{"crd-not-owned", Rendering, "A bundle contains a version of a CRD that its CSV does not own."},
		{"csv-name", Rendering, "The name of a CSV is not accepted by every version of OLM."},
		{"csv-version", Rendering, "A CSV has an unexpected apiVersion."},
		{"custom-resource-refused", Rendering, "A bundle contains a custom resource that its own CRD rejects."},
		{"deprecated-field", Rendering, "kustomize has deprecated a field of an overlay."},
		{"expected-from-outside", Rendering, "A bundle references an object that it does not contain."},
		{"install-mode", Rendering, "A CSV has a duplicate or unknown install mode."},
		{"manifest-converted", Rendering, "A manifest of a removed API was converted, possibly without some fields."},
		{"manifest-without-version", Rendering, "A manifest has no apiVersion."},
		{"min-kube-version", Rendering, "The minKubeVersion of a CSV is not a version."},
		{"namespace-expected", Rendering, "An operator watches a namespace that is not rendered."},
		{"namespace-monitoring", Rendering, "An operator asks for OpenShift's monitoring of its namespace, whose labels are yours."},
		{"namespace-reserved", Rendering, "A declared Namespace exists in every cluster."},
		{"namespace-template", Rendering, "A bundle's suggested namespace template is invalid, or conflicts with another's."},
		{"object-twice", Rendering, "A bundle contains the same object twice."},
		{"owned-version", Rendering, "A CSV lists a version of an owned CRD that the CRD does not have."},
		{"repeated-item", Rendering, "A list has several items with one key, of which only one is rendered."},
		{"tool-directive", Rendering, "A label or annotation that controls the GitOps tool was dropped."},
		{"unknown-field", Rendering, "A manifest has a field that its API does not have."},
		{"unknown-field-dropped", Rendering, "A CSV has an unknown field, which is dropped."},
		{"webhook-name", Rendering, "Two webhooks of a bundle have the same name."},

		{"abandoned-tree", OtherStep, "The workspace contains a rendered tree in a directory other than spec.output."},
		{"annotation-name", OtherStep, "An annotation of a CSV is misspelled."},
		{"bundle-unusable", OtherStep, "A bundle of a catalog can never be chosen."},
		{"catalog-left-out", OtherStep, "A catalog can be read neither from the vendored images nor from its registry."},
		{"examples", OtherStep, "The alm-examples of a CSV are invalid, or are of APIs that the CSV does not own."},
		{"field-unused", OtherStep, "A CSV has a field that neither OLM nor quayside uses."},
		{"gitops-name", OtherStep, "Another workspace has the same names of Applications or Kustomizations in the same cluster: an error."},
		{"gitops-path", OtherStep, "The GitOps tool would read a tree that this workspace does not write: an error."},
		{"gitops-remote", OtherStep, "No remote of the repository has the revision or the URL of spec.gitops."},
		{"image-gone", OtherStep, "A registry no longer serves an image. The warning names the image that replaces it, if there is one."},
		{"invalid-object", OtherStep, "A patch or an object in an overlay has an unknown field or an invalid value: an error."},
		{"missing-api", OtherStep, "Objects of an operator use an API that the cluster does not have: an error."},
		{"missing-config", OtherStep, "Pods of an operator refer to a Secret or ConfigMap that nothing in the tree creates."},
		{"missing-namespace", OtherStep, "Objects of an operator are in a namespace that nothing creates: an error."},
		{"missing-object", OtherStep, "Pods or claims of an operator refer to another object that the cluster does not have: an error."},
		{"missing-olm", OtherStep, "An operator cannot run without OLM: an error."},
		{"not-checked", OtherStep, "A check was skipped, because a catalog, the network or a commit is not available."},
		{"not-in-git", OtherStep, "Git ignores the lock, the tree or a file that they are made from: an error."},
		{"old-version", OtherStep, "Kubernetes of kubernetesVersion does not have the APIs of the rendered manifests."},
		{"olm-stopped", OtherStep, "A plan for leaving OLM stopped OLM and did not restart it."},
		{"outdated-recreate", OtherStep, "An entry in spec.recreate is for another version than the locked one."},
		{"pod-security", OtherStep, "A rendered Namespace rejects pods of an operator: an error."},
		{"properties", OtherStep, "A CSV has the annotation olm.properties, which should be in metadata/properties.yaml instead."},
		{"related-image", OtherStep, "An image of an operator is not a valid reference."},
		{"service-account-twice", OtherStep, "A bundle contains a ServiceAccount that is also generated from its CSV."},
		{"shallow-clone", OtherStep, "The commit to compare with is missing in the clone: another one is used."},
		{"stale-lock", OtherStep, "The lock is out of date with the declarations."},
		{"still-applied", OtherStep, "A GitOps tool applies the Subscription of an operator that quayside renders, or a cluster has it."},
		{"two-owners", OtherStep, "Two workspaces install an operator, or a CRD with different specs, in the same cluster: an error."},
		{"unknown-cluster", OtherStep, "An observation is of a cluster that the environment does not have."},
		{"unused-overlay", OtherStep, "No cluster uses a file in overlays/; an error if the name of its directory is almost right."},
		{"waiver-expired", OtherStep, "A waiver has expired. It cannot be waived itself."},
		{"waiver-expiring", OtherStep, "A waiver expires within 14 days. It cannot be waived itself."},
		{"waiver-unused", OtherStep, "A waiver matches no finding or warning. It cannot be waived itself."},
	}
}
