package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
)

// want is one requested operator: a declared Subscription or ClusterExtension, or the Subscription
// that OLM would generate for a dependency. Comments call it a subscription.
type want struct {
	ns, name  string
	pkg       string
	channels  []string // permitted channels; empty means any
	cat       *catalog.ID
	decl      *declare.Subscription // the declaration; nil for a dependency
	starting  string
	approval  declare.Approval
	hold      string
	held      *Hold      // source of hold in Options.Held; nil: the declaration
	current   *installed // the installed bundle; nil if not installed
	generated bool
}

func (s *want) key() string { return s.ns + "/" + s.name }

// operator returns "namespace/package", the key of the operator in the lock.
func (s *want) operator() string { return s.ns + "/" + s.pkg }

// title returns the name of s for messages. A generated subscription is called a dependency,
// because users do not find it in their files.
func (s *want) title() string {
	if s.generated {
		return "dependency " + s.ns + "/" + s.pkg
	}
	return "subscription " + s.key()
}

// pos returns the position in the declaration of the first of these fields that is set.
func (s *want) pos(fields ...declare.Field) diag.Pos {
	if s.decl == nil {
		return diag.Pos{}
	}
	return s.decl.At(fields...)
}

// requestPos returns the position in the declaration of the requested channel, package or bundle.
func (s *want) requestPos() diag.Pos {
	return s.pos(declare.FieldChannel, declare.FieldPackage, declare.FieldBundle)
}
