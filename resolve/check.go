package resolve

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// StaleError says that a lock no longer answers the declarations.
type StaleError struct {
	Reasons []Reason // of catalogs, then of Namespaces by name, then of pins by namespace and package
}

// Reason is one thing that a lock says otherwise than it would be written now,
// or that nobody could find out to be so.
type Reason struct {
	Pos       diag.Pos `json:"position,omitzero"` // in the lock, of the first of Fields that it has, else of the block; none where there is none
	Catalog   string   `json:"catalog,omitempty"` // of a catalog alone: "olm/operatorhubio"
	Namespace string   `json:"namespace,omitempty"`
	Package   string   `json:"package,omitempty"` // empty for a declared Namespace
	Text      string   `json:"text"`              // "is not pinned", "is pinned and nothing requires it"
	Fields    []Field  `json:"fields,omitempty"`  // sorted; nil where it is about the whole block
}

// Field is a field of a block.
type Field struct {
	Name string `json:"name"`           // as in the lock
	Line int    `json:"line,omitempty"` // 0: the block has none
}

// String returns the reason with its place.
func (r Reason) String() string {
	return (&diag.Error{Pos: r.Pos, Msg: r.Sentence()}).Error()
}

// Sentence returns what the reason is about and what it says.
func (r Reason) Sentence() string {
	subject := strings.TrimPrefix(r.Namespace+"/"+r.Package, "/")
	switch {
	case r.Catalog != "":
		subject = "catalog " + r.Catalog
	case r.Package == "":
		subject = "Namespace " + r.Namespace
	}
	text := subject + " " + r.Text
	for i, f := range r.Fields {
		text += [...]string{": ", ", "}[min(i, 1)] + f.Name
		if f.Line > 0 && f.Line != r.Pos.Line {
			text += fmt.Sprintf(" (line %d)", f.Line)
		}
	}
	return text
}

// Error returns one reason a line.
func (e *StaleError) Error() string {
	text := "the lock is stale:"
	for _, r := range e.Reasons {
		text += "\n\t" + inert.Line(r.String())
	}
	return text
}

// Verdict is what is to be said of a lock.
type Verdict struct {
	Stale     []Reason       // what it says otherwise than it would be written now; in the order of lockfile.Diff
	Unchecked []Reason       // what it says and no catalog that was read confirms, likewise
	Warnings  []diag.Warning // as a plain Resolve would give them
}

// Check says whether lock still answers decl: a plain Resolve from it would
// change nothing. That a catalog offers something newer makes no lock stale, and
// what the lock says of a catalog that has changed since is not known to be
// wrong. The error is a Conflicts where the lock cannot be brought in step.
func Check(x *catalog.Index, decl *subscription.Set, lock *lockfile.File, opt Options) (*Verdict, error) {
	opt.Upgrade, opt.Named, opt.Hops, opt.From, opt.KeepGoing = false, nil, 1, nil, false
	opt.fresh = true
	if lock == nil {
		lock = lockfile.New(nil)
	}
	res, err := Resolve(x, decl, lock, opt)
	var conflicts Conflicts
	if err != nil && !errors.As(err, &conflicts) {
		return &Verdict{}, err
	}
	c := checker{x: x, lock: lock, next: res.Partial, Verdict: Verdict{Warnings: res.Warnings}}
	stays := map[string]bool{}
	for _, p := range lock.Pins {
		if now, ok := res.Partial.Pin(p.Namespace, p.Package); ok && now.Bundle == p.Bundle {
			stays[p.Key()] = true
			c.confirm(p, decl)
		}
	}
	for _, change := range lockfile.Diff(lock, res.Partial) {
		if change.Kind == lockfile.Moved && stays[change.Namespace+"/"+change.Package] {
			change.Kind = lockfile.Changed // the lock has a wrong version
		}
		c.compare(change)
	}
	slices.SortStableFunc(c.Unchecked, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(len(b.Catalog), len(a.Catalog)), strings.Compare(a.Catalog, b.Catalog), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
	})
	return &c.Verdict, err
}

// catalogFields returns the fields of a pin that its catalog confirms, sorted.
func catalogFields() []string {
	return []string{"bundle", "channel", "image", "properties", "relatedImages", "version"}
}

type checker struct {
	x    *catalog.Index
	lock *lockfile.File
	next *lockfile.File // as it would be now
	Verdict
}

