package profile

import (
	"github.com/quayside/quayside/internal/kobj"
)

// Plain trees carry nothing that belongs to one tool.
const Plain Name = "plain"

type plain struct{}

func (plain) Adorn(o kobj.Object, _ Place) kobj.Object    { return o }
func (plain) AdornInstallation(o kobj.Object) kobj.Object { return o }
func (plain) Manager() string                             { return "quayside" }
func (plain) Guard(o kobj.Object) kobj.Object             { return o }
func (plain) Applier(kobj.Object) string                  { return "" }
func (plain) Namespace() string                           { return "" }
func (plain) Kind() string                                { return "" }
func (plain) Faults(GitOps, []Cluster) []Fault            { return nil }

func (plain) Apply(Tree) (map[string][]kobj.Object, map[string][]byte) { return nil, nil }

// Member returns what everybody is told of a cluster.
func (plain) Member(_ GitOps, c Cluster) Member { return MemberOf(c) }
