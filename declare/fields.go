package declare

import (
	"encoding/json"
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// metadata contains the decoded fields of an object's metadata. Other fields are ignored.
type metadata struct {
	Name        string            `json:"name" form:"required nonempty" doc:"Name of the declaration."`
	Namespace   string            `json:"namespace" form:"required nonempty" doc:"Install namespace."`
	Labels      map[string]string `json:"labels" doc:"Free for the user."`
	Annotations map[string]string `json:"annotations" doc:"Free for the user."`
}

// checker collects the faults of one object.
type checker struct {
	yamlnode.Checker
	file    string
	foreign func(url string) bool // see reader
}

// typedObject contains the fields that all kinds of declarations have. The types Spec and Status
// depend on the kind.
type typedObject[Spec, Status any] struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata" yamlnode:"open"`
	Spec       Spec     `json:"spec"`
	Status     Status   `json:"status" yamlnode:"open"`
}

// decode decodes n into v and returns a checker for its fields.
func (r *reader) decode(n *yamlnode.Node, v any) checker {
	r.errs.Add(r.at(n), yamlnode.Decode(r.file, n, v))
	return r.newChecker(n, yamlnode.Positions(r.file, n))
}

// newChecker returns a checker for n. fields contains the positions of its fields.
func (r *reader) newChecker(n *yamlnode.Node, fields diag.Fields) checker {
	return checker{yamlnode.Checker{Fields: fields, Whole: r.at(n), Faults: &r.errs}, r.file, r.foreign}
}

// enum adds a fault if value is set and not one of allowed.
func (c checker) enum(field, value string, allowed ...string) {
	if value != "" {
		c.Enum(field, value, allowed...)
	}
}

// oneOf adds a fault if value is not one of allowed.
func (c checker) oneOf(field, value string, allowed ...string) {
	if c.Require(field, value) {
		c.Enum(field, value, allowed...)
	}
}

// checkRange checks an optional version range in the syntax of OLM v1.
func (c checker) checkRange(field, value string) {
	if value == "" {
		return
	}
	if len(value) > 64 {
		c.Addf(field, "%d characters exceed the limit of 64 for a range", len(value))
		return
	}
	if _, err := semver.NewConstraint(value); err != nil {
		c.Addf(field, "%q is not a version range such as \">=1.2.0 <2\"", value)
	}
}

type labelSelector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []expression      `json:"matchExpressions"`
}

type expression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// checkSelector checks a label selector by the rules of metav1, and returns it. It returns nil if s
// is nil.
func (c checker) checkSelector(field string, s *labelSelector) *LabelSelector {
	if s == nil {
		return nil
	}
	out := &LabelSelector{MatchLabels: s.MatchLabels}
	for i, e := range s.MatchExpressions {
		path := fmt.Sprintf("%s.matchExpressions[%d]", field, i)
		c.Require(path+".key", e.Key)
		c.oneOf(path+".operator", e.Operator, "In", "NotIn", "Exists", "DoesNotExist")
		switch needsValues := e.Operator == "In" || e.Operator == "NotIn"; {
		case needsValues && len(e.Values) == 0:
			c.Addf(path+".values", "missing: %s requires at least one value", e.Operator)
		case !needsValues && len(e.Values) > 0:
			c.Addf(path+".values", "%s does not allow values", e.Operator)
		}
		out.MatchExpressions = append(out.MatchExpressions, LabelExpression(e))
	}
	return out
}

// declarationDigest returns the digest of a declaration's fields. Zero values are omitted, so that
// an explicit default has the same digest.
func declarationDigest(fields map[string]any) catalog.Digest {
	for k, v := range fields {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("declare: field %s: %v", k, err))
		}
		switch string(raw) {
		case `null`, `""`, `[]`, `{}`, `false`, `0`:
			delete(fields, k)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("declare: %v: %v", fields, err))
	}
	return catalog.DigestOf(raw)
}

// digest returns the digest of the declaration's content, without its position and status.
func (s Subscription) digest() catalog.Digest {
	return declarationDigest(map[string]any{
		"dialect": s.Dialect, "name": s.Name, "namespace": s.Namespace, "package": s.Package, "channels": s.Channels, "range": s.Range,
		"catalog":  (*struct{ Namespace, Name string })(s.Catalog), // the names of these fields must not change: they determine digests in existing locks
		"selector": s.Selector, "startingCSV": s.StartingCSV, "approval": s.Approval, "policy": s.Policy, "hold": s.Hold,
		"allowed": s.Allowed, "defaultChannel": s.DefaultChannel, "watch": s.Watch, "watchAll": s.WatchAll, "config": json.RawMessage(orNull(s.Config)), "bundle": s.Bundle,
		"values": json.RawMessage(orNull(s.ChartValues)), "release": s.Release,
	})
}

// orNull returns raw, or JSON null if raw is empty.
func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}
