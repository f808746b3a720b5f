package adopt

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// OLM's labels for the owner of an object.
const (
	labelManaged        = "olm.managed"
	labelOwner          = "olm.owner"
	labelOwnerKind      = "olm.owner.kind"
	labelOwnerNamespace = "olm.owner.namespace"
	prefixComponent     = k8s.OLMGroup + "/"
)

// operator is an operator that OLM installed in the cluster or that the lock pins.
type operator struct {
	OperatorKey
	pin                *lockfile.Pin // nil: the lock does not pin it
	subscription       *snapshot.Subscription
	otherSubscriptions []string       // names of further Subscriptions to the same package
	csvs               []snapshot.CSV // without the copies that OLM makes for other namespaces
	extensions         []snapshot.ClusterExtension
	release            *snapshot.Release      // nil: Helm did not install it
	flux               *k8s.Key               // HelmRelease that manages the release; nil if there is none
	members            []*snapshot.LiveObject // its objects in the cluster

	tree      []k8s.Object          // its objects in the tree
	objects   []ClassifiedObject    // classified objects that belong to no other operator
	reasons   []Reason              // reasons against the adoption, found during classification
	generated map[string]k8s.Object // Deployments as OLM generates them, by name; nil: not computed yet
}

// csv returns the installed ClusterServiceVersion, or nil. It prefers the ClusterServiceVersion that the lock
// names. If there is none, it takes the one in the Subscription's status or, failing this, the last in the
// namespace.
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

// installed returns the names that the installed ClusterServiceVersion may have, the most likely name first.
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

// clusterState is a snapshot with its objects assigned to operators.
type clusterState struct {
	*snapshot.Snapshot
	operators     []*operator // by namespace and package
	operatorsOf   map[k8s.Key][]*operator
	unpackObjects map[k8s.Key]bool                  // objects that OLM created to unpack bundle images
	plans         map[string][]snapshot.InstallPlan // by namespace

	byKey       map[string]*operator
	byCSV       map[[2]string]*operator // by namespace and name of the ClusterServiceVersion
	byCSVName   map[string][]*operator
	byComponent map[string]*operator
}

// newCluster returns the operators in a cluster and in a lock, with the objects that OLM created for each operator.
// newCluster finds these objects by labels, owner references and names, and in the lists of OLM's own objects.
func newCluster(s *snapshot.Snapshot, lock *lockfile.File) *clusterState {
	c := &clusterState{
		Snapshot: s, operatorsOf: map[k8s.Key][]*operator{}, unpackObjects: map[k8s.Key]bool{}, plans: map[string][]snapshot.InstallPlan{}, byKey: map[string]*operator{},
		byCSV: map[[2]string]*operator{}, byCSVName: map[string][]*operator{}, byComponent: map[string]*operator{},
	}
	for i := range lock.Pins {
		p := &lock.Pins[i]
		c.operator(p.Namespace, p.Package).pin = p
	}
	for _, sub := range s.Subscriptions() {
		c.operator(sub.Namespace, sub.Package).addSubscription(&sub)
	}
	for _, csv := range s.CSVs() {
		if csv.CopiedFrom == "" && csv.Name != snapshot.Packageserver {
			op := c.operator(csv.Namespace, c.packageOf(csv))
			op.csvs = append(op.csvs, csv)
		}
	}
	for _, e := range s.ClusterExtensions() {
		if e.InstallNamespace != "" && e.Package != "" {
			op := c.operator(e.InstallNamespace, e.Package)
			op.extensions = append(op.extensions, e)
		}
	}
	c.index()
	c.assignAll()
	return c
}

// operator returns the operator of a package in a namespace. A missing operator is added to c.
func (c *clusterState) operator(namespace, pkg string) *operator {
	key := OperatorKey{namespace, pkg}
	if c.byKey[key.Key()] == nil {
		c.byKey[key.Key()] = &operator{OperatorKey: key}
	}
	return c.byKey[key.Key()]
}

// addSubscription sets op.subscription. Of several Subscriptions for one package, it keeps one that has an
// installed version. The names of the others are added to op.otherSubscriptions.
func (op *operator) addSubscription(sub *snapshot.Subscription) {
	if was := op.subscription; was != nil {
		if was.InstalledCSV == "" && sub.InstalledCSV != "" {
			was, sub = sub, was
		}
		op.subscription, op.otherSubscriptions = was, append(op.otherSubscriptions, sub.Name)
		return
	}
	op.subscription = sub
}

// packageOf returns the package of a ClusterServiceVersion. The first available source is used: a Subscription
// or pin with this version, OLM's component label, or the part of the ClusterServiceVersion's name that
// precedes the version.
func (c *clusterState) packageOf(csv snapshot.CSV) string {
	for _, op := range c.byKey {
		if op.Namespace == csv.Namespace && slices.Contains(op.installed(), csv.Name) {
			return op.Package
		}
	}
	for key := range csv.Labels {
		name, ok := strings.CutPrefix(key, prefixComponent)
		if pkg, here := strings.CutSuffix(name, "."+csv.Namespace); ok && here {
			return pkg
		}
	}
	return csvBase(csv.Name)
}

