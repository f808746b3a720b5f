package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// Attempt is an action that is about to be executed.
type Attempt struct {
	Action
	Plan     *Plan
	Step     Step
	Live     k8s.Object // the object in the cluster; nil: it does not exist
	Rendered k8s.Object // the object to apply, or the backup to create or restore; nil: there is none
	Writer   string     // field manager of all requests except Apply
	Now      string     // RFC 3339
	Sent     bool       // whether an earlier attempt was sent
	DryRun   bool
	Requests int // number of requests of this attempt that were sent
}

// Request is a request to the API server. One field is set; none: the object is only saved.
type Request struct {
	Apply  k8s.Object // with the plan's manager
	Create k8s.Object
	Patch  *cluster.Patch
	Delete *cluster.DeleteOptions
}

// ChangedError reports an object that does not match the plan because another program or user
// changed it.
type ChangedError struct {
	Object  k8s.Ref
	Message string // the problem and its solution
}

func (e *ChangedError) Error() string { return fmt.Sprintf("%s %s", e.Object, e.Message) }

func (t Attempt) changedf(format string, args ...any) error {
	return &ChangedError{t.Object, fmt.Sprintf(format, args...)}
}

// IsSettled reports whether nothing is left to do. The error explains why the action cannot be executed.
func (t Attempt) IsSettled() (bool, error) {
	v, known := verbs()[t.Do]
	if !known {
		return false, fmt.Errorf("unknown action %q", t.Do)
	}
	return v.isSettled(t)
}

// Request returns the next request, and whether another one follows, for the object that the request
// returns.
func (t Attempt) Request() (q Request, more bool) { return verbs()[t.Do].request(t) }

// liveText returns a text of the live object's metadata.
func (t Attempt) liveText(field string) string { return k8s.Text(t.Live, "metadata", field) }

// isDying reports whether the planned object is being deleted.
func (t Attempt) isDying() bool {
	return k8s.At(t.Live, "metadata", "deletionTimestamp") != nil && t.liveText("uid") == t.UID
}

// checkSame returns an error if the live object is missing, has another UID than in the plan, or
// is being deleted.
func (t Attempt) checkSame() error {
	switch uid := t.liveText("uid"); {
	case t.Live == nil:
		return t.changedf("was deleted, but not by this plan: check the objects that it owned ('quayside adopt verify'), and make a new plan")
	case t.UID != "" && uid != t.UID:
		return t.changedf("was deleted and recreated since the plan was made (UID %s, now %s): make a new plan", t.UID, uid)
	case k8s.At(t.Live, "metadata", "deletionTimestamp") != nil:
		return t.changedf("is being deleted, but not by this plan: find the cause ('kubectl get -o yaml' shows its finalizers)")
	}
	return nil
}

// isNeverSettled is for actions of which only the journal can show that they are done.
func isNeverSettled(t Attempt) (bool, error) { return false, t.checkSame() }

func saveObject(Attempt) (q Request, more bool) { return Request{}, false }

func isMetadataSettled(t Attempt) (bool, error) {
	if t.Live == nil && t.Do == Unlabel {
		return true, nil // it has no labels
	}
	if err := t.checkSame(); err != nil {
		return false, err
	}
	return t.IsDone(t.Live), nil
}

func mergePatch(patch map[string]any) Request { return Request{Patch: &cluster.Patch{Merge: patch}} }

// jsonPatch returns a JSON patch that fails if a field of the object's metadata has another value.
func (t Attempt) jsonPatch(field string, ops ...cluster.Operation) Request {
	test := cluster.Operation{Op: "test", Path: "/metadata/" + field, Value: t.liveText(field)}
	return Request{Patch: &cluster.Patch{JSON: append([]cluster.Operation{test}, ops...)}}
}

// patchMetadata sets and removes annotations or labels.
func patchMetadata(t Attempt) (q Request, more bool) {
	values := map[string]any{}
	for key, value := range t.Set {
		values[key] = value
	}
	for _, key := range t.Unset {
		values[key] = nil
	}
	field := "annotations"
	if t.Do == Unlabel {
		field = "labels"
	}
	return mergePatch(map[string]any{"metadata": map[string]any{"uid": t.liveText("uid"), field: values}}), false
}

// isApplySettled always returns false, because applying an unchanged object has no effect. It returns
// an error if an object exists that did not exist when the plan was made, unless an earlier
// attempt of this action or the plan's manager applied it.
func isApplySettled(t Attempt) (bool, error) {
	switch {
	case t.Rendered == nil:
		return false, fmt.Errorf("the lock no longer renders %s: make a new plan", t.Object)
	case t.Live == nil && t.UID == "":
		return false, nil
	case t.UID == "" && !t.Sent && !AppliedBy(t.Live, t.Plan.Manager):
		return false, t.changedf("was created after the plan was made, and not by %s: delete it, or make a new plan", t.Plan.Manager)
	}
	return false, t.checkSame()
}

