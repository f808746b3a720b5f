package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/render/profile"
)

const rbacGroup = "rbac.authorization.k8s.io"

// steps makes the steps: what makes OLM forget the operators, namespace by
// namespace; then what is left to be done of each, when all of them have left.
func (m *maker) steps() {
	m.plan.OLM = m.controllers()
	m.unmanage()
	leaving := slices.DeleteFunc(slices.Clone(m.blocks), func(b *block) bool { return b.sheds })
	for _, b := range leaving {
		m.leave(b)
	}
	m.manageAgain()
	for _, b := range leaving {
		m.takeOver(b)
		m.cleanUp(b)
	}
	for _, b := range m.blocks[len(leaving):] {
		m.shed(b)
	}
	for _, b := range m.blocks {
		m.certificates(b)
	}
	m.uninstall()
}

// step adds a step, unless there is nothing to do in it.
func (m *maker) step(s Step) {
	if s.Manual == "" && len(s.Actions) == 0 {
		return
	}
	s.Number = len(m.plan.Steps) + 1
	m.plan.Steps = append(m.plan.Steps, s)
}

// leave makes the steps by which the operators of a namespace leave OLM.
func (m *maker) leave(b *block) {
	m.guard(b)
	m.prepare(b, append(b.added(true), b.added(false)...))
	detached := b.detached()
	stopped := m.plan.Mode == Stopped && len(detached) > 0
	if stopped {
		m.stop(b)
	}
	m.step(Step{
		Name: Backup, Namespace: b.namespace, Title: "Write what OLM has of " + b.namespace + ", and what will be changed, to files",
		Actions: m.each(Keep, b.kept()),
	})
	m.detach(b, detached)
	m.apply(b)
	if stopped {
		m.start(b)
	}
}

// each returns one action for each object.
func (m *maker) each(do Verb, items []item) []Action {
	var out []Action
	for _, i := range items {
		out = append(out, m.on(do, i))
	}
	return out
}

// on returns an action on an object as it is in the cluster.
func (m *maker) on(do Verb, i item) Action {
	a := Action{Do: do, Object: i.ref()}
	if i.live != nil {
		a.UID = i.live.UID
		if a.UID == "" && m.unnamed == nil {
			m.unnamed = &a.Object
		}
	}
	return a
}

// where returns the items of a block that is says of.
func (b *block) where(is func(item) bool) []item {
	var out []item
	for _, i := range b.items {
		if is(i) {
			out = append(out, i)
		}
	}
	return out
}

// live returns the items that both the cluster and the tree have.
func (b *block) live() []item {
	return b.where(func(i item) bool { return i.live != nil && i.ours != nil })
}