func (c *clusterState) index() {
	for _, key := range slices.Sorted(maps.Keys(c.byKey)) {
		op := c.byKey[key]
		c.operators = append(c.operators, op)
		c.byComponent[ComponentLabel(op.Namespace, op.Package)] = op
		names := op.installed()
		for _, csv := range op.csvs {
			names = append(names, csv.Name)
		}
		for _, name := range names {
			if at := [2]string{op.Namespace, name}; name != "" && c.byCSV[at] == nil {
				c.byCSV[at] = op
				c.byCSVName[name] = append(c.byCSVName[name], op)
			}
		}
	}
	slices.SortStableFunc(c.operators, func(a, b *operator) int { return strings.Compare(a.Key(), b.Key()) })
}

// ComponentLabel returns the label that OLM sets on the components of an operator.
func ComponentLabel(namespace, pkg string) string {
	name := pkg + "." + namespace
	if len(name) > k8s.MaxLabel {
		name = strings.TrimRight(name[:k8s.MaxLabel], "-._")
	}
	return prefixComponent + name
}

func (c *clusterState) assignAll() {
	c.assignListedObjects()
	c.assignReleases()
	all := c.All()
	for _, o := range all {
		c.add(o, c.operatorsByLabel(o)...)
	}
	for range 2 { // first the owners, then the owners of the owners
		for _, o := range all {
			c.add(o, c.operatorsByOwner(o)...)
		}
	}
}

// add assigns an object to operators.
func (c *clusterState) add(o *snapshot.LiveObject, ops ...*operator) {
	if o == nil {
		return
	}
	for _, op := range ops {
		if op != nil && !slices.Contains(c.operatorsOf[o.Key], op) {
			c.operatorsOf[o.Key] = append(c.operatorsOf[o.Key], op)
			op.members = append(op.members, o)
		}
	}
}

// assignListedObjects assigns the objects that OLM lists in Operators and InstallPlans. It also assigns objects
// that can only be identified by their names.
func (c *clusterState) assignListedObjects() {
	for _, o := range c.Kind(k8s.OLMGroup, "Operator") {
		op := c.byComponent[prefixComponent+o.Name]
		for _, ref := range k8s.Items(o.Body(), "status", "components", "refs") {
			c.add(c.Get(k8s.Key{Group: k8s.Group(k8s.Text(ref, "apiVersion")), Kind: k8s.Text(ref, "kind"), Namespace: k8s.Text(ref, "namespace"), Name: k8s.Text(ref, "name")}), op)
		}
		c.add(o, op)
	}
	for _, plan := range c.InstallPlans() {
		c.plans[plan.Namespace] = append(c.plans[plan.Namespace], plan)
		for _, step := range plan.Steps {
			c.assignStep(plan, step)
		}
		for _, name := range plan.CSVs {
			c.add(plan.LiveObject, c.byCSV[[2]string{plan.Namespace, name}])
		}
		for _, l := range plan.Lookups {
			c.assignUnpacked(l, c.byCSV[[2]string{plan.Namespace, l.CSV}])
		}
	}
	for _, d := range c.Kind("apps", "Deployment") {
		for _, op := range c.operatorsByLabel(d) {
			c.assignServiceObjects(d, op)
		}
	}
}

// assignStep assigns the object of an InstallPlan step to its operator. A step for a version that is no longer
// installed counts only if its object still has a label of OLM.
func (c *clusterState) assignStep(plan snapshot.InstallPlan, step snapshot.Step) {
	op := c.operatorOfVersion(plan.Namespace, step.CSV)
	gone := c.byCSV[[2]string{plan.Namespace, step.CSV}] == nil
	for _, namespace := range []string{"", plan.Namespace} {
		o := c.Get(k8s.Key{Group: step.Group, Kind: step.Kind, Namespace: namespace, Name: step.Name})
		if o != nil && (!gone || isManaged(o)) {
			c.add(o, op)
		}
	}
}

// assignServiceObjects assigns the objects that OLM creates for the webhooks and APIs of a Deployment. Some
// versions of OLM do not label these objects. To be assigned, an object must have the expected name, and also
// the expected roleRef, owner or label.
func (c *clusterState) assignServiceObjects(d *snapshot.LiveObject, op *operator) {
	service := d.Name + "-service"
	reader := c.Get(k8s.Key{Group: k8s.RBACGroup, Kind: "RoleBinding", Namespace: "kube-system", Name: service + "-auth-reader"})
	if reader != nil && reader.At("roleRef", "name") == "extension-apiserver-authentication-reader" {
		c.add(reader, op)
	}
	for _, key := range []k8s.Key{{Group: k8s.RBACGroup, Kind: "Role"}, {Group: k8s.RBACGroup, Kind: "RoleBinding"}, {Kind: "Secret"}} {
		key.Namespace, key.Name = d.Namespace, service+"-cert"
		if o := c.Get(key); o != nil && (isManaged(o) || hasOwnerOfKind(o, "ClusterServiceVersion")) {
			c.add(o, op)
		}
	}
}

