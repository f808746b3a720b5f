// Package layers contains only tests. TestImports checks which packages may import each other, and which
// packages may use the operating system or the network.
//
// TestImports parses the sources with go/parser instead of running the go command. Therefore, go test never
// reports a cached result after an import changed in another package.
package layers
