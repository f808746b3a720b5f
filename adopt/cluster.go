package adopt

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
)

// The labels by which OLM says whose an object is.
const (
	labelManaged        = "olm.managed"
	labelOwner          = "olm.owner"
	labelOwnerKind      = "olm.owner.kind"
	labelOwnerNamespace = "olm.owner.namespace"
	prefixComponent     = snapshot.OLM + "/"
	rbacGroup           = "rbac.authorization.k8s.io"
)

// operator is one that a cluster has, or that the lock pins.
type operator struct {
	namespace, pkg string
	pin            *lockfile.Pin // nil: the lock does not have it
	subscription   *snapshot.Subscription
	rivals         []string       // other Subscriptions to the package, by name
	csvs           []snapshot.CSV // originals
	members        []*snapshot.Object
}

func (op *operator) key() string { return op.namespace + "/" + op.pkg }

// csv returns the ClusterServiceVersion that is installed: the one that is pinned,
// else the Subscription's, else the last; nil where there is none.
func (op *operator) csv() *snapshot.CSV {
	for _, name := range op.installed() {
		for i := range op.csvs {
			if op.csvs[i].Name == name {
				return &op.csvs[i]
			}
		}
	}
	if len(op.csvs) > 0 {
		return &op.csvs[len(op.csvs)-1]
	}
	return nil
}

// installed returns the names that the installed ClusterServiceVersion may have,
// the likeliest first.
func (op *operator) installed() []string {
	var out []string
	if op.pin != nil {
		out = append(out, op.pin.Bundle)
	}
	if op.subscription != nil {
		out = append(out, op.subscription.InstalledCSV)
	}
	return out
}

// cluster is a snapshot in which every object of an operator is found.
type cluster struct {
	*snapshot.Snapshot
	operators []*operator // by namespace and package
	of        map[kobj.Key][]*operator
	unpacks   map[kobj.Key]bool // what OLM unpacks bundles with
	leftovers []leftover
	plans     map[string][]snapshot.InstallPlan // by namespace

	byKey       map[string]*operator
	byCSV       map[[2]string]*operator // namespace and name
	byCSVName   map[string][]*operator
	byComponent map[string]*operator
}

// find returns the operators of a cluster and of a lock, with all objects that
// belong to them by any of the ways in which OLM tells.
func find(s *snapshot.Snapshot, lock *lockfile.File) *cluster {
	c := &cluster{
		Snapshot: s, of: map[kobj.Key][]*operator{}, unpacks: map[kobj.Key]bool{}, plans: map[string][]snapshot.InstallPlan{}, leftovers: leftovers(), byKey: map[string]*operator{},
		byCSV: map[[2]string]*operator{}, byCSVName: map[string][]*operator{}, byComponent: map[string]*operator{},
	}
	for i := range lock.Pins {
		p := &lock.Pins[i]
		c.operator(p.Namespace, p.Package).pin = p
	}
	for _, sub := range s.Subscriptions() {
		c.operator(sub.Namespace, sub.Package).subscribe(&sub)
	}
	for _, csv := range s.CSVs() {
		if csv.CopiedFrom == "" {
			op := c.operator(csv.Namespace, c.packageOf(csv))
			op.csvs = append(op.csvs, csv)
		}
	}
	c.index()
	c.belong()
	return c
}

// operator returns the operator of a package in a namespace, made where it is
// new.
func (c *cluster) operator(namespace, pkg string) *operator {
	key := namespace + "/" + pkg
	if c.byKey[key] == nil {
		c.byKey[key] = &operator{namespace: namespace, pkg: pkg}
	}
	return c.byKey[key]
}

// subscribe adds a Subscription: that by which something is installed counts.
func (op *operator) subscribe(sub *snapshot.Subscription) {
	if was := op.subscription; was != nil {
		if was.InstalledCSV == "" && sub.InstalledCSV != "" {
			was, sub = sub, was
		}
		op.subscription, op.rivals = was, append(op.rivals, sub.Name)
		return
	}
	op.subscription = sub
}

// packageOf returns the package of a ClusterServiceVersion: as a Subscription or
// a pin has it, else as OLM's label says; else its name without the version.
func (c *cluster) packageOf(csv snapshot.CSV) string {
	for _, op := range c.byKey {
		if op.namespace == csv.Namespace && slices.Contains(op.installed(), csv.Name) {
			return op.pkg
		}
	}
	for key := range csv.Labels {
		name, ok := strings.CutPrefix(key, prefixComponent)
		if pkg, here := strings.CutSuffix(name, "."+csv.Namespace); ok && here {
			return pkg
		}
	}
	return base(csv.Name)
}

