package resolve

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// Options controls upgrades and checks. The zero value means:
//   - Every valid pin is kept.
//   - The versions of clusters are not checked.
//   - Dependencies must be in the same namespace.
//   - Overlaps between namespaces are conflicts.
type Options struct {
	Upgrade            bool           // upgrade every operator whose approval permits it
	Named              []Target       // operators to upgrade, whatever their approval
	Requested          []Target       // upgrades that declarations request, over any number of edges; ignored with Upgrade, Named or From
	Hops               int            // number of upgrade edges to follow for each operator; 0 means 1, and -1 means until nothing changes
	AllowDowngrade     bool           // allow lower versions
	KeepGoing          bool           // return a lock of the operators without conflicts instead of an error
	From               *lockfile.File // upstream lock: promote exactly its versions
	Unpin              []Target       // operators to resolve as if they were not pinned
	Prune              bool           // remove dependencies that are no longer required
	Held               []Hold         // further reasons not to upgrade operators, in addition to declared holds
	Lenient            bool           // if a new operator cannot be installed, omit it instead of reporting a conflict
	KubernetesVersion  string         // "1.34"; empty: minKubeVersion is not checked
	Clusters           []Cluster      // clusters with their versions; empty: all have KubernetesVersion
	OpenShiftVersion   string         // "4.20"; empty: olm.maxOpenShiftVersion is not checked
	Requirements       string         // "enforce" (default): exclude candidates that cannot run in the cluster or namespace; "warn": only warn
	AllowOverlap       bool           // if two installs provide the same API to a namespace, warn instead of reporting a conflict
	SharedDependencies bool           // operators in other namespaces can meet a requirement if they watch its namespace
	GlobalNamespaces   []string       // namespaces whose catalogs are visible in all namespaces; nil: all

	Uninstalls bool     // record operators that are no longer required as leaving, until their removal is observed
	Removed    []string // leaving operators ("namespace/package") whose removal was observed; "*": all
	Settled    []string // successors ("namespace/package") that were observed running, so that their predecessors are dropped; "*": all

	// Objection returns the reason why a bundle must not be installed in a namespace, such as "is not pinned
	// in dev", or "". It is called for each candidate that is not installed, before the choice, so that the
	// resolver can choose another candidate. If Objection is nil, there are no objections.
	Objection func(namespace string, to *catalog.Bundle) string

	// Command is the command to suggest flags for, such as "quayside resolve". If Command is empty, suggestions
	// refer to the command that the user runs.
	Command string

	fresh bool // update the fields of every pin that come from its catalog
}

// Cluster is a cluster with its version and operators.
type Cluster struct {
	Name              string
	KubernetesVersion string
	Gets              func(operator string) bool // reports whether the cluster gets an operator, "namespace/package"
}

// Target is an operator that the user names in an option, such as an operator to upgrade.
type Target struct {
	Namespace, Package string
	Version            string // version to upgrade to; empty: the highest allowed
	Reinstall          bool   // install the channel head, even without an upgrade edge

	// At is the position for errors about this target, such as {File:
	// "--upgrade=my-etcd/etcd@1.2.3"}. If it is zero, errors have the position of the declaration.
	At diag.Pos
}

// faultf returns an error with the position of t.
func (t Target) faultf(format string, args ...any) error { return diag.Errorf(t.At, format, args...) }

// posOr returns the position of t. If t has no position, it returns declared.
func (t Target) posOr(declared diag.Pos) diag.Pos {
	if t.At.IsZero() {
		return declared
	}
	return t.At
}

// Hold is a reason not to upgrade a pinned operator, or not to install an operator that is not pinned.
type Hold struct {
	Operator string            `json:"operator"`                                // namespace/package
	Code     string            `json:"code" doc:"code of the warning about it"` // empty means "held"
	Reason   string            `json:"reason"`                                  // "OperatorCondition Upgradeable=False: migration running"
	At       diag.Pos          `json:"-"`                                       // position of the observation in a file, or zero
	Storage  *lockfile.Storage `json:"-"`                                       // storage migration that the upgrade waits for, or nil
}

// IsHeld reports whether holds contains a hold of the operator.
func IsHeld(holds []Hold, operator string) bool {
	return slices.ContainsFunc(holds, func(h Hold) bool { return h.Operator == operator })
}

// WithHolds returns opt with further holds, and without upgrade targets for their operators. If opt already has all
// of these holds, another operator requires the upgrade of a held operator. In this case, it returns an error.
func (opt Options) WithHolds(holds []Hold) (Options, error) {
	further := slices.DeleteFunc(slices.Clone(holds), func(h Hold) bool { return IsHeld(opt.Held, h.Operator) })
	if len(further) == 0 {
		return opt, fmt.Errorf("%s cannot be held back, because another operator requires its upgrade: %s", holds[0].Operator, holds[0].Reason)
	}
	opt.Held = slices.Concat(opt.Held, further)
	isHeld := func(t Target) bool { return IsHeld(further, t.key()) }
	opt.Named = slices.DeleteFunc(slices.Clone(opt.Named), isHeld)
	opt.Requested = slices.DeleteFunc(slices.Clone(opt.Requested), isHeld)
	return opt, nil
}

// withRequested returns opt with Named set to the targets in Requested whose operators are not held. If
// Upgrade, Named or From is set, it returns opt unchanged.
func (opt Options) withRequested() Options {
	requested := slices.DeleteFunc(slices.Clone(opt.Requested), func(t Target) bool { return IsHeld(opt.Held, t.key()) })
	if len(requested) > 0 && !opt.Upgrade && len(opt.Named) == 0 && opt.From == nil {
		opt.Named, opt.Hops = requested, -1
	}
	return opt
}

// withoutHeld returns decl without the declarations of held operators that have no pin. If OLM has installed
// such an operator, its ClusterServiceVersion remains in the result, so that the operators that require it do
// not install another version.
func withoutHeld(decl *declare.Set, prev *lockfile.File, held []Hold) *declare.Set {
	if len(held) == 0 {
		return decl
	}
	out := *decl
	out.Subscriptions = slices.DeleteFunc(slices.Clone(out.Subscriptions), func(s declare.Subscription) bool {
		pinned := false
		if prev != nil {
			_, pinned = prev.Pin(s.Namespace, s.Package)
		}
		return !pinned && IsHeld(held, s.Namespace+"/"+s.Package)
	})
	return &out
}

// PinChange is a pin that resolution changes.
type PinChange struct {
	Namespace, Package string
	From, To           string   // names of the bundles; From is empty for a new operator, To for a removed one
	Why                string   // reason: "subscription my-etcd/etcd" or "required by my-app/app: the API …"
	Along              string   // reason why it is upgraded although its upgrade was not requested; empty if it was
	Remaining          []string // bundles that later upgrades can reach from To, up to the channel head, nearest first
}

// Result is the outcome of Resolve.
type Result struct {
	Lock           *lockfile.File         // nil if Resolve returns an error
	Partial        *lockfile.File         // lock of the operators without conflicts; the same as Lock if there are no conflicts
	Warnings       []diag.Warning         // sorted
	Conflicts      []*explain.Conflict    // sorted by namespace, then subscription
	Held           []Hold                 // the holds of the options
	HeldPromotions map[string]HeldUpgrade // operator → reason why its version in Options.From is not promoted or installed
	PinChanges     []PinChange            // sorted by namespace, then package
	Rounds         [][]PinChange          // changes by round; a round follows one upgrade edge per operator
}
