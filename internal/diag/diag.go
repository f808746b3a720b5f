// Package diag collects errors and warnings with their positions in the user's files, and handles
// waivers, which accept findings and warnings until a date.
//
// A parser adds every error to a [List] and continues. The list formats one error per line, sorted,
// as file:line:col: message. The package does not parse or print anything.
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

// Pos is a position in a file. Line and Col count from 1. Col is in bytes. If Line is 0, the position is the
// whole file. If only Col is 0, the position is the whole line.
type Pos struct {
	File string // path as the user would write it, slash-separated: "subscriptions/etcd.yaml"
	Line int    // 7
	Col  int    // 3
}

// IsZero reports whether p is the zero value, which means that there is no position.
func (p Pos) IsZero() bool { return p == Pos{} }

// String returns "file:line:col", without parts that are unknown.
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

// MarshalText returns p.String().
func (p Pos) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Compare orders positions by file, line and column.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(strings.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Col, q.Col))
}

// Fields maps field paths of an object, such as "spec.channels[0]", to the positions of their
// values.
type Fields map[string]Pos

// At returns the position of a field. If this position is unknown, At returns the position of the nearest
// enclosing field with a known position. If no position is known, it returns the parameter whole.
func (f Fields) At(field string, whole Pos) Pos {
	for field != "" {
		if p, ok := f[field]; ok {
			return p
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return whole
}

// Error is an error with a position.
type Error struct {
	Pos Pos
	Msg string // "unknown field \"chanel\" (did you mean \"channel\"?)"
	Err error  // cause; may be nil

	Hint string // command or edit that fixes the error; may be empty
}

// Error returns "position: message: cause", without empty parts. The hint is on a separate line. If the cause
// is a List, each of its errors after the first is also on a separate line.
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

// Errorf returns an error at pos. The operand of %w in format is the cause.
func Errorf(pos Pos, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	if errors.Unwrap(err) == nil {
		return &Error{Pos: pos, Msg: err.Error()}
	}
	return &Error{Pos: pos, Err: err}
}

// Hintf is Errorf with a hint: the command or edit that fixes the error.
func Hintf(pos Pos, hint, format string, args ...any) *Error {
	e := Errorf(pos, format, args...)
	e.Hint = hint
	return e
}

// List collects errors. The zero value is an empty list.
type List []*Error

// Addf adds an error at pos.
func (l *List) Addf(pos Pos, format string, args ...any) {
	*l = append(*l, Errorf(pos, format, args...))
}

// Add adds err. An *Error is added unchanged. If err is a List, its errors are added. Any other error is
// added with the position pos. If err is nil, nothing is added.
func (l *List) Add(pos Pos, err error) {
	if err == nil {
		return
	}
	if one, ok := err.(*Error); ok { //nolint:errorlint // an error that wraps an *Error is added as a new error at pos
		*l = append(*l, one)
		return
	}
	if many, ok := err.(List); ok { //nolint:errorlint // likewise for an error that wraps a List
		*l = append(*l, many...)
		return
	}
	*l = append(*l, &Error{Pos: pos, Err: err})
}

// Err returns the errors sorted by position, then by message, without duplicates. It returns nil if
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

// Warning is a problem that does not prevent the command from continuing.
type Warning struct {
	Pos  Pos    `json:"position,omitzero"` // position in a file, or zero
	Code string `json:"code,omitempty"`    // ID of one of Codes, such as "declaration-in-tree"
	Msg  string `json:"message"`

	// Subject is an operator ("namespace/package"), a catalog or a package. If it is empty, the
	// warning is about the file in Pos.
	Subject string `json:"subject,omitempty" doc:"subject, in the format of the field object of a waiver"`

	Waived bool `json:"waived,omitempty" doc:"whether a waiver in quayside.yaml accepts it"`

	// Minor marks a warning that only the author of a bundle can act on.
	Minor bool `json:"-"`
}

// String returns "position: message".
func (w Warning) String() string {
	if w.Pos.IsZero() {
		return w.Msg
	}
	return w.Pos.String() + ": " + w.Msg
}

// Line formats w as compilers do. See [Fault.Line].
func (w Warning) Line(label string) string {
	return Fault{Position: w.Pos.String(), Code: w.Code, Message: w.Msg}.Line(label)
}

// Fault is an error or a warning in an output document.
type Fault struct {
	Position string `json:"position,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty" doc:"the command or the edit that fixes it"`
}

// FaultOf converts err to a fault, with the position separate from the message.
func FaultOf(err error) Fault {
	one, ok := err.(*Error) //nolint:errorlint // an error that wraps an *Error keeps its whole message
	if !ok {
		return Fault{Message: err.Error()}
	}
	return Fault{Position: one.Pos.String(), Message: (&Error{Msg: one.Msg, Err: one.Err}).Error(), Hint: sanitize.Line(one.Hint)}
}

// Line formats f as compilers do: "position: message [code]". label, such as "warning: ", precedes
// the message.
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

// SortWarnings sorts ws by position, code and message, and removes duplicates. It modifies ws and
// returns the result.
func SortWarnings(ws []Warning) []Warning {
	slices.SortStableFunc(ws, func(a, b Warning) int {
		return cmp.Or(a.Pos.Compare(b.Pos), strings.Compare(a.Code, b.Code), strings.Compare(a.Msg, b.Msg))
	})
	return slices.Compact(ws)
}
