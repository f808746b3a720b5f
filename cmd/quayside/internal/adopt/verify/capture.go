package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// Capture returns the current state of a namespace's operators. It gets the objects in the plan by name. It
// lists OperatorGroups in the namespace, ReplicaSets and pods in the namespaces of the Deployments, and roles
// and bindings in the whole cluster. For OLM v1, it also lists custom resources, and keeps the 100 oldest of
// each CRD. If it cannot list pods or custom resources, it records this in Unread. Any other error is returned.
func Capture(ctx context.Context, r Reader, p *plan.Plan, namespace string) (*Evidence, error) {
	var refs []k8s.Ref
	for _, h := range trackedObjects(p, namespace) {
		refs = append(refs, h.ref)
	}
	e, bodies, err := captureObjects(ctx, r, namespace, refs)
	if err != nil {
		return nil, err
	}
	if p.IsForExtensions() {
		if err := captureResources(ctx, r, e, bodies); err != nil {
			return nil, err
		}
	}
	if e.Targets, err = targetNamespaces(ctx, r, namespace); err != nil {
		return nil, err
	}
	roles, err := readRBAC(ctx, r)
	if err != nil {
		return nil, err
	}
	if e.Accounts, err = roles.accounts(accountsOf(bodies), p); err != nil {
		return nil, err
	}
	e.Answers, err = askReviews(ctx, r, buildReviews(e))
	return e, err
}

// captureObjects returns the state of the objects in refs, and the objects themselves in the same order. It
// omits missing objects.
func captureObjects(ctx context.Context, r Reader, namespace string, refs []k8s.Ref) (*Evidence, []k8s.Object, error) {
	read := make([]k8s.Object, len(refs))
	err := runParallel(ctx, len(refs), func(ctx context.Context, i int) (err error) {
		read[i], err = r.Get(ctx, refs[i])
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	e := &Evidence{Namespace: namespace, Objects: []ObjectState{}, Targets: []string{}}
	var bodies []k8s.Object
	for i, o := range read {
		if o != nil {
			e.Objects = append(e.Objects, newObject(refs[i], o))
			bodies = append(bodies, o)
		}
	}
	return e, bodies, readPods(ctx, r, e)
}

// maxResources is the maximum number of custom resources of one CRD in evidence.
const maxResources = 100

// captureResources adds the UIDs of the oldest custom resources of each CRD to e.
func captureResources(ctx context.Context, r Reader, e *Evidence, bodies []k8s.Object) error {
	for _, crd := range bodies {
		if !k8s.IsCRD(crd) {
			continue
		}
		list, err := listResources(ctx, r, crd)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			e.Unread = append(e.Unread, fmt.Sprintf("custom resources of %s: %v", crd.Name(), err))
		}
		list = slices.SortedStableFunc(slices.Values(list), func(a, b k8s.Object) int {
			return cmp.Or(strings.Compare(k8s.Text(a, "metadata", "creationTimestamp"), k8s.Text(b, "metadata", "creationTimestamp")), a.Key().Compare(b.Key()))
		})
		for _, o := range list[:min(len(list), maxResources)] {
			e.Objects = append(e.Objects, ObjectState{Ref: k8s.RefTo(o), UID: k8s.Text(o, "metadata", "uid")})
		}
	}
	slices.SortFunc(e.Objects, func(a, b ObjectState) int { return a.Ref.Key().Compare(b.Ref.Key()) })
	return nil
}

// listResources returns the custom resources of a CRD.
func listResources(ctx context.Context, r Reader, crd k8s.Object) ([]k8s.Object, error) {
	version := ""
	for _, v := range k8s.Items(crd, "spec", "versions") {
		if k8s.True(v, "served") && (version == "" || k8s.True(v, "storage")) {
			version = k8s.Text(v, "name")
		}
	}
	return r.List(ctx, k8s.Text(crd, "spec", "group")+"/"+version, k8s.Text(crd, "spec", "names", "kind"), "", "")
}

func newObject(ref k8s.Ref, o k8s.Object) ObjectState {
	d := ObjectState{
		Ref: ref, UID: k8s.Text(o, "metadata", "uid"), Generation: numberAt(o, "metadata", "generation"),
		Deleting: k8s.Text(o, "metadata", "deletionTimestamp") != "",
	}
	for _, w := range k8s.Items(o, "metadata", "ownerReferences") {
		d.Owners = append(d.Owners, snapshot.Owner{APIVersion: k8s.Text(w, "apiVersion"), Kind: k8s.Text(w, "kind"), Name: k8s.Text(w, "name"), UID: k8s.Text(w, "uid")})
	}
	switch {
	case o.Is("apps", "Deployment"):
		d.Pods = &Pods{Template: digest(k8s.At(o, "spec", "template")), ReplicaSets: []string{}}
	case k8s.IsCRD(o):
		d.Conversion = newConversion(o)
	case o.Is(k8s.APIServiceGroup, "APIService"):
		up := k8s.HasCondition(o, "Available")
		d.Available = &up
	}
	return d
}

func newConversion(crd k8s.Object) *Conversion {
	c := &Conversion{Strategy: k8s.Text(crd, "spec", "conversion", "strategy")}
	if c.Strategy == "" {
		c.Strategy = "None" // default of the API server
	}
	client := k8s.Map(crd, "spec", "conversion", "webhook", "clientConfig")
	if service := k8s.Map(client, "service"); service != nil {
		port := numberAt(service, "port")
		if port == 0 {
			port = 443
		}
		c.Target = fmt.Sprintf("Service %s/%s:%d%s", k8s.Text(service, "namespace"), k8s.Text(service, "name"), port, k8s.Text(service, "path"))
	} else {
		c.Target = k8s.Text(client, "url")
	}
	bundle, err := base64.StdEncoding.DecodeString(k8s.Text(client, "caBundle"))
	for block, rest := pem.Decode(bundle); err == nil && block != nil; block, rest = pem.Decode(rest) {
		sum := sha256.Sum256(block.Bytes)
		c.Certificates = append(c.Certificates, hex.EncodeToString(sum[:]))
	}
	slices.Sort(c.Certificates)
	c.Certificates = slices.Compact(c.Certificates)
	return c
}

// readPods adds to e the ReplicaSets and pods of its Deployments.
func readPods(ctx context.Context, r Reader, e *Evidence) error {
	done := map[string]bool{}
	for _, o := range e.Objects {
		ns := o.Ref.Namespace
		if o.Pods == nil || done[ns] {
			continue
		}
		done[ns] = true
		sets, err := r.List(ctx, "apps/v1", "ReplicaSet", ns, "")
		if err != nil {
			return err
		}
		all, err := r.List(ctx, "v1", "Pod", ns, "")
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			e.Unread = append(e.Unread, fmt.Sprintf("pods of namespace %s: %v", ns, err))
		}
		e.populate(ns, sets, all)
	}
	return nil
}

