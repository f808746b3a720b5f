package profile

import (
	"github.com/quayside/quayside/internal/k8s"
)

// Plain is the profile without a GitOps tool.
const Plain Name = "plain"

type plain struct{}

func (plain) About() About                                      { return About{Manager: "quayside"} }
func (plain) Annotate(o k8s.Object, _ ApplyPosition) k8s.Object { return o }
func (plain) AnnotateInstallation(o k8s.Object) k8s.Object      { return o }
func (plain) Guard(o k8s.Object) k8s.Object                     { return o }
func (plain) Removal(k8s.Object) Removal                        { return RemovalPrune }
func (plain) Applier(k8s.Object) string                         { return "" }
func (plain) Defaults(*GitOps)                                  {}
func (plain) NeedsSeparateDirs(GitOps) bool                     { return false }
func (plain) Faults(GitOps, []Cluster) []Fault                  { return nil }
func (plain) Unmatched(GitOps, []k8s.Key) []Fault               { return nil }

// Member returns the entry of a cluster without fields of a tool.
func (plain) Member(_ GitOps, c Cluster) Member { return MemberOf(c) }

func (plain) Apply(Tree) (map[string][]k8s.Object, map[string][]byte) { return nil, nil }

// Inputs returns nothing, because there is no tool.
func (plain) Inputs(Tree) ([]k8s.Object, map[string][]byte) { return nil, nil }
