package diag

// Step is what has to be done for all warnings of a kind to be known.
type Step string

// The steps at which it can be told that a warning is not given any more.
const (
	Resolving Step = "resolve" // declarations, catalogs and lock
	Rendering Step = "render"  // the tree of a lock
	Otherwise Step = ""        // whatever else commands do: it is never told
)

// Code is a kind of warning.
type Code struct {
	ID   string // "no-operatorgroup"; it stays what it is
	Step Step
	What string // what it says, as part of a table
}

// Codes returns every kind of warning that there is, by step, then by ID.
func Codes() []Code {
	return []Code{
		{"bad-skip-range", Resolving, "A bundle's skipRange cannot be read: it skips nothing."},
		{"broken-catalog", Resolving, "A catalog cannot be used, and nothing needs it."},
		{"bundle-default-channel", Resolving, "Bundles in a directory name no default channel, or one that is not there: one was chosen."},
		{"bundle-gap", Resolving, "A channel of bundles in a directory has no edges: they are put in the order of their versions."},
		{"channel-hop", Resolving, "A subscription without a channel gets a bundle that is not in the default channel."},
		{"cycle", Resolving, "The edges of upgrades lead in a circle."},
		{"declaration-in-tree", Resolving, "A declaration lies where the GitOps tool applies it, so that it reaches the cluster."},
		{"deprecated", Resolving, "A package, channel or bundle that is pinned is deprecated."},
		{"downgrade", Resolving, "An operator stays, for what it could move to is older."},
		{"dropped", Resolving, "An operator stays at a bundle that its catalog no longer has."},
		{"fallback", Resolving, "A new operator gets an older version than the one that is preferred."},
		{"held", Resolving, "An operator that was to move stays."},
		{"helm-templates", Resolving, "Templates of a Helm chart hold declarations that are not read."},
		{"leftovers", Resolving, "What is left of an operator that another one follows is rendered until that was seen to run."},
		{"lifecycle", Resolving, "What a catalog says of how long versions are supported is wrong, and is not used."},
		{"moved", Resolving, "An operator moves that was not asked to."},
		{"no-declarations", Resolving, "A directory of declarations is not there, while nothing is pinned."},
		{"no-operatorgroup", Resolving, "A namespace has OLM's Subscription, and no OperatorGroup."},
		{"no-state", Resolving, "A ClusterServiceVersion is a bundle's manifest, and no state of a cluster."},
		{"not-declared", Resolving, "Something looks like a declaration, or leads to some, and is not read."},
		{"not-followed", Resolving, "An operator is not at the version of the lock that is followed."},
		{"not-listed", Resolving, "A declaration lies beside a kustomization that does not list it."},
		{"orphan", Resolving, "Nothing requires an operator any more that was pinned as a dependency."},
		{"other-kinds", Resolving, "Objects of other kinds lie among the declarations."},
		{"overlap", Resolving, "Two installs provide one API to the same namespaces, which is allowed."},
		{"policy-informs", Resolving, "An OperatorPolicy only informs, and its operator is declared all the same."},
		{"replaces-nothing", Resolving, "A declaration follows an operator of which the lock has nothing."},
		{"requirement", Resolving, "An operator does not fit the cluster, and requirements are only reported."},
		{"selector-ignored", Resolving, "An OperatorGroup has a selector beside target namespaces."},
		{"service-account", Resolving, "An OperatorGroup names a ServiceAccount, which is not honoured."},
		{"state-differs", Resolving, "The status of a subscription and the lock disagree on what is installed."},
		{"stored-versions", Resolving, "The definitions of two bundles cannot be compared, so that nothing keeps an upgrade back that drops a version in which objects are stored."},
		{"stranded", Resolving, "No upgrade leads on from what is installed, and the channel has newer."},
		{"unchecked", Resolving, "A version of the clusters is not given, so that a limit of an operator is not checked."},
		{"uninstalling", Resolving, "An operator that nothing asks for any more stays in the lock until nothing of it is left in a cluster."},
		{"unknown-api", Resolving, "An object is of an API group or version that looks misspelt."},
		{"unusable-bundle", Resolving, "A bundle that could have been chosen cannot be used."},
		{"upgrade-waits", Resolving, "An upgrade gets no branch yet: together with another one that has, it has no solution."},

		{"bundle-file-skipped", Rendering, "A file of a bundle is neither YAML nor JSON."},
		{"conversion-webhook-outside", Rendering, "A CRD is converted by a Service that the bundle does not bring."},
		{"crd-not-owned", Rendering, "A bundle brings a version of a CRD that its CSV does not own."},
		{"csv-name", Rendering, "The name of a CSV is none that every OLM takes."},
		{"csv-version", Rendering, "A CSV has another apiVersion than it should."},
		{"custom-resource-refused", Rendering, "A bundle brings a custom resource that its own CRD refuses."},
		{"expected-from-outside", Rendering, "A bundle refers to an object that it does not bring."},
		{"install-mode", Rendering, "A CSV has an install mode twice, or one that there is not."},
		{"manifest-converted", Rendering, "A manifest of an API that is gone was converted, or a part of one left out."},
		{"manifest-without-version", Rendering, "A manifest has no apiVersion."},
		{"min-kube-version", Rendering, "The minKubeVersion of a CSV is no version."},
		{"namespace-expected", Rendering, "An operator watches a namespace that nothing here makes."},
		{"namespace-reserved", Rendering, "A Namespace is declared that every cluster makes itself."},
		{"namespace-template", Rendering, "What a bundle suggests for its namespace cannot be read, or does not agree with another's."},
		{"object-twice", Rendering, "A bundle has an object twice."},
		{"owned-version", Rendering, "A CSV owns a version of a CRD that this does not have."},
		{"tool-directive", Rendering, "A label or an annotation that steers the tool which applies the tree was dropped."},
		{"unknown-field", Rendering, "A manifest has a field that its API does not."},
		{"unknown-field-dropped", Rendering, "A CSV has a field that there is not; it is dropped."},
		{"webhook-name", Rendering, "Two webhooks of a bundle have one name."},

		{"annotation-name", Otherwise, "An annotation of a CSV is misspelt."},
		{"bundle-unusable", Otherwise, "A bundle of a catalog can never be chosen."},
		{"catalog-left-out", Otherwise, "A catalog cannot be fetched, and is not vendored."},
		{"examples", Otherwise, "The examples in a CSV cannot be read, or are not of its own APIs."},
		{"not-checked", Otherwise, "Something could not be compared: a catalog, the network or a commit is missing."},
		{"olm-stopped", Otherwise, "A plan to leave OLM has stopped it, and did not start it again."},
		{"properties", Otherwise, "A CSV has an annotation that belongs into metadata/properties.yaml."},
		{"related-image", Otherwise, "A related image is no reference."},
		{"service-account-twice", Otherwise, "A bundle brings a ServiceAccount that its CSV makes too."},
		{"shallow-clone", Otherwise, "A clone does not hold the commit to compare with: another one is taken."},
		{"unknown-cluster", Otherwise, "A cluster was observed that the environment does not have."},
		{"waiver-expired", Otherwise, "A waiver has expired. It cannot be waived itself."},
		{"waiver-expiring", Otherwise, "A waiver expires within 14 days. It cannot be waived itself."},
		{"waiver-unused", Otherwise, "A waiver matches nothing. It cannot be waived itself."},
	}
}
