package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/artifact"
	"github.com/quayside/quayside/internal/oci/trust"
)

// Artifact is an artifact with its verified signers and its provenance.
type Artifact struct {
	*artifact.Artifact
	SignedBy []string              // trusted signers, sorted; nil if no signature is required
	Origin   *inventory.Provenance // provenance signed by SignedBy; nil if no signature is required
}

// Artifact reads an artifact. ref is, for example, "oci://registry/name:tag" or "oci:directory". An artifact
// in a registry must have the signature and the provenance that spec.trust requires. An OCI layout on disk
// needs neither. It is an error if the provenance contradicts the artifact.
func (p *Registries) Artifact(ctx context.Context, ref string) (*Artifact, error) {
	client, err := p.RelativeTo(Arguments(p.dir)).Client()
	if err != nil {
		return nil, err
	}
	var signed *trust.Verification
	a, err := artifact.Open(ctx, client, ref, func(digest string) (err error) {
		signed, err = p.Verify(ctx, ref, catalog.Digest(digest), trust.Provenance)
		return err
	})
	p.Log.Done()
	if err != nil {
		return nil, err
	}
	out := &Artifact{Artifact: a}
	if signed == nil {
		return out, nil
	}
	out.SignedBy = signed.Identities
	if out.Origin, err = verifiedOrigin(a, signed.Statements); err != nil {
		return nil, &oci.Error{Image: a.Name, Err: err}
	}
	return out, nil
}

// verifiedOrigin searches statements for a provenance that matches the artifact, and returns the
// first. If none matches, it returns an error.
func verifiedOrigin(a *artifact.Artifact, statements []trust.Statement) (*inventory.Provenance, error) {
	_, whole := a.Tree()
	have := inventory.ArtifactContents{Revision: a.Meta.Revision, Whole: whole, Clusters: a.Clusters(), Operators: a.Operators()}
	var faults []error
	for _, s := range statements {
		o, err := inventory.ParseProvenance(s.Predicate)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		differs := o.CompareArtifact(have)
		if len(differs) == 0 {
			return o, nil
		}
		faults = append(faults, fmt.Errorf("the provenance does not match the artifact: %s: do not use this artifact unless you can explain the difference", strings.Join(differs[:min(len(differs), maxDifferences)], "; ")))
	}
	return nil, errors.Join(faults...)
}

// maxDifferences is the maximum number of differences in a message.
const maxDifferences = 5
