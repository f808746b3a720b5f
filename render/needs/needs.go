// Package needs finds the requirements that rendered operators have on a cluster: APIs, objects to
// which their pods refer, Namespaces whose Pod Security level permits the pods, and OLM.
//
// [Find] returns the needs of one operator. A [Supply] contains all APIs and objects that the tree, the
// settings and observations provide. Its method Unmet returns the unmet needs. Permissions are not needs,
// because most operators use an optional API only if the cluster has it. The exception is the permission to
// install operators through OLM.
//
// Start from [Find] and [Supply].
package needs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/provided"
	"github.com/quayside/quayside/render"
)

// Kind is the category of a need.
type Kind string

// Kinds of needs. An unmet need makes the API server or the scheduler reject objects of the operator. Needs of
// kind Config are an exception.
const (
	API         Kind = "api"         // an API that objects of the operator use
	Config      Kind = "config"      // a Secret or ConfigMap of a pod, or a class, which the operator may create itself
	Other       Kind = "object"      // another object in a pod or a PersistentVolumeClaim
	OLM         Kind = "olm"         // OLM while the operator runs
	PodSecurity Kind = "podSecurity" // a Namespace whose Pod Security level permits the pods
	Namespace   Kind = "namespace"   // the namespace of an object
)

// Need is a requirement of an operator on its cluster.
type Need struct {
	Kind       Kind
	APIVersion string   // for API: group and version
	Kinds      []string // for API: kinds of the operator's objects, sorted
	Object     k8s.Key  // for Config, Other and PodSecurity: the needed object
	Level      string   // for PodSecurity: the enforced level
	By         []string // objects and fields that have this need, sorted; for OLM, the evidence
	Why        []string // for PodSecurity: violations of the level, sorted
}

// compare compares needs for sorting, by kind, API version and object.
func (n Need) compare(m Need) int {
	return cmp.Or(strings.Compare(string(n.Kind), string(m.Kind)), strings.Compare(n.APIVersion, m.APIVersion), n.Object.Compare(m.Object))
}

// ID identifies a need of an operator.
func (n Need) ID() string { return string(n.Kind) + " " + n.APIVersion + " " + n.Object.String() }

// Find returns the needs of an operator, sorted. namespaces are the rendered Namespaces. On OpenShift, it
// reports only violations of the Pod Security level baseline, because OpenShift's admission sets the fields
// that stricter levels require.
func Find(o render.ClusterOperator, namespaces []k8s.Object, openshift bool) []Need {
	f := finder{found: map[string]*Need{}, served: map[[2]string]bool{}, objects: o.Objects, namespaces: namespaces, openshift: openshift}
	for _, api := range o.NativeAPIs {
		f.needAPI(strings.TrimPrefix(api.Group+"/"+api.Version, "/"), api.Kind, func() string { return "spec.nativeAPIs of the ClusterServiceVersion" })
	}
	for _, object := range o.Objects {
		f.needAPI(object.APIVersion(), object.Kind(), object.Key().String)
		f.addReferences(object)
		// render already warns about watched namespaces of other teams.
		if ns := object.Namespace(); ns != "" && !slices.Contains(o.Pin.WatchNamespaces, ns) {
			f.needNamespace(ns, object.Key)
		}
	}
	for _, by := range olmEvidence(o.Objects) {
		f.add(Need{Kind: OLM}, by)
	}
	var out []Need
	for _, n := range f.found {
		for _, list := range []*[]string{&n.Kinds, &n.By, &n.Why} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
		out = append(out, *n)
	}
	slices.SortFunc(out, Need.compare)
	return out
}

// finder collects the needs of an operator.
type finder struct {
	found      map[string]*Need
	served     map[[2]string]bool // whether every cluster serves an API version and kind, or it belongs to OLM
	objects    []k8s.Object
	namespaces []k8s.Object
	openshift  bool
}

// add adds a need, and the operator by to the field By of the need. It returns the existing need if there is one
// with the same ID.
func (f *finder) add(n Need, by string) *Need {
	id := n.ID()
	if f.found[id] == nil {
		f.found[id] = &n
	}
	f.found[id].By = append(f.found[id].By, by)
	return f.found[id]
}

// needAPI adds the need for an API, unless every cluster serves the API or the API belongs to OLM.
func (f *finder) needAPI(apiVersion, kind string, by func() string) {
	id := [2]string{apiVersion, kind}
	served, known := f.served[id]
	if !known {
		group := k8s.Group(apiVersion)
		served = k8s.IsBuiltinGroup(group) && !isAlpha(apiVersion) || isOLMKind(group, kind)
		f.served[id] = served
	}
	if !served {
		n := f.add(Need{Kind: API, APIVersion: apiVersion}, by())
		n.Kinds = append(n.Kinds, kind)
	}
}

