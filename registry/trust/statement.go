package trust

import (
	"encoding/json"

	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/quayside/quayside/registry"
)

// stated returns the type of what a verified statement states of an image; empty
// for what signs it.
func stated(res *verify.VerificationResult) string {
	if res.Statement == nil || res.Statement.GetPredicateType() == signPredicate {
		return ""
	}
	return res.Statement.GetPredicateType()
}

// unknown is claimed by what cannot be read.
const unknown = "?"

// claim returns the type of what somebody states in a bundle, unverified; empty
// for a signature of the image, unknown for what cannot be read. It says among
// which faults that of a bundle belongs, and nothing else.
func claim(s registry.Signature) string {
	if s.Bundle == nil {
		return ""
	}
	switch kind := statementIn(s).PredicateType; kind {
	case signPredicate:
		return ""
	case "":
		return unknown
	default:
		return kind
	}
}

// predicate returns what is stated in a bundle.
func predicate(s registry.Signature) []byte { return statementIn(s).Predicate }

// statement is what is read of an in-toto statement.
type statement struct {
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// statementIn returns the statement in a bundle, unverified; an empty one where
// there is none.
func statementIn(s registry.Signature) statement {
	var out statement
	b, err := parseBundle(s.Bundle)
	if err != nil || json.Unmarshal(b.GetDsseEnvelope().GetPayload(), &out) != nil {
		return statement{}
	}
	return out
}