func (c *cluster) index() {
	for _, key := range slices.Sorted(maps.Keys(c.byKey)) {
		op := c.byKey[key]
		c.operators = append(c.operators, op)
		c.byComponent[ComponentLabel(op.namespace, op.pkg)] = op
		names := op.installed()
		for _, csv := range op.csvs {
			names = append(names, csv.Name)
		}
		for _, name := range names {
			if at := [2]string{op.namespace, name}; name != "" && c.byCSV[at] == nil {
				c.byCSV[at] = op
				c.byCSVName[name] = append(c.byCSVName[name], op)
			}
		}
	}
	slices.SortStableFunc(c.operators, func(a, b *operator) int { return strings.Compare(a.key(), b.key()) })
}

// ComponentLabel returns the label by which OLM marks what belongs to an operator.
func ComponentLabel(namespace, pkg string) string {
	name := pkg + "." + namespace
	if len(name) > kobj.MaxLabel {
		name = strings.TrimRight(name[:kobj.MaxLabel], "-._")
	}
	return prefixComponent + name
}

// belong finds out whose every object is.
func (c *cluster) belong() {
	c.named()
	all := c.All()
	for _, o := range all {
		c.add(o, c.said(o)...)
	}
	for range 2 { // an owner, and its owner
		for _, o := range all {
			c.add(o, c.owners(o)...)
		}
	}
}

// add says that an object belongs to operators.
func (c *cluster) add(o *snapshot.Object, ops ...*operator) {
	if o == nil {
		return
	}
	for _, op := range ops {
		if op != nil && !slices.Contains(c.of[o.Key], op) {
			c.of[o.Key] = append(c.of[o.Key], op)
			op.members = append(op.members, o)
		}
	}
}

// named adds what OLM keeps lists of, and what it says no more of than its name.
func (c *cluster) named() {
	for _, o := range c.Kind(snapshot.OLM, "Operator") {
		op := c.byComponent[prefixComponent+o.Name]
		for _, ref := range kobj.Items(o.Body(), "status", "components", "refs") {
			c.add(c.Get(kobj.Key{Group: kobj.Group(kobj.Text(ref, "apiVersion")), Kind: kobj.Text(ref, "kind"), Namespace: kobj.Text(ref, "namespace"), Name: kobj.Text(ref, "name")}), op)
		}
		c.add(o, op)
	}
	for _, plan := range c.InstallPlans() {
		c.plans[plan.Namespace] = append(c.plans[plan.Namespace], plan)
		for _, step := range plan.Steps {
			c.made(plan, step)
		}
		for _, name := range plan.CSVs {
			c.add(plan.Object, c.byCSV[[2]string{plan.Namespace, name}])
		}
		for _, l := range plan.Lookups {
			c.unpacked(l, c.byCSV[[2]string{plan.Namespace, l.CSV}])
		}
	}
	for _, d := range c.Kind("apps", "Deployment") {
		for _, op := range c.said(d) {
			c.serves(d, op)
		}
	}
}

// made adds what a step of an InstallPlan made; for a version that is gone, what OLM
// still marks of it.
func (c *cluster) made(plan snapshot.InstallPlan, step snapshot.Step) {
	op := c.versionOf(plan.Namespace, step.CSV)
	gone := c.byCSV[[2]string{plan.Namespace, step.CSV}] == nil
	for _, namespace := range []string{"", plan.Namespace} {
		o := c.Get(kobj.Key{Group: step.Group, Kind: step.Kind, Namespace: namespace, Name: step.Name})
		if o != nil && (!gone || managed(o)) {
			c.add(o, op)
		}
	}
}

// serves adds what OLM makes for the webhooks and APIs behind a Deployment, which it
// does not mark in all its versions. What somebody else made under these names has
// another role, or none of OLM's marks.
func (c *cluster) serves(d *snapshot.Object, op *operator) {
	service := d.Name + "-service"
	reader := c.Get(kobj.Key{Group: rbacGroup, Kind: "RoleBinding", Namespace: "kube-system", Name: service + "-auth-reader"})
	if reader != nil && reader.At("roleRef", "name") == "extension-apiserver-authentication-reader" {
		c.add(reader, op)
	}
	for _, key := range []kobj.Key{{Group: rbacGroup, Kind: "Role"}, {Group: rbacGroup, Kind: "RoleBinding"}, {Kind: "Secret"}} {
		key.Namespace, key.Name = d.Namespace, service+"-cert"
		if o := c.Get(key); o != nil && (managed(o) || ownedBy(o, "ClusterServiceVersion")) {
			c.add(o, op)
		}
	}
}