// needNamespace adds the need for a namespace. Only the first object in the namespace is recorded as evidence.
func (f *finder) needNamespace(name string, by func() k8s.Key) {
	n := Need{Kind: Namespace, Object: k8s.Key{Kind: "Namespace", Name: name}}
	if f.found[n.ID()] == nil {
		f.add(n, by().String())
	}
}

// isAlpha reports whether an API version is alpha. Such APIs must be enabled in the API server.
func isAlpha(apiVersion string) bool {
	return regexp.MustCompile(`/v[0-9]+alpha[0-9]+$`).MatchString(apiVersion)
}

// addReferences adds needs for the objects that a workload or PersistentVolumeClaim refers to.
func (f *finder) addReferences(o k8s.Object) {
	var pod map[string]any
	switch o.Group() {
	case "", "apps", "batch":
		pod = k8s.PodSpec(o)
	}
	if len(pod) == 0 && !o.Is("", "PersistentVolumeClaim") && !o.Is("apps", "StatefulSet") {
		return
	}
	by := o.Key().String()
	switch {
	case o.Is("", "PersistentVolumeClaim"):
		f.addClass("StorageClass", k8s.Text(o, "spec", "storageClassName"), by)
	case o.Is("apps", "StatefulSet"):
		for _, claim := range k8s.Items(o, "spec", "volumeClaimTemplates") {
			f.addClass("StorageClass", k8s.Text(claim, "spec", "storageClassName"), by+" volumeClaimTemplates["+k8s.Text(claim, "metadata", "name")+"]")
		}
	}
	if len(pod) == 0 {
		return
	}
	addObject := func(kind, name, field string) {
		if name != "" {
			f.add(Need{Kind: Other, Object: k8s.Key{Kind: kind, Namespace: o.Namespace(), Name: name}}, by+field)
		}
	}
	if account := k8s.Text(pod, "serviceAccountName"); account != "default" {
		addObject("ServiceAccount", account, "")
	}
	f.addClass("PriorityClass", k8s.Text(pod, "priorityClassName"), by)
	f.addClass("RuntimeClass", k8s.Text(pod, "runtimeClassName"), by)
	for _, v := range k8s.Items(pod, "volumes") {
		field := " volumes[" + k8s.Text(v, "name") + "]"
		addObject("PersistentVolumeClaim", k8s.Text(v, "persistentVolumeClaim", "claimName"), field)
		f.addClass("StorageClass", k8s.Text(v, "ephemeral", "volumeClaimTemplate", "spec", "storageClassName"), by+field)
	}
	k8s.PodReferences(pod, func(field, kind, name string) {
		f.add(Need{Kind: Config, Object: k8s.Key{Kind: kind, Namespace: o.Namespace(), Name: name}}, by+" "+field)
	})
	f.addPodSecurity(o, pod)
}

// addClass adds the need for a class, unless the name is empty or every cluster has the class.
func (f *finder) addClass(kind, name, by string) {
	if name == "" || kind == "PriorityClass" && strings.HasPrefix(name, "system-") {
		return
	}
	n := Need{Kind: Other, Object: k8s.Key{Group: provided.Kinds()[kind].Group, Kind: kind, Name: name}}
	if f.mayCreate(n.Object) {
		n.Kind = Config
	}
	f.add(n, by)
}

// mayCreate reports whether a role of the operator permits creating an object. A rule for the resource "*" does
// not count.
func (f *finder) mayCreate(key k8s.Key) bool {
	resource := k8s.Resource(key.Group, key.Kind)
	return slices.ContainsFunc(f.objects, func(o k8s.Object) bool {
		return slices.ContainsFunc(k8s.Items(o, "rules"), func(rule map[string]any) bool {
			verbs := k8s.Texts(rule, "verbs")
			return slices.Contains(k8s.Texts(rule, "apiGroups"), key.Group) && slices.Contains(k8s.Texts(rule, "resources"), resource) &&
				(slices.Contains(verbs, "create") || slices.Contains(verbs, "*"))
		})
	})
}

// Labels of a Namespace for Pod Security admission.
const (
	enforceLabel   = "pod-security.kubernetes.io/enforce"
	enforceVersion = enforceLabel + "-version"
)

