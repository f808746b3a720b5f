// Package layers has one test and no code: the table of permitted imports between packages, and of
// the packages that may use the operating system or the network.
//
// The test parses the sources with go/parser instead of running the go command. Its result is
// therefore never a cached one from before an import changed elsewhere.
package layers