// detached returns what OLM forgets the operators with: their Subscriptions, then
// operator by operator the ClusterServiceVersion and its copies.
func (b *block) detached() []item {
	all := b.where(func(i item) bool { return i.Goes == adopt.AtDetach })
	turn := func(i item) int {
		if i.Kind == "Subscription" {
			return 0
		}
		for n, op := range b.operators {
			if i.Name == op.CSV && (i.Namespace == op.Namespace || i.live.Labels[snapshot.CopiedFrom] == op.Namespace) {
				return n + 1
			}
		}
		return len(b.operators) + 1
	}
	slices.SortStableFunc(all, func(x, y item) int {
		return cmp.Or(cmp.Compare(turn(x), turn(y)), strings.Compare(x.Name, y.Name), compareBool(isCopy(x.live), isCopy(y.live)))
	})
	return all
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func isCopy(o *snapshot.Object) bool { return o.Labels[snapshot.CopiedFrom] != "" }

// guarded reports whether a tool may prune an object when its declaration leaves
// Git.
func (b *block) guarded(i item) bool {
	return i.live != nil && !isCopy(i.live) && (i.Is(snapshot.OLM, "Subscription") || i.Is(snapshot.OLM, "OperatorGroup"))
}

// kept returns what is written to files: what goes, but for copies, which OLM
// makes of the original, and what the tree or the garbage collector changes.
func (b *block) kept() []item {
	return b.where(func(i item) bool {
		switch {
		case i.live == nil || b.guarded(i) || isCopy(i.live) || i.Is("", "Namespace"):
			return false
		case i.ours != nil || i.Goes == adopt.AtDetach || i.Goes == adopt.AtCleanUp:
			return true
		}
		return slices.ContainsFunc(i.live.Owners, func(o snapshot.Owner) bool { return o.Kind == "ClusterServiceVersion" })
	})
}

// Is reports whether an item is of a kind.
func (i item) Is(group, kind string) bool { return i.Group == group && i.Kind == kind }

// guard keeps tools from pruning what leaves Git with the take-over, and the
// Namespace with all that is in it.
func (m *maker) guard(b *block) {
	items := b.where(b.guarded)
	for _, group := range m.Snapshot.Kind(snapshot.OLM, "OperatorGroup") {
		if group.Namespace == b.namespace && !slices.ContainsFunc(items, func(i item) bool { return i.live == group }) {
			items = append(items, item{Object: adopt.Object{Group: group.Group, Kind: group.Kind, Namespace: group.Namespace, Name: group.Name}, live: group})
		}
	}
	if namespace := m.Snapshot.Get(kobj.Key{Kind: "Namespace", Name: b.namespace}); namespace != nil {
		items = append(items, item{Object: adopt.Object{Kind: "Namespace", Name: b.namespace}, live: namespace})
	}
	s := Step{
		Name: Guard, Namespace: b.namespace, Title: "Keep GitOps tools from pruning the declarations of " + b.namespace + ", and the Namespace",
		Before: m.healthy(b), Actions: m.each(Keep, items),
	}
	for _, i := range items {
		a := m.on(Annotate, i)
		before, after := i.live.Body(), profile.Guard(i.live.Body())
		a.Set = kobj.TextMap(after, "metadata", "annotations")
		maps.DeleteFunc(a.Set, func(key, value string) bool { return kobj.Text(before, "metadata", "annotations", key) == value })
		if len(a.Set) > 0 {
			s.Actions = append(s.Actions, a)
		}
	}
	m.step(s)
	m.suspend(b, items)
}

// suspend has a person stop what would declare again what OLM is made to forget.
func (m *maker) suspend(b *block, items []item) {
	var appliers []string
	for _, i := range items {
		if by := profile.Applier(i.live.Body()); by != "" && i.Group == snapshot.OLM && !slices.Contains(appliers, by) {
			appliers = append(appliers, by)
		}
	}
	if len(appliers) == 0 || len(b.detached()) == 0 {
		return
	}
	slices.Sort(appliers)
	m.step(Step{
		Name: Suspend, Namespace: b.namespace, Title: "Suspend what applies the declarations of " + b.namespace,
		Manual: "Suspend what applies the Subscriptions and OperatorGroups of namespace " + b.namespace + ", or it makes them again as soon as they are gone, and OLM begins anew: " +
			strings.Join(appliers, "; ") + ". Let it go on when the pull request is merged that takes them out of Git and brings the tree, and when it has read that commit: else it applies once more what Git had before.",
	})
}

// healthy returns the checks that OLM is at rest with a block's operators.
func (m *maker) healthy(b *block) []Check {
	csvs := refs(b.where(func(i item) bool {
		return i.Is(snapshot.OLM, "ClusterServiceVersion") && i.Goes == adopt.AtDetach && !isCopy(i.live)
	}))
	if len(csvs) == 0 {
		return nil
	}
	return []Check{{Check: Succeeded, Objects: csvs}, {Check: NoPlan}}
}

func refs(items []item) []kobj.Ref {
	var out []kobj.Ref
	for _, i := range items {
		out = append(out, i.ref())
	}
	return out
}

// prepare applies what is new of the tree, but for what the cluster
// would refuse, which OLM could not bring either. Webhooks are among it: they trust OLM's certificates, so that requests are admitted twice until OLM's own
// webhooks go, and never refused in between.
func (m *maker) prepare(b *block, added []item) {
	title := "Bring what the tree has under names of its own into " + b.namespace
	var applied []item
	for _, i := range added {
		if why := m.refused[i.Key()]; why != "" {
			title += "; not " + i.Key().String() + ", which the cluster would refuse: " + why
			continue
		}
		applied = append(applied, i)
	}
	m.step(Step{
		Name: Prepare, Namespace: b.namespace, Title: title,
		Before: m.healthy(b), Actions: m.each(Apply, inOrder(applied)), After: []Check{{Check: Prepared}},
	})
}

// inOrder returns what is applied, in the order in which a cluster can take it.
func inOrder(items []item) []item {
	out := slices.Clone(items)
	slices.SortStableFunc(out, func(x, y item) int { return cmp.Compare(profile.Phase(x.ours), profile.Phase(y.ours)) })
	return out
}

// detach has OLM forget the operators of a block.
func (m *maker) detach(b *block, detached []item) {
	s := Step{
		Name: Detach, Namespace: b.namespace, Title: "Make OLM forget the operators of " + b.namespace + ": " + b.packages(),
		Before: m.healthy(b), After: append([]Check{{Check: Gone, Objects: refs(detached)}}, m.same(b)...),
	}
	if m.plan.Mode == Stopped && len(m.plan.OLM) > 0 {
		s.Before = append(s.Before, Check{Check: IsStopped, Objects: m.workloads()})
	}
	for _, i := range detached {
		if i.Kind == "ClusterServiceVersion" && !isCopy(i.live) {
			a := m.on(Unfinalize, i)
			if a.Finalizer = finalizer; m.plan.Mode == Live {
				a.Unset = []string{"olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces"}
			}
			s.Actions = append(s.Actions, a)
		}
		s.Actions = append(s.Actions, m.on(Orphan, i))
	}
	if m.plan.Mode == Live {
		s.Actions = append(s.Actions, m.each(Delete, b.where(func(i item) bool { return i.ours != nil && i.live != nil && lostLive(i.Object) }))...)
	}
	m.step(s)
}

// finalizer is OLM's on ClusterServiceVersions.
const finalizer = "operators.coreos.com/csv-cleanup"

// lostLive reports whether OLM loses an object while it runs and forgets an
// operator: it writes the OperatorCondition's owner again, which is gone a moment
// later.
func lostLive(o adopt.Object) bool { return o.Group == snapshot.OLM && o.Kind == "OperatorCondition" }

func (b *block) packages() string {
	var out []string
	for _, op := range b.operators {
		out = append(out, op.Package)
	}
	return strings.Join(out, ", ")
}

// same returns the checks that what runs is as it was. Another version may do more
// and less, and convert otherwise.
func (m *maker) same(b *block) []Check {
	if b.sheds && slices.ContainsFunc(b.items, upgraded) {
		return []Check{{Check: SameUID}, {Check: NoOwner}, {Check: Available}, {Check: NoRestart}}
	}
	return []Check{{Check: SameUID}, {Check: NoOwner}, {Check: Conversion}, {Check: Available}, {Check: Rights}, {Check: NoRestart}}
}

// apply applies what the tree has under OLM's names.
func (m *maker) apply(b *block) {
	m.step(Step{
		Name: Tree, Namespace: b.namespace, Title: "Apply the rest of the tree to " + b.namespace,
		Actions: m.overwrite(b.live()), After: m.ready(b),
	})
}

// ready returns the checks that what runs is as it was, with all its pods.
func (m *maker) ready(b *block) []Check {
	deployments := refs(b.where(func(i item) bool { return i.Is("apps", "Deployment") && i.live != nil && i.ours != nil }))
	if len(deployments) == 0 {
		return m.same(b)
	}
	return append([]Check{{Check: IsReady, Objects: deployments}}, m.same(b)...)
}

// overwrite returns what applies objects that are there already.
func (m *maker) overwrite(items []item) []Action {
	var out []Action
	for _, i := range inOrder(items) {
		a := m.over(i)
		if m.plan.Mode == Live && lostLive(i.Object) {
			a.UID = "" // the detach deleted it
		}
		out = append(out, a)
	}
	return out
}

// over returns what applies an object that is there already. What some tool applies by
// other files keeps its guard, in place of what the tree says of pruning, until the tool
// has it of the tree: these files lose it with the merge, and whoever is asked whether it
// is to be deleted then may say yes.
func (m *maker) over(i item) Action {
	a := m.on(Apply, i)
	a.Force = true
	if profile.Applier(i.live.Body()) == "" {
		return a
	}
	for key, value := range kobj.TextMap(profile.Guard(i.ours), "metadata", "annotations") {
		if was := kobj.Text(i.ours, "metadata", "annotations", key); was != "" && was != value {
			if a.Set == nil {
				a.Set = map[string]string{}
			}
			a.Set[key] = value
		}
	}
	return a
}

// takeOver makes OLM's fields those of the plan's manager, for operators whose
// pods the tree restarts anyway. A definition or an API of theirs keeps OLM's, for
// with these would go the CA that it is called by.
func (m *maker) takeOver(b *block) {
	restarts := map[string]bool{}
	for _, op := range m.plan.Operators {
		if op.Namespace == b.namespace && len(op.Restarts) > 0 {
			restarts[op.Package] = true
		}
	}
	var items []item
	for _, op := range b.operators {
		for _, o := range op.Objects {
			if i := m.item(o); restarts[op.Package] && i.live != nil && i.ours != nil && !kobj.IsCRD(i.ours) && !i.Is(apiGroup, "APIService") {
				items = append(items, i)
			}
		}
	}
	s := Step{
		Name: Fields, Namespace: b.namespace, Title: "Take over the fields that OLM wrote in " + b.namespace + ", of operators that restarted: " + strings.Join(slices.Sorted(maps.Keys(restarts)), ", "),
		After: m.same(b),
	}
	for _, i := range inOrder(items) {
		if m.plan.Mode == Live && lostLive(i.Object) {
			continue
		}
		s.Actions = append(s.Actions, m.on(TakeOver, i), m.over(i))
	}
	m.step(s)
}

// certificates tells when OLM's certificates of a namespace end.
func (m *maker) certificates(b *block) {
	first := ""
	var of []string
	for _, op := range m.plan.Operators {
		if op.Namespace == b.namespace && op.Certificates != "" {
			of = append(of, op.Package+" ("+op.Certificates+")")
			if first == "" || op.Certificates < first {
				first = op.Certificates
			}
		}
	}
	if first == "" {
		return
	}
	m.step(Step{
		Name: Certificates, Namespace: b.namespace, Title: "Replace OLM's certificates in " + b.namespace + " before " + first,
		Manual: fmt.Sprintf("OLM issued the certificates of %s, and nobody renews them: upgrade these operators, or run quayside adopt run --finish, render and merge before %s, so that the provider of spec.certificates issues them. Say that this is noted.", strings.Join(of, ", "), first),
	})
}
