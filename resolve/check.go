package resolve

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// StaleError means that a lock no longer satisfies the declarations.
type StaleError struct {
	Reasons []Reason // sorted: catalogs, then Namespaces by name, then pins by namespace and package
}

// Reason is one reason why a lock is out of date or not verified: a difference from the next lock,
// or a value that no catalog confirms.
type Reason struct {
	Pos       diag.Pos `json:"position,omitzero"` // position of the first field in the lock, or of the block; zero if not in the lock
	Catalog   string   `json:"catalog,omitempty"` // set if the reason is about a catalog: "olm/operatorhubio"
	Namespace string   `json:"namespace,omitempty"`
	Package   string   `json:"package,omitempty"` // package of a pin; empty for a declared Namespace
	Text      string   `json:"text"`              // end of a sentence: "is not pinned"
	Fields    []Field  `json:"fields,omitempty"`  // fields that differ, sorted; nil means the whole block
}

// Field is a field of a block of the lock.
type Field struct {
	Name string `json:"name"`           // name in the file
	Line int    `json:"line,omitempty"` // line in the file; 0 if the block does not have the field
}

// String returns the position and the sentence.
func (r Reason) String() string {
	return (&diag.Error{Pos: r.Pos, Msg: r.Sentence()}).Error()
}

// Sentence returns the reason as a sentence: its subject, text and fields.
func (r Reason) Sentence() string {
	subject := strings.TrimPrefix(r.Namespace+"/"+r.Package, "/")
	switch {
	case r.Catalog != "":
		subject = "catalog " + r.Catalog
	case r.Package == "":
		subject = "Namespace " + r.Namespace
	}
	text, separator := subject+" "+r.Text, ": "
	for _, f := range r.Fields {
		if f.Name == declarationField && len(r.Fields) > 1 {
			continue
		}
		text, separator = text+separator+fieldTitle(f.Name), ", "
		if f.Line > 0 && f.Line != r.Pos.Line {
			text += fmt.Sprintf(" (line %d)", f.Line)
		}
	}
	return text
}

// declarationField is the field with the digest of the declaration. If the digest differs, other fields usually
// differ as well. So messages mention the digest only if no other field differs.
const declarationField = "declarationDigest"

// fieldTitle returns the name of a field of the lock as words, such as "install mode" for
// installMode.
func fieldTitle(name string) string {
	if name == declarationField {
		return "declaration"
	}
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// FieldTitles returns the names of fields as words. It omits the digest of the declaration unless
// it is the only field.
func FieldTitles(names []string) []string {
	var out []string
	for _, name := range names {
		if name != declarationField || len(names) == 1 {
			out = append(out, fieldTitle(name))
		}
	}
	return out
}

// Error returns a title and one line for each reason.
func (e *StaleError) Error() string {
	text := "quayside.lock is out of date: run 'quayside resolve'"
	for _, r := range e.Reasons {
		text += "\n\t" + sanitize.Line(r.String())
	}
	return text
}

// Verdict is the result of checking a lock against the declarations and catalogs.
type Verdict struct {
	Stale     []Reason       // differences from the lock that Resolve would return, in the order of lockfile.Diff
	Unchecked []Reason       // values that no catalog confirms, sorted by catalog, namespace and package
	Warnings  []diag.Warning // warnings of Resolve without upgrades
}

// Check reports whether lock still satisfies decl: whether Resolve without upgrades would return the same lock.
// A newer version in a catalog does not make a lock out of date. If a catalog has changed since the lock was
// written, Check reports the values from this catalog as unchecked. If Resolve finds conflicts, the error is of
// type explain.Conflicts.
func Check(x *catalog.Index, decl *declare.Set, lock *lockfile.File, opt Options) (*Verdict, error) {
	opt.Upgrade, opt.Named, opt.Hops, opt.From, opt.KeepGoing = false, nil, 1, nil, false
	opt.fresh = true
	if lock == nil {
		lock = lockfile.New(nil)
	}
	res, err := Resolve(x, decl, lock, opt)
	var conflicts explain.Conflicts
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
			change.Kind = lockfile.Changed // same bundle, but the lock has a wrong version
		}
		c.compare(change)
	}
	slices.SortStableFunc(c.Unchecked, func(a, b Reason) int {
		return cmp.Or(compareBool(a.Catalog == "", b.Catalog == ""), strings.Compare(a.Catalog, b.Catalog), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
	})
	return &c.Verdict, err
}

type checker struct {
	x    *catalog.Index
	lock *lockfile.File
	next *lockfile.File // the lock that Resolve returns for the same declarations
	Verdict
}