// unpacked adds what OLM unpacked a bundle's image with, in the namespace of its
// catalog.
func (c *cluster) unpacked(l snapshot.Lookup, op *operator) {
	name := unpackedName(l.Image)
	for _, key := range []kobj.Key{{Kind: "ConfigMap"}, {Group: "batch", Kind: "Job"}, {Group: rbacGroup, Kind: "Role"}, {Group: rbacGroup, Kind: "RoleBinding"}} {
		key.Namespace, key.Name = l.Catalog.Namespace, name
		c.unpacks[key] = true
		c.add(c.Get(key), op)
	}
}

// unpackedName is the name of what OLM unpacks the bundle of an image with.
func unpackedName(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])[:kobj.MaxLabel]
}

// versionOf returns the operator of which a ClusterServiceVersion is, or was an
// earlier one that is gone: the only one of its namespace whose versions are named
// alike. It returns nil where there is none.
func (c *cluster) versionOf(namespace, name string) *operator {
	if op := c.byCSV[[2]string{namespace, name}]; op != nil {
		return op
	}
	var found *operator
	for _, op := range c.within(namespace) {
		csv := op.csv()
		if csv == nil || base(csv.Name) != base(name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = op
	}
	return found
}

// base returns the name of a ClusterServiceVersion without its version.
func base(csv string) string {
	name, _, _ := strings.Cut(csv, ".")
	return name
}

// said returns whose an object is by its labels and its kind.
func (c *cluster) said(o *snapshot.Object) []*operator {
	var out []*operator
	for key := range o.Labels {
		if strings.HasPrefix(key, prefixComponent) {
			out = append(out, c.byComponent[key])
		}
	}
	slices.SortFunc(out, func(a, b *operator) int { return strings.Compare(keyOf(a), keyOf(b)) })
	owner, namespace := o.Labels[labelOwner], o.Labels[labelOwnerNamespace]
	switch {
	case owner == "":
	case o.Labels[labelOwnerKind] == "OperatorGroup":
		out = append(out, c.within(namespace)...)
	case namespace == "":
		out = append(out, c.byCSVName[owner]...)
	default:
		if from := o.Labels[snapshot.CopiedFrom]; from != "" {
			namespace = from
		}
		out = append(out, c.versionOf(namespace, owner))
	}
	if o.Group != snapshot.OLM {
		return out
	}
	switch o.Kind {
	case "ClusterServiceVersion":
		from := o.Namespace
		if copied := o.Labels[snapshot.CopiedFrom]; copied != "" {
			from = copied
		}
		out = append(out, c.byCSV[[2]string{from, o.Name}])
	case "OperatorGroup":
		out = append(out, c.within(o.Namespace)...)
	case "OperatorCondition":
		out = append(out, c.byCSV[[2]string{o.Namespace, o.Name}])
		if ours(o) { // of an earlier version, perhaps, when it had that one's name
			out = append(out, c.byKey[o.Labels[kobj.LabelNamespace]+"/"+o.Labels[kobj.LabelPackage]])
		}
	case "Subscription":
		for _, op := range c.within(o.Namespace) {
			if op.subscription != nil && op.subscription.Name == o.Name || slices.Contains(op.rivals, o.Name) {
				out = append(out, op)
			}
		}
	}
	return out
}

func keyOf(op *operator) string {
	if op == nil {
		return ""
	}
	return op.key()
}

// within returns the operators of a namespace.
func (c *cluster) within(namespace string) []*operator {
	var out []*operator
	for _, op := range c.operators {
		if op.namespace == namespace {
			out = append(out, op)
		}
	}
	return out
}

// owners returns whose an object is by its ownerReferences: to a
// ClusterServiceVersion, a copy of one that may be gone among them, and to what
// belongs to an operator and that OLM gives objects to.
func (c *cluster) owners(o *snapshot.Object) []*operator {
	var out []*operator
	for _, ref := range o.Owners {
		owner := c.ByUID(ref.UID)
		switch kobj.Group(ref.APIVersion) + "/" + strings.ToLower(ref.Kind) {
		case snapshot.OLM + "/clusterserviceversion":
			namespace := o.Namespace
			if from := o.Labels[snapshot.CopiedFrom]; from != "" {
				namespace = from
			}
			if owner == nil {
				out = append(out, c.byCSV[[2]string{namespace, ref.Name}])
				continue
			}
		case snapshot.OLM + "/operatorcondition", snapshot.OLM + "/subscription":
		case "apiextensions.k8s.io/customresourcedefinition", "apiregistration.k8s.io/apiservice":
			if o.Kind != "ClusterRole" {
				continue
			}
		default:
			continue
		}
		if owner != nil {
			out = append(out, c.of[owner.Key]...)
		}
	}
	return out
}
