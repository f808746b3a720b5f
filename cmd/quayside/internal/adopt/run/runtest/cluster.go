// Package runtest provides an in-memory cluster for tests of the migration from OLM. Its API server has UIDs,
// resourceVersions, preconditions, finalizers, SubjectAccessReviews, and server-side apply with the code of
// Kubernetes. The garbage collector, the Deployment controller and OLM are simulated, and run only on request.
//
// Start with [New] and [Cluster.Settle].
package runtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// Call is one request to the API server.
type Call struct {
	Verb   string // "get", "list", "review", "apply", "patch", "delete", "create"
	Object k8s.Ref
	DryRun bool
}

// Writes reports whether the request changes something.
func (c Call) Writes() bool {
	return !c.DryRun && !slices.Contains([]string{"get", "list", "review"}, c.Verb)
}

// Cluster is an in-memory cluster. It is safe for concurrent use.
type Cluster struct {
	Before func(Call) error // called before the server handles a request; an error is the response
	After  func(Call) error // called after the server handled a request; an error replaces the response
	OLM    bool             // whether Settle simulates OLM; it acts only while its controllers have replicas

	mu          sync.Mutex
	types       *admit.Types
	fields      fieldTracker
	objects     map[k8s.Key]k8s.Object
	sorted      []k8s.Key                  // cache: sorted keys of objects; nil: out of date
	csvs        map[k8s.Key]k8s.Object     // ClusterServiceVersions added by Put, which OLM can install again
	apis        map[k8s.Key]map[string]any // labels of the APIServices added by Put
	now         time.Duration
	process     olmProcess
	seen        bool // whether OLM has run before
	version     int
	uids        int
	log         []Event
	permissions permissionCache
}

// Event is a change of an object.
type Event struct {
	Key  k8s.Key
	UID  string
	What string // "created", "changed", "deleted"
	By   string // the field manager, "gc", "orphan" (garbage collector without dependents), "olm", "deployment-controller"
}

var _ run.Client = (*Cluster)(nil)

// New returns a cluster that contains objects. They keep their UIDs.
func New(objects ...k8s.Object) *Cluster {
	c := &Cluster{types: admit.NewTypes(), fields: newFields(), objects: map[k8s.Key]k8s.Object{}, csvs: map[k8s.Key]k8s.Object{}, apis: map[k8s.Key]map[string]any{}}
	for _, o := range objects {
		c.Put(o)
	}
	c.log = nil
	return c
}

// Put adds or replaces an object, with the defaults of its kind. It does not call Before and After.
func (c *Cluster) Put(o k8s.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, err := c.withDefaults(k8s.Copy(o))
	if err != nil {
		panic(fmt.Sprintf("runtest: %s: %v", k8s.RefTo(o), err))
	}
	if k8s.Text(o, "metadata", "uid") == "" {
		o = k8s.With(o, any(c.uid()), "metadata", "uid")
	}
	switch o = c.store(o, "test"); o.Kind() {
	case "ClusterServiceVersion":
		c.csvs[o.Key()] = o
	case "APIService":
		c.apis[o.Key()] = k8s.Map(o, "metadata", "labels")
	}
}

// Remove removes an object immediately. It does not call Before and After.
func (c *Cluster) Remove(ref k8s.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(ref.Key(), "test")
}

// Edit changes an existing object in place. It does not call Before and After.
func (c *Cluster) Edit(ref k8s.Ref, edit func(k8s.Object)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.objects[ref.Key()]
	if old == nil {
		panic(fmt.Sprintf("runtest: no %s", ref))
	}
	o := k8s.Copy(old)
	edit(o)
	c.change(old, o, "test")
}

// Object returns an object, or nil if it does not exist. The caller must not modify it.
func (c *Cluster) Object(ref k8s.Ref) k8s.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[ref.Key()]
}

// Objects returns all objects, sorted by key. The caller must not modify them.
func (c *Cluster) Objects() []k8s.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []k8s.Object
	for _, k := range c.keys() {
		out = append(out, c.objects[k])
	}
	return out
}

// Events returns the events since the previous call of Events.
func (c *Cluster) Events() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.log
	c.log = nil
	return out
}

func (c *Cluster) keys() []k8s.Key {
	if c.sorted == nil {
		c.sorted = slices.SortedFunc(maps.Keys(c.objects), k8s.Key.Compare)
	}
	return c.sorted
}

func (c *Cluster) uid() string {
	c.uids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", c.uids)
}

