package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Installation is what a cluster gets of one pin.
type Installation struct {
	Namespace string // install namespace
	Name      string // of the Installation in that namespace
	Spec      v1alpha1.InstallationSpec
}

// Installations returns what a cluster gets, by namespace and package, whether
// or not the reporter is rendered. Its images are those of the cluster, mirrors
// and its own config included; what the user's overlay changes is not in it.
// The caller may modify it.
func (r *Result) Installations(cluster string) ([]Installation, error) {
	c, err := r.tree.cluster(cluster)
	if err != nil {
		return nil, err
	}
	return r.tree.inOverlay(c)
}

// In returns the objects of the tree's base that a cluster gets, as it gets them:
// with mirrors and its own config. What the user's overlay changes is not in it.
func (r *Result) In(cluster string) ([]Rendered, error) {
	c, err := r.tree.cluster(cluster)
	if err != nil {
		return nil, err
	}
	cfg, err := r.tree.config(c)
	if err != nil {
		return nil, err
	}
	installs, err := r.tree.chosen(c)
	if err != nil {
		return nil, err
	}
	gets, err := r.tree.gets(c)
	if err != nil {
		return nil, err
	}
	var out []Rendered
	for _, o := range r.Objects {
		if o.operator != nil && !slices.Contains(installs, o.operator) || kobj.IsCRD(o.Object) && !gets(o.Object) {
			continue
		}
		o.Object = r.tree.inCluster(cfg, o.Object)
		out = append(out, o)
	}
	return out, nil
}

// cluster returns the cluster of that name.
func (t *tree) cluster(name string) (Cluster, error) {
	var names []string
	for _, c := range t.opt.Clusters {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return Cluster{}, fmt.Errorf("no cluster %q (have %s)", name, strings.Join(names, ", "))
}

// inOverlay returns the Installations of a cluster.
func (t *tree) inOverlay(c Cluster) ([]Installation, error) {
	cfg, err := t.config(c)
	if err != nil {
		return nil, err
	}
	installs, err := t.chosen(c)
	if err != nil {
		return nil, err
	}
	return t.expected(installs, func(o Object) Object { return t.inCluster(cfg, o) }), nil
}

// inBase returns the Installations of the base: all of them, without what the
// clusters change.
func (t *tree) inBase() []Installation {
	all := make([]*opened, len(t.installs))
	for i := range t.installs {
		all[i] = &t.installs[i]
	}
	return t.expected(all, func(o Object) Object { return o })
}

// expected returns the Installations of installs that stand together, with
// their objects as adapt has them.
func (t *tree) expected(installs []*opened, adapt func(Object) Object) []Installation {
	there := map[Key]Object{} // outside of the operators' directories, or in the directory of another
	for _, in := range installs {
		for _, o := range in.objects {
			there[o.Key()] = o
		}
	}
	for _, o := range adopted(installs) {
		there[o.object.Key()] = o.object
	}
	for _, r := range t.objects {
		if kobj.IsCRD(r.Object) || strings.HasPrefix(r.Path, layout.Namespaces+"/") {
			there[r.Object.Key()] = r.Object
		}
	}
	var out []Installation
	for _, in := range installs {
		out = append(out, installation(in, adapt, there))
	}
	return out
}

// installation returns what a cluster gets of an install: what lies in its
// directory; and of what is there beside it, its Namespace, the CRDs and other
// objects that it ships though another install provides them, and the CRD that
// its OperatorCondition needs.
func installation(in *opened, adapt func(Object) Object, there map[Key]Object) Installation {
	spec := v1alpha1.InstallationSpec{
		Package: in.pin.Package, Version: in.pin.Version, Bundle: in.pin.Bundle, Channel: in.pin.Channel, Pin: string(in.pin.Checksum()),
		BundleDigest: string(in.pin.BundleDigest()),
	}
	beside := []Key{kobj.New("v1", "Namespace", "", in.pin.Namespace).Key()}
	own := map[Key]bool{}
	for _, o := range in.objects {
		own[o.Key()] = true
		ref := reference(in, o)
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
			spec.Objects = append(spec.Objects, reference(in, o))
		}
	}
	slices.SortFunc(spec.Objects, compareReferences)
	return Installation{Namespace: in.pin.Namespace, Name: kobj.Fit(in.pin.Package, kobj.MaxSubdomain), Spec: spec}
}

// reference returns what an install expects of an object. The version of what
// another install provides is not the install's to say.
func reference(in *opened, o Object) v1alpha1.ObjectReference {
	ref := v1alpha1.ObjectReference{APIVersion: o.APIVersion(), Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}
	labels := kobj.Map(o, "metadata", "labels")
	ours := kobj.Text(labels, kobj.LabelPackage) == labelValue(in.pin.Package) && (kobj.IsCRD(o) || kobj.Text(labels, kobj.LabelNamespace) == in.pin.Namespace)
	if version := labelValue(in.pin.Version); ours && kobj.Text(labels, kobj.LabelVersion) == version {
		ref.Version = version
	}
	return ref
}

func compareReferences(a, b v1alpha1.ObjectReference) int {
	group := func(r v1alpha1.ObjectReference) string { return Object{"apiVersion": r.APIVersion}.Group() }
	return cmp.Or(strings.Compare(group(a), group(b)), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// templateImages returns the images of an object's pods, init containers
// first.
func templateImages(o Object) []v1alpha1.ContainerImage {
	var out []v1alpha1.ContainerImage
	for _, c := range kobj.Containers(kobj.PodSpec(o)) {
		if image := kobj.Text(c, "image"); image != "" {
			out = append(out, v1alpha1.ContainerImage{Container: kobj.Text(c, "name"), Image: image})
		}
	}
	return out
}
