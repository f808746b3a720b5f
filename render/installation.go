package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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
func (r *Result) Installations(cluster string) ([]Installation, error) {
	all, ok := r.installations[cluster]
	if !ok {
		return nil, fmt.Errorf("no cluster %q (have %s)", cluster, strings.Join(slices.Sorted(maps.Keys(r.installations)), ", "))
	}
	return all, nil
}

// expect gathers the Installations of every cluster.
func (t *tree) expect() error {
	t.installations = map[string][]Installation{}
	for _, c := range t.opt.Clusters {
		cfg, err := parseConfig(c.Config)
		if err != nil {
			return err
		}
		installs, err := t.chosen(c)
		if err != nil {
			return err
		}
		var out []Installation
		there := map[Key]bool{} // what the cluster gets
		for _, in := range installs {
			for _, o := range in.objects {
				there[o.Key()] = true
			}
		}
		for _, in := range installs {
			out = append(out, t.installation(in, cfg, there))
		}
		t.installations[c.Name] = out
	}
	return nil
}

// installation returns what a cluster gets of one install.
func (t *tree) installation(in *opened, cfg config, there map[Key]bool) Installation {
	spec := v1alpha1.InstallationSpec{
		Package: in.pin.Package, Version: in.pin.Version, Bundle: in.pin.Bundle, Channel: in.pin.Channel, Pin: string(in.pin.Checksum()),
	}
	for _, o := range in.objects {
		ref := reference(in, o)
		ref.Images = templateImages(t.inCluster(cfg, o))
		spec.Objects = append(spec.Objects, ref)
		if o.Is(conditionGroup, "OperatorCondition") && o.Namespace() == in.pin.Namespace {
			spec.OperatorCondition = o.Name()
		}
	}
	for _, o := range in.others {
		if there[o.Key()] {
			ref := reference(in, o)
			ref.Version = ""
			spec.Objects = append(spec.Objects, ref)
		}
	}
	for _, r := range t.objects {
		if t.belongs(in, r.Object, spec.OperatorCondition) {
			spec.Objects = append(spec.Objects, reference(in, r.Object))
		}
	}
	slices.SortFunc(spec.Objects, compareReferences)
	return Installation{Namespace: in.pin.Namespace, Name: fit(in.pin.Package, maxSubdomain), Spec: spec}
}

// belongs reports whether an object that lies outside the install's directory
// is part of it: its Namespace, the CRDs that it ships whoever provides them,
// and the one that its OperatorCondition needs.
func (t *tree) belongs(in *opened, o Object, operatorCondition string) bool {
	switch {
	case o.Is("", "Namespace"):
		return o.Name() == in.pin.Namespace && !slices.ContainsFunc(in.objects, func(own Object) bool { return own.Key() == o.Key() })
	case !isCRD(o):
		return false
	case o.Name() == conditionCRD && operatorCondition != "":
		return true
	default:
		return slices.ContainsFunc(in.crds, func(own Object) bool { return own.Name() == o.Name() })
	}
}

// reference returns what an install expects of an object. The version of what
// another install provides is not the install's to say.
func reference(in *opened, o Object) v1alpha1.ObjectReference {
	ref := v1alpha1.ObjectReference{APIVersion: o.APIVersion(), Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}
	labels := sub(o, "metadata", "labels")
	if version := labelValue(in.pin.Version); str(labels, labelPackage) == labelValue(in.pin.Package) && str(labels, labelVersion) == version {
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
	pod := sub(o, "spec", "template", "spec")
	switch {
	case o.Is("", "Pod"):
		pod = sub(o, "spec")
	case o.Is("batch", "CronJob"):
		pod = sub(o, "spec", "jobTemplate", "spec", "template", "spec")
	}
	for _, c := range slices.Concat(items(pod, "initContainers"), items(pod, "containers")) {
		if image := str(c, "image"); image != "" {
			out = append(out, v1alpha1.ContainerImage{Container: str(c, "name"), Image: image})
		}
	}
	return out
}