// store stores an object with a new resourceVersion.
func (c *Cluster) store(o k8s.Object, by string) k8s.Object {
	c.version++
	what := "changed"
	if c.objects[o.Key()] == nil {
		what = "created"
		c.sorted = nil
	}
	o = k8s.With(o, any(strconv.Itoa(c.version)), "metadata", "resourceVersion")
	c.objects[o.Key()] = o
	c.dropCachedPermissions(o)
	c.log = append(c.log, Event{o.Key(), k8s.Text(o, "metadata", "uid"), what, by})
	return o
}

// dropCachedPermissions clears the cached permissions if o is an RBAC object.
func (c *Cluster) dropCachedPermissions(o k8s.Object) {
	if o.Group() == k8s.RBACGroup {
		c.permissions = permissionCache{}
	}
}

// drop removes an object. If the object is a CRD, drop also removes the custom resources.
func (c *Cluster) drop(key k8s.Key, by string) {
	o := c.objects[key]
	if o == nil {
		return
	}
	delete(c.objects, key)
	c.sorted = nil
	c.dropCachedPermissions(o)
	c.log = append(c.log, Event{key, k8s.Text(o, "metadata", "uid"), "deleted", by})
	if !k8s.IsCRD(o) {
		return
	}
	for _, k := range slices.Clone(c.keys()) {
		if k.Group == k8s.Text(o, "spec", "group") && k.Kind == k8s.Text(o, "spec", "names", "kind") {
			c.drop(k, by)
		}
	}
}

// change replaces old by o if they differ. If o is being deleted and has no finalizers, change removes the
// object.
func (c *Cluster) change(old, o k8s.Object, by string) k8s.Object {
	o = k8s.With(o, k8s.At(old, "metadata", "resourceVersion"), "metadata", "resourceVersion")
	if k8s.Equal(withoutTimes(old), withoutTimes(o)) {
		return old
	}
	if !k8s.Equal(withoutStatus(old), withoutStatus(o)) {
		n, _ := k8s.At(old, "metadata", "generation").(int64)
		o = k8s.With(o, any(n+1), "metadata", "generation")
	}
	if k8s.At(o, "metadata", "deletionTimestamp") != nil && len(k8s.List(o, "metadata", "finalizers")) == 0 {
		c.drop(o.Key(), by)
		return o
	}
	return c.store(o, by)
}

// withoutStatus returns the part of an object whose change increments metadata.generation.
func withoutStatus(o k8s.Object) k8s.Object { return k8s.Without(k8s.Without(o, "metadata"), "status") }

// withoutTimes returns an object without the timestamps in its managedFields.
func withoutTimes(o k8s.Object) k8s.Object {
	entries := k8s.Items(o, "metadata", "managedFields")
	if len(entries) == 0 {
		return k8s.Without(o, "metadata", "managedFields")
	}
	out := make([]any, len(entries))
	for i, e := range entries {
		out[i] = k8s.Without(e, "time")
	}
	return k8s.With(o, any(out), "metadata", "managedFields")
}

// call calls Before, do and After for a request.
func (c *Cluster) call(ctx context.Context, call Call, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Before != nil {
		if err := c.Before(call); err != nil {
			return err
		}
	}
	if err := c.withLock(do); err != nil {
		return call.convertError(err)
	}
	if c.After != nil {
		return c.After(call)
	}
	return nil
}

// convertError converts an error of the API server to the error that the client would return for it.
func (c Call) convertError(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return &cluster.RequestError{Verb: c.Verb, Object: c.Object, Err: status}
	}
	return err
}

func conflictError(ref k8s.Ref, message string) error {
	return apierrors.NewConflict(resourceOf(ref), ref.Name, errors.New(message))
}

func resourceOf(ref k8s.Ref) schema.GroupResource {
	return schema.GroupResource{Group: k8s.Group(ref.APIVersion), Resource: resourceName(k8s.Group(ref.APIVersion), ref.Kind)}
}

func (c *Cluster) withLock(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return do()
}

// Get implements verify.Reader. For a Secret it returns only the metadata. The result must not be
// modified.
func (c *Cluster) Get(ctx context.Context, ref k8s.Ref) (out k8s.Object, err error) {
	err = c.call(ctx, Call{Verb: "get", Object: ref}, func() error {
		if o := c.objects[ref.Key()]; o != nil {
			out = metadataOnly(o)
		}
		return nil
	})
	return out, err
}

