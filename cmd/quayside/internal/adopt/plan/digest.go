package plan

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// LockDigest returns the digest that identifies a lock in a plan.
func LockDigest(lock *lockfile.File) string { return string(catalog.DigestOf(lockfile.Format(lock))) }

// TreeDigest returns the digest that identifies a rendered tree in a plan. The order of the objects does not
// matter.
func TreeDigest(rendered []render.Rendered) string {
	var lines []string
	for _, r := range rendered {
		text, err := json.Marshal(r.Object)
		if err != nil {
			panic("plan: " + r.Path + " was rendered as invalid JSON: " + err.Error())
		}
		lines = append(lines, r.Path+"\x00"+string(text))
	}
	slices.Sort(lines)
	return string(catalog.DigestOf([]byte(strings.Join(lines, "\n"))))
}

// recordState adds to the plan the current state of OLM's declarations and Deployments for the operators that
// leave OLM.
func (m *planBuilder) recordState() {
	found := map[k8s.Ref]State{}
	add := func(o *snapshot.LiveObject) {
		if o == nil {
			return
		}
		s := State{Object: refToLive(o)}
		if o.Is("Deployment.apps") {
			s.Pods = TemplateDigest(o.Body())
		} else {
			s.Spec = SpecText(o.Body())
		}
		found[s.Object] = s
	}
	for _, b := range m.blocks {
		if !b.isInstalled() {
			continue
		}
		for _, i := range b.items {
			if i.Is("Subscription."+k8s.OLMGroup, "ClusterExtension."+k8s.OLMv1Group) || i.Is("Deployment.apps") && i.ours != nil {
				add(i.live)
			}
			if i.Is("Subscription." + k8s.OLMGroup) {
				spec := k8s.Map(i.live.Body(), "spec")
				add(m.Snapshot.Get(k8s.Key{Group: k8s.OLMGroup, Kind: "CatalogSource", Namespace: k8s.Text(spec, "sourceNamespace"), Name: k8s.Text(spec, "source")}))
			}
		}
		for _, group := range m.Snapshot.Kind(k8s.OLMGroup, "OperatorGroup") {
			if group.Namespace == b.namespace {
				add(group)
			}
		}
	}
	m.plan.State = slices.SortedFunc(maps.Values(found), func(x, y State) int { return x.Object.Key().Compare(y.Object.Key()) })
	if m.plan.State == nil {
		m.plan.State = []State{}
	}
}

// SpecText returns the spec of an object as JSON.
func SpecText(o k8s.Object) string { return jsonText(k8s.Map(o, "spec")) }

// TemplateDigest returns the digest of the pod template of a Deployment or ReplicaSet. A Deployment and its
// current ReplicaSet have the same digest.
func TemplateDigest(o k8s.Object) string {
	return string(catalog.DigestOf([]byte(jsonText(k8s.Without(k8s.Map(o, "spec", "template"), "metadata", "labels", "pod-template-hash")))))
}

func jsonText(v map[string]any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("plan: not JSON: " + err.Error())
	}
	return string(text)
}

// CheckUnchanged returns an error if the lock or the rendered tree has changed since the plan was made.
func (p *Plan) CheckUnchanged(lock *lockfile.File, rendered []render.Rendered) error {
	switch {
	case p.Lock != LockDigest(lock):
		return errors.New("quayside.lock has changed since the plan was made: make a new plan, or restore that lock")
	case p.Tree != TreeDigest(rendered):
		return errors.New("the rendered tree has changed since the plan was made, by settings or by another version of quayside: make a new plan")
	}
	return nil
}
