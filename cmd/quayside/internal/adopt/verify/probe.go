package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

// ProbeReader is a Reader with the additional requests that probes send.
type ProbeReader interface {
	Reader
	// First returns at most limit objects of a kind in all namespaces.
	First(ctx context.Context, apiVersion, kind string, limit int) ([]k8s.Object, error)
	// TryUpdate sends an unchanged object as an update, in a dry run. The API server calls the webhooks but
	// stores nothing.
	TryUpdate(ctx context.Context, ref k8s.Ref) error
}

// ProbeKind is a kind of probe. It is named after the function of the cluster that the probes test.
type ProbeKind string

// The kinds of probes.
const (
	ProbePermissions ProbeKind = "permissions"
	ProbeWebhooks    ProbeKind = "webhooks"
	ProbeConversion  ProbeKind = "conversion"
	ProbeAPIs        ProbeKind = "apis"
	ProbePods        ProbeKind = "pods"
	ProbeObjects     ProbeKind = "objects"
)

func probeKinds() []ProbeKind {
	return []ProbeKind{ProbePermissions, ProbeWebhooks, ProbeConversion, ProbeAPIs, ProbePods, ProbeObjects}
}

// ProbeResult contains the results of all probes of one kind.
type ProbeResult struct {
	Kind       ProbeKind `json:"kind" form:"enum=permissions|webhooks|conversion|apis|pods|objects" doc:"permissions: SubjectAccessReviews of the operators' ServiceAccounts; webhooks: dry-run updates of custom resources; conversion: CRDs, and custom resources read in another version; apis: aggregated APIs; pods: Deployments and their ReplicaSets; objects: UIDs of CRDs and custom resources."`
	Targets    int       `json:"targets" doc:"Number of probed objects and permissions."`
	Probes     int       `json:"probes"`
	Failures   int       `json:"failures" doc:"Number of failed probes."`
	LongestGap int64     `json:"longestGap" doc:"Milliseconds from the first failed probe of a target to the next successful probe, or to the end."`
	Failure    string    `json:"failure,omitempty" doc:"The first failure."`
	Unprobed   int       `json:"unprobed,omitempty" doc:"Number of targets that could not be probed: no permission, no custom resource, a webhook without dry run, or an error before the first step."`
}

// Limits of the probes.
const (
	maxProbedReviews   = 50 // permissions in a namespace
	maxProbedResources = 3  // the oldest custom resources of a CRD
	maxListedResources = 50
)

// Prober tests repeatedly whether the functions of a plan's operators still work as they did at the first
// probe. It is not safe for concurrent use.
type Prober struct {
	reader      ProbeReader
	comparisons []comparison // comparisons, by number of the last begun step
	targets     []*probeTarget
	results     map[ProbeKind]*ProbeResult
}

// probeTarget is an object or permission to probe.
type probeTarget struct {
	kind      ProbeKind
	probe     func(ctx context.Context, r Reader, c *comparison) (problem string, err error)
	succeeded bool
	failed    time.Time // time of the first failure after the last success; zero: no failure
}

// unprobedError is returned for a target that cannot be probed.
type unprobedError struct{ error }

// NewProber returns a prober for the namespaces of a plan. It reads the current state, with which the probes
// later compare the cluster.
func NewProber(ctx context.Context, r ProbeReader, p *plan.Plan) (*Prober, error) {
	out := &Prober{reader: r, results: map[ProbeKind]*ProbeResult{}}
	for n := range len(p.Steps) + 1 {
		out.comparisons = append(out.comparisons, comparison{p, n, removedBy(p, n)})
	}
	for _, kind := range probeKinds() {
		out.results[kind] = &ProbeResult{Kind: kind}
	}
	seen := map[k8s.Key]bool{}
	for _, ns := range planNamespaces(p) {
		if err := out.addNamespace(ctx, p, ns, seen); err != nil {
			return nil, fmt.Errorf("reading namespace %s for probes: %w", ns, err)
		}
	}
	return out, nil
}

