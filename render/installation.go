package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
)

// Installation contains the name and the spec of an Installation object. It lists the objects that
// a cluster gets from one pin.
type Installation struct {
	Namespace string // install namespace
	Name      string // name of the Installation
	Spec      v1alpha1.InstallationSpec
}

// Installations returns the Installations of a cluster by namespace and package, even if no reporter is
// rendered. Images include the effect of mirrors and of the cluster's config, but not the effect of the
// user's overlay. The caller may modify the result.
func (r *Result) Installations(cluster string) ([]Installation, error) {
	v, err := r.tree.view(cluster)
	if err != nil {
		return nil, err
	}
	return v.installations()
}

// ObjectsIn returns the objects of the base that a cluster gets. The objects include the effect of mirrors
// and of the cluster's config, but not the effect of the user's overlay.
func (r *Result) ObjectsIn(cluster string) ([]Rendered, error) {
	v, err := r.tree.view(cluster)
	if err != nil {
		return nil, err
	}
	cfg, err := v.config()
	if err != nil {
		return nil, err
	}
	gets := v.crdFilter()
	var out []Rendered
	for _, o := range v.objects {
		if o.operator != nil && !slices.Contains(v.chosen, o.operator) || k8s.IsCRD(o.Object) && !gets(o.Object) {
			continue
		}
		o.Object = cfg.applyToCopy(o.Object)
		out = append(out, o)
	}
	return out, nil
}

// baseInstallations returns the Installations of all pins. They do not include the configs of
// clusters.
func (t *tree) baseInstallations() []Installation {
	all := make([]*operator, len(t.installs))
	for i := range t.installs {
		all[i] = &t.installs[i]
	}
	return t.listInstallations(all, func(o Object) Object { return o })
}

// listInstallations returns an Installation for each of the installs. All installs belong to one cluster.
// adapt applies the cluster's config to an object.
func (t *tree) listInstallations(installs []*operator, adapt func(Object) Object) []Installation {
	inCluster := map[Key]Object{} // all objects that the cluster gets
	for _, in := range installs {
		for _, o := range in.objects {
			inCluster[o.Key()] = o
		}
	}
	for _, o := range inheritedObjects(installs) {
		inCluster[o.object.Key()] = o.object
	}
	for _, r := range t.objects {
		if k8s.IsCRD(r.Object) || strings.HasPrefix(r.Path, layout.Namespaces+"/") {
			inCluster[r.Object.Key()] = r.Object
		}
	}
	var out []Installation
	for _, in := range installs {
		out = append(out, newInstallation(in, adapt, inCluster))
	}
	return out
}

// newInstallation returns the Installation of an operator. It lists the operator's own objects. It also lists
// the Namespace, the CRDs, the objects that are rendered for another operator, and the CRD of
// OperatorCondition, if these are in inCluster.
func newInstallation(in *operator, adapt func(Object) Object, inCluster map[Key]Object) Installation {
	spec := v1alpha1.InstallationSpec{
		Package: in.pin.Package, Version: in.pin.Version, Bundle: in.pin.Bundle, Channel: in.pin.Channel, Pin: string(in.pin.Checksum()),
		BundleDigest: string(in.pin.BundleDigest()),
	}
	related := []Key{k8s.New("v1", "Namespace", "", in.pin.Namespace).Key()}
	own := map[Key]bool{}
	for _, o := range in.objects {
		own[o.Key()] = true
		ref := objectReference(in, o)
		ref.Images = templateImages(adapt(o))
		spec.Objects = append(spec.Objects, ref)
		if o.Is(k8s.OLMGroup, "OperatorCondition") && o.Namespace() == in.pin.Namespace {
			spec.OperatorCondition = o.Name()
			related = append(related, operatorConditionCRD().Key())
		}
	}
	for _, o := range slices.Concat(in.crds, in.sharedObjects) {
		related = append(related, o.Key())
	}
	for _, key := range related {
		if o, ok := inCluster[key]; ok && !own[key] {
			own[key] = true
			spec.Objects = append(spec.Objects, objectReference(in, o))
		}
	}
	slices.SortFunc(spec.Objects, compareReferences)
	return Installation{Namespace: in.pin.Namespace, Name: k8s.Fit(in.pin.Package, k8s.MaxSubdomain), Spec: spec}
}

// objectReference returns the reference to an object in an Installation. It has a version only if the labels
// of the object name this operator and version.
func objectReference(in *operator, o Object) v1alpha1.ObjectReference {
	ref := v1alpha1.ObjectReference{APIVersion: o.APIVersion(), Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}
	labels := k8s.Map(o, "metadata", "labels")
	ours := k8s.Text(labels, k8s.LabelPackage) == k8s.LabelValue(in.pin.Package) && (k8s.IsCRD(o) || k8s.Text(labels, k8s.LabelNamespace) == in.pin.Namespace)
	if version := k8s.LabelValue(in.pin.Version); ours && k8s.Text(labels, k8s.LabelVersion) == version {
		ref.Version = version
	}
	return ref
}

func compareReferences(a, b v1alpha1.ObjectReference) int {
	group := func(r v1alpha1.ObjectReference) string { return Object{"apiVersion": r.APIVersion}.Group() }
	return cmp.Or(strings.Compare(group(a), group(b)), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// templateImages returns the images in an object's pod template, init containers first.
func templateImages(o Object) []v1alpha1.ContainerImage {
	var out []v1alpha1.ContainerImage
	for _, c := range k8s.Containers(k8s.PodSpec(o)) {
		if image := k8s.Text(c, "image"); image != "" {
			out = append(out, v1alpha1.ContainerImage{Container: k8s.Text(c, "name"), Image: image})
		}
	}
	return out
}
