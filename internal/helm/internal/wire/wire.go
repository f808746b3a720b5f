// Package wire is the protocol between the program and the child process that templates charts.
//
// A message is a sequence of frames. Each frame has a kind and a length, and its length is limited.
// The program writes a Request frame and a Files frame. The child answers with any number of Template
// frames, then an Answer frame and an Objects frame. It writes one Hello frame when it starts.
//
// Start from Write and Read.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
)

// Variable is the environment variable that makes a program serve as a child.
const Variable = "QUAYSIDE_CHART_TEMPLATES"

// BuildVersion returns the version of the program's module. Program and child must have the same
// version, because the protocol has no version, and the same chart must give the same objects.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			version += " " + s.Value
		}
	}
	return version
}

// Kind is the kind of a frame.
type Kind byte

// The kinds of frames.
const (
	Hello    Kind = 'H' // BuildVersion
	Head     Kind = 'R' // Request, as JSON
	Files    Kind = 'F' // the contents of Request.Files, one after another
	Template Kind = 'T' // path of the template that is executed next
	Reply    Kind = 'A' // Answer, as JSON
	Objects  Kind = 'O' // the JSON of Answer.Objects, one after another
)

// Limits of a request and of an answer.
const (
	MaxInput  = 128 << 20 // bytes of the files of a chart, and of the values
	MaxOutput = 64 << 20  // bytes of the objects that a chart renders to
)

const headSize = 5 // kind and length

// ErrTooLong is the error for a frame that is longer than the limit of the reader.
var ErrTooLong = errors.New("frame exceeds its limit")

// Request is a chart and the settings to template it with.
type Request struct {
	Release     string
	Namespace   string
	KubeVersion string
	APIVersions []string // nil: those of helm template
	Values      json.RawMessage
	Files       []File
}

// File is the path of a file in a chart, and the number of its bytes in the Files frame.
type File struct {
	Path string
	Size int
}

// Answer is the result for a request: an error, or objects.
type Answer struct {
	Error    *Error
	Objects  []Resource
	Lookups  []string // paths of templates that call lookup
	Skipped  []string // objects with unknown hooks, which Helm drops
	Warnings []string // messages that Helm logs
	Last     bool     // the child ends
}

// Resource describes one object in the Objects frame.
type Resource struct {
	Source     string
	Hooks      []string `json:",omitempty"`
	HookWeight int      `json:",omitempty"`
	HookDelete []string `json:",omitempty"`
	Kept       bool     `json:",omitempty"` // it is in a List that Helm keeps
	Size       int
}

// Error is the reason why a chart cannot be templated. Path is "" if the error is in none of the chart's files.
type Error struct {
	Path      string
	Line, Col int
	Msg       string
	Hint      string
}

// Error returns the message with its position.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Col, e.Msg) }

// Write writes one frame whose content is the concatenation of parts. It does not copy them.
func Write(w io.Writer, kind Kind, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	head := binary.BigEndian.AppendUint32([]byte{byte(kind)}, uint32(n)) //nolint:gosec // limited by MaxInput and MaxOutput
	for _, p := range append([][]byte{head}, parts...) {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes one frame whose content is the JSON of v.
func WriteJSON(w io.Writer, kind Kind, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return Write(w, kind, data)
}

// Read reads one frame. It returns an error if the frame has more than limit bytes, and io.EOF if
// there is no frame.
func Read(r io.Reader, limit int) (Kind, []byte, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if int64(n) > int64(limit) {
		return 0, nil, ErrTooLong
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return Kind(head[0]), data, nil
}

// Expect reads one frame of a kind.
func Expect(r io.Reader, kind Kind, limit int) ([]byte, error) {
	got, data, err := Read(r, limit)
	if err == nil && got != kind {
		err = fmt.Errorf("frame %q instead of %q", got, kind)
	}
	return data, err
}

// Cut splits data into parts of the given sizes. It returns false if data has another length.
func Cut(data []byte, sizes []int) ([][]byte, bool) {
	parts := make([][]byte, len(sizes))
	for i, n := range sizes {
		if n < 0 || n > len(data) {
			return nil, false
		}
		parts[i], data = data[:n:n], data[n:]
	}
	return parts, len(data) == 0
}