// addNamespace adds the targets of a namespace. It skips objects in seen, and adds all other objects to seen.
func (p *Prober) addNamespace(ctx context.Context, pl *plan.Plan, namespace string, seen map[k8s.Key]bool) error {
	var refs []k8s.Ref
	for _, h := range trackedObjects(pl, namespace) {
		refs = append(refs, h.ref)
	}
	e, bodies, err := captureObjects(ctx, p.reader, namespace, refs)
	if err != nil {
		return err
	}
	if err := p.addReviews(ctx, pl, e, bodies); err != nil {
		return err
	}
	var webhooks []k8s.Object
	called := map[k8s.Key]bool{}
	for _, o := range bodies {
		if o.Is("admissionregistration.k8s.io", o.Kind()) {
			webhooks = append(webhooks, o)
		}
	}
	for i, o := range e.Objects {
		if seen[o.Ref.Key()] {
			continue
		}
		seen[o.Ref.Key()] = true
		switch {
		case o.Pods != nil:
			p.addObject(ProbePods, o, checkSameUID, checkNoRestart)
		case o.Available != nil:
			p.addObject(ProbeAPIs, o, checkSameUID, checkAvailable)
		case o.Conversion != nil:
			p.addObject(ProbeObjects, o, checkSameUID)
			p.addObject(ProbeConversion, o, checkConversion)
			if err := p.addResources(ctx, bodies[i], webhooks, called); err != nil {
				return err
			}
		}
	}
	for _, w := range webhooks {
		if !called[w.Key()] {
			p.results[ProbeWebhooks].Unprobed++
		}
	}
	return nil
}

func (p *Prober) add(kind ProbeKind, probe func(context.Context, Reader, *comparison) (string, error)) {
	p.targets = append(p.targets, &probeTarget{kind: kind, probe: probe})
	p.results[kind].Targets++
}

// addReviews adds permissions of the accounts as targets, except permissions that a step removes.
func (p *Prober) addReviews(ctx context.Context, pl *plan.Plan, e *Evidence, bodies []k8s.Object) error {
	roles, err := readRBAC(ctx, p.reader)
	if err != nil {
		return err
	}
	if e.Accounts, err = roles.accounts(accountsOf(bodies), pl); err != nil {
		return err
	}
	removed := p.comparisons[len(pl.Steps)].removed
	answers, err := askReviews(ctx, p.reader, limitReviews(slices.DeleteFunc(e.grantedReviews(), func(r Review) bool {
		return removed.isIntended(r.grant())
	}), maxProbedReviews))
	for _, a := range answers {
		if a.Allowed {
			p.add(ProbePermissions, func(ctx context.Context, r Reader, _ *comparison) (string, error) {
				allowed, err := r.Allowed(ctx, a.Review)
				if err != nil || allowed {
					return "", err
				}
				return fmt.Sprintf("%s lost the permission: %s", a.Account, formatGrant(a.grant())), nil
			})
		}
	}
	return err
}

// addObject adds an object as a target. The rules compare its earlier state (was) with its current state.
func (p *Prober) addObject(kind ProbeKind, was ObjectState, rules ...compareRule) {
	p.add(kind, func(ctx context.Context, r Reader, c *comparison) (string, error) {
		now, _, err := captureObjects(ctx, r, was.Ref.Namespace, []k8s.Ref{was.Ref})
		if err != nil {
			return "", err
		}
		for _, rule := range rules {
			for _, f := range c.compareEach(rule, &Evidence{Objects: []ObjectState{was}}, now) {
				if !f.Note {
					return f.Message, nil
				}
			}
		}
		return "", nil
	})
}

// addResources adds the oldest custom resources of a CRD as targets. The map called gets the webhooks that the
// API server calls when these resources are updated.
func (p *Prober) addResources(ctx context.Context, crd k8s.Object, webhooks []k8s.Object, called map[k8s.Key]bool) error {
	group, kind := k8s.Text(crd, "spec", "group"), k8s.Text(crd, "spec", "names", "kind")
	var storage, other string
	for _, v := range k8s.Items(crd, "spec", "versions") {
		switch {
		case k8s.True(v, "storage"):
			storage = group + "/" + k8s.Text(v, "name")
		case k8s.True(v, "served"):
			other = group + "/" + k8s.Text(v, "name")
		}
	}
	found, err := p.reader.First(ctx, cmp.Or(storage, other), kind, maxListedResources)
	if err != nil { // no permission, or conversion does not work
		p.results[ProbeObjects].Unprobed++
		return context.Cause(ctx)
	}
	slices.SortStableFunc(found, func(a, b k8s.Object) int {
		return strings.Compare(k8s.Text(a, "metadata", "creationTimestamp"), k8s.Text(b, "metadata", "creationTimestamp"))
	})
	for _, o := range found[:min(len(found), maxProbedResources)] {
		ref := k8s.RefTo(o)
		was := ObjectState{Ref: ref, UID: k8s.Text(o, "metadata", "uid")}
		p.addObject(ProbeObjects, was, checkSameUID)
		if k8s.Text(crd, "spec", "conversion", "strategy") == "Webhook" && other != "" {
			ref.APIVersion = other
			p.add(ProbeConversion, func(ctx context.Context, r Reader, _ *comparison) (string, error) {
				_, err := r.Get(ctx, ref)
				return "", err
			})
		}
		isCalled := false
		for _, w := range webhooks {
			if callsForUpdate(w, group, k8s.Text(crd, "spec", "names", "plural")) {
				called[w.Key()], isCalled = true, true
			}
		}
		if isCalled {
			p.add(ProbeWebhooks, func(ctx context.Context, _ Reader, _ *comparison) (string, error) {
				return "", webhookError(p.reader.TryUpdate(ctx, was.Ref))
			})
		}
	}
	return nil
}

