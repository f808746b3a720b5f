// Package index keeps a valid catalog in a form that opens in milliseconds and
// answers for one package without reading the others.
//
// An index is one file: a segment for each package, tables that say which
// package provides what, and a footer with the key of what it was made from.
// Every part has a checksum, so that a file which is damaged, cut short or of
// another version is told from one that answers; [Open] and [Load] then return
// a [*FaultError] and the caller reads the catalog itself and writes the index
// anew. The package does not know where indexes lie: it reads from an
// io.ReaderAt and writes to an io.Writer.
//
// Start from [Write], [Open], [Load] and [Select].
package index

import (
	"errors"
	"fmt"
)

// The layout, in the order of the file:
//
//	segments    one for each package, by name
//	directory   name, place, checksum and summary of each segment
//	needs       what the bundles of each package require
//	providers   by API and by label: the packages that have it
//	search      what a search in each package looks at
//	header      key, digest, warnings, and where the sections are
//	trailer     20 bytes: length and checksum of the header, version, magic
//
// Numbers are unsigned varints, but those of the trailer, which are little
// endian. A segment, and every section, begins with a table of its strings.

// version changes whenever the layout does, or what readers put into a
// catalog.Content. An index of another version is built anew.
const version = 4

const (
	magic       = "qs-index"
	trailerSize = 4 + 4 + 4 + len(magic)
	maxIndex    = 4 << 30   // bytes of the file
	maxSection  = 512 << 20 // bytes of a segment or a section
)

// FaultError says why an index cannot be used: it is damaged, of another
// version, or was made from something else. The catalog itself must be read.
type FaultError struct {
	Index  int    // which of several it is
	Reason string // "segment of package \"etcd\": checksum differs"
}

// Error returns the reason.
func (e *FaultError) Error() string { return "catalog index: " + e.Reason }

func faultf(format string, args ...any) error {
	return &FaultError{Reason: fmt.Sprintf(format, args...)}
}

// of says which of several indexes an error is about.
func of(index int, err error) error {
	var fault *FaultError
	if errors.As(err, &fault) {
		fault.Index = index
	}
	return err
}
