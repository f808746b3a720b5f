// Package diag says where in the user's files something is wrong.
//
// A parser collects every fault it meets into a [List] and goes on; the list
// prints one fault a line, sorted, as file:line:col: message. The package
// knows nothing of YAML or of operators and never prints by itself.
//
// Start from [Pos], [Error] and [List].
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/inert"
)

// Pos is a place in a file. Line and Col count from 1, in bytes; a zero Line
// means the file as a whole, a zero Col the line as a whole.
type Pos struct {
	File string // "subscriptions/etcd.yaml", slash-separated, as the user would name it
	Line int    // 7
	Col  int    // 3
}

// IsZero reports whether p names no place at all.
func (p Pos) IsZero() bool { return p == Pos{} }

// String returns "file:line:col", without the parts that are unknown.
func (p Pos) String() string {
	var b strings.Builder
	b.WriteString(inert.Line(p.File))
	if p.Line > 0 {
		if p.File != "" {
			b.WriteByte(':')
		}
		b.WriteString(strconv.Itoa(p.Line))
		if p.Col > 0 {
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(p.Col))
		}
	}
	return b.String()
}

// MarshalText returns what String returns.
func (p Pos) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Compare orders by file, line, column.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(strings.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Col, q.Col))
}

// Fields says where the fields of an object stand: "spec.channels[0]" → the
// place of its value.
type Fields map[string]Pos

// At returns where a field stands. Where the file does not say the field, it is
// the nearest field around it that is said, else the place of the whole.
func (f Fields) At(field string, whole Pos) Pos {
	for field != "" {
		if p, ok := f[field]; ok {
			return p
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return whole
}

// Error is one fault at one place.
type Error struct {
	Pos Pos
	Msg string // "unknown field \"chanel\" (did you mean \"channel\"?)"
	Err error  // what caused it; may be nil

	Hint string // the command or the edit that fixes it; may be empty
}

// Error returns "position: message: cause", without the parts that are empty, as
// one line. Where the cause is a List, the faults after its first have their own. A hint
// has a line of its own.
func (e *Error) Error() string {
	if e.Hint != "" {
		return (&Error{Pos: e.Pos, Msg: e.Msg, Err: e.Err}).Error() + "\n  hint: " + inert.Line(e.Hint)
	}
	parts := make([]string, 0, 3)
	if !e.Pos.IsZero() {
		parts = append(parts, e.Pos.String())
	}
	if e.Msg != "" {
		parts = append(parts, e.Msg)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	var many List
	if errors.As(e.Err, &many) {
		return inert.Lines(strings.Join(parts, ": "))
	}
	return inert.Line(strings.Join(parts, ": "))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns a fault at pos. A %w in format becomes reachable by errors.Is
// and errors.As.
func Errorf(pos Pos, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	if errors.Unwrap(err) == nil {
		return &Error{Pos: pos, Msg: err.Error()}
	}
	return &Error{Pos: pos, Err: err}
}

// Hintf is Errorf with a hint: the command or the edit that fixes the fault.
func Hintf(pos Pos, hint, format string, args ...any) *Error {
	e := Errorf(pos, format, args...)
	e.Hint = hint
	return e
}

// List collects faults. The zero value is empty and ready to use.
type List []*Error

// Addf adds a fault at pos.
func (l *List) Addf(pos Pos, format string, args ...any) {
	*l = append(*l, Errorf(pos, format, args...))
}

// Add adds err: a *Error as it is, a List fault by fault, anything else at pos.
// A nil err adds nothing.
func (l *List) Add(pos Pos, err error) {
	if err == nil {
		return
	}
	if one, ok := err.(*Error); ok { //nolint:errorlint // a wrapped fault keeps the words around it
		*l = append(*l, one)
		return
	}
	if many, ok := err.(List); ok { //nolint:errorlint // likewise
		*l = append(*l, many...)
		return
	}
	*l = append(*l, &Error{Pos: pos, Err: err})
}

// Err returns the faults sorted by position, then message, without exact
// repeats, or nil when there are none.
func (l *List) Err() error {
	if l == nil || len(*l) == 0 {
		return nil
	}
	sorted := slices.Clone(*l)
	slices.SortStableFunc(sorted, func(a, b *Error) int {
		return cmp.Or(a.Pos.Compare(b.Pos), strings.Compare(a.Error(), b.Error()))
	})
	return slices.CompactFunc(sorted, func(a, b *Error) bool {
		return a.Pos == b.Pos && a.Error() == b.Error()
	})
}

// Error returns one fault a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each fault.
func (l List) Unwrap() []error {
	errs := make([]error, len(l))
	for i, e := range l {
		errs[i] = e
	}
	return errs
}

// Warning is something the user should know that stops nothing.
type Warning struct {
	Pos  Pos    `json:"position,omitzero"` // zero where no file is to blame
	Code string `json:"code,omitempty"`    // of one of Codes: "declaration-in-tree"
	Msg  string `json:"message"`

	// As long as that is there: "namespace/package" of an operator, a catalog, a package; empty: see Pos.
	Subject string `json:"subject,omitempty" doc:"what it is about, as the object of a waiver names it"`

	Waived bool `json:"waived,omitempty" doc:"whether a waiver in quayside.yaml accepts it"`
}

// String returns "position: message".
func (w Warning) String() string {
	if w.Pos.IsZero() {
		return w.Msg
	}
	return w.Pos.String() + ": " + w.Msg
}

// Line returns w as compilers print it: "file: warning: message [code]".
func (w Warning) Line(label string) string {
	return Fault{Position: w.Pos.String(), Code: w.Code, Message: w.Msg}.Line(label)
}

// Fault is what is wrong, as a document holds it.
type Fault struct {
	Position string `json:"position,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty" doc:"the command or the edit that fixes it"`
}

// FaultOf returns what err says, with its place apart.
func FaultOf(err error) Fault {
	one, ok := err.(*Error) //nolint:errorlint // a wrapped fault keeps the words around it
	if !ok {
		return Fault{Message: err.Error()}
	}
	return Fault{Position: one.Pos.String(), Message: (&Error{Msg: one.Msg, Err: one.Err}).Error(), Hint: inert.Line(one.Hint)}
}

// Line returns f as compilers print it: "file: fault: message [code]".
func (f Fault) Line(label string) string {
	text := label + inert.Line(f.Message)
	if f.Position != "" {
		text = f.Position + ": " + text
	}
	if f.Code != "" {
		text += " [" + f.Code + "]"
	}
	return text
}

// SortWarnings sorts in place by position, code, message and drops exact repeats.
func SortWarnings(ws []Warning) []Warning {
	slices.SortStableFunc(ws, func(a, b Warning) int {
		return cmp.Or(a.Pos.Compare(b.Pos), strings.Compare(a.Code, b.Code), strings.Compare(a.Msg, b.Msg))
	})
	return slices.Compact(ws)
}

// Count returns "1 hop" or "3 hops".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