func metadataOnly(o k8s.Object) k8s.Object {
	if !o.Is("", "Secret") {
		return o
	}
	return k8s.Object{"apiVersion": "v1", "kind": "Secret", "metadata": o["metadata"]}
}

// Record implements run.Client.
func (c *Cluster) Record(ctx context.Context, o k8s.Object) (out k8s.Object, err error) {
	ref := k8s.RefTo(o)
	err = c.call(ctx, Call{Verb: "get", Object: ref}, func() error { out = k8s.Copy(c.objects[ref.Key()]); return nil })
	return out, err
}

// List implements verify.Reader. The result must not be modified.
func (c *Cluster) List(ctx context.Context, apiVersion, kind, namespace, selector string) (out []k8s.Object, err error) {
	wanted, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	err = c.call(ctx, Call{Verb: "list", Object: k8s.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace}}, func() error {
		group := k8s.Group(apiVersion)
		for _, k := range c.keys() {
			if k.Group != group || k.Kind != kind || namespace != "" && k.Namespace != namespace {
				continue
			}
			o := c.objects[k]
			if wanted.Matches(labels.Set(k8s.TextMap(o, "metadata", "labels"))) {
				if !snapshot.IsReleaseRecord(k) {
					o = metadataOnly(o)
				}
				out = append(out, o)
			}
		}
		return nil
	})
	return out, err
}

// First implements verify.ProbeReader.
func (c *Cluster) First(ctx context.Context, apiVersion, kind string, limit int) ([]k8s.Object, error) {
	out, err := c.List(ctx, apiVersion, kind, "", "")
	return out[:min(limit, len(out))], err
}

// TryUpdate implements verify.ProbeReader.
func (c *Cluster) TryUpdate(ctx context.Context, ref k8s.Ref) error {
	_, err := c.Patch(ctx, ref, cluster.Patch{Merge: map[string]any{}}, true)
	return err
}

// Allowed implements verify.Reader.
func (c *Cluster) Allowed(ctx context.Context, r verify.Review) (allowed bool, err error) {
	err = c.call(ctx, Call{Verb: "review"}, func() error {
		allowed, err = c.allowed(r)
		return err
	})
	return allowed, err
}

func (c *Cluster) allowed(r verify.Review) (bool, error) {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(r.Account, "system:serviceaccount:"), ":")
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	want := k8s.Grant{Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Resource: resource, Name: r.Name}
	if r.Path != "" {
		want = k8s.Grant{Verb: r.Verb, URL: r.Path}
	}
	has, err := c.permissions.permissionsOf(c.objects, k8s.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name})
	return has.Covers(want), err
}

// permissionCache caches the permissions of subjects until an RBAC object changes.
type permissionCache struct {
	model *k8s.Permissions
	sets  map[k8s.Subject]k8s.GrantSet
}

func (r *permissionCache) permissionsOf(objects map[k8s.Key]k8s.Object, s k8s.Subject) (k8s.GrantSet, error) {
	if r.model == nil {
		var all []map[string]any
		for _, o := range objects {
			if o.Group() == k8s.RBACGroup {
				all = append(all, o)
			}
		}
		m, err := k8s.NewPermissions(all)
		if err != nil {
			return nil, err
		}
		*r = permissionCache{m, map[k8s.Subject]k8s.GrantSet{}}
	}
	if _, known := r.sets[s]; !known {
		r.sets[s] = k8s.NewGrantSet(r.model.Of(s))
	}
	return r.sets[s], nil
}

// Apply implements run.Client.
func (c *Cluster) Apply(ctx context.Context, o k8s.Object, manager string, force, dryRun bool) (out k8s.Object, err error) {
	ref := k8s.RefTo(o)
	err = c.call(ctx, Call{"apply", ref, dryRun}, func() error {
		old := c.objects[ref.Key()]
		uid := k8s.Text(o, "metadata", "uid")
		if uid != "" && uid != k8s.Text(old, "metadata", "uid") {
			return conflictError(ref, "uid mismatch")
		}
		if err := c.checkNamespace(ref); err != nil {
			return err
		}
		merged, err := c.fields.apply(old, o, manager, force)
		if err != nil {
			return err
		}
		out, err = c.storeResult(old, merged, manager, dryRun)
		return err
	})
	return k8s.Copy(out), err
}

// checkNamespace returns an error if the namespace of an object does not exist.
func (c *Cluster) checkNamespace(ref k8s.Ref) error {
	if ref.Namespace != "" && c.objects[k8s.Key{Kind: "Namespace", Name: ref.Namespace}] == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, ref.Namespace)
	}
	return nil
}

