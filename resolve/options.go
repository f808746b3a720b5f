package resolve

import (
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// Options says what may move and what is checked. The zero value keeps every
// pin that is still valid, enforces no cluster version, and lets no two
// namespaces share or overlap.
type Options struct {
	Upgrade            bool           // everything that may move moves
	Named              []Target       // these move, whatever their approval
	Hops               int            // edges to take; 0 and 1: one, -1: until nothing changes
	AllowDowngrade     bool           // versions may go down
	KeepGoing          bool           // with conflicts, still return a lock of what could be resolved
	From               *lockfile.File // take exactly the versions of this lock
	Unpin              []Target       // the previous lock's pins of these do not count
	Prune              bool           // what nothing requires any more goes
	Held               []Hold         // operators that must not move, beside those that the declarations hold
	KubernetesVersion  string         // "1.34"; empty: minKubeVersion is not checked
	OpenShiftVersion   string         // "4.20"; empty: olm.maxOpenShiftVersion is not checked
	Requirements       string         // "enforce" (or empty): what cannot run there is no candidate; "warn": said only
	AllowOverlap       bool           // the same API from two overlapping installs is a warning, not an error
	SharedDependencies bool           // a dependency may be met from another namespace that watches this one
	GlobalNamespaces   []string       // catalogs there are visible everywhere; nil: every namespace that holds a catalog

	Uninstalls bool     // whether what is no longer pinned stays in the lock, as being uninstalled, until it is gone
	Gone       []string // "namespace/package" of such operators that were seen to be gone; "*": all
	Settled    []string // "namespace/package" of followers that were seen to run: nothing of what they follow is left; "*": of any

	fresh bool // every catalog is to be written down as it is now
}

// Target names an operator that is to move.
type Target struct {
	Namespace, Package string
	Version            string // where to; empty: as far as it may
	Anew               bool   // to the head of its channel, whether or not an edge leads there

	// At is where its faults point: {File: "--upgrade=my-etcd/etcd@1.2.3"}. Zero: at the
	// declaration that asks for the operator.
	At diag.Pos
}

// faultf returns a fault of what t asks for.
func (t Target) faultf(format string, args ...any) error { return diag.Errorf(t.At, format, args...) }

// or returns where a fault of what t asks for points: declared is where the declaration
// asks for the operator.
func (t Target) or(declared diag.Pos) diag.Pos {
	if t.At.IsZero() {
		return declared
	}
	return t.At
}

// Hold is a reason why an operator must not move.
type Hold struct {
	Namespace, Package string
	Reason             string // "OperatorCondition Upgradeable=False: migration running"
}

// Move is one pin that changed.
type Move struct {
	Namespace string `json:"namespace"`
	Package   string `json:"package"`
	From      string `json:"from,omitempty"` // bundle; empty: newly installed
	To        string `json:"to,omitempty"`   // bundle; empty: no longer pinned
	Why       string `json:"why"`            // "subscription my-etcd/etcd", "required by my-app/app: the API …"

	Remaining []string `json:"remaining,omitempty"` // bundles from To up to the head that upgrades can reach, nearest first
}

// Stay is an operator that does not follow Options.From.
type Stay struct {
	Namespace, Package string
	By                 HeldBack
	Text               string // what is followed, and why not: "kafka.v1.0.0, which is older"
}

// Result is what Resolve found.
type Result struct {
	Lock      *lockfile.File // nil where there are conflicts and Options.KeepGoing is not set
	Partial   *lockfile.File // what could be resolved beside the conflicts; equal to Lock where there are none
	Warnings  []diag.Warning // sorted
	Conflicts []*Conflict    // sorted by namespace, then subscription
	Stays     []Stay         // in the order of the declarations
	Moves     []Move         // sorted by namespace, then package
	Rounds    [][]Move       // by hop: what each changed
}
