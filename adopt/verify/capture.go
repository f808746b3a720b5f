package verify

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
)

// Capture returns what a cluster has of the operators of a namespace. What a plan
// names is read by name; OperatorGroups, ReplicaSets and pods are listed in the
// namespaces of these objects, Roles, ClusterRoles and their bindings everywhere.
// What may not be listed of pods is in Unread. The error is the Reader's.
func Capture(ctx context.Context, r Reader, p *plan.Plan, namespace string) (*Evidence, error) {
	var refs []kobj.Ref
	for _, h := range tracked(p, namespace) {
		refs = append(refs, h.ref)
	}
	e, bodies, err := captureObjects(ctx, r, namespace, refs)
	if err != nil {
		return nil, err
	}
	if e.Targets, err = targets(ctx, r, namespace); err != nil {
		return nil, err
	}
	roles, err := readRBAC(ctx, r)
	if err != nil {
		return nil, err
	}
	if e.Accounts, err = roles.accounts(accountsOf(bodies), p); err != nil {
		return nil, err
	}
	e.Answers, err = ask(ctx, r, reviews(e))
	return e, err
}

// captureObjects returns what is known of objects, and the objects themselves, in the
// order of refs without those that are not there.
func captureObjects(ctx context.Context, r Reader, namespace string, refs []kobj.Ref) (*Evidence, []kobj.Object, error) {
	read := make([]kobj.Object, len(refs))
	err := each(ctx, len(refs), func(ctx context.Context, i int) (err error) {
		read[i], err = r.Get(ctx, refs[i])
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	e := &Evidence{Namespace: namespace, Objects: []Object{}, Targets: []string{}}
	var bodies []kobj.Object
	for i, o := range read {
		if o != nil {
			e.Objects = append(e.Objects, described(refs[i], o))
			bodies = append(bodies, o)
		}
	}
	return e, bodies, pods(ctx, r, e)
}

func described(ref kobj.Ref, o kobj.Object) Object {
	d := Object{
		Ref: ref, UID: kobj.Text(o, "metadata", "uid"), Generation: number(o, "metadata", "generation"),
		Deleting: kobj.Text(o, "metadata", "deletionTimestamp") != "",
	}
	for _, w := range kobj.Items(o, "metadata", "ownerReferences") {
		d.Owners = append(d.Owners, Owner{kobj.Text(w, "apiVersion"), kobj.Text(w, "kind"), kobj.Text(w, "name"), kobj.Text(w, "uid")})
	}
	switch {
	case o.Is("apps", "Deployment"):
		d.Pods = &Pods{Template: digest(kobj.At(o, "spec", "template")), ReplicaSets: []string{}}
	case kobj.IsCRD(o):
		d.Conversion = conversion(o)
	case o.Is("apiregistration.k8s.io", "APIService"):
		up := slices.ContainsFunc(kobj.Items(o, "status", "conditions"), func(c map[string]any) bool {
			return kobj.Text(c, "type") == "Available" && kobj.Text(c, "status") == "True"
		})
		d.Available = &up
	}
	return d
}

func conversion(crd kobj.Object) *Conversion {
	c := &Conversion{Strategy: kobj.Text(crd, "spec", "conversion", "strategy")}
	if c.Strategy == "" {
		c.Strategy = "None" // the API server's default
	}
	client := kobj.Map(crd, "spec", "conversion", "webhook", "clientConfig")
	if service := kobj.Map(client, "service"); service != nil {
		port := number(service, "port")
		if port == 0 {
			port = 443
		}
		c.Target = fmt.Sprintf("Service %s/%s:%d%s", kobj.Text(service, "namespace"), kobj.Text(service, "name"), port, kobj.Text(service, "path"))
	} else {
		c.Target = kobj.Text(client, "url")
	}
	bundle, err := base64.StdEncoding.DecodeString(kobj.Text(client, "caBundle"))
	for block, rest := pem.Decode(bundle); err == nil && block != nil; block, rest = pem.Decode(rest) {
		sum := sha256.Sum256(block.Bytes)
		c.Certificates = append(c.Certificates, hex.EncodeToString(sum[:]))
	}
	slices.Sort(c.Certificates)
	c.Certificates = slices.Compact(c.Certificates)
	return c
}

// pods completes the Deployments of e with their ReplicaSets and pods.
func pods(ctx context.Context, r Reader, e *Evidence) error {
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

// populate tells the Deployments of a namespace which ReplicaSets and pods are
// theirs.
func (e *Evidence) populate(namespace string, sets, all []kobj.Object) {
	for i := range e.Objects {
		o := &e.Objects[i]
		if o.Pods == nil || o.Ref.Namespace != namespace {
			continue
		}
		for _, set := range sets {
			if ownedBy(set, o.UID) {
				o.Pods.ReplicaSets = append(o.Pods.ReplicaSets, kobj.Text(set, "metadata", "uid"))
			}
		}
		slices.Sort(o.Pods.ReplicaSets)
		for _, pod := range all {
			if slices.ContainsFunc(o.Pods.ReplicaSets, func(uid string) bool { return ownedBy(pod, uid) }) {
				o.Pods.count(pod)
			}
		}
	}
}

func (p *Pods) count(pod kobj.Object) {
	if p.Restarts == nil {
		p.Restarts = map[string]int64{}
	}
	n := int64(0)
	for _, c := range kobj.Items(pod, "status", "containerStatuses") {
		n += number(c, "restartCount")
	}
	p.Restarts[kobj.Text(pod, "metadata", "uid")] = n
}

func ownedBy(o kobj.Object, uid string) bool {
	return slices.ContainsFunc(kobj.Items(o, "metadata", "ownerReferences"), func(w map[string]any) bool { return kobj.Text(w, "uid") == uid })
}

// targets returns the namespaces that the operators of a namespace watch, sorted;
// "" is all of them.
func targets(ctx context.Context, r Reader, namespace string) ([]string, error) {
	groups, err := r.List(ctx, snapshot.OLM+"/v1", "OperatorGroup", namespace, "")
	out := []string{}
	for _, g := range groups {
		out = append(out, kobj.Texts(g, "status", "namespaces")...)
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// digest returns that of a value, whatever the order of its keys.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("verify: a value that was read is no JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// number returns the whole number at a path, 0 where there is none.
func number(m map[string]any, path ...string) int64 {
	switch n := kobj.At(m, path...).(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		return int64(n)
	case json.Number:
		i, _ := n.Int64() // one that is not whole is none
		return i
	}
	return 0
}
