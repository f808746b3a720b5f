package profile

import (
	"github.com/quayside/quayside/internal/kobj"
)

// Plain trees carry nothing that belongs to one tool.
const Plain Name = "plain"

type plain struct{}

func (plain) Adorn(o kobj.Object) kobj.Object             { return o }
func (plain) AdornInstallation(o kobj.Object) kobj.Object { return o }
func (plain) Namespace() string                           { return "" }
func (plain) Kind() string                                { return "" }
func (plain) Needed(GitOps) []Field                       { return nil }

func (plain) Apply(Tree) ([]kobj.Object, map[string][]byte) { return nil, nil }
