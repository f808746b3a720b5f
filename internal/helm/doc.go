// Package helm reads Helm charts and templates them.
//
// A chart is an untrusted program. ReadArchive limits the files of an archive. A Pool runs the templates in
// child processes, which have no environment, files or network, and whose time, memory and output are
// limited. The same chart, options and version of quayside give the same objects on every machine. A chart
// whose objects differ each time is refused. The objects equal the output of helm template --include-crds.
//
// This package does not import Helm, whose initialization would slow down every command. The children run
// another program, quayside-charts, which only calls engine.Serve.
//
// Start from ReadArchive, ReadMetadata and NewPool.
package helm
