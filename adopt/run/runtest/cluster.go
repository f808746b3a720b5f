// Package runtest is a cluster for tests of what leads operators out of OLM: an API
// server of values, with UIDs and resourceVersions, preconditions, finalizers,
// server-side apply by the API machinery's own code, SubjectAccessReviews, and a
// garbage collector, Deployment controller and OLM that act when they are asked to.
//
// Start from [New] and [Cluster.Settle].
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

	"github.com/quayside/quayside/adopt/run"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/rbac"
)

// Call is one request.
type Call struct {
	Verb   string // "get", "list", "review", "apply", "patch", "delete", "create"
	Object kobj.Ref
	DryRun bool
}

// Writes reports whether the request changes something.
func (c Call) Writes() bool {
	return !c.DryRun && !slices.Contains([]string{"get", "list", "review"}, c.Verb)
}

// Cluster is a cluster of values. It is for use by several goroutines at once.
type Cluster struct {
	Before func(Call) error // sees each request before the server does, and may answer it
	After  func(Call) error // sees each request after the server took it, and may lose the answer
	OLM    bool             // Settle does what OLM does while its controllers run

	mu      sync.Mutex
	types   *admit.Types
	fields  fields
	objects map[kobj.Key]kobj.Object
	sorted  []kobj.Key               // the keys of objects; nil where one came or went since
	csvs    map[kobj.Key]kobj.Object // what OLM can install: the ClusterServiceVersions that were put there
	version int
	uids    int
	log     []Event
	rights  rights
}

// Event is what became of an object.
type Event struct {
	Key  kobj.Key
	UID  string
	What string // "created", "changed", "deleted"
	By   string // who: the field manager, "gc", "orphan" (where the garbage collector lets it go), "olm", "deployment-controller"
}

var _ run.Cluster = (*Cluster)(nil)

// New returns a cluster with these objects, which keep the UIDs that they have.
func New(objects ...kobj.Object) *Cluster {
	c := &Cluster{types: admit.NewTypes(), fields: newFields(), objects: map[kobj.Key]kobj.Object{}, csvs: map[kobj.Key]kobj.Object{}}
	for _, o := range objects {
		c.Put(o)
	}
	c.log = nil
	return c
}

// Put adds an object, with its defaults, or puts it in place of the one of its name.
// It asks nobody.
func (c *Cluster) Put(o kobj.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, err := c.defaulted(kobj.Copy(o))
	if err != nil {
		panic(fmt.Sprintf("runtest: %s: %v", kobj.RefTo(o), err))
	}
	if kobj.Text(o, "metadata", "uid") == "" {
		o = kobj.With(o, any(c.uid()), "metadata", "uid")
	}
	if o = c.store(o, "test"); o.Kind() == "ClusterServiceVersion" {
		c.csvs[o.Key()] = o
	}
}

// Remove takes an object away at once. It asks nobody.
func (c *Cluster) Remove(ref kobj.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(ref.Key(), "test")
}

// Edit changes an object in place; it must be there. It asks nobody.
func (c *Cluster) Edit(ref kobj.Ref, edit func(kobj.Object)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.objects[ref.Key()]
	if old == nil {
		panic(fmt.Sprintf("runtest: no %s", ref))
	}
	o := kobj.Copy(old)
	edit(o)
	c.change(old, o, "test")
}

// Object returns what is there, nil where nothing is. Nobody may modify it.
func (c *Cluster) Object(ref kobj.Ref) kobj.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[ref.Key()]
}

// Objects returns everything, by key. Nobody may modify it.
func (c *Cluster) Objects() []kobj.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []kobj.Object
	for _, k := range c.keys() {
		out = append(out, c.objects[k])
	}
	return out
}

// Events returns what happened since the last call.
func (c *Cluster) Events() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.log
	c.log = nil
	return out
}

func (c *Cluster) keys() []kobj.Key {
	if c.sorted == nil {
		c.sorted = slices.SortedFunc(maps.Keys(c.objects), kobj.Key.Compare)
	}
	return c.sorted
}

func (c *Cluster) uid() string {
	c.uids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", c.uids)
}

// store keeps an object in its next version.
func (c *Cluster) store(o kobj.Object, by string) kobj.Object {
	c.version++
	what := "changed"
	if c.objects[o.Key()] == nil {
		what = "created"
		c.sorted = nil
	}
	o = kobj.With(o, any(strconv.Itoa(c.version)), "metadata", "resourceVersion")
	c.objects[o.Key()] = o
	c.noted(o)
	c.log = append(c.log, Event{o.Key(), kobj.Text(o, "metadata", "uid"), what, by})
	return o
}

// noted forgets what an object that changed may have said of rights.
func (c *Cluster) noted(o kobj.Object) {
	if o.Group() == rbacGroup {
		c.rights = rights{}
	}
}

func (c *Cluster) drop(key kobj.Key, by string) {
	if o := c.objects[key]; o != nil {
		delete(c.objects, key)
		c.sorted = nil
		c.noted(o)
		c.log = append(c.log, Event{key, kobj.Text(o, "metadata", "uid"), "deleted", by})
	}
}

