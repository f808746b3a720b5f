package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// Evidence is the part of the state of one namespace's operators that must not change. Two captures of
// an unchanged cluster are equal.
type Evidence struct {
	Schema    int       `json:"schema"`
	Namespace string    `json:"namespace"`
	Objects   []Object  `json:"objects"`            // by reference
	Targets   []string  `json:"targets"`            // namespaces that the operators watch, sorted; "" is all
	Accounts  []Account `json:"accounts,omitempty"` // by name
	Answers   []Answer  `json:"answers,omitempty"`  // in order
	Unread    []string  `json:"unread,omitempty"`   // resources that could not be read and are not compared
}

// Object is the state of one object. Fields that its kind does not have are empty.
type Object struct {
	Ref        k8s.Ref          `json:"object"`
	UID        string           `json:"uid"`
	Generation int64            `json:"generation,omitempty"`
	Deleting   bool             `json:"deleting,omitempty"`
	Owners     []snapshot.Owner `json:"owners,omitempty"`
	Pods       *Pods            `json:"pods,omitempty"`       // of a Deployment
	Conversion *Conversion      `json:"conversion,omitempty"` // of a CRD
	Available  *bool            `json:"available,omitempty"`  // of an APIService
}

// Pods shows whether the pods of a Deployment were replaced.
type Pods struct {
	Template    string           `json:"template"`           // digest of spec.template
	ReplicaSets []string         `json:"replicaSets"`        // UIDs, sorted
	Restarts    map[string]int64 `json:"restarts,omitempty"` // restarts of each pod's containers, by the pod's UID
}

// Conversion is the conversion of custom resources between versions.
type Conversion struct {
	Strategy     string   `json:"strategy"`
	Target       string   `json:"target,omitempty"`       // the converter: a Service with its port and path, or a URL
	Certificates []string `json:"certificates,omitempty"` // digests of the trusted certificates, sorted
}

// isPossible reports whether conversion is possible: the API server cannot call a Service without a
// CA. Bundles may contain such a conversion, which OLM does not correct.
func (c Conversion) isPossible() bool {
	return c.Strategy == "None" || !strings.HasPrefix(c.Target, "Service ") || len(c.Certificates) > 0
}

// Account is a ServiceAccount with all permissions from the RBAC objects of the cluster.
type Account struct {
	Namespace   string      `json:"namespace"`
	Name        string      `json:"name"`
	Permissions []k8s.Grant `json:"permissions"`       // reduced and sorted
	Planned     []k8s.Grant `json:"planned,omitempty"` // permissions from objects that the plan applies
}

// Answer is a review with its result in the cluster.
type Answer struct {
	Review
	Allowed bool `json:"allowed"`
}

// maxEvidence is the maximum size of one namespace's encoded evidence, in bytes.
const maxEvidence = 256 << 20

// schema is the only supported schema version of saved evidence.
const schema = 1

// Format returns the evidence as JSON.
func (e *Evidence) Format() ([]byte, error) {
	now := *e
	now.Schema = schema
	text, err := json.MarshalIndent(now, "", " ")
	return append(text, '\n'), err
}

// Parse parses the output of Format. file is the file name for errors.
func Parse(file string, text []byte) (*Evidence, error) {
	if len(text) > maxEvidence {
		return nil, fmt.Errorf("%s: exceeds the limit of %d bytes", file, maxEvidence)
	}
	var e Evidence
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("%s: invalid evidence: %w", file, err)
	}
	if e.Schema != schema {
		return nil, fmt.Errorf("%s has schema %d; this version supports %d: capture it again", file, e.Schema, schema)
	}
	return &e, nil
}

// PlannedEvidence returns the evidence in the plan itself: the UIDs of the namespace's objects when
// the plan was made.
func PlannedEvidence(p *plan.Plan, namespace string) *Evidence {
	e := &Evidence{Namespace: namespace}
	for _, h := range trackedObjects(p, namespace) {
		if h.uid != "" {
			e.Objects = append(e.Objects, Object{Ref: h.ref, UID: h.uid})
		}
	}
	return e
}

func (a Account) subject() k8s.Subject {
	return k8s.Subject{Kind: "ServiceAccount", Namespace: a.Namespace, Name: a.Name}
}

// object returns the captured state of an object, or nil if it was not captured.
func (e *Evidence) object(ref k8s.Ref) *Object {
	for i := range e.Objects {
		if e.Objects[i].Ref.Key() == ref.Key() {
			return &e.Objects[i]
		}
	}
	return nil
}

// subjects returns the accounts as subjects, in order.
func (e *Evidence) subjects() []k8s.Subject {
	var out []k8s.Subject
	for _, a := range e.Accounts {
		out = append(out, a.subject())
	}
	return out
}
