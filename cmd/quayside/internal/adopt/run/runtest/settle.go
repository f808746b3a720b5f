package runtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// syncDelay is the time from the start of olm-operator until it has processed every object.
const syncDelay = 4 * time.Second

// Settle runs the controllers of the cluster until nothing changes: the Deployment controller, the garbage
// collector, and OLM if c.OLM is set and olm-operator has replicas. No time passes.
func (c *Cluster) Settle() { c.AdvanceTime(0) }

// AdvanceTime advances the time of the cluster. Before and afterwards, it runs the controllers until nothing
// changes.
func (c *Cluster) AdvanceTime(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	c.now += d
	c.settle()
}

func (c *Cluster) settle() {
	for {
		before := c.version + len(c.log)
		c.runOLM()
		c.updateDeployments()
		c.collectGarbage()
		if c.version+len(c.log) == before {
			return
		}
	}
}

// collectGarbage runs one round of the garbage collector.
func (c *Cluster) collectGarbage() {
	uids := map[string]k8s.Key{}
	for k, o := range c.objects {
		uids[k8s.Text(o, "metadata", "uid")] = k
	}
	for _, k := range c.keys() {
		o := c.objects[k]
		if finalizers := k8s.List(o, "metadata", "finalizers"); k8s.At(o, "metadata", "deletionTimestamp") != nil && slices.Contains(finalizers, any("orphan")) {
			c.removeOwner(k8s.Text(o, "metadata", "uid"))
			rest := slices.DeleteFunc(slices.Clone(finalizers), func(f any) bool { return f == "orphan" })
			c.change(o, k8s.With(o, any(rest), "metadata", "finalizers"), "orphan")
		}
	}
	for _, k := range c.keys() {
		o := c.objects[k]
		owners := k8s.Items(o, "metadata", "ownerReferences")
		if len(owners) == 0 || k8s.At(o, "metadata", "deletionTimestamp") != nil || slices.ContainsFunc(owners, func(r map[string]any) bool {
			_, there := uids[k8s.Text(r, "uid")]
			return there || strings.ToLower(k8s.Text(r, "kind")) == k8s.Text(r, "kind") // OLM writes some kinds in lower case, which cannot be looked up: assume that the owner exists
		}) {
			continue
		}
		c.remove(o, false, "gc")
	}
}

// removeOwner removes the owner references to a UID from all objects.
func (c *Cluster) removeOwner(uid string) {
	for _, k := range c.keys() {
		o := c.objects[k]
		owners := k8s.List(o, "metadata", "ownerReferences")
		rest := slices.DeleteFunc(slices.Clone(owners), func(r any) bool {
			m, _ := r.(map[string]any)
			return k8s.Text(m, "uid") == uid
		})
		switch {
		case len(rest) == len(owners):
		case len(rest) == 0:
			c.change(o, k8s.Without(o, "metadata", "ownerReferences"), "orphan")
		default:
			c.change(o, k8s.With(o, any(rest), "metadata", "ownerReferences"), "orphan")
		}
	}
}

// updateDeployments gives every Deployment its desired number of pods. For a new pod template, it creates a
// ReplicaSet.
func (c *Cluster) updateDeployments() {
	for _, k := range c.keys() {
		if k.Kind != "Deployment" || k.Group != "apps" {
			continue
		}
		o := c.objects[k]
		n := plan.Replicas(o)
		status := map[string]any{
			"observedGeneration": k8s.At(o, "metadata", "generation"),
			"conditions":         []any{map[string]any{"type": "Available", "status": "True"}},
		}
		if n > 0 {
			for _, field := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
				status[field] = n
			}
		}
		if k8s.At(o, "status", "conditions") != nil {
			status["conditions"] = k8s.At(o, "status", "conditions")
		}
		c.change(o, k8s.With(o, any(status), "status"), "deployment-controller")
		c.createReplicaSet(o)
	}
}

