package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/subscription"
)

// want is one operator that is asked for: by a declaration, or by a
// subscription that an earlier dependency generated.
type want struct {
	ns, name  string
	pkg       string
	channels  []string // permitted; empty: any
	cat       *catalog.ID
	decl      *subscription.Subscription // nil: generated
	starting  string
	approval  subscription.Approval
	hold      string
	current   *installed // what is installed for it; nil: nothing
	generated bool
}

func (s *want) key() string { return s.ns + "/" + s.name }

// operator returns what s is of, as the lock names it.
func (s *want) operator() string { return s.ns + "/" + s.pkg }

// title names s as a person would: what a dependency generated is in no file.
func (s *want) title() string {
	if s.generated {
		return "dependency " + s.ns + "/" + s.pkg
	}
	return "subscription " + s.key()
}

// pos returns where the declaration says the first of the fields that it says.
func (s *want) pos(fields ...subscription.Field) diag.Pos {
	if s.decl == nil {
		return diag.Pos{}
	}
	return s.decl.At(fields...)
}

// asked returns where the declaration says what it asks for.
func (s *want) asked() diag.Pos {
	return s.pos(subscription.FieldChannel, subscription.FieldPackage, subscription.FieldBundle)
}