// compare adds the reasons for one difference between the lock and the next lock. If the catalog of a pin has
// changed since the lock was written, the values from the catalog are unchecked.
func (c *checker) compare(change lockfile.Change) {
	r := Reason{Namespace: change.Namespace, Package: change.Package, Text: reasonFor(change)}
	isLeaving := change.Leaving != "" || change.Pruned
	if l, leaves := c.next.LeavingOperator(r.Namespace + "/" + r.Package); leaves && l.ReplacedBy != "" && !isLeaving && change.Kind == lockfile.Removed {
		r.Text = "is pinned (" + change.From + "), but is replaced by " + l.ReplacedBy
	} else if isLeaving && change.Kind == lockfile.Added {
		return // already reported with the removed pin
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
		c.Stale = append(c.Stale, r.WithFields(sure, change.At, change.Pos))
	}
	if len(unsure) > 0 {
		r.Text = "is out of date, because its catalog has changed"
		c.Unchecked = append(c.Unchecked, r.WithFields(unsure, change.At, change.Pos))
	}
}

// WithFields returns r with the given fields, and with the position of the first field. at contains the
// positions of the fields in the file. block is the position of the whole block.
func (r Reason) WithFields(fields []string, at diag.Fields, block diag.Pos) Reason {
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

// confirm adds a reason for each value of an unchanged pin that no catalog confirms.
func (c *checker) confirm(p lockfile.Pin, decl *declare.Set) {
	doubt := func(text string, fields ...string) {
		r := Reason{Namespace: p.Namespace, Package: p.Package, Text: text}
		if i := slices.Index(fields, "image"); i >= 0 && p.Image == "" {
			fields[i] = "contentDigest"
		}
		if p.Commit == "" {
			fields = slices.DeleteFunc(fields, func(f string) bool { return f == "commit" })
		}
		c.Unchecked = append(c.Unchecked, r.WithFields(fields, p.Fields, p.Pos))
	}
	cat, read := c.x.Catalog(p.Catalog.ID)
	if !read {
		c.addUnread(p)
		doubt("is from a catalog that was not read", catalogFields()...)
		return
	}
	pkg, held := cat.Package(p.Package)
	if held {
		_, held = pkg.Bundle(p.Bundle)
	}
	if !held {
		doubt("is pinned at "+p.Bundle+", which is not in its catalog", catalogFields()...)
		return
	}
	if slices.ContainsFunc(decl.Subscriptions, func(s declare.Subscription) bool {
		return s.Namespace == p.Namespace && s.Package == p.Package && s.Bundle != ""
	}) {
		return // a bundle that the declaration names needs no upgrade edge
	}
	states := append([]string{p.Replaces}, p.Skipped...)
	for i, from := range states {
		to := append(states, p.Bundle)[i+1]
		if from != "" && !hasPath(pkg, from, to) {
			doubt("replaced "+from+", and its catalog has no upgrade edge from it to "+to, "replaces", "skipped")
			return
		}
	}
}

// hasPath reports whether a channel of pkg allows a direct upgrade from the first bundle to the second.
func hasPath(pkg *catalog.Package, from, to string) bool {
	var version *catalog.Version
	if b, ok := pkg.Bundle(from); ok {
		v := b.Version()
		version = &v
	}
	b, ok := pkg.Bundle(to)
	return ok && slices.ContainsFunc(b.Entries(), func(e *catalog.Entry) bool { return e.EdgeFrom(from, version) != catalog.NoEdge })
}

// addUnread adds the reason that the catalog of a pin was not loaded. It adds only one reason for each catalog.
func (c *checker) addUnread(p lockfile.Pin) {
	id := p.Catalog.ID
	r := Reason{Catalog: id.String(), Text: "is not declared"}
	if slices.ContainsFunc(c.Unchecked, func(o Reason) bool { return o.Catalog == r.Catalog }) {
		return
	}
	if err := c.x.Broken()[id]; err != nil {
		r.Text = "cannot be read: " + err.Error()
	}
	c.Unchecked = append(c.Unchecked, r.WithFields([]string{"catalog"}, p.Fields, p.Pos))
}

func reasonFor(c lockfile.Change) string {
	words := map[lockfile.ChangeKind]string{
		lockfile.Added:   "is requested, but not pinned",
		lockfile.Removed: fmt.Sprintf("is pinned (%s), but not required", c.From),
		lockfile.Moved:   fmt.Sprintf("is pinned at %s, but resolve would now change the pin to %s", c.From, c.To),
		lockfile.Changed: "is out of date, because its declaration has changed",
	}
	switch {
	case c.Pruned:
		words = map[lockfile.ChangeKind]string{
			lockfile.Removed: "is locked as being removed, but has no leftover objects",
			lockfile.Changed: "is locked as being removed, with outdated content",
		}
	case c.Leaving != "":
		words = map[lockfile.ChangeKind]string{
			lockfile.Removed: "is locked as being removed, and " + c.Leaving + " no longer replaces it",
			lockfile.Changed: "is locked as being removed, with outdated content",
		}
	case c.Package == "":
		words = map[lockfile.ChangeKind]string{
			lockfile.Added:   "is declared, but not in the lock",
			lockfile.Removed: "is in the lock, but no longer declared",
			lockfile.Changed: "is declared differently in the lock",
		}
	}
	return words[c.Kind]
}
