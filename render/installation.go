package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
)

// Installation lists the objects that a cluster gets from one pin.
type Installation struct {
	Namespace string // install namespace
	Name      string // name of the Installation in that namespace
	Spec      v1alpha1.InstallationSpec
}

// Installations returns the Installations of a cluster, by namespace and package, even if the
// reporter is not rendered. Their images take mirrors and the cluster's own config into account,
// but not the user's overlay. The caller may modify the result.
func (r *Result) Installations(cluster string) ([]Installation, error) {
	c, err := r.tree.cluster(cluster)
	if err != nil {
		return nil, err
	}
	return r.tree.inOverlay(c)
}

// In returns the objects of the base that a cluster gets, with mirrors and the cluster's own
// config, but without the user's overlay.
func (r *Result) In(cluster string) ([]Rendered, error) {
	c, err := r.tree.cluster(cluster)
	if err != nil {
		return nil, err
	}
	cfg, err := r.tree.config(c)
	if err != nil {
		return nil, err
	}
	installs, err := r.tree.chosenOperators(c)
	if err != nil {
		return nil, err
	}
	gets, err := r.tree.gets(c)
	if err != nil {
		return nil, err
	}
	var out []Rendered
	for _, o := range r.Objects {
		if o.operator != nil && !slices.Contains(installs, o.operator) || k8s.IsCRD(o.Object) && !gets(o.Object) {
			continue
		}
		o.Object = r.tree.inCluster(cfg, o.Object)
		out = append(out, o)
	}
	return out, nil
}

// cluster returns the cluster of that name.
func (t *tree) cluster(name string) (profile.Cluster, error) {
	var names []string
	for _, c := range t.opt.Clusters {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return profile.Cluster{}, fmt.Errorf("no cluster %q (have %s)", name, strings.Join(names, ", "))
}

// inOverlay returns the Installations of a cluster.
func (t *tree) inOverlay(c profile.Cluster) ([]Installation, error) {
	cfg, err := t.config(c)
	if err != nil {
		return nil, err
	}
	installs, err := t.chosenOperators(c)
	if err != nil {
		return nil, err
	}
	return t.expected(installs, func(o Object) Object { return t.inCluster(cfg, o) }), nil
}

// inBase returns the Installations of all pins, without the configs of clusters.
func (t *tree) inBase() []Installation {
	all := make([]*opened, len(t.installs))
	for i := range t.installs {
		all[i] = &t.installs[i]
	}
	return t.expected(all, func(o Object) Object { return o })
}

// expected returns the Installations of installs in the same cluster. The adapt function applies
// the cluster's config to an object.
func (t *tree) expected(installs []*opened, adapt func(Object) Object) []Installation {
	there := map[Key]Object{} // all objects in the cluster
	for _, in := range installs {
		for _, o := range in.objects {
			there[o.Key()] = o
		}
	}
	for _, o := range adoptedObjects(installs) {
		there[o.object.Key()] = o.object
	}
	for _, r := range t.objects {
		if k8s.IsCRD(r.Object) || strings.HasPrefix(r.Path, layout.Namespaces+"/") {
			there[r.Object.Key()] = r.Object
		}
	}
	var out []Installation
	for _, in := range installs {
		out = append(out, newInstallation(in, adapt, there))
	}
	return out
}

// newInstallation returns the Installation of an install. It lists the objects of the install and,
// if the cluster has them, its Namespace, its CRDs, the objects that it ships but another install
// renders, and the CRD of its OperatorCondition.
func newInstallation(in *opened, adapt func(Object) Object, there map[Key]Object) Installation {
	spec := v1alpha1.InstallationSpec{
		Package: in.pin.Package, Version: in.pin.Version, Bundle: in.pin.Bundle, Channel: in.pin.Channel, Pin: string(in.pin.Checksum()),
		BundleDigest: string(in.pin.BundleDigest()),
	}
	beside := []Key{k8s.New("v1", "Namespace", "", in.pin.Namespace).Key()}
	own := map[Key]bool{}
	for _, o := range in.objects {
		own[o.Key()] = true
		ref := objectReference(in, o)
		ref.Images = templateImages(adapt(o))
		spec.Objects = append(spec.Objects, ref)
		if o.Is(conditionGroup, "OperatorCondition") && o.Namespace() == in.pin.Namespace {
			spec.OperatorCondition = o.Name()
			beside = append(beside, operatorConditionCRD().Key())
		}
	}
	for _, o := range slices.Concat(in.crds, in.others) {
		beside = append(beside, o.Key())
	}
	for _, key := range beside {
		if o, ok := there[key]; ok && !own[key] {
			own[key] = true
			spec.Objects = append(spec.Objects, objectReference(in, o))
		}
	}
	slices.SortFunc(spec.Objects, compareReferences)
	return Installation{Namespace: in.pin.Namespace, Name: k8s.Fit(in.pin.Package, k8s.MaxSubdomain), Spec: spec}
}

// objectReference returns an install's reference to an object. It has a version only if the object
// belongs to the install, not to another one.
func objectReference(in *opened, o Object) v1alpha1.ObjectReference {
	ref := v1alpha1.ObjectReference{APIVersion: o.APIVersion(), Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}
	labels := k8s.Map(o, "metadata", "labels")
	ours := k8s.Text(labels, k8s.LabelPackage) == labelValue(in.pin.Package) && (k8s.IsCRD(o) || k8s.Text(labels, k8s.LabelNamespace) == in.pin.Namespace)
	if version := labelValue(in.pin.Version); ours && k8s.Text(labels, k8s.LabelVersion) == version {
		ref.Version = version
	}
	return ref
}

func compareReferences(a, b v1alpha1.ObjectReference) int {
	group := func(r v1alpha1.ObjectReference) string { return Object{"apiVersion": r.APIVersion}.Group() }
	return cmp.Or(strings.Compare(group(a), group(b)), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// templateImages returns the images of an object's pods, init containers first.
func templateImages(o Object) []v1alpha1.ContainerImage {
	var out []v1alpha1.ContainerImage
	for _, c := range k8s.Containers(k8s.PodSpec(o)) {
		if image := k8s.Text(c, "image"); image != "" {
			out = append(out, v1alpha1.ContainerImage{Container: k8s.Text(c, "name"), Image: image})
		}
	}
	return out
}