// populate assigns the ReplicaSets and pods of a namespace to its Deployments.
func (e *Evidence) populate(namespace string, sets, all []k8s.Object) {
	for i := range e.Objects {
		o := &e.Objects[i]
		if o.Pods == nil || o.Ref.Namespace != namespace {
			continue
		}
		for _, set := range sets {
			if isOwnedBy(set, o.UID) {
				o.Pods.ReplicaSets = append(o.Pods.ReplicaSets, k8s.Text(set, "metadata", "uid"))
			}
		}
		slices.Sort(o.Pods.ReplicaSets)
		for _, pod := range all {
			if slices.ContainsFunc(o.Pods.ReplicaSets, func(uid string) bool { return isOwnedBy(pod, uid) }) {
				o.Pods.count(pod)
			}
		}
	}
}

func (p *Pods) count(pod k8s.Object) {
	if p.Restarts == nil {
		p.Restarts = map[string]int64{}
	}
	n := int64(0)
	for _, c := range k8s.Items(pod, "status", "containerStatuses") {
		n += numberAt(c, "restartCount")
	}
	p.Restarts[k8s.Text(pod, "metadata", "uid")] = n
}

func isOwnedBy(o k8s.Object, uid string) bool {
	return slices.ContainsFunc(k8s.Items(o, "metadata", "ownerReferences"), func(w map[string]any) bool { return k8s.Text(w, "uid") == uid })
}

// targetNamespaces returns the namespaces that the operators in a namespace watch, sorted. If they watch all
// namespaces, it returns a single empty string.
func targetNamespaces(ctx context.Context, r Reader, namespace string) ([]string, error) {
	groups, err := r.List(ctx, k8s.OLMGroup+"/v1", "OperatorGroup", namespace, "")
	out := []string{}
	for _, g := range groups {
		out = append(out, k8s.Texts(g, "status", "namespaces")...)
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// digest returns the digest of a JSON value. The order of keys does not matter.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("verify: invalid JSON value: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// numberAt returns the integer at a path, or 0 if there is none.
func numberAt(m map[string]any, path ...string) int64 {
	n, _ := k8s.At(m, path...).(int64)
	return n
}