// assignUnpacked assigns the objects that OLM created to unpack a bundle image. These objects are
// in the namespace of the catalog.
func (c *clusterState) assignUnpacked(l snapshot.Lookup, op *operator) {
	name := unpackedName(l.Image)
	for _, key := range []k8s.Key{{Kind: "ConfigMap"}, {Group: "batch", Kind: "Job"}, {Group: k8s.RBACGroup, Kind: "Role"}, {Group: k8s.RBACGroup, Kind: "RoleBinding"}} {
		key.Namespace, key.Name = l.Catalog.Namespace, name
		c.unpackObjects[key] = true
		c.add(c.Get(key), op)
	}
}

// unpackedName returns the name of the objects that OLM uses to unpack a bundle image.
func unpackedName(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])[:k8s.MaxLabel]
}

// operatorOfVersion returns the operator of a ClusterServiceVersion. For a deleted ClusterServiceVersion, it
// returns the operator in the namespace whose current ClusterServiceVersion has the same base name. It returns
// nil if no operator or several operators match.
func (c *clusterState) operatorOfVersion(namespace, name string) *operator {
	if op := c.byCSV[[2]string{namespace, name}]; op != nil {
		return op
	}
	var found *operator
	for _, op := range c.operatorsIn(namespace) {
		csv := op.csv()
		if csv == nil || csvBase(csv.Name) != csvBase(name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = op
	}
	return found
}

// csvBase returns the name of a ClusterServiceVersion without its version.
func csvBase(csv string) string {
	name, _, _ := strings.Cut(csv, ".")
	return name
}

// operatorsByLabel returns the operators that an object belongs to according to its labels. For an object of
// OLM's own kinds, the object's name counts as well. The result contains nil for each unknown operator.
func (c *clusterState) operatorsByLabel(o *snapshot.LiveObject) []*operator {
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
		out = append(out, c.operatorsIn(namespace)...)
	case namespace == "":
		out = append(out, c.byCSVName[owner]...)
	default:
		if from := o.Labels[snapshot.CopiedFrom]; from != "" {
			namespace = from
		}
		out = append(out, c.operatorOfVersion(namespace, owner))
	}
	if name := o.Labels[snapshot.OwnerNameV1]; name != "" {
		out = append(out, c.operatorOfExtension(name))
	}
	if o.Group == k8s.OLMv1Group && o.Kind == "ClusterExtension" {
		out = append(out, c.operatorOfExtension(o.Name))
	}
	if o.Group != k8s.OLMGroup {
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
		out = append(out, c.operatorsIn(o.Namespace)...)
	case "OperatorCondition":
		out = append(out, c.byCSV[[2]string{o.Namespace, o.Name}])
		if isOurs(o) { // its name may contain an earlier version of the operator
			out = append(out, c.byKey[o.Labels[k8s.LabelNamespace]+"/"+o.Labels[k8s.LabelPackage]])
		}
	case "Subscription":
		for _, op := range c.operatorsIn(o.Namespace) {
			if op.subscription != nil && op.subscription.Name == o.Name || slices.Contains(op.otherSubscriptions, o.Name) {
				out = append(out, op)
			}
		}
	}
	return out
}

// operatorOfExtension returns the operator that a ClusterExtension installed, or nil.
func (c *clusterState) operatorOfExtension(name string) *operator {
	for _, op := range c.operators {
		if slices.ContainsFunc(op.extensions, func(e snapshot.ClusterExtension) bool { return e.Name == name }) {
			return op
		}
	}
	return nil
}

func keyOf(op *operator) string {
	if op == nil {
		return ""
	}
	return op.Key()
}

func (c *clusterState) operatorsIn(namespace string) []*operator {
	var out []*operator
	for _, op := range c.operators {
		if op.Namespace == namespace {
			out = append(out, op)
		}
	}
	return out
}

// operatorsByOwner returns the operators that an object belongs to according to its owner references. The owner
// can be an object of OLM, such as a ClusterServiceVersion or its copy in another namespace. A
// ClusterServiceVersion counts even if it has been deleted.
func (c *clusterState) operatorsByOwner(o *snapshot.LiveObject) []*operator {
	var out []*operator
	for _, ref := range o.Owners {
		owner := c.ByUID(ref.UID)
		switch k8s.Group(ref.APIVersion) + "/" + strings.ToLower(ref.Kind) {
		case k8s.OLMGroup + "/clusterserviceversion":
			namespace := o.Namespace
			if from := o.Labels[snapshot.CopiedFrom]; from != "" {
				namespace = from
			}
			if owner == nil {
				out = append(out, c.byCSV[[2]string{namespace, ref.Name}])
				continue
			}
		case k8s.OLMGroup + "/operatorcondition", k8s.OLMGroup + "/subscription",
			k8s.OLMv1Group + "/clusterextension", k8s.OLMv1Group + "/clusterextensionrevision", k8s.OLMv1Group + "/clusterobjectset":
		case "apiextensions.k8s.io/customresourcedefinition", "apiregistration.k8s.io/apiservice":
			if o.Kind != "ClusterRole" {
				continue
			}
		default:
			continue
		}
		if owner != nil {
			out = append(out, c.operatorsOf[owner.Key]...)
		}
	}
	return out
}
