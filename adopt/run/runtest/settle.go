package runtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
)

// Settle has the controllers of the cluster do what there is to do, until nothing
// is left: OLM, where its Deployments have pods, the Deployment controller and the
// garbage collector.
func (c *Cluster) Settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		before := c.version + len(c.log)
		if c.OLM && c.olmRuns() {
			c.olm()
		}
		c.deployments()
		c.collect()
		if c.version+len(c.log) == before {
			return
		}
	}
}

// collect is one round of the garbage collector.
func (c *Cluster) collect() {
	uids := map[string]kobj.Key{}
	for k, o := range c.objects {
		uids[kobj.Text(o, "metadata", "uid")] = k
	}
	for _, k := range c.keys() {
		o := c.objects[k]
		if finalizers := kobj.List(o, "metadata", "finalizers"); kobj.At(o, "metadata", "deletionTimestamp") != nil && slices.Contains(finalizers, any("orphan")) {
			c.disown(kobj.Text(o, "metadata", "uid"))
			rest := slices.DeleteFunc(slices.Clone(finalizers), func(f any) bool { return f == "orphan" })
			c.change(o, kobj.With(o, any(rest), "metadata", "finalizers"), "orphan")
		}
	}
	for _, k := range c.keys() {
		o := c.objects[k]
		owners := kobj.Items(o, "metadata", "ownerReferences")
		if len(owners) == 0 || kobj.At(o, "metadata", "deletionTimestamp") != nil || slices.ContainsFunc(owners, func(r map[string]any) bool {
			_, there := uids[kobj.Text(r, "uid")]
			return there || strings.ToLower(kobj.Text(r, "kind")) == kobj.Text(r, "kind") // a kind in lower case cannot be looked up
		}) {
			continue
		}
		c.remove(o, false, "gc")
	}
}

// disown takes the references to an owner out of what it owns.
func (c *Cluster) disown(uid string) {
	for _, k := range c.keys() {
		o := c.objects[k]
		owners := kobj.List(o, "metadata", "ownerReferences")
		rest := slices.DeleteFunc(slices.Clone(owners), func(r any) bool {
			m, _ := r.(map[string]any)
			return kobj.Text(m, "uid") == uid
		})
		switch {
		case len(rest) == len(owners):
		case len(rest) == 0:
			c.change(o, kobj.Without(o, "metadata", "ownerReferences"), "orphan")
		default:
			c.change(o, kobj.With(o, any(rest), "metadata", "ownerReferences"), "orphan")
		}
	}
}

// deployments makes the pods of every Deployment as many as it wants, and a
// ReplicaSet of each template that it has had.
func (c *Cluster) deployments() {
	for _, k := range c.keys() {
		if k.Kind != "Deployment" || k.Group != "apps" {
			continue
		}
		o := c.objects[k]
		n, ok := kobj.At(o, "spec", "replicas").(int64)
		if !ok {
			n = 1
		}
		status := map[string]any{
			"observedGeneration": kobj.At(o, "metadata", "generation"),
			"conditions":         []any{map[string]any{"type": "Available", "status": "True"}},
		}
		if n > 0 {
			for _, field := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
				status[field] = n
			}
		}
		if kobj.At(o, "status", "conditions") != nil {
			status["conditions"] = kobj.At(o, "status", "conditions")
		}
		c.change(o, kobj.With(o, any(status), "status"), "deployment-controller")
		c.replicaSet(o)
	}
}

