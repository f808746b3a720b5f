package resolve

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// StaleError says that a lock no longer answers the declarations.
type StaleError struct {
	Reasons []Reason // of Namespaces by name, then of pins by namespace and package
}

// Reason is one thing that a lock says otherwise than it would be written now.
type Reason struct {
	Namespace string `json:"namespace"`
	Package   string `json:"package"` // empty for a declared Namespace
	Text      string `json:"text"`    // "is not pinned", "is pinned and nothing requires it"
}

// Error returns one reason a line.
func (e *StaleError) Error() string {
	lines := make([]string, len(e.Reasons))
	for i, r := range e.Reasons {
		subject := strings.TrimPrefix(r.Namespace+"/"+r.Package, "/")
		if r.Package == "" {
			subject = "Namespace " + r.Namespace
		}
		lines[i] = inert.Line(subject + " " + r.Text)
	}
	return "the lock is stale:\n\t" + strings.Join(lines, "\n\t")
}

// Check reports whether lock still answers decl: a plain Resolve from it would
// change nothing. That a catalog offers something newer makes no lock stale. The
// error is a *StaleError, a Conflicts where the lock cannot be brought in step,
// or nil.
func Check(x *catalog.Index, decl *subscription.Set, lock *lockfile.File, opt Options) error {
	opt.Upgrade, opt.Named, opt.Hops, opt.From, opt.KeepGoing = false, nil, 1, nil, false
	if lock == nil {
		lock = lockfile.New(nil, nil)
	}
	res, err := Resolve(x, decl, lock, opt)
	var conflicts Conflicts
	if err != nil && !errors.As(err, &conflicts) {
		return err
	}
	var stale StaleError
	for _, c := range lockfile.Diff(lock, res.Partial) {
		if c.Catalog == nil {
			stale.Reasons = append(stale.Reasons, Reason{Namespace: c.Namespace, Package: c.Package, Text: reasonFor(c)})
		}
	}
	if err != nil {
		return err
	}
	if len(stale.Reasons) > 0 {
		return &stale
	}
	return nil
}

func reasonFor(c lockfile.Change) string {
	if c.Package == "" {
		switch c.Kind {
		case lockfile.Added:
			return "is declared and not in the lock"
		case lockfile.Removed:
			return "is in the lock and no longer declared"
		default:
			return "is declared otherwise than the lock has it: " + strings.Join(c.Fields, ", ")
		}
	}
	switch c.Kind {
	case lockfile.Added:
		return "is asked for and not pinned"
	case lockfile.Removed:
		return fmt.Sprintf("is pinned (%s) and nothing requires it", c.From)
	case lockfile.Moved:
		return fmt.Sprintf("is pinned at %s, which cannot stay: it would move to %s", c.From, c.To)
	default:
		return "is pinned otherwise than it is declared now: " + strings.Join(c.Fields, ", ")
	}
}
