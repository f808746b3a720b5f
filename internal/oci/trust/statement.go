package trust

import (
	"encoding/json"

	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/quayside/quayside/internal/oci"
)

// verifiedType returns the predicate type of a verified statement, or "" for an
// image signature.
func verifiedType(res *verify.VerificationResult) string {
	if res.Statement == nil || res.Statement.GetPredicateType() == signPredicate {
		return ""
	}
	return res.Statement.GetPredicateType()
}

// unknownType is the predicate type of an unreadable bundle.
const unknownType = "?"

// claimedType returns the unverified predicate type of a bundle: "" for an image signature,
// unknown for an unreadable bundle. It only classifies errors.
func claimedType(s oci.Signature) string {
	if s.Bundle == nil {
		return ""
	}
	switch kind := statementIn(s).PredicateType; kind {
	case signPredicate:
		return ""
	case "":
		return unknownType
	default:
		return kind
	}
}

// statementPredicate returns the unverified predicate of a bundle.
func statementPredicate(s oci.Signature) []byte { return statementIn(s).Predicate }

// statement is the decoded part of an in-toto statement.
type statement struct {
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// statementIn returns the unverified statement of a bundle, or an empty one.
func statementIn(s oci.Signature) statement {
	var out statement
	b, err := parseBundle(s.Bundle)
	if err != nil || json.Unmarshal(b.GetDsseEnvelope().GetPayload(), &out) != nil {
		return statement{}
	}
	return out
}
