package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// Attempt is an attempt to execute an action.
type Attempt struct {
	Action
	Plan     *Plan
	Step     Step
	Live     k8s.Object // the object in the cluster; nil if it does not exist
	Rendered k8s.Object // the object to apply, or the backup to create or restore from; nil if there is none
	Writer   string     // field manager of all requests except Apply
	Now      string     // current time, in RFC 3339 format
	Sent     bool       // whether an earlier attempt sent a request
	DryRun   bool
	Requests int // number of requests sent in this attempt
}

// Request is a request to the API server. At most one field is set. If none is set, the program only reads the
// object, for a backup.
type Request struct {
	Apply  k8s.Object // applied with the plan's field manager
	Create k8s.Object
	Patch  *cluster.Patch
	Delete *cluster.DeleteOptions
}

// ChangedError is returned if another program or a user changed an object so that it no longer matches the
// plan.
type ChangedError struct {
	Object  k8s.Ref
	Message string // problem and solution
}

func (e *ChangedError) Error() string { return fmt.Sprintf("%s %s", e.Object, e.Message) }

func (t Attempt) changedf(format string, args ...any) error {
	return &ChangedError{t.Object, fmt.Sprintf(format, args...)}
}

// IsSettled reports whether the action needs no further request. It returns an error if the action cannot be
// executed.
func (t Attempt) IsSettled() (bool, error) {
	v, known := verbs()[t.Do]
	if !known {
		return false, fmt.Errorf("unknown action %q", t.Do)
	}
	return v.isSettled(t)
}

// Request returns the next request, and whether more requests follow. For the request after q, t.Live must be
// the object that the API server returned for q.
func (t Attempt) Request() (q Request, more bool) { return verbs()[t.Do].request(t) }

// liveText returns a string field of the live object's metadata.
func (t Attempt) liveText(field string) string { return k8s.Text(t.Live, "metadata", field) }

// isDying reports whether the live object has the planned UID and is being deleted.
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

// isNeverSettled is isSettled for actions that leave no trace in the object. Only the journal shows whether
// such an action is done.
func isNeverSettled(t Attempt) (bool, error) { return false, t.checkSame() }

func saveObject(Attempt) (q Request, more bool) { return Request{}, false }

func isMetadataSettled(t Attempt) (bool, error) {
	if t.Live == nil && t.Do == Unlabel {
		return true, nil // a missing object has no labels
	}
	if err := t.checkSame(); err != nil {
		return false, err
	}
	return t.IsDone(t.Live), nil
}

func mergePatch(patch map[string]any) Request { return Request{Patch: &cluster.Patch{Merge: patch}} }

// jsonPatch returns a JSON patch that the API server rejects if a metadata field has changed since the object
// was read.
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

// isApplySettled always returns false, because repeating an apply does no harm. It returns an error if the object
// was created after the plan was made, unless an earlier attempt of this action or the plan's manager created it.
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

// Applied returns the object to apply: a copy of rendered with the annotations in a.Set.
func (a Action) Applied(rendered k8s.Object) k8s.Object {
	for key, value := range a.Set {
		rendered = k8s.With(rendered, value, "metadata", "annotations", key)
	}
	return rendered
}

func applyObject(t Attempt) (q Request, more bool) {
	o := t.Applied(t.Rendered)
	if t.Live != nil {
		o = k8s.With(o, k8s.At(t.Live, "metadata", "uid"), "metadata", "uid") // the API server rejects the request if the object was replaced
	}
	return Request{Apply: o}, false
}

// isCreateSettled reports whether the object exists, because an earlier attempt created it or it was never
// deleted.
func isCreateSettled(t Attempt) (bool, error) {
	switch {
	case t.Live != nil && t.UID != "" && t.liveText("uid") == t.UID:
		return true, nil
	case t.Rendered == nil:
		return false, t.changedf("has no backup: create it by hand")
	case t.Live == nil || t.Sent:
		return t.Live != nil, nil
	}
	return false, t.changedf("was recreated by another program: stop that program, and delete the object (with --cascade=orphan)")
}

func createObject(t Attempt) (q Request, more bool) { return Request{Create: t.Rendered}, false }

