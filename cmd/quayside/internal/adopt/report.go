package adopt

import (
	"cmp"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// Inspection lists the operators that OLM installed and the operators that the lock pins, with their objects.
type Inspection struct {
	Operators []Operator         `json:"operators" doc:"By namespace and package."`
	Shared    []ClassifiedObject `json:"shared" doc:"Objects of several operators, and objects of the tree that belong to no operator."`
	Counts    Counts             `json:"counts" doc:"Of all objects."`
	Unread    []snapshot.Unread  `json:"unreadable" doc:"Kinds whose objects could not be read; their results are incomplete."`
}

// OperatorKey identifies an installed operator.
type OperatorKey struct {
	Namespace string `json:"namespace" doc:"Install namespace."`
	Package   string `json:"package" doc:"Name of the package."`
}

// Key returns "namespace/package".
func (k OperatorKey) Key() string { return k.Namespace + "/" + k.Package }

// Operator is the part of an Inspection about one operator.
type Operator struct {
	OperatorKey
	CSV       string             `json:"csv,omitempty" doc:"Name of the installed ClusterServiceVersion. Absent if there is none."`
	Pinned    string             `json:"pinned,omitempty" doc:"Name of the bundle in the lock. Absent where the lock does not have the operator."`
	Extension string             `json:"clusterExtension,omitempty" doc:"Name of the ClusterExtension of OLM v1 that installed it."`
	Release   *Release           `json:"release,omitempty" doc:"Release of Helm that installed it."`
	State     State              `json:"state" form:"enum=Adoptable|AdoptableWithRestart|CannotLeave|NeedsDecision|MustWait|NotSelected|AlreadyAdopted|NotOLM" doc:"State of the adoption."`
	Reasons   []Reason           `json:"reasons" doc:"Reasons why it stays with OLM or restarts."`
	Counts    Counts             `json:"counts" doc:"Of its objects."`
	Objects   []ClassifiedObject `json:"objects" doc:"Objects that belong only to this operator, by kind, group, namespace and name."`
}

// State is the adoption state of an operator.
type State string

// The states of an operator.
const (
	Adoptable      State = "Adoptable"            // can be adopted, and no pod restarts
	WithRestart    State = "AdoptableWithRestart" // can be adopted, and pods restart for the listed reasons
	CannotLeave    State = "CannotLeave"          // it works only with OLM
	NeedsDecision  State = "NeedsDecision"        // a user must resolve the reasons first
	MustWait       State = "MustWait"             // OLM must finish its work first
	NotSelected    State = "NotSelected"          // the tree does not install it in this cluster
	AlreadyAdopted State = "AlreadyAdopted"       // OLM no longer manages it
	NotOLM         State = "NotOLM"               // OLM did not install it
)

// StaysWithOLM reports whether operators in this state are managed by OLM and cannot be adopted by the plan.
func (s State) StaysWithOLM() bool {
	return s == CannotLeave || s == NeedsDecision || s == MustWait || s == NotSelected
}

// blockedState returns the state that the most severe reason causes.
func blockedState(reasons []Reason) State {
	states := map[string]State{
		"drives-olm": CannotLeave, "copy-as-parent": CannotLeave,
		"not-installed": MustWait, "csv-not-succeeded": MustWait, "replacing": MustWait, "plan-in-flight": MustWait,
		"not-in-tree": NotSelected,
	}
	for _, s := range []State{CannotLeave, NeedsDecision, MustWait} {
		if slices.ContainsFunc(reasons, func(r Reason) bool { return cmp.Or(states[r.Code], NeedsDecision) == s }) {
			return s
		}
	}
	return NotSelected
}

// Reason explains why an operator stays with OLM or restarts.
type Reason struct {
	Code    string  `json:"code" doc:"As in the documentation."`
	Message string  `json:"message" doc:"Problem and remedy."`
	Object  string  `json:"object,omitempty" doc:"The affected object."`
	Fields  []Field `json:"fields,omitempty" doc:"The affected fields of the object."`
}

// ClassifiedObject is an object that is in the cluster, in the tree, or in both.
type ClassifiedObject struct {
	k8s.Key
	Class     Class    `json:"class" form:"enum=equal|changed|added|olm|unknown" doc:"equal: same in the tree, except for ownership labels; changed: changed by the tree; added: only in the tree; olm: only for OLM; unknown: of unknown origin."`
	Fields    []Field  `json:"fields,omitempty" doc:"Differences between the tree and the cluster."`
	RemovedAt Stage    `json:"removedAt,omitempty" form:"enum=detach|clean-up|never" doc:"For objects of OLM: the step that deletes them."`
	Reason    string   `json:"reason,omitempty" doc:"For objects of OLM: the purpose, and the reason for deleting or keeping them."`
	Operators []string `json:"operators,omitempty" doc:"Owners of a shared object: namespace/package."`
}

// Class describes the effect of an adoption on an object. Each object has exactly one class.
type Class string

// The classes of objects.
const (
	Equal   Class = "equal"
	Changed Class = "changed"
	Added   Class = "added"
	OLMOnly Class = "olm"
	Unknown Class = "unknown"
)

// Stage is the stage of an adoption in which an OLM object is removed.
type Stage string

// The stages of an adoption.
const (
	AtDetach  Stage = "detach"   // when the operator is detached from OLM
	AtCleanUp Stage = "clean-up" // when leftover OLM objects are removed
	Never     Stage = "never"    // it is not removed
)

// Counts contains the number of objects of each class. Live is the sum of all classes except Added.
type Counts struct {
	Live    int `json:"live" doc:"Number of objects in the cluster."`
	Equal   int `json:"equal"`
	Changed int `json:"changed"`
	Added   int `json:"added"`
	OLM     int `json:"olm"`
	Unknown int `json:"unknown"`
}

func countObjects(objects []ClassifiedObject) Counts {
	var n Counts
	for _, o := range objects {
		switch o.Class {
		case Equal:
			n.Equal++
		case Changed:
			n.Changed++
		case Added:
			n.Added++
		case OLMOnly:
			n.OLM++
		case Unknown:
			n.Unknown++
		}
	}
	n.Live = len(objects) - n.Added
	return n
}

func (n Counts) plus(m Counts) Counts {
	return Counts{n.Live + m.Live, n.Equal + m.Equal, n.Changed + m.Changed, n.Added + m.Added, n.OLM + m.OLM, n.Unknown + m.Unknown}
}

// Changes returns the fields that differ between the tree and the cluster. It omits fields that only name the
// owner or the manager of the object.
func (o ClassifiedObject) Changes() []Field {
	return slices.DeleteFunc(slices.Clone(o.Fields), Field.isMark)
}