// addPodSecurity adds a need if the rendered Namespace of a workload does not permit the workload's pods.
func (f *finder) addPodSecurity(o k8s.Object, pod map[string]any) {
	i := slices.IndexFunc(f.namespaces, func(ns k8s.Object) bool { return ns.Name() == o.Namespace() })
	if i < 0 {
		return
	}
	labels := k8s.TextMap(f.namespaces[i], "metadata", "labels")
	level, checked := labels[enforceLabel], labels[enforceLabel]
	if level == "" || level == k8s.Privileged {
		return
	}
	if f.openshift {
		checked = k8s.Baseline
	}
	meta := k8s.Map(o, "spec", "template", "metadata")
	// the validation of the manifest reports an invalid pod
	if why, err := k8s.PodSecurityViolations(meta, pod, checked, labels[enforceVersion]); err == nil && len(why) > 0 {
		n := f.add(Need{Kind: PodSecurity, Object: f.namespaces[i].Key(), Level: level}, o.Key().String())
		n.Why = append(n.Why, why...)
	}
}

// Supply contains the APIs and objects in a cluster that can meet needs.
type Supply struct {
	apis      map[string]bool // such as "cert-manager.io/v1", or "cert-manager.io/v1/Certificate" for a single kind
	objects   map[k8s.Key]bool
	openshift bool
}

// NewSupply returns a Supply with the objects that every cluster or every OpenShift cluster has.
func NewSupply(openshift bool) *Supply {
	s := &Supply{apis: map[string]bool{}, objects: map[k8s.Key]bool{{Kind: "ConfigMap", Name: "kube-root-ca.crt"}: true}, openshift: openshift}
	if openshift {
		s.objects[k8s.Key{Kind: "ConfigMap", Name: "openshift-service-ca.crt"}] = true
	}
	return s
}

// AddAPIs adds APIs, such as "cert-manager.io/v1", with all their kinds.
func (s *Supply) AddAPIs(apiVersions ...string) {
	for _, v := range apiVersions {
		s.apis[v] = true
	}
}

// AddKeys adds single objects.
func (s *Supply) AddKeys(keys ...k8s.Key) {
	for _, k := range keys {
		s.objects[k] = true
	}
}

// AddObjects adds objects, the APIs that these objects define, and the objects that controllers create from
// them.
func (s *Supply) AddObjects(objects ...k8s.Object) {
	kinds := provided.Kinds()
	for _, o := range objects {
		add := func(kind, name string) {
			s.objects[k8s.Key{Group: kinds[kind].Group, Kind: kind, Namespace: o.Namespace(), Name: name}] = true
		}
		switch {
		case k8s.IsCRD(o):
			crd := k8s.ParseCRD(o)
			for _, v := range crd.Served() {
				s.apis[crd.Group+"/"+v+"/"+crd.Kind] = true
			}
		case o.Is("apiregistration.k8s.io", "APIService"):
			s.apis[k8s.Text(o, "spec", "group")+"/"+k8s.Text(o, "spec", "version")] = true
		case o.Is("", "PersistentVolume"): // claims that name its StorageClass can bind to it, even if the class does not exist
			add("StorageClass", k8s.Text(o, "spec", "storageClassName"))
		case o.Is("", "Service") && s.openshift: // OpenShift's service CA creates a Secret for it
			annotations := k8s.TextMap(o, "metadata", "annotations")
			add("Secret", annotations["service.beta.openshift.io/serving-cert-secret-name"])
			add("Secret", annotations["service.alpha.openshift.io/serving-cert-secret-name"])
		case k8s.Text(o, "spec", "secretName") != "" && certificates.Issues(o.Group(), o.Kind()):
			add("Secret", k8s.Text(o, "spec", "secretName"))
		default:
			if kind, ok := kinds[o.Kind()]; ok && kind.Group == o.Group() {
				s.objects[o.Key()] = true
			}
		}
	}
}

// Unmet returns the needs that nothing in the supply meets.
func (s *Supply) Unmet(needs []Need) []Need {
	var out []Need
	for _, n := range needs {
		if !s.meets(n) {
			out = append(out, n)
		}
	}
	return out
}

func (s *Supply) meets(n Need) bool {
	switch n.Kind {
	case API:
		return s.apis[n.APIVersion] || !slices.ContainsFunc(n.Kinds, func(kind string) bool { return !s.apis[n.APIVersion+"/"+kind] })
	case OLM:
		for api := range s.apis {
			// OperatorCondition does not count, because it is in every tree
			if group, _, _ := strings.Cut(api, "/"); (group == k8s.OLMGroup || group == k8s.OLMv1Group) && !strings.HasSuffix(api, "/OperatorCondition") {
				return true
			}
		}
		return false
	case PodSecurity:
		return false
	case Namespace:
		return s.objects[n.Object] || k8s.IsDefaultNamespace(n.Object.Name) || s.openshift && k8s.IsReservedNamespace(n.Object.Name)
	default:
		everywhere := n.Object // a controller creates this object in every namespace
		everywhere.Namespace = ""
		return s.objects[n.Object] || s.objects[everywhere]
	}
}