// callsForUpdate reports whether the API server calls the webhooks in config when a resource is updated.
func callsForUpdate(config k8s.Object, group, plural string) bool {
	has := func(rule map[string]any, field, want string) bool {
		values := k8s.Texts(rule, field)
		return slices.Contains(values, want) || slices.Contains(values, "*")
	}
	return slices.ContainsFunc(k8s.Items(config, "webhooks"), func(w map[string]any) bool {
		return slices.ContainsFunc(k8s.Items(w, "rules"), func(rule map[string]any) bool {
			return has(rule, "apiGroups", group) && has(rule, "resources", plural) && has(rule, "operations", "UPDATE")
		})
	})
}

// webhookError returns the error of a dry-run update. It returns nil if the error shows that the webhooks work,
// for example because a webhook denied the request.
func webhookError(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || strings.Contains(err.Error(), "denied the request"):
		return nil
	case apierrors.IsForbidden(err), strings.Contains(err.Error(), "does not support dry run"):
		return unprobedError{err}
	case errors.As(err, &status) && status.Status().Code < 500:
		return nil
	}
	return err
}

// Probe probes every target once. step returns the number of the last begun step. An object that the plan
// removes up to this step does not count as failed. If a target already fails before the first step, the plan
// is not the cause, and the target is not probed again.
func (p *Prober) Probe(ctx context.Context, step func() int, now func() time.Time) {
	r := &cachedReader{Reader: p.reader, entries: map[string]*cacheEntry{}}
	problems, errs, times := make([]string, len(p.targets)), make([]error, len(p.targets)), make([]time.Time, len(p.targets))
	_ = runParallel(ctx, len(p.targets), func(ctx context.Context, i int) error { // errors are part of the results
		for {
			n := step()
			problems[i], errs[i] = p.targets[i].probe(ctx, r, &p.comparisons[n])
			times[i] = now()
			if problems[i] == "" || n == step() {
				return nil
			}
		}
	})
	if ctx.Err() != nil {
		return
	}
	left := p.targets[:0:0]
	for i, t := range p.targets {
		var unprobed unprobedError
		isFirst := !t.succeeded && t.failed.IsZero()
		if isFirst && (apierrors.IsForbidden(errs[i]) || errors.As(errs[i], &unprobed) || errs[i] != nil && step() == 0) {
			p.results[t.kind].Targets--
			p.results[t.kind].Unprobed++
			continue
		}
		problem := problems[i]
		if errs[i] != nil {
			problem = errs[i].Error()
		}
		p.record(t, problem, times[i])
		left = append(left, t)
	}
	p.targets = left
}

// record adds the result of a probe. If problem is empty, the probe succeeded.
func (p *Prober) record(t *probeTarget, problem string, at time.Time) {
	r := p.results[t.kind]
	r.Probes++
	if !t.failed.IsZero() {
		r.LongestGap = max(r.LongestGap, at.Sub(t.failed).Milliseconds())
	}
	if problem == "" {
		t.succeeded, t.failed = true, time.Time{}
		return
	}
	r.Failures++
	r.Failure = cmp.Or(r.Failure, problem)
	if t.failed.IsZero() {
		t.failed = at
	}
}

// Results returns the results of every kind of probe so far.
func (p *Prober) Results() []ProbeResult {
	var out []ProbeResult
	for _, kind := range probeKinds() {
		out = append(out, *p.results[kind])
	}
	return out
}
