package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
)

// want is one requested operator: a declaration, or the generated Subscription of a dependency.
type want struct {
	ns, name  string
	pkg       string
	channels  []string // permitted channels; empty: any
	cat       *catalog.ID
	decl      *declare.Subscription // nil if the user did not declare the subscription
	starting  string
	approval  declare.Approval
	hold      string
	held      *Hold      // the element of Options.Held with the reason in hold; nil: the declaration has it
	current   *installed // the installed bundle of this operator; nil: not installed
	generated bool
}

func (s *want) key() string { return s.ns + "/" + s.name }

// operator returns the operator's key in the lock.
func (s *want) operator() string { return s.ns + "/" + s.pkg }

// title returns the name of s for messages. A generated subscription is called a dependency because
// the user's files do not contain it.
func (s *want) title() string {
	if s.generated {
		return "dependency " + s.ns + "/" + s.pkg
	}
	return "subscription " + s.key()
}

// pos returns the position of the first of the fields that the declaration sets.
func (s *want) pos(fields ...declare.Field) diag.Pos {
	if s.decl == nil {
		return diag.Pos{}
	}
	return s.decl.At(fields...)
}

// requestPos returns the position of the requested channel, package or bundle in the declaration.
func (s *want) requestPos() diag.Pos {
	return s.pos(declare.FieldChannel, declare.FieldPackage, declare.FieldBundle)
}