// isDeleteSettled reports whether the planned object is missing or being deleted. If its dependents must be
// kept, a deletion by others counts only if it keeps the dependents, too.
func isDeleteSettled(t Attempt) (bool, error) {
	switch {
	case t.Live == nil, t.isDying() && (t.Sent || t.Do == Delete), t.isBeingOrphaned():
		return true, nil
	case t.Do == Delete && t.liveText("uid") != t.UID: // the planned object was deleted by others, and this is a new one
		return true, nil
	}
	return false, t.checkSame()
}

// isBeingOrphaned reports whether the planned object is being deleted but its dependents are kept. In this
// state, "orphan" is the only remaining finalizer.
func (t Attempt) isBeingOrphaned() bool {
	return t.isDying() && slices.Equal(k8s.Texts(t.Live, "metadata", "finalizers"), []string{"orphan"})
}

func deleteObject(t Attempt) (q Request, more bool) {
	return Request{Delete: &cluster.DeleteOptions{UID: t.UID}}, false
}

// orphanDependents deletes an object but keeps its dependents. If another program has restored a finalizer that
// the step removed before, it first removes this finalizer again. The deletion fails if the object has changed
// since it was read.
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
		return n >= t.To, nil // others may have scaled it to more replicas
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
	if t.Live == nil || t.isBeingOrphaned() { // the preconditions check whether it exists
		return true, nil
	}
	return isMetadataSettled(t)
}

// removeItem returns operations that remove the list item at a path. The operations fail if the item, or the
// item's field with the path key, does not have this value.
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

// isTransferSettled reports whether the previous managers no longer own a field of the object. It returns an
// error for CRDs and APIServices of OLM. They would lose their CA certificate, because it is a field of OLM.
func isTransferSettled(t Attempt) (bool, error) {
	if t.Managers != nil {
		return isMetadataSettled(t)
	}
	if k8s.IsCRD(t.Live) || t.Live.Is(k8s.APIServiceGroup, "APIService") {
		return false, t.changedf("must not change owner: its CA certificate would be lost")
	}
	return isMetadataSettled(t)
}

// replaceManagedFields returns a patch that replaces managedFields. The patch fails if the object has changed
// since it was read.
func (t Attempt) replaceManagedFields(entries []any) Request {
	return t.jsonPatch("resourceVersion", cluster.Operation{Op: "replace", Path: "/metadata/managedFields", Value: entries})
}

// transferOwnership makes the plan's field manager the owner of the fields of OLM or Helm, as if it had applied
// them. The next apply then removes the fields that the tree does not have. The request changes only
// managedFields.
func transferOwnership(t Attempt) (q Request, more bool) {
	return t.replaceManagedFields(t.transferFields(k8s.List(t.Live, "metadata", "managedFields"), t.Plan.Manager, t.Live.APIVersion())), false
}

// isRestoreSettled reports whether an object has its earlier values and field managers again. A
// missing or recreated object counts as restored, because OLM will create or change it.
func isRestoreSettled(t Attempt) (bool, error) {
	switch {
	case t.Live == nil, t.UID != "" && t.liveText("uid") != t.UID:
		return true, nil
	case t.Rendered == nil:
		return false, t.changedf("has no backup: compare it with its bundle")
	}
	restored := k8s.Equal(t.restored(), t.Live) && !HasNewManager(t.Live, t.Rendered, t.Plan.Manager, t.Writer) && !hasLostManager(t.Live, t.Rendered)
	return restored, t.checkSame()
}

// restored returns the live object with the values from the backup.
func (t Attempt) restored() k8s.Object {
	return RestoreValues(t.Live, t.Rendered, t.Plan.Manager, t.Writer)
}

// restoreObject restores the earlier values of an object in a first request. This makes quayside the manager of
// the restored fields. A second request therefore restores the object's managedFields.
func restoreObject(t Attempt) (q Request, more bool) {
	if ops := replaceOperations(t.Live, t.restored()); len(ops) > 0 && t.Requests == 0 {
		return t.jsonPatch("resourceVersion", ops...), !t.DryRun
	}
	managed := RestoreManagedFields(t.Live, t.Rendered, t.Plan.Manager, t.Writer)
	if len(managed) == 0 {
		managed = []any{map[string]any{}} // with this value, the API server removes all entries
	}
	return t.replaceManagedFields(managed), false
}

// replaceOperations returns a JSON patch that converts the object from to the object to. In the metadata, the
// patch changes only labels and annotations.
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