// Applied returns a rendered object with the annotations in Set, which is the object to apply. It
// does not modify its argument.
func (a Action) Applied(rendered k8s.Object) k8s.Object {
	for key, value := range a.Set {
		rendered = k8s.With(rendered, value, "metadata", "annotations", key)
	}
	return rendered
}

func applyObject(t Attempt) (q Request, more bool) {
	o := t.Applied(t.Rendered)
	if t.Live != nil {
		o = k8s.With(o, k8s.At(t.Live, "metadata", "uid"), "metadata", "uid") // rejected if the object was replaced
	}
	return Request{Apply: o}, false
}

// isCreateSettled reports whether an earlier attempt created the object.
func isCreateSettled(t Attempt) (bool, error) {
	switch {
	case t.Rendered == nil:
		return false, t.changedf("has no backup: create it by hand")
	case t.Live == nil || t.Sent:
		return t.Live != nil, nil
	}
	return false, t.changedf("was recreated, but not by this plan: stop whatever applies it, and delete it (with --cascade=orphan)")
}

func createObject(t Attempt) (q Request, more bool) { return Request{Create: t.Rendered}, false }

// isDeleteSettled reports whether an object is missing, or the deletion of the planned object has begun.
// If its dependents must be kept, a deletion that this action did not start counts only if it
// keeps them.
func isDeleteSettled(t Attempt) (bool, error) {
	switch {
	case t.Live == nil, t.isDying() && (t.Sent || t.Do == Delete), t.isBeingOrphaned():
		return true, nil
	case t.Do == Delete && t.liveText("uid") != t.UID: // another program or user deleted it: another object is not the plan's
		return true, nil
	}
	return false, t.checkSame()
}

// isBeingOrphaned reports whether the planned object is being deleted without its dependents, and
// "orphan" is its only remaining finalizer.
func (t Attempt) isBeingOrphaned() bool {
	return t.isDying() && slices.Equal(k8s.Texts(t.Live, "metadata", "finalizers"), []string{"orphan"})
}

func deleteObject(t Attempt) (q Request, more bool) {
	return Request{Delete: &cluster.DeleteOptions{UID: t.UID}}, false
}

// orphanDependents deletes an object and keeps its dependents. If another program has restored a
// finalizer that the step removed, it is removed again first. The deletion fails if the object changes
// in the meantime.
func orphanDependents(t Attempt) (q Request, more bool) {
	free := slices.DeleteFunc(slices.Clone(t.Step.Actions), func(a Action) bool { return a.Do != Unfinalize || a.Object.Key() != t.Object.Key() })
	for _, a := range free[min(t.Requests, len(free)):] {
		if !a.IsDone(t.Live) {
			t.Action = a
			q, _ = removeFinalizer(t)
			return q, true
		}
	}
	return Request{Delete: &cluster.DeleteOptions{UID: t.UID, ResourceVersion: t.liveText("resourceVersion"), Orphan: true}}, false
}

func isScaleSettled(t Attempt) (bool, error) {
	if err := t.checkSame(); err != nil {
		return false, err
	}
	n := Replicas(t.Live)
	switch {
	case t.To > 0:
		return n >= t.To, nil // another program or user may have started it
	case n != t.To && n != t.From:
		return false, t.changedf("has %d replicas, but had %d when the plan was made: scale it back, or make a new plan", n, t.From)
	}
	return n == t.To, nil
}

func scaleReplicas(t Attempt) (q Request, more bool) {
	return t.jsonPatch("uid", cluster.Operation{Op: "test", Path: "/spec/replicas", Value: Replicas(t.Live)},
		cluster.Operation{Op: "replace", Path: "/spec/replicas", Value: t.To}), false
}

// restartPods replaces the pods of a Deployment, as 'kubectl rollout restart' does.
func restartPods(t Attempt) (q Request, more bool) {
	annotations := map[string]any{"kubectl.kubernetes.io/restartedAt": t.Now}
	return mergePatch(map[string]any{
		"metadata": map[string]any{"uid": t.liveText("uid")},
		"spec":     map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}},
	}), false
}

func isUnfinalizeSettled(t Attempt) (bool, error) {
	if t.Live == nil || t.isBeingOrphaned() { // the preconditions check its existence
		return true, nil
	}
	return isMetadataSettled(t)
}

// removeItem returns the operations that remove an item of a list, if it has a value.
func removeItem(at, key, value string) []cluster.Operation {
	return []cluster.Operation{{Op: "test", Path: at + key, Value: value}, {Op: "remove", Path: at}}
}