// compare takes in how the lock would be written from the catalogs as they are
// now. Where that is not how they were, a difference says nothing.
func (c *checker) compare(change lockfile.Change) {
	r := Reason{Namespace: change.Namespace, Package: change.Package, Text: reasonFor(change)}
	isLeaving := change.Leaving != "" || change.Pruned
	if l, leaves := c.next.Leaves(r.Namespace + "/" + r.Package); leaves && l.ReplacedBy != "" && !isLeaving && change.Kind == lockfile.Removed {
		r.Text = "is pinned (" + change.From + "), and is replaced by " + l.ReplacedBy
	} else if isLeaving && change.Kind == lockfile.Added {
		return // which its pin tells
	}
	pin, _ := c.lock.Pin(r.Namespace, r.Package)
	if change.Kind != lockfile.Changed {
		r.Pos = change.Pos
		c.Stale = append(c.Stale, r)
		return
	}
	var sure, unsure []string
	cat, read := c.x.Catalog(pin.Catalog.ID)
	same := !read || pin.Catalog.IsAt(cat.Source(), cat.Digest())
	for _, f := range change.Fields {
		if !same && f != "bundle" && slices.Contains(catalogFields(), f) {
			unsure = append(unsure, f)
		} else {
			sure = append(sure, f)
		}
	}
	if len(sure) > 0 {
		c.Stale = append(c.Stale, r.About(sure, change.At, change.Pos))
	}
	if len(unsure) > 0 {
		r.Text = "differs from its catalog, which has changed since"
		c.Unchecked = append(c.Unchecked, r.About(unsure, change.At, change.Pos))
	}
}

// About returns r with the fields that it is about and where the first of them
// stands: at says where those of the block are.
func (r Reason) About(fields []string, at diag.Fields, block diag.Pos) Reason {
	r.Fields, r.Pos = nil, block
	for _, name := range fields {
		pos := at[name]
		r.Fields = append(r.Fields, Field{Name: name, Line: pos.Line})
		if pos.Line > 0 && (r.Pos == block || pos.Line < r.Pos.Line) {
			r.Pos = pos
		}
	}
	return r
}

// confirm says what of a pin that stays the catalogs do not confirm.
func (c *checker) confirm(p lockfile.Pin, decl *subscription.Set) {
	doubt := func(text string, fields ...string) {
		r := Reason{Namespace: p.Namespace, Package: p.Package, Text: text}
		if i := slices.Index(fields, "image"); i >= 0 && p.Image == "" {
			fields[i] = "contentDigest"
		}
		c.Unchecked = append(c.Unchecked, r.About(fields, p.Fields, p.Pos))
	}
	cat, read := c.x.Catalog(p.Catalog.ID)
	if !read {
		c.unread(p)
		doubt("comes from a catalog that was not read", catalogFields()...)
		return
	}
	pkg, held := cat.Package(p.Package)
	if held {
		_, held = pkg.Bundle(p.Bundle)
	}
	if !held {
		doubt("is pinned at "+p.Bundle+", which its catalog does not hold", catalogFields()...)
		return
	}
	if slices.ContainsFunc(decl.Subscriptions, func(s subscription.Subscription) bool {
		return s.Namespace == p.Namespace && s.Package == p.Package && s.Bundle != ""
	}) {
		return // another bundle was named, which needs no edge
	}
	states := append([]string{p.Replaces}, p.Skipped...)
	for i, from := range states {
		to := append(states, p.Bundle)[i+1]
		if from != "" && !leads(pkg, from, to) {
			doubt("took the place of "+from+", from which no edge of its catalog leads to "+to, "replaces", "skipped")
			return
		}
	}
}

// leads reports whether an edge leads from one bundle to another.
func leads(pkg *catalog.Package, from, to string) bool {
	var version *catalog.Version
	if b, ok := pkg.Bundle(from); ok {
		v := b.Version()
		version = &v
	}
	b, ok := pkg.Bundle(to)
	return ok && slices.ContainsFunc(b.Entries(), func(e *catalog.Entry) bool { return e.EdgeFrom(from, version) != catalog.NoEdge })
}

// unread adds once that the catalog of a pin was not read.
func (c *checker) unread(p lockfile.Pin) {
	id := p.Catalog.ID
	r := Reason{Catalog: id.String(), Text: "is not declared"}
	if slices.ContainsFunc(c.Unchecked, func(o Reason) bool { return o.Catalog == r.Catalog }) {
		return
	}
	if err := c.x.Broken()[id]; err != nil {
		r.Text = "cannot be read: " + err.Error()
	}
	c.Unchecked = append(c.Unchecked, r.About([]string{"catalog"}, p.Fields, p.Pos))
}

func reasonFor(c lockfile.Change) string {
	words := map[lockfile.ChangeKind]string{
		lockfile.Added:   "is asked for and not pinned",
		lockfile.Removed: fmt.Sprintf("is pinned (%s) and nothing requires it", c.From),
		lockfile.Moved:   fmt.Sprintf("is pinned at %s, which cannot stay: it would move to %s", c.From, c.To),
		lockfile.Changed: "is pinned otherwise than it would be now",
	}
	switch {
	case c.Pruned:
		words = map[lockfile.ChangeKind]string{
			lockfile.Removed: "is locked as leaving, and nothing of it is left",
			lockfile.Changed: "is locked as leaving otherwise than it would be now",
		}
	case c.Leaving != "":
		words = map[lockfile.ChangeKind]string{
			lockfile.Removed: "is locked as leaving, and " + c.Leaving + " no longer replaces it",
			lockfile.Changed: "is locked as leaving otherwise than it would be now",
		}
	case c.Package == "":
		words = map[lockfile.ChangeKind]string{
			lockfile.Added:   "is declared and not in the lock",
			lockfile.Removed: "is in the lock and no longer declared",
			lockfile.Changed: "is declared otherwise than the lock has it",
		}
	}
	return words[c.Kind]
}
