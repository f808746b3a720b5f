package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// extensionController is the Deployment of OLM v1 that acts on ClusterExtensions and their revisions. The other
// Deployment of OLM v1, catalogd, can keep running: it changes no installed object.
const extensionController = "operator-controller-controller-manager"

// findExtensionController returns the Deployment of OLM v1's controller. If there is not exactly one, it
// returns none.
func (m *facts) findExtensionController() []Workload {
	out := m.deploymentsNamed(extensionController, "")
	if len(out) != 1 {
		return []Workload{}
	}
	return out
}

// controllerNames returns, for messages, the names of the OLM controllers that manage the operators of the
// blocks.
func controllerNames(blocks []*block) string {
	if slices.ContainsFunc(blocks, (*block).hasExtension) {
		return extensionController
	}
	return "olm-operator and catalog-operator"
}

// hasExtension reports whether OLM v1 manages the operators of a block.
func (b *block) hasExtension() bool { return len(b.extensions()) > 0 }

// extensionBlocks returns the blocks whose operators OLM v1 manages.
func (m *selection) extensionBlocks() []*block {
	return slices.DeleteFunc(slices.Clone(m.blocks), func(b *block) bool { return !b.hasExtension() })
}

// extensions returns the ClusterExtensions that the detach step of a block deletes.
func (b *block) extensions() []k8s.Ref {
	return itemRefs(b.itemsWhere(func(i item) bool { return i.live != nil && i.Is("ClusterExtension."+k8s.OLMv1Group) }))
}

// declarationKinds returns, for messages, the kinds of OLM objects that declare the operators of a block.
func (b *block) declarationKinds() string {
	if b.hasExtension() {
		return "ClusterExtensions"
	}
	return "Subscriptions and OperatorGroups"
}

// releaseActions returns the actions that remove ownerReferences to objects of OLM v1. An object with such a reference
// would be deleted together with its owner. CRDs come first, because their custom resources would be deleted, too. The
// last reference of an object is removed first, so that the indexes of its other references stay valid.
func releaseActions(b *block) []Action {
	if !b.hasExtension() {
		return nil
	}
	items := b.itemsWhere(func(i item) bool { return i.live != nil })
	for _, i := range b.others {
		if i.live != nil {
			items = append(items, i)
		}
	}
	slices.SortStableFunc(items, func(x, y item) int {
		rank := func(i item) int {
			switch {
			case i.Is("CustomResourceDefinition.apiextensions.k8s.io"):
				return 0
			case i.Group == k8s.OLMv1Group: // a revision, which is deleted before its owner
				return 2
			}
			return 1
		}
		return cmp.Or(cmp.Compare(rank(x), rank(y)), x.Compare(y.Key))
	})
	var out []Action
	for _, i := range items {
		for n, by := range slices.Backward(i.live.Owners) {
			if snapshot.IsOwnerInOLMv1(by.APIVersion, by.Kind) {
				a := newAction(Disown, i)
				a.Owner, a.Index = by.UID, int64(n)
				out = append(out, a)
			}
		}
	}
	return out
}

// finalizerActions returns actions that remove OLM v1's finalizers from an object, in the order of
// metadata.finalizers.
func finalizerActions(i item) []Action {
	if i.Group != k8s.OLMv1Group {
		return nil
	}
	var out []Action
	for _, name := range k8s.Texts(i.live.Body(), "metadata", "finalizers") {
		if strings.HasPrefix(name, k8s.OLMv1Group+"/") {
			a := newAction(Unfinalize, i)
			a.Finalizer = name
			out = append(out, a)
		}
	}
	return out
}