func removeFinalizer(t Attempt) (q Request, more bool) {
	var ops []cluster.Operation
	if i := slices.Index(k8s.Texts(t.Live, "metadata", "finalizers"), t.Finalizer); i >= 0 {
		ops = removeItem(fmt.Sprintf("/metadata/finalizers/%d", i), "", t.Finalizer)
	}
	for _, key := range t.Unset {
		if k8s.At(t.Live, "metadata", "annotations", key) != nil {
			ops = append(ops, cluster.Operation{Op: "remove", Path: "/metadata/annotations/" + k8s.EscapePointer(key)})
		}
	}
	return t.jsonPatch("uid", ops...), false
}

func removeOwner(t Attempt) (q Request, more bool) {
	return t.jsonPatch("uid", removeItem(fmt.Sprintf("/metadata/ownerReferences/%d", t.Index), "/uid", t.Owner)...), false
}

// isTransferSettled reports whether OLM no longer manages any field of an object. It returns an error for
// CRDs and APIServices, whose CA certificate is one of OLM's fields.
func isTransferSettled(t Attempt) (bool, error) {
	if k8s.IsCRD(t.Live) || t.Live.Is(k8s.APIServiceGroup, "APIService") {
		return false, t.changedf("must not change owner: its CA certificate would be lost")
	}
	return isMetadataSettled(t)
}

// replaceManagedFields returns a patch of managedFields that fails if the object was changed.
func (t Attempt) replaceManagedFields(entries []any) Request {
	return t.jsonPatch("resourceVersion", cluster.Operation{Op: "replace", Path: "/metadata/managedFields", Value: entries})
}

// transferOwnership transfers the ownership of OLM's fields to the plan's field manager, as if that
// manager had applied them. The next apply then removes the fields that are not in the tree. Only
// managedFields is changed.
func transferOwnership(t Attempt) (q Request, more bool) {
	return t.replaceManagedFields(transferFields(k8s.List(t.Live, "metadata", "managedFields"), t.Plan.Manager, t.Live.APIVersion())), false
}

// isRestoreSettled reports whether an object has its earlier values, OLM's earlier field managers, and
// no field manager that the adoption added. A missing or recreated object counts as restored, because
// OLM recreates or changes it.
func isRestoreSettled(t Attempt) (bool, error) {
	switch {
	case t.Live == nil, t.UID != "" && t.liveText("uid") != t.UID:
		return true, nil
	case t.Rendered == nil:
		return false, t.changedf("has no backup: compare it with its bundle")
	}
	restored := k8s.Equal(t.restored(), t.Live) && !HasNewManager(t.Live, t.Rendered, t.Plan.Manager, t.Writer) && !hasLostOLMManager(t.Live, t.Rendered)
	return restored, t.checkSame()
}

// restored returns the live object with its earlier values.
func (t Attempt) restored() k8s.Object {
	return RestoreValues(t.Live, t.Rendered, t.Plan.Manager, t.Writer)
}

// restoreObject restores the earlier values of an object, and then managedFields, because the first
// request makes this program the manager of the restored fields.
func restoreObject(t Attempt) (q Request, more bool) {
	if ops := replaceOperations(t.Live, t.restored()); len(ops) > 0 && t.Requests == 0 {
		return t.jsonPatch("resourceVersion", ops...), !t.DryRun
	}
	managed := RestoreManagedFields(t.Live, t.Rendered, t.Plan.Manager, t.Writer)
	if len(managed) == 0 {
		managed = []any{map[string]any{}} // the API server clears managedFields for this value
	}
	return t.replaceManagedFields(managed), false
}

// replaceOperations returns a JSON patch that changes one object to another. Of the metadata, it
// changes only labels and annotations.
func replaceOperations(from, to k8s.Object) []cluster.Operation {
	ops := diffMembers("/", k8s.Without(from, "metadata"), k8s.Without(to, "metadata"))
	pick := func(o k8s.Object) map[string]any {
		out := map[string]any{}
		for _, key := range []string{"labels", "annotations"} {
			if v := k8s.At(o, "metadata", key); v != nil {
				out[key] = v
			}
		}
		return out
	}
	return append(ops, diffMembers("/metadata/", pick(from), pick(to))...)
}

func diffMembers(at string, from, to map[string]any) []cluster.Operation {
	var ops []cluster.Operation
	both := maps.Clone(from)
	maps.Copy(both, to)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		was, had := from[key]
		is, has := to[key]
		switch {
		case !has:
			ops = append(ops, cluster.Operation{Op: "remove", Path: at + k8s.EscapePointer(key)})
		case !had:
			ops = append(ops, cluster.Operation{Op: "add", Path: at + k8s.EscapePointer(key), Value: is})
		case !k8s.Equal(was, is):
			ops = append(ops, cluster.Operation{Op: "replace", Path: at + k8s.EscapePointer(key), Value: is})
		}
	}
	return ops
}
