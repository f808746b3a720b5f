package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/app/inventory"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/artifact"
	"github.com/quayside/quayside/internal/oci/trust"
)

// Artifact is an artifact with its verified signers and provenance.
type Artifact struct {
	*artifact.Artifact
	SignedBy []string              // trusted signers, sorted; nil if quayside.yaml requires none
	Origin   *inventory.Provenance // attested by them; nil likewise
}

// Artifact reads the artifact named by ref ("oci://registry/name:tag", "oci:directory", …).
// It reads one in a registry only if its signature and its provenance satisfy spec.trust. A
// provenance that contradicts the artifact is an error. A layout is a directory, and needs
// no signature.
func (p *Project) Artifact(ctx context.Context, ref string) (*Artifact, error) {
	client, err := p.At(Arguments(p.dir)).Client()
	if err != nil {
		return nil, err
	}
	var signed *trust.Verified
	a, err := artifact.Open(ctx, client, ref, func(digest string) (err error) {
		signed, err = p.Verified(ctx, ref, model.Digest(digest), trust.Provenance)
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

// verifiedOrigin returns the first attested provenance that agrees with the artifact.
func verifiedOrigin(a *artifact.Artifact, stated []trust.Statement) (*inventory.Provenance, error) {
	_, whole := a.Tree()
	have := inventory.ArtifactContents{Revision: a.Meta.Revision, Whole: whole, Clusters: a.Clusters(), Operators: a.Operators()}
	var faults []error
	for _, s := range stated {
		o, err := inventory.ParseProvenance(s.Predicate)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		differs := o.CompareArtifact(have)
		if len(differs) == 0 {
			return o, nil
		}
		faults = append(faults, fmt.Errorf("the provenance belongs to another artifact: %s: do not use this artifact unless you can explain it", strings.Join(differs[:min(len(differs), mostTold)], "; ")))
	}
	return nil, errors.Join(faults...)
}

// mostTold is the number of differences shown in a message.
const mostTold = 5