// replicaSet makes the ReplicaSet of a Deployment's template, where it has none.
func (c *Cluster) replicaSet(d kobj.Object) {
	uid := kobj.Text(d, "metadata", "uid")
	n := 0
	for _, k := range c.keys() {
		if k.Kind != "ReplicaSet" || k.Group != "apps" {
			continue
		}
		rs := c.objects[k]
		owned := slices.ContainsFunc(kobj.Items(rs, "metadata", "ownerReferences"), func(r map[string]any) bool { return kobj.Text(r, "uid") == uid })
		if !owned {
			continue
		}
		n++
		if kobj.Equal(template(rs), template(d)) {
			return
		}
	}
	rs := kobj.New("apps/v1", "ReplicaSet", d.Namespace(), fmt.Sprintf("%s-%08d", d.Name(), n))
	rs = kobj.With(rs, any(c.uid()), "metadata", "uid")
	rs = kobj.With(rs, []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": d.Name(), "uid": uid, "controller": true}}, "metadata", "ownerReferences")
	rs = kobj.With(rs, kobj.At(d, "spec", "template"), "spec", "template")
	if c.objects[rs.Key()] == nil {
		c.store(rs, "deployment-controller")
	}
}

func template(o kobj.Object) map[string]any {
	return kobj.Without(kobj.Map(o, "spec", "template"), "metadata", "labels", "pod-template-hash")
}

// OLM's finalizer and the annotations without which it forgets a
// ClusterServiceVersion.
const finalizer = "operators.coreos.com/csv-cleanup"

// olmRuns reports whether olm-operator has a pod.
func (c *Cluster) olmRuns() bool {
	for k, o := range c.objects {
		if k.Kind == "Deployment" && k.Name == "olm-operator" {
			n, _ := kobj.At(o, "spec", "replicas").(int64)
			return n > 0
		}
	}
	return false
}

// olm does what OLM was seen to do to ClusterServiceVersions that are deleted, and to
// copies of one that is gone.
func (c *Cluster) olm() {
	c.install()
	for _, k := range c.keys() {
		o := c.objects[k]
		if o == nil || k.Kind != "ClusterServiceVersion" {
			continue
		}
		labels := kobj.TextMap(o, "metadata", "labels")
		from, copied := labels["olm.copiedFrom"]
		finalizers := kobj.List(o, "metadata", "finalizers")
		held := slices.Contains(finalizers, any(finalizer))
		dying := kobj.At(o, "metadata", "deletionTimestamp") != nil
		switch {
		case copied && !dying && c.objects[kobj.Key{Group: k.Group, Kind: k.Kind, Namespace: from, Name: k.Name}] == nil:
			c.remove(o, false, "olm")
		case copied:
		case dying && held:
			c.cleanUp(k)
			rest := slices.DeleteFunc(slices.Clone(finalizers), func(f any) bool { return f == finalizer })
			c.change(o, kobj.With(o, any(rest), "metadata", "finalizers"), "olm")
		case !dying && !held:
			c.change(o, kobj.With(o, any(append(slices.Clone(finalizers), finalizer)), "metadata", "finalizers"), "olm")
		}
	}
}

// install makes the ClusterServiceVersions that Subscriptions ask for and that own
// what bears OLM's mark in their namespace.
func (c *Cluster) install() {
	for _, k := range c.keys() {
		sub := c.objects[k]
		csv := c.csvs[kobj.Key{Group: k.Group, Kind: "ClusterServiceVersion", Namespace: k.Namespace, Name: kobj.Text(sub, "spec", "startingCSV")}]
		if k.Kind != "Subscription" || csv == nil || c.objects[csv.Key()] != nil {
			continue
		}
		csv = c.store(kobj.With(kobj.Copy(csv), any(c.uid()), "metadata", "uid"), "olm")
		owner := map[string]any{"apiVersion": csv.APIVersion(), "kind": csv.Kind(), "name": csv.Name(), "uid": kobj.At(csv, "metadata", "uid")}
		for _, k := range c.keys() {
			if o := c.objects[k]; k.Namespace == csv.Namespace() && kobj.Text(o, "metadata", "labels", "olm.managed") == "true" {
				owners := append(slices.Clone(kobj.List(o, "metadata", "ownerReferences")), owner)
				c.change(o, kobj.With(o, any(owners), "metadata", "ownerReferences"), "olm")
			}
		}
	}
}

// cleanUp deletes what OLM's finalizer deletes.
func (c *Cluster) cleanUp(csv kobj.Key) {
	owner := map[string]string{"olm.owner": csv.Name, "olm.owner.namespace": csv.Namespace, "olm.owner.kind": "ClusterServiceVersion"}
	for _, k := range c.keys() {
		o := c.objects[k]
		labels := kobj.TextMap(o, "metadata", "labels")
		mine := true
		for key, value := range maps.All(owner) {
			mine = mine && labels[key] == value
		}
		if mine && k.Namespace == "" && !kobj.IsCRD(o) {
			c.remove(o, false, "olm")
		}
		if kobj.IsCRD(o) && strings.Contains(fmt.Sprint(kobj.Map(o, "metadata", "annotations")), csv.Namespace+"/"+csv.Name) {
			c.change(o, kobj.With(o, any(map[string]any{"strategy": "None"}), "spec", "conversion"), "olm")
		}
	}
}
