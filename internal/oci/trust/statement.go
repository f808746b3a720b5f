package trust

import (
	"encoding/json"

	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/quayside/quayside/internal/oci"
)

// verifiedType returns the predicate type of a verified statement. It returns "" for an image
// signature.
func verifiedType(res *verify.VerificationResult) string {
	if res.Statement == nil || res.Statement.GetPredicateType() == signPredicate {
		return ""
	}
	return res.Statement.GetPredicateType()
}

// unknownType stands for the predicate type of a bundle that cannot be decoded.
const unknownType = "?"

// claimedType returns the predicate type of an unverified bundle: "" for an image signature, and
// unknownType if it cannot be decoded. Use it only to explain errors.
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

// statementPredicate returns the predicate of the statement in an unverified bundle.
func statementPredicate(s oci.Signature) []byte { return statementIn(s).Predicate }

// statement contains the fields of an in-toto statement that are used here.
type statement struct {
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// statementIn returns the statement in an unverified bundle. It returns an empty one if there is
// none.
func statementIn(s oci.Signature) statement {
	var out statement
	b, err := parseBundle(s.Bundle)
	if err != nil || json.Unmarshal(b.GetDsseEnvelope().GetPayload(), &out) != nil {
		return statement{}
	}
	return out
}
