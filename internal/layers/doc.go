// Package layers has one test and no code: the table of permitted imports between packages, and of
// the packages that may use the operating system or the network.
//
// The test parses the sources with go/parser instead of running the go command. Therefore, go test never
// reports a cached result after an import changed in another package.
package layers
