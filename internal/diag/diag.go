// Package diag collects errors and warnings with their positions in the user's files,
// and waivers that accept findings and warnings until an expiry date.
//
// A parser adds every error to a [List] and continues. The list formats one error per line,
// sorted, as file:line:col: message. The package neither parses nor prints.
//
// Start from [Pos], [Error] and [List]; for waivers from [Review].
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// Pos is a place in a file. Line and Col count from 1, in bytes; a zero Line
// means the file as a whole, a zero Col the line as a whole.
type Pos struct {
	File string // "subscriptions/etcd.yaml", slash-separated, as the user would name it
	Line int    // 7
	Col  int    // 3
}

// IsZero reports whether p is the zero Pos, which is not a place in a file.
func (p Pos) IsZero() bool { return p == Pos{} }

// String returns "file:line:col", without the parts that are unknown.
func (p Pos) String() string {
	var b strings.Builder
	b.WriteString(sanitize.Line(p.File))
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

// MarshalText returns the result of String.
func (p Pos) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Compare orders by file, line, column.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(strings.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Col, q.Col))
}

// Fields maps the fields of an object, such as "spec.channels[0]", to the positions of their
// values.
type Fields map[string]Pos

// At returns the position of a field. If the field is missing, it returns the position of
// the nearest enclosing field, or else whole.
func (f Fields) At(field string, whole Pos) Pos {
	for field != "" {
		if p, ok := f[field]; ok {
			return p
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return whole
}

// Error is one error at one position.
type Error struct {
	Pos Pos
	Msg string // "unknown field \"chanel\" (did you mean \"channel\"?)"
	Err error  // the cause; may be nil

	Hint string // the command or the edit that fixes it; may be empty
}

// Error returns "position: message: cause", without empty parts, as one line. If the cause
// is a List, each further error has a separate line, and so has the hint.
func (e *Error) Error() string {
	if e.Hint != "" {
		return (&Error{Pos: e.Pos, Msg: e.Msg, Err: e.Err}).Error() + "\n  hint: " + sanitize.Line(e.Hint)
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
		return sanitize.Lines(strings.Join(parts, ": "))
	}
	return sanitize.Line(strings.Join(parts, ": "))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error at pos. errors.Is and errors.As find the operand of %w in format.
func Errorf(pos Pos, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	if errors.Unwrap(err) == nil {
		return &Error{Pos: pos, Msg: err.Error()}
	}
	return &Error{Pos: pos, Err: err}
}

// Hintf is Errorf with a hint: the command or the edit that fixes the error.
func Hintf(pos Pos, hint, format string, args ...any) *Error {
	e := Errorf(pos, format, args...)
	e.Hint = hint
	return e
}

// List collects errors. The zero value is empty and ready to use.
type List []*Error

// Addf adds an error at pos.
func (l *List) Addf(pos Pos, format string, args ...any) {
	*l = append(*l, Errorf(pos, format, args...))
}

// Add adds err: an *Error unchanged, each error of a List, any other error at pos.
// A nil err adds nothing.
func (l *List) Add(pos Pos, err error) {
	if err == nil {
		return
	}
	if one, ok := err.(*Error); ok { //nolint:errorlint // an error that wraps an *Error is added as one error
		*l = append(*l, one)
		return
	}
	if many, ok := err.(List); ok { //nolint:errorlint // likewise
		*l = append(*l, many...)
		return
	}
	*l = append(*l, &Error{Pos: pos, Err: err})
}

// Err returns the errors sorted by position, then message, without duplicates, or nil if
// there are none.
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

// Error returns one error per line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors.
func (l List) Unwrap() []error {
	errs := make([]error, len(l))
	for i, e := range l {
		errs[i] = e
	}
	return errs
}

// Warning is a problem that does not stop the command.
type Warning struct {
	Pos  Pos    `json:"position,omitzero"` // zero if no file is the cause
	Code string `json:"code,omitempty"`    // an ID of Codes: "declaration-in-tree"
	Msg  string `json:"message"`

	// "namespace/package" of an operator, a catalog, or a package; empty: see Pos.
	Subject string `json:"subject,omitempty" doc:"subject, in the format of the field object of a waiver"`

	Waived bool `json:"waived,omitempty" doc:"whether a waiver in quayside.yaml accepts it"`

	// Minor marks a warning that only the author of a bundle can fix.
	Minor bool `json:"-"`
}

// String returns "position: message".
func (w Warning) String() string {
	if w.Pos.IsZero() {
		return w.Msg
	}
	return w.Pos.String() + ": " + w.Msg
}

// Line returns w in the format of compilers, as [Fault.Line] does.
func (w Warning) Line(label string) string {
	return Fault{Position: w.Pos.String(), Code: w.Code, Message: w.Msg}.Line(label)
}

// Fault is an error or a warning as part of an output document.
type Fault struct {
	Position string `json:"position,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty" doc:"the command or the edit that fixes it"`
}

// FaultOf returns the fault of err, with the position separate from the message.
func FaultOf(err error) Fault {
	one, ok := err.(*Error) //nolint:errorlint // an error that wraps an *Error keeps its message
	if !ok {
		return Fault{Message: err.Error()}
	}
	return Fault{Position: one.Pos.String(), Message: (&Error{Msg: one.Msg, Err: one.Err}).Error(), Hint: sanitize.Line(one.Hint)}
}

// Line returns f in the format of compilers, "position: message [code]", with label, such as
// "warning: ", before the message.
func (f Fault) Line(label string) string {
	text := label + sanitize.Line(f.Message)
	if f.Position != "" {
		text = f.Position + ": " + text
	}
	if f.Code != "" {
		text += " [" + f.Code + "]"
	}
	return text
}

// SortWarnings sorts in place by position, code and message, and drops adjacent duplicates.
func SortWarnings(ws []Warning) []Warning {
	slices.SortStableFunc(ws, func(a, b Warning) int {
		return cmp.Or(a.Pos.Compare(b.Pos), strings.Compare(a.Code, b.Code), strings.Compare(a.Msg, b.Msg))
	})
	return slices.Compact(ws)
}
