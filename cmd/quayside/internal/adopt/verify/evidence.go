package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// Evidence is the part of the state of a namespace's operators that an adoption must not change. While the
// cluster is unchanged, capturing the evidence again gives the same result.
type Evidence struct {
	Schema    int           `json:"schema"`
	Namespace string        `json:"namespace"`
	Objects   []ObjectState `json:"objects"`            // sorted by reference
	Targets   []string      `json:"targets"`            // watched namespaces, sorted; only "": all
	Accounts  []Account     `json:"accounts,omitempty"` // sorted by name
	Answers   []Answer      `json:"answers,omitempty"`  // in the order of the reviews
	Unread    []string      `json:"unread,omitempty"`   // resources that could not be read; they are not compared
}

// ObjectState is the state of one object. Fields that do not apply to the kind are empty.
type ObjectState struct {
	Ref        k8s.Ref          `json:"object"`
	UID        string           `json:"uid"`
	Generation int64            `json:"generation,omitempty"`
	Deleting   bool             `json:"deleting,omitempty"`
	Owners     []snapshot.Owner `json:"owners,omitempty"`
	Pods       *Pods            `json:"pods,omitempty"`       // only for a Deployment
	Conversion *Conversion      `json:"conversion,omitempty"` // only for a CRD
	Available  *bool            `json:"available,omitempty"`  // only for an APIService
}

// Pods identifies the pods of a Deployment, so that replaced pods are detected.
type Pods struct {
	Template    string           `json:"template"`           // digest of spec.template
	ReplicaSets []string         `json:"replicaSets"`        // UIDs of the ReplicaSets, sorted
	Restarts    map[string]int64 `json:"restarts,omitempty"` // number of container restarts of each pod, by pod UID
}

// Conversion describes how a CRD converts custom resources between versions.
type Conversion struct {
	Strategy     string   `json:"strategy"`
	Target       string   `json:"target,omitempty"`       // webhook: a Service with port and path, or a URL
	Certificates []string `json:"certificates,omitempty"` // digests of the trusted certificates, sorted
}

// isPossible reports whether the API server can convert resources. Without a CA, it cannot call a webhook's
// Service. Some bundles lack this CA, and OLM does not add it.
func (c Conversion) isPossible() bool {
	return c.Strategy == "None" || !strings.HasPrefix(c.Target, "Service ") || len(c.Certificates) > 0
}

// Account is a ServiceAccount with its permissions according to the RBAC objects of the cluster.
type Account struct {
	Namespace   string      `json:"namespace"`
	Name        string      `json:"name"`
	Permissions []k8s.Grant `json:"permissions"`       // sorted, without redundant ones
	Planned     []k8s.Grant `json:"planned,omitempty"` // permissions from objects that the plan applies
}

// Answer is an access review, together with its result.
type Answer struct {
	Review
	Allowed bool `json:"allowed"`
}

// maxEvidence is the maximum size of a namespace's evidence as JSON, in bytes.
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

// PlannedEvidence returns the evidence that is in the plan. It contains the UIDs that the namespace's objects
// had when the plan was made.
func PlannedEvidence(p *plan.Plan, namespace string) *Evidence {
	e := &Evidence{Namespace: namespace}
	for _, h := range trackedObjects(p, namespace) {
		if h.uid != "" {
			e.Objects = append(e.Objects, ObjectState{Ref: h.ref, UID: h.uid})
		}
	}
	return e
}

func (a Account) subject() k8s.Subject {
	return k8s.Subject{Kind: "ServiceAccount", Namespace: a.Namespace, Name: a.Name}
}

// object returns the state of an object, or nil if it was not captured.
func (e *Evidence) object(ref k8s.Ref) *ObjectState {
	for i := range e.Objects {
		if e.Objects[i].Ref.Key() == ref.Key() {
			return &e.Objects[i]
		}
	}
	return nil
}

// subjects returns the accounts as RBAC subjects, in order.
func (e *Evidence) subjects() []k8s.Subject {
	var out []k8s.Subject
	for _, a := range e.Accounts {
		out = append(out, a.subject())
	}
	return out
}