// change puts an object in place of its former self, where they differ, and
// removes it where nothing holds up its deletion any more.
func (c *Cluster) change(old, o kobj.Object, by string) kobj.Object {
	o = kobj.With(o, kobj.At(old, "metadata", "resourceVersion"), "metadata", "resourceVersion")
	if kobj.Equal(timeless(old), timeless(o)) {
		return old
	}
	if !kobj.Equal(content(old), content(o)) {
		n, _ := kobj.At(old, "metadata", "generation").(int64)
		o = kobj.With(o, any(n+1), "metadata", "generation")
	}
	if kobj.At(o, "metadata", "deletionTimestamp") != nil && len(kobj.List(o, "metadata", "finalizers")) == 0 {
		c.drop(o.Key(), by)
		return o
	}
	return c.store(o, by)
}

// content is what generation counts the changes of.
func content(o kobj.Object) kobj.Object { return kobj.Without(kobj.Without(o, "metadata"), "status") }

// timeless returns an object without the times at which fields were managed.
func timeless(o kobj.Object) kobj.Object {
	entries := kobj.Items(o, "metadata", "managedFields")
	if len(entries) == 0 {
		return kobj.Without(o, "metadata", "managedFields")
	}
	out := make([]any, len(entries))
	for i, e := range entries {
		out[i] = kobj.Without(e, "time")
	}
	return kobj.With(o, any(out), "metadata", "managedFields")
}

// call is the way of every request: the hooks around what the server does.
func (c *Cluster) call(ctx context.Context, call Call, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Before != nil {
		if err := c.Before(call); err != nil {
			return err
		}
	}
	if err := c.locked(do); err != nil {
		return call.refused(err)
	}
	if c.After != nil {
		return c.After(call)
	}
	return nil
}

// refused returns the error of a request as the client returns it.
func (c Call) refused(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return &cluster.RequestError{Verb: c.Verb, Object: c.Object, Err: status}
	}
	return err
}

func conflict(ref kobj.Ref, message string) error {
	return apierrors.NewConflict(resourceOf(ref), ref.Name, errors.New(message))
}

func resourceOf(ref kobj.Ref) schema.GroupResource {
	return schema.GroupResource{Group: kobj.Group(ref.APIVersion), Resource: plural(ref.Kind)}
}

func (c *Cluster) locked(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return do()
}

// Get implements verify.Reader. Of a Secret it returns the head. Nobody may modify
// what it returns.
func (c *Cluster) Get(ctx context.Context, ref kobj.Ref) (out kobj.Object, err error) {
	err = c.call(ctx, Call{Verb: "get", Object: ref}, func() error {
		if o := c.objects[ref.Key()]; o != nil {
			out = head(o)
		}
		return nil
	})
	return out, err
}

func head(o kobj.Object) kobj.Object {
	if !o.Is("", "Secret") {
		return o
	}
	return kobj.Object{"apiVersion": "v1", "kind": "Secret", "metadata": o["metadata"]}
}

// List implements verify.Reader. Nobody may modify what it returns.
func (c *Cluster) List(ctx context.Context, apiVersion, kind, namespace, selector string) (out []kobj.Object, err error) {
	wanted, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	err = c.call(ctx, Call{Verb: "list", Object: kobj.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace}}, func() error {
		group := kobj.Group(apiVersion)
		for _, k := range c.keys() {
			if k.Group != group || k.Kind != kind || namespace != "" && k.Namespace != namespace {
				continue
			}
			o := c.objects[k]
			if wanted.Matches(labels.Set(kobj.TextMap(o, "metadata", "labels"))) {
				out = append(out, head(o))
			}
		}
		return nil
	})
	return out, err
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
	want := rbac.Grant{Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Resource: resource, Name: r.Name}
	if r.Path != "" {
		want = rbac.Grant{Verb: r.Verb, URL: r.Path}
	}
	has, err := c.rights.of(c.objects, rbac.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name})
	return has.Covers(want), err
}

// rights remembers what subjects may do, until an object that is about that changes.
type rights struct {
	model *rbac.Model
	sets  map[rbac.Subject]rbac.Set
}

func (r *rights) of(objects map[kobj.Key]kobj.Object, s rbac.Subject) (rbac.Set, error) {
	if r.model == nil {
		var all []map[string]any
		for _, o := range objects {
			if o.Group() == rbacGroup {
				all = append(all, o)
			}
		}
		m, err := rbac.New(all)
		if err != nil {
			return nil, err
		}
		*r = rights{m, map[rbac.Subject]rbac.Set{}}
	}
	if _, known := r.sets[s]; !known {
		r.sets[s] = rbac.NewSet(r.model.Of(s))
	}
	return r.sets[s], nil
}

const rbacGroup = "rbac.authorization.k8s.io"

