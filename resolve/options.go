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

// Options controls upgrades and checks. The zero value keeps every pin that is still valid,
// ignores cluster versions, and allows neither shared dependencies nor overlap between
// namespaces.
type Options struct {
	Upgrade            bool           // upgrade every operator whose approval permits it
	Named              []Target       // operators to upgrade regardless of approval
	Hops               int            // upgrade edges per operator; 0 and 1: one, -1: until nothing changes
	AllowDowngrade     bool           // permit lower versions
	KeepGoing          bool           // with conflicts, still return a lock of the resolved part
	From               *lockfile.File // promote exactly the versions of this lock
	Unpin              []Target       // operators whose previous pins are ignored
	Prune              bool           // remove dependencies that nothing requires any more
	Held               []Hold         // in addition to declared holds
	Lenient            bool           // omit a declared operator without a pin if it cannot be installed, instead of a conflict
	KubernetesVersion  string         // "1.34"; empty: minKubeVersion is not checked
	Clusters           []Cluster      // clusters with versions of their own; empty: all have KubernetesVersion
	OpenShiftVersion   string         // "4.20"; empty: olm.maxOpenShiftVersion is not checked
	Requirements       string         // "enforce" (or empty): exclude candidates that cannot run; "warn": only warn
	AllowOverlap       bool           // report the same API from two overlapping installs as a warning, not an error
	SharedDependencies bool           // an operator in another namespace may meet a requirement if it watches the requester's namespace
	GlobalNamespaces   []string       // namespaces of globally visible catalogs; nil: all

	Uninstalls bool     // keep operators that are no longer pinned in the lock as uninstalling, until they are removed
	Removed    []string // "namespace/package" of uninstalling operators that were observed as removed; "*": all
	Settled    []string // "namespace/package" of successors that were observed running, so that the lock drops their predecessors; "*": all

	// Objection returns the reason why a bundle must not be newly installed in a namespace ("is not
	// pinned in dev"), or "". It is called for candidates that are not installed, before one is
	// chosen, so that another candidate can be chosen instead. Nil means that there are no objections.
	Objection func(namespace string, to *catalog.Bundle) string

	// Command is the command of the flags in suggestions: "quayside resolve". Empty: the user's
	// command, run again.
	Command string

	fresh bool // update the catalog fields of every pin from the current catalogs
}

// Cluster is a cluster that runs some of the operators.
type Cluster struct {
	Name              string
	KubernetesVersion string
	Gets              func(operator string) bool // operator is "namespace/package"
}

// Target names an operator to upgrade.
type Target struct {
	Namespace, Package string
	Version            string // target version; empty: the highest that is permitted
	Reinstall          bool   // install the head of its channel, with or without an upgrade edge

	// At is the position in errors about this target: {File: "--upgrade=my-etcd/etcd@1.2.3"}. If
	// zero, errors have the position of the operator's declaration.
	At diag.Pos
}

// faultf returns an error at the position of t.
func (t Target) faultf(format string, args ...any) error { return diag.Errorf(t.At, format, args...) }

// posOr returns the position of t, or declared if t has none.
func (t Target) posOr(declared diag.Pos) diag.Pos {
	if t.At.IsZero() {
		return declared
	}
	return t.At
}

// Hold is a reason not to upgrade an operator. An operator that is not pinned is not installed.
type Hold struct {
	Operator string            `json:"operator"`                                // namespace/package
	Code     string            `json:"code" doc:"code of the warning about it"` // empty: "held"
	Reason   string            `json:"reason"`                                  // "OperatorCondition Upgradeable=False: migration running"
	At       diag.Pos          `json:"-"`                                       // position of the observation; zero: none
	Storage  *lockfile.Storage `json:"-"`                                       // the migration step of its stored versions; nil: none
}

// IsHeld reports whether one of the holds is of an operator.
func IsHeld(holds []Hold, operator string) bool {
	return slices.ContainsFunc(holds, func(h Hold) bool { return h.Operator == operator })
}

// WithHolds returns opt with the holds of further operators, and without their targets. It returns an
// error if all operators are held already, because another operator requires the upgrade of one.
func (opt Options) WithHolds(holds []Hold) (Options, error) {
	further := slices.DeleteFunc(slices.Clone(holds), func(h Hold) bool { return IsHeld(opt.Held, h.Operator) })
	if len(further) == 0 {
		return opt, fmt.Errorf("%s cannot be held back, because another operator requires its upgrade: %s", holds[0].Operator, holds[0].Reason)
	}
	opt.Held = slices.Concat(opt.Held, further)
	opt.Named = slices.DeleteFunc(slices.Clone(opt.Named), func(t Target) bool { return IsHeld(further, t.key()) })
	return opt, nil
}

// withoutHeld returns the declarations without those of held operators that are not pinned. The
// installed ClusterServiceVersion of such an operator remains, so that no dependent installs another
// version in its place.
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

// PinChange is one changed pin.
type PinChange struct {
	Namespace, Package string
	From, To           string   // bundles; empty From: newly installed; empty To: removed
	Why                string   // "subscription my-etcd/etcd", "required by my-app/app: the API …"
	Along              string   // why it is upgraded along with others although its own upgrade was not requested; empty: it was
	Remaining          []string // bundles from To up to the head that upgrades can reach, nearest first
}

// Result is the outcome of Resolve.
type Result struct {
	Lock           *lockfile.File         // nil if Resolve returns an error
	Partial        *lockfile.File         // the part without conflicts; equal to Lock if there are none
	Warnings       []diag.Warning         // sorted
	Conflicts      []*explain.Conflict    // sorted by namespace, then subscription
	Held           []Hold                 // the holds of the options
	HeldPromotions map[string]HeldUpgrade // by operator: those not promoted to their versions in Options.From or, with Options.Lenient, not installed from it
	PinChanges     []PinChange            // sorted by namespace, then package
	Rounds         [][]PinChange          // the changes of each hop
}