// createReplicaSet creates the ReplicaSet for a Deployment's pod template, if there is none.
func (c *Cluster) createReplicaSet(d k8s.Object) {
	uid := k8s.Text(d, "metadata", "uid")
	n := 0
	for _, k := range c.keys() {
		if k.Kind != "ReplicaSet" || k.Group != "apps" {
			continue
		}
		rs := c.objects[k]
		owned := slices.ContainsFunc(k8s.Items(rs, "metadata", "ownerReferences"), func(r map[string]any) bool { return k8s.Text(r, "uid") == uid })
		if !owned {
			continue
		}
		n++
		if k8s.Equal(podTemplate(rs), podTemplate(d)) {
			return
		}
	}
	rs := k8s.New("apps/v1", "ReplicaSet", d.Namespace(), fmt.Sprintf("%s-%08d", d.Name(), n))
	rs = k8s.With(rs, any(c.uid()), "metadata", "uid")
	rs = k8s.With(rs, []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": d.Name(), "uid": uid, "controller": true}}, "metadata", "ownerReferences")
	rs = k8s.With(rs, k8s.At(d, "spec", "template"), "spec", "template")
	if c.objects[rs.Key()] == nil {
		c.store(rs, "deployment-controller")
	}
}

func podTemplate(o k8s.Object) map[string]any {
	return k8s.Without(k8s.Map(o, "spec", "template"), "metadata", "labels", "pod-template-hash")
}

// finalizer is OLM's finalizer on ClusterServiceVersions.
const finalizer = "operators.coreos.com/csv-cleanup"

// olmProcess is a process of olm-operator.
type olmProcess struct {
	pod    string // identifies the process; empty: it is not running
	since  time.Duration
	synced bool // whether it has processed every object since it started
}

// olmPod returns an identifier of the running olm-operator process, or "" if OLM is not running. The identifier
// contains the annotations of the pod template, because a restart changes them.
func (c *Cluster) olmPod() string {
	for k, o := range c.objects {
		if k.Kind == "Deployment" && k.Name == "olm-operator" && c.OLM && plan.Replicas(o) > 0 {
			return fmt.Sprint(k, k8s.At(o, "spec", "template", "metadata", "annotations"))
		}
	}
	return ""
}

// runOLM simulates OLM as observed in clusters. A new process does nothing for syncDelay, then processes every
// object, and from then on reacts to changes. A process that already runs at the start of the simulation has
// processed every object.
func (c *Cluster) runOLM() {
	if pod := c.olmPod(); pod != c.process.pod || !c.seen {
		c.process, c.seen = olmProcess{pod: pod, since: c.now, synced: !c.seen}, true
	}
	if c.process.pod == "" || !c.process.synced && c.now-c.process.since < syncDelay {
		return
	}
	if !c.process.synced {
		c.process.synced = true
		c.deleteUnowned()
	}
	c.install()
	c.createOperators()
	for _, k := range c.keys() {
		o := c.objects[k]
		if o == nil || k.Kind != "ClusterServiceVersion" || isCopied(o) {
			continue
		}
		finalizers := k8s.List(o, "metadata", "finalizers")
		hasFinalizer := slices.Contains(finalizers, any(finalizer))
		dying := k8s.At(o, "metadata", "deletionTimestamp") != nil
		switch {
		case dying && hasFinalizer:
			c.cleanUp(k)
			rest := slices.DeleteFunc(slices.Clone(finalizers), func(f any) bool { return f == finalizer })
			c.change(o, k8s.With(o, any(rest), "metadata", "finalizers"), "olm")
		case !dying && !hasFinalizer:
			c.change(o, k8s.With(o, any(append(slices.Clone(finalizers), finalizer)), "metadata", "finalizers"), "olm")
		}
	}
}

// deleteUnowned deletes the objects that OLM deletes when it starts. These are copies whose original is
// missing, and APIServices whose labels name a missing ClusterServiceVersion.
func (c *Cluster) deleteUnowned() {
	for _, k := range c.keys() {
		o := c.objects[k]
		labels := k8s.TextMap(o, "metadata", "labels")
		csv := k8s.Key{Group: k8s.OLMGroup, Kind: "ClusterServiceVersion", Namespace: labels["olm.owner.namespace"], Name: labels["olm.owner"]}
		switch {
		case k.Kind == csv.Kind && isCopied(o):
			csv.Namespace, csv.Name = labels[snapshot.CopiedFrom], k.Name
		case k.Kind != "APIService" || labels["olm.owner.kind"] != csv.Kind:
			continue
		}
		if c.objects[csv] == nil && k8s.At(o, "metadata", "deletionTimestamp") == nil {
			c.remove(o, false, "olm")
		}
	}
}

func isCopied(csv k8s.Object) bool {
	return k8s.Text(csv, "metadata", "labels", snapshot.CopiedFrom) != ""
}

// createOperators creates an Operator object for every component label.
func (c *Cluster) createOperators() {
	for _, k := range c.keys() {
		for label := range k8s.TextMap(c.objects[k], "metadata", "labels") {
			name, ok := strings.CutPrefix(label, k8s.OLMGroup+"/")
			operator := k8s.New(k8s.OLMGroup+"/v1", "Operator", "", name)
			if ok && c.objects[operator.Key()] == nil {
				c.store(k8s.With(operator, any(c.uid()), "metadata", "uid"), "olm")
			}
		}
	}
}

// install creates the ClusterServiceVersions that Subscriptions request. It makes them owners of all objects in
// their namespace that have OLM's label, and restores the labels of their APIServices.
func (c *Cluster) install() {
	for _, k := range c.keys() {
		sub := c.objects[k]
		csv := c.csvs[k8s.Key{Group: k.Group, Kind: "ClusterServiceVersion", Namespace: k.Namespace, Name: k8s.Text(sub, "spec", "startingCSV")}]
		if k.Kind != "Subscription" || csv == nil || c.objects[csv.Key()] != nil {
			continue
		}
		csv = c.store(k8s.With(k8s.Copy(csv), any(c.uid()), "metadata", "uid"), "olm")
		owner := map[string]any{"apiVersion": csv.APIVersion(), "kind": csv.Kind(), "name": csv.Name(), "uid": k8s.At(csv, "metadata", "uid")}
		for _, k := range c.keys() {
			if o := c.objects[k]; k.Namespace == csv.Namespace() && k8s.Text(o, "metadata", "labels", "olm.managed") == "true" {
				owners := append(slices.Clone(k8s.List(o, "metadata", "ownerReferences")), owner)
				c.change(o, k8s.With(o, any(owners), "metadata", "ownerReferences"), "olm")
			}
		}
		for k, labels := range c.apis {
			if o := c.objects[k]; o != nil && labels["olm.owner"] == csv.Name() && labels["olm.owner.namespace"] == csv.Namespace() {
				c.change(o, k8s.With(o, any(maps.Clone(labels)), "metadata", "labels"), "olm")
			}
		}
	}
}

// cleanUp deletes the objects that OLM deletes when it removes its finalizer from a ClusterServiceVersion.
func (c *Cluster) cleanUp(csv k8s.Key) {
	owner := map[string]string{"olm.owner": csv.Name, "olm.owner.namespace": csv.Namespace, "olm.owner.kind": "ClusterServiceVersion"}
	for _, k := range c.keys() {
		o := c.objects[k]
		labels := k8s.TextMap(o, "metadata", "labels")
		mine := true
		for key, value := range maps.All(owner) {
			mine = mine && labels[key] == value
		}
		copied := k.Kind == "ClusterServiceVersion" && labels[snapshot.CopiedFrom] == csv.Namespace && k.Name == csv.Name
		if copied || mine && k.Namespace == "" && !k8s.IsCRD(o) {
			c.remove(o, false, "olm")
		}
		if k8s.IsCRD(o) && strings.Contains(fmt.Sprint(k8s.Map(o, "metadata", "annotations")), csv.Namespace+"/"+csv.Name) {
			c.change(o, k8s.With(o, any(map[string]any{"strategy": "None"}), "spec", "conversion"), "olm")
		}
	}
}