// Apply implements run.Cluster.
func (c *Cluster) Apply(ctx context.Context, o kobj.Object, manager string, force, dryRun bool) (out kobj.Object, err error) {
	ref := kobj.RefTo(o)
	err = c.call(ctx, Call{"apply", ref, dryRun}, func() error {
		old := c.objects[ref.Key()]
		uid := kobj.Text(o, "metadata", "uid")
		if uid != "" && uid != kobj.Text(old, "metadata", "uid") {
			return conflict(ref, "uid mismatch")
		}
		if err := c.homeless(ref); err != nil {
			return err
		}
		merged, err := c.fields.apply(old, o, manager, force)
		if err != nil {
			return err
		}
		out, err = c.put(old, merged, manager, dryRun)
		return err
	})
	return kobj.Copy(out), err
}

// homeless is the refusal of an object whose namespace is not there.
func (c *Cluster) homeless(ref kobj.Ref) error {
	if ref.Namespace != "" && c.objects[kobj.Key{Kind: "Namespace", Name: ref.Namespace}] == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, ref.Namespace)
	}
	return nil
}

// put stores what a request made of an object, old being nil for a new one.
func (c *Cluster) put(old, o kobj.Object, by string, dryRun bool) (kobj.Object, error) {
	o, err := c.defaulted(o)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if dryRun {
		return o, nil
	}
	if old != nil {
		return c.change(old, o, by), nil
	}
	o = kobj.With(o, any(c.uid()), "metadata", "uid")
	o = kobj.With(o, any(int64(1)), "metadata", "generation")
	o = kobj.With(o, any(time.Unix(int64(c.version), 0).UTC().Format(time.RFC3339)), "metadata", "creationTimestamp")
	return c.store(o, by), nil
}

// defaulted returns an object with the defaults that the API server fills in.
func (c *Cluster) defaulted(o kobj.Object) (kobj.Object, error) {
	if kobj.IsCRD(o) {
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

// Patch implements run.Cluster.
func (c *Cluster) Patch(ctx context.Context, ref kobj.Ref, patch cluster.Patch, dryRun bool) (out kobj.Object, err error) {
	err = c.call(ctx, Call{"patch", ref, dryRun}, func() error {
		old := c.objects[ref.Key()]
		if old == nil {
			return apierrors.NewNotFound(resourceOf(ref), ref.Name)
		}
		o, err := patched(old, patch)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		for _, field := range []string{"uid", "resourceVersion"} {
			if was, is := kobj.Text(old, "metadata", field), kobj.Text(o, "metadata", field); was != is {
				return conflict(ref, fmt.Sprintf("%s in precondition: %s, in object: %s", field, is, was))
			}
		}
		if o, err = c.fields.update(old, o, run.Manager); err != nil {
			return err
		}
		out, err = c.put(old, o, run.Manager, dryRun)
		return err
	})
	return kobj.Copy(out), err
}

// Delete implements run.Cluster.
func (c *Cluster) Delete(ctx context.Context, ref kobj.Ref, opt cluster.Deletion, dryRun bool) error {
	return c.call(ctx, Call{"delete", ref, dryRun}, func() error {
		o := c.objects[ref.Key()]
		if o == nil {
			return nil
		}
		for field, want := range map[string]string{"uid": opt.UID, "resourceVersion": opt.ResourceVersion} {
			if is := kobj.Text(o, "metadata", field); want != "" && want != is {
				return conflict(ref, fmt.Sprintf("the %s in the precondition (%s) does not match that of the object (%s)", field, want, is))
			}
		}
		if !dryRun {
			c.remove(o, opt.Orphan, run.Manager)
		}
		return nil
	})
}

// remove begins the deletion of an object, and ends it where nothing holds it up.
func (c *Cluster) remove(o kobj.Object, orphan bool, by string) {
	finalizers := kobj.List(o, "metadata", "finalizers")
	if orphan && !slices.Contains(finalizers, any("orphan")) {
		finalizers = append(slices.Clone(finalizers), "orphan")
	}
	if len(finalizers) == 0 {
		c.drop(o.Key(), by)
		return
	}
	if kobj.At(o, "metadata", "deletionTimestamp") == nil {
		o = kobj.With(o, any("2026-01-01T00:00:00Z"), "metadata", "deletionTimestamp")
	}
	c.store(kobj.With(o, any(finalizers), "metadata", "finalizers"), by)
}

// Create implements run.Cluster.
func (c *Cluster) Create(ctx context.Context, o kobj.Object, dryRun bool) (out kobj.Object, err error) {
	ref := kobj.RefTo(o)
	err = c.call(ctx, Call{"create", ref, dryRun}, func() error {
		if c.objects[ref.Key()] != nil {
			return apierrors.NewAlreadyExists(resourceOf(ref), ref.Name)
		}
		if err := c.homeless(ref); err != nil {
			return err
		}
		made, err := c.fields.update(nil, o, run.Manager)
		if err != nil {
			return err
		}
		out, err = c.put(nil, made, run.Manager, dryRun)
		return err
	})
	return kobj.Copy(out), err
}
