package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion returns quayside.dev/v1alpha1.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme registers the types of this package in s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Installation{}, &InstallationList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// DeepCopyObject returns a deep copy of in.
func (in *Installation) DeepCopyObject() runtime.Object {
	if in == nil {
		return nil
	}
	meta := in.ObjectMeta
	return &Installation{TypeMeta: in.TypeMeta, ObjectMeta: *meta.DeepCopy(), Spec: in.Spec.DeepCopy(), Status: in.Status.DeepCopy()}
}

// DeepCopyObject returns a deep copy of in.
func (in *InstallationList) DeepCopyObject() runtime.Object {
	if in == nil {
		return nil
	}
	meta := in.ListMeta
	out := &InstallationList{TypeMeta: in.TypeMeta, ListMeta: *meta.DeepCopy(), Items: slices.Clone(in.Items)}
	for i := range out.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Installation)
	}
	return out
}

// DeepCopy returns a deep copy of s.
func (s InstallationSpec) DeepCopy() InstallationSpec {
	s.Objects = slices.Clone(s.Objects)
	for i := range s.Objects {
		s.Objects[i].Images = slices.Clone(s.Objects[i].Images)
	}
	return s
}

// DeepCopy returns a deep copy of s.
func (s InstallationStatus) DeepCopy() InstallationStatus {
	s.ObservedAt, s.ReadySince, s.ReplacedAt = s.ObservedAt.DeepCopy(), s.ReadySince.DeepCopy(), s.ReplacedAt.DeepCopy()
	s.Conditions = slices.Clone(s.Conditions)
	s.Objects = slices.Clone(s.Objects)
	s.StoredVersions = slices.Clone(s.StoredVersions)
	for i := range s.StoredVersions {
		s.StoredVersions[i].Versions = slices.Clone(s.StoredVersions[i].Versions)
	}
	s.Images = slices.Clone(s.Images)
	for i := range s.Images {
		s.Images[i].Digests = slices.Clone(s.Images[i].Digests)
	}
	return s
}
