package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/rbac"
)

// Evidence is what a cluster has of one namespace's operators, as far as it must
// stay as it is. Two that were captured of the same cluster are the same.
type Evidence struct {
	Schema    int       `json:"schema"`
	Namespace string    `json:"namespace"`
	Objects   []Object  `json:"objects"`            // by reference
	Targets   []string  `json:"targets"`            // namespaces that the operators watch, sorted; "" is all
	Accounts  []Account `json:"accounts,omitempty"` // by name
	Answers   []Answer  `json:"answers,omitempty"`  // in order
	Unread    []string  `json:"unread,omitempty"`   // what could not be read, and is not compared
}

// Object is what is known of one object. What its kind does not have is empty.
type Object struct {
	Ref        kobj.Ref    `json:"object"`
	UID        string      `json:"uid"`
	Generation int64       `json:"generation,omitempty"`
	Deleting   bool        `json:"deleting,omitempty"`
	Owners     []Owner     `json:"owners,omitempty"`
	Pods       *Pods       `json:"pods,omitempty"`       // of a Deployment
	Conversion *Conversion `json:"conversion,omitempty"` // of a definition
	Available  *bool       `json:"available,omitempty"`  // of an APIService
}

// Owner is one of an object's ownerReferences.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Pods is what tells whether the pods of a Deployment were replaced.
type Pods struct {
	Template    string           `json:"template"`           // digest of spec.template
	ReplicaSets []string         `json:"replicaSets"`        // UIDs, sorted
	Restarts    map[string]int64 `json:"restarts,omitempty"` // of each pod's containers, by the pod's UID
}

// Conversion is how custom resources are converted from version to version.
type Conversion struct {
	Strategy     string   `json:"strategy"`
	Target       string   `json:"target,omitempty"`       // who converts: a service with its port and path, or a URL
	Certificates []string `json:"certificates,omitempty"` // digests of those by which it is trusted, sorted
}

// works reports whether anything can be converted: a Service whose CA nobody knows
// is never reached. OLM leaves such a one where a bundle ships it.
func (c Conversion) works() bool {
	return c.Strategy == "None" || !strings.HasPrefix(c.Target, "Service ") || len(c.Certificates) > 0
}

// Account is a ServiceAccount with all that the RBAC objects of the cluster permit.
type Account struct {
	Namespace   string       `json:"namespace"`
	Name        string       `json:"name"`
	Permissions []Permission `json:"permissions"`       // reduced and sorted
	Planned     []Permission `json:"planned,omitempty"` // what of them objects give that the plan applies
}

// Permission is one, as small as RBAC can say it.
type Permission struct {
	Namespace string `json:"namespace,omitempty"` // empty: everywhere
	Verb      string `json:"verb,omitempty"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource,omitempty"` // "pods/exec"
	Name      string `json:"name,omitempty"`     // empty: all
	URL       string `json:"url,omitempty"`
	Role      string `json:"role,omitempty"` // a role that is not there
}

// Answer is what the cluster said to a review.
type Answer struct {
	Review
	Allowed bool `json:"allowed"`
}

// maxEvidence bounds the text of one namespace's evidence, in bytes.
const maxEvidence = 256 << 20

// schema is the number of the only schema of saved evidence that is read.
const schema = 1

// Format returns the evidence as text.
func (e *Evidence) Format() ([]byte, error) {
	now := *e
	now.Schema = schema
	text, err := json.MarshalIndent(now, "", " ")
	return append(text, '\n'), err
}

// Parse reads what Format returns. file is its name, for the error.
func Parse(file string, text []byte) (*Evidence, error) {
	if len(text) > maxEvidence {
		return nil, fmt.Errorf("%s: more than the %d bytes allowed", file, maxEvidence)
	}
	var e Evidence
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("%s is not what was seen before: %w", file, err)
	}
	if e.Schema != schema {
		return nil, fmt.Errorf("%s has schema %d; this program reads %d: capture it again", file, e.Schema, schema)
	}
	return &e, nil
}

// Planned returns what a plan alone says of a namespace: the UIDs of what was
// there when it was made.
func Planned(p *plan.Plan, namespace string) *Evidence {
	e := &Evidence{Namespace: namespace}
	for _, h := range tracked(p, namespace) {
		if h.uid != "" {
			e.Objects = append(e.Objects, Object{Ref: h.ref, UID: h.uid})
		}
	}
	return e
}

func (a Account) subject() rbac.Subject {
	return rbac.Subject{Kind: "ServiceAccount", Namespace: a.Namespace, Name: a.Name}
}

func grants(permissions []Permission) []rbac.Grant {
	out := make([]rbac.Grant, 0, len(permissions))
	for _, p := range permissions {
		out = append(out, rbac.Grant(p))
	}
	return out
}

func permissions(grants []rbac.Grant) []Permission {
	out := make([]Permission, 0, len(grants))
	for _, g := range grants {
		out = append(out, Permission(g))
	}
	return out
}

// object returns what is known of an object before; nil where nothing is.
func (e *Evidence) object(ref kobj.Ref) *Object {
	for i := range e.Objects {
		if e.Objects[i].Ref.Key() == ref.Key() {
			return &e.Objects[i]
		}
	}
	return nil
}

// subjects returns the accounts, in order.
func (e *Evidence) subjects() []rbac.Subject {
	var out []rbac.Subject
	for _, a := range e.Accounts {
		out = append(out, a.subject())
	}
	return out
}
