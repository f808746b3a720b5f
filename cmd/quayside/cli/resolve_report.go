package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// resolveReport is what `quayside resolve` prints.
type resolveReport struct {
	Lock      string              `json:"lock"`
	Written   bool                `json:"written"`            // false: nothing was to be changed, or there was no solution
	Proposed  *proposed           `json:"proposed,omitempty"` // with --branch
	Pins      int                 `json:"pins"`
	Changes   []pinChange         `json:"changes"`
	Warnings  []warningView       `json:"warnings"`
	Conflicts []*resolve.Conflict `json:"conflicts"`
}

// pinChange is one difference between the lock before and after.
type pinChange struct {
	Change        string   `json:"change"` // added, removed, moved, changed
	Operator      string   `json:"operator,omitempty"`
	Catalog       string   `json:"catalog,omitempty"` // instead of Operator
	From          string   `json:"from,omitempty"`
	To            string   `json:"to,omitempty"`
	Fields        []string `json:"fields,omitempty"`
	Why           string   `json:"why,omitempty"`
	RemainingHops []string `json:"remainingHops,omitempty"`
}

type warningView struct {
	Position string `json:"position,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message"`
}

func warningViews(lists ...[]diag.Warning) []warningView {
	views := []warningView{}
	for _, w := range slices.Concat(lists...) {
		v := warningView{Code: w.Code, Message: w.Msg}
		if !w.Pos.IsZero() {
			v.Position = w.Pos.String()
		}
		views = append(views, v)
	}
	return views
}

// newResolveReport compares the lock before with the one that res led to; nil
// where there is no solution.
func newResolveReport(before, after *lockfile.File, res *resolve.Result, warnings []diag.Warning) *resolveReport {
	r := &resolveReport{Lock: lockFile, Changes: []pinChange{}, Conflicts: append([]*resolve.Conflict{}, res.Conflicts...), Warnings: warningViews(warnings, res.Warnings)}
	if after == nil {
		return r
	}
	r.Pins = len(after.Pins)
	why := map[string]string{}
	for _, m := range res.Moves {
		why[m.Namespace+"/"+m.Package] = m.Why
	}
	for _, c := range lockfile.Diff(before, after) {
		r.Changes = append(r.Changes, newPinChange(c, after, why))
	}
	return r
}

func newPinChange(c lockfile.Change, after *lockfile.File, why map[string]string) pinChange {
	v := pinChange{Change: string(c.Kind), From: c.From, To: c.To, Fields: c.Fields}
	if c.Catalog != nil {
		v.Catalog = c.Catalog.String()
		return v
	}
	v.Operator = c.Namespace + "/" + c.Package
	if c.Kind == lockfile.Moved {
		v.Fields = nil // a moved pin differs in nearly all of them
	}
	if c.Kind != lockfile.Changed {
		v.Why = why[v.Operator]
	}
	if pin, ok := after.Pin(c.Namespace, c.Package); ok {
		v.RemainingHops = pin.RemainingHops
	}
	return v
}

// printReport prints one line for each change.
func (o *resolveOptions) printReport(w io.Writer, r *resolveReport) error {
	for _, c := range r.Changes {
		if _, err := fmt.Fprintln(w, o.out.paint(changeColor(c.Change), c.sign())+" "+c.line()); err != nil {
			return err
		}
	}
	switch {
	case r.Written:
		o.talk.note("wrote %s (%s)", r.Lock, count(r.Pins, "operator"))
	case len(r.Conflicts) == 0 && r.Proposed == nil:
		o.talk.note("%s is up to date (%s)", r.Lock, count(r.Pins, "operator"))
	}
	return nil
}

func (c pinChange) sign() string {
	switch lockfile.ChangeKind(c.Change) {
	case lockfile.Added:
		return "+"
	case lockfile.Removed:
		return "-"
	default:
		return "~"
	}
}

func changeColor(kind string) string {
	switch lockfile.ChangeKind(kind) {
	case lockfile.Added:
		return green
	case lockfile.Removed:
		return red
	default:
		return yellow
	}
}

// line describes the change in words: "my-etcd/etcd 0.9.2 → 0.9.4".
func (c pinChange) line() string {
	var b strings.Builder
	if c.Catalog != "" {
		b.WriteString("catalog " + c.Catalog)
	} else {
		b.WriteString(c.Operator)
	}
	switch {
	case c.Catalog != "" && c.From != c.To:
		b.WriteString(" " + strings.Trim(short(c.From)+" → "+short(c.To), " →"))
	case c.From != "" && c.To != "" && c.From != c.To:
		b.WriteString(" " + c.From + " → " + c.To)
	case c.To != "":
		b.WriteString(" " + c.To)
	case c.From != "":
		b.WriteString(" " + c.From)
	}
	if len(c.Fields) > 0 {
		b.WriteString(" (" + strings.Join(c.Fields, ", ") + ")")
	}
	if c.Why != "" {
		b.WriteString(", " + c.Why)
	}
	if n := len(c.RemainingHops); n > 0 {
		b.WriteString("; " + count(n, "hop") + " to go: " + strings.Join(c.RemainingHops, ", "))
	}
	return b.String()
}

// short cuts a digest to what a person compares.
func short(digest string) string {
	if rest, ok := strings.CutPrefix(digest, "sha256:"); ok && len(rest) > 12 {
		return "sha256:" + rest[:12]
	}
	return digest
}

// count returns "1 hop" or "3 hops".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