// storeResult stores the result of a request, unless dryRun is set. old is nil for a new object.
func (c *Cluster) storeResult(old, o k8s.Object, by string, dryRun bool) (k8s.Object, error) {
	o, err := c.withDefaults(o)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if dryRun {
		return o, nil
	}
	if old != nil {
		return c.change(old, o, by), nil
	}
	o = k8s.With(o, any(c.uid()), "metadata", "uid")
	o = k8s.With(o, any(int64(1)), "metadata", "generation")
	o = k8s.With(o, any(time.Unix(int64(c.version), 0).UTC().Format(time.RFC3339)), "metadata", "creationTimestamp")
	return c.store(o, by), nil
}

// withDefaults returns an object with the API server's defaults.
func (c *Cluster) withDefaults(o k8s.Object) (k8s.Object, error) {
	if k8s.IsCRD(o) {
		return o, nil
	}
	stored, err := c.types.Stored(o)
	if err != nil {
		return o, err
	}
	stored["metadata"] = o["metadata"]
	if status, ok := o["status"]; ok {
		stored["status"] = status
	}
	return stored, nil
}

// Patch implements run.Client.
func (c *Cluster) Patch(ctx context.Context, ref k8s.Ref, patch cluster.Patch, dryRun bool) (out k8s.Object, err error) {
	err = c.call(ctx, Call{"patch", ref, dryRun}, func() error {
		old := c.objects[ref.Key()]
		if old == nil {
			return apierrors.NewNotFound(resourceOf(ref), ref.Name)
		}
		o, err := applyPatch(old, patch)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		for _, field := range []string{"uid", "resourceVersion"} {
			if was, is := k8s.Text(old, "metadata", field), k8s.Text(o, "metadata", field); was != is {
				return conflictError(ref, fmt.Sprintf("%s in precondition: %s, in object: %s", field, is, was))
			}
		}
		if o, err = c.fields.update(old, o, run.Manager); err != nil {
			return err
		}
		out, err = c.storeResult(old, o, run.Manager, dryRun)
		return err
	})
	return k8s.Copy(out), err
}

// Delete implements run.Client.
func (c *Cluster) Delete(ctx context.Context, ref k8s.Ref, opt cluster.DeleteOptions, dryRun bool) error {
	return c.call(ctx, Call{"delete", ref, dryRun}, func() error {
		o := c.objects[ref.Key()]
		if o == nil {
			return nil
		}
		for field, want := range map[string]string{"uid": opt.UID, "resourceVersion": opt.ResourceVersion} {
			if is := k8s.Text(o, "metadata", field); want != "" && want != is {
				return conflictError(ref, fmt.Sprintf("the %s in the precondition (%s) does not match that of the object (%s)", field, want, is))
			}
		}
		if !dryRun {
			c.remove(o, opt.Orphan, run.Manager)
		}
		return nil
	})
}

// remove starts the deletion of an object. An object without finalizers is removed at once.
func (c *Cluster) remove(o k8s.Object, orphan bool, by string) {
	finalizers := k8s.List(o, "metadata", "finalizers")
	if orphan && !slices.Contains(finalizers, any("orphan")) {
		finalizers = append(slices.Clone(finalizers), "orphan")
	}
	if len(finalizers) == 0 {
		c.drop(o.Key(), by)
		return
	}
	if k8s.At(o, "metadata", "deletionTimestamp") == nil {
		o = k8s.With(o, any("2026-01-01T00:00:00Z"), "metadata", "deletionTimestamp")
	}
	c.store(k8s.With(o, any(finalizers), "metadata", "finalizers"), by)
}

// Create implements run.Client.
func (c *Cluster) Create(ctx context.Context, o k8s.Object, dryRun bool) (out k8s.Object, err error) {
	ref := k8s.RefTo(o)
	err = c.call(ctx, Call{"create", ref, dryRun}, func() error {
		if c.objects[ref.Key()] != nil {
			return apierrors.NewAlreadyExists(resourceOf(ref), ref.Name)
		}
		if err := c.checkNamespace(ref); err != nil {
			return err
		}
		made, err := c.fields.update(nil, o, run.Manager)
		if err != nil {
			return err
		}
		out, err = c.storeResult(nil, made, run.Manager, dryRun)
		return err
	})
	return k8s.Copy(out), err
}
