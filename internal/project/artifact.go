package project

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/provenance"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/artifact"
	"github.com/quayside/quayside/registry/trust"
)

// Artifact is one that was read.
type Artifact struct {
	*artifact.Artifact
	SignedBy []string           // who signed it of those whom quayside.yaml trusts, sorted; nil where it demands nobody
	Origin   *provenance.Origin // what they state of it; nil likewise
}

// Artifact reads the artifact that ref names ("oci://registry/name:tag",
// "oci:directory", …). Of one in a registry nothing is read unless it is signed by
// whom quayside.yaml demands, and so is a statement of what it was made of; one that
// states something else than the artifact shows is an error. A layout is a
// directory, which nobody signs.
func (p *Project) Artifact(ctx context.Context, ref string) (*Artifact, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	var signed *trust.Verified
	a, err := artifact.Open(ctx, client, ref, func(digest string) (err error) {
		signed, err = p.Verified(ctx, ref, catalog.Digest(digest), trust.Provenance)
		return err
	})
	p.Talk.Done()
	if err != nil {
		return nil, err
	}
	out := &Artifact{Artifact: a}
	if signed == nil {
		return out, nil
	}
	out.SignedBy = signed.Identities
	if out.Origin, err = origin(a, signed.Statements); err != nil {
		return nil, &registry.Error{Image: a.Name, Err: err}
	}
	return out, nil
}

// origin returns the first of what is stated of an artifact that agrees with it.
func origin(a *artifact.Artifact, stated []trust.Statement) (*provenance.Origin, error) {
	_, whole := a.Tree()
	have := provenance.Contents{Revision: a.Meta.Revision, Whole: whole, Clusters: a.Clusters(), Operators: a.Operators()}
	var faults []error
	for _, s := range stated {
		o, err := provenance.Parse(s.Predicate)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		differs := o.Against(have)
		if len(differs) == 0 {
			return o, nil
		}
		faults = append(faults, fmt.Errorf("the provenance is not this artifact's: %s: do not use it unless you know why", strings.Join(differs[:min(len(differs), mostTold)], "; ")))
	}
	return nil, errors.Join(faults...)
}

// mostTold is how many differences a message has.
const mostTold = 5
