package subscription

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// metadata is what is read of an object's metadata; the rest is passed over.
type metadata struct {
	Name        string            `json:"name" form:"required nonempty" doc:"Name of the declaration."`
	Namespace   string            `json:"namespace" form:"required nonempty" doc:"Install namespace."`
	Labels      map[string]string `json:"labels" doc:"Free for the user."`
	Annotations map[string]string `json:"annotations" doc:"Free for the user."`
}

// checker collects the faults of one object.
type checker struct {
	file   string
	fields map[string]diag.Pos
	pos    diag.Pos
	errs   *diag.List
}

// decode reads n into v and returns a checker for what is in it.
func (r *reader) decode(n *yaml.Node, v any) checker {
	r.errs.Add(r.at(n), yamlnode.Decode(r.file, n, v))
	return checker{file: r.file, fields: yamlnode.Positions(r.file, n), pos: r.at(n), errs: &r.errs}
}

// at returns where a field stands, else the nearest one around it.
func (c checker) at(field string) diag.Pos {
	for f := field; f != ""; {
		if p, ok := c.fields[f]; ok {
			return p
		}
		i := strings.LastIndexAny(f, ".[")
		if i < 0 {
			break
		}
		f = f[:i]
	}
	return c.pos
}

func (c checker) addf(field, format string, args ...any) {
	c.errs.Addf(c.at(field), field+": "+format, args...)
}

// given reports whether value is there, and says so where it is not; what has
// the wrong type was said already.
func (c checker) given(field, value string) bool {
	if value != "" {
		return true
	}
	if p, stands := c.fields[field]; stands && c.faulty(p) {
		return false
	}
	c.addf(field, "missing")
	return false
}

func (c checker) faulty(p diag.Pos) bool {
	return slices.ContainsFunc(*c.errs, func(e *diag.Error) bool { return e.Pos == p })
}

// name checks a required name of an object.
func (c checker) name(field, value string) {
	if c.given(field, value) && !yamlnode.IsDNS1123Subdomain(value) {
		c.addf(field, "%q is not a Kubernetes name (lower case letters, digits, - and .)", value)
	}
}

// namespace checks a required name of a namespace.
func (c checker) namespace(field, value string) {
	if c.given(field, value) && !yamlnode.IsDNS1123Label(value) {
		c.addf(field, "%q is not a namespace's name (lower case letters, digits and -, at most 63)", value)
	}
}

// enum checks an optional word.
func (c checker) enum(field, value string, allowed ...string) {
	if value != "" && !slices.Contains(allowed, value) {
		c.addf(field, "%q is not one of %s%s", value, strings.Join(allowed, ", "), diag.DidYouMean(value, allowed))
	}
}

// versions checks an optional range in the syntax of OLM v1.
func (c checker) versions(field, value string) {
	if value == "" {
		return
	}
	if len(value) > 64 {
		c.addf(field, "%d characters, more than the 64 that a range may have", len(value))
		return
	}
	if _, err := semver.NewConstraint(value); err != nil {
		c.addf(field, "%q is not a version range such as \">=1.2.0 <2\"", value)
	}
}

type selector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []expression      `json:"matchExpressions"`
}

type expression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// selector checks a label selector by metav1's rules.
func (c checker) selector(field string, s *selector) *LabelSelector {
	if s == nil {
		return nil
	}
	out := &LabelSelector{MatchLabels: s.MatchLabels}
	for i, e := range s.MatchExpressions {
		at := fmt.Sprintf("%s.matchExpressions[%d]", field, i)
		c.given(at+".key", e.Key)
		if c.given(at+".operator", e.Operator) {
			c.enum(at+".operator", e.Operator, "In", "NotIn", "Exists", "DoesNotExist")
		}
		switch wants := e.Operator == "In" || e.Operator == "NotIn"; {
		case wants && len(e.Values) == 0:
			c.addf(at+".values", "missing: %s needs at least one", e.Operator)
		case !wants && len(e.Values) > 0:
			c.addf(at+".values", "%s takes none", e.Operator)
		}
		out.MatchExpressions = append(out.MatchExpressions, LabelExpression(e))
	}
	return out
}

// meaning returns the digest of what a declaration says. Values that say
// nothing are left out, so that spelling out a default changes nothing.
func meaning(fields map[string]any) catalog.Digest {
	for k, v := range fields {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("subscription: field %s: %v", k, err))
		}
		switch string(raw) {
		case `null`, `""`, `[]`, `{}`, `false`, `0`:
			delete(fields, k)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("subscription: %v: %v", fields, err))
	}
	return catalog.DigestOf(raw)
}

func (s Subscription) digest() catalog.Digest {
	return meaning(map[string]any{
		"dialect": s.Dialect, "name": s.Name, "namespace": s.Namespace, "package": s.Package, "channels": s.Channels, "range": s.Range,
		"catalog": s.Catalog, "selector": s.Selector, "startingCSV": s.StartingCSV, "approval": s.Approval, "policy": s.Policy, "hold": s.Hold,
		"watch": s.Watch, "watchAll": s.WatchAll, "config": json.RawMessage(orNull(s.Config)), "bundle": s.Bundle,
	})
}

func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}
