// Package layers holds one test and no code: the table that says which package
// may import which, and which may reach outside the program.
//
// The test reads the sources with go/parser rather than asking the go command,
// so that its result is never served from the cache after an import changed
// elsewhere.
package layers
