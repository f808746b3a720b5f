// Package garbage delays the program's first garbage collection.
//
// Most commands end within some milliseconds and gain nothing from a collection.
// After the first collection, the usual setting applies: reading a large catalog
// takes no more memory than without this package.
//
// Importing the package is enough. A command with a large heap also calls [CollectMore].
// The package imports almost nothing and is therefore initialized before most other
// packages of the program. Their initialization allocates enough for a collection.
// GOGC in the environment takes precedence.
package garbage

import (
	"runtime"
	"runtime/debug"
)

// Values of GOGC (new allocations in percent of the live heap that start a collection):
// until the first collection, after it, and for a large live heap.
const (
	early  = 400 // of the minimum heap of 4 MiB: most commands end before 16 MiB
	usual  = 100
	sparse = 60
)

// CollectMore makes collections more frequent if the first one has already happened. A program
// with a large heap then takes a fifth less memory and a twentieth more time.
func CollectMore() {
	if was := debug.SetGCPercent(sparse); was != usual {
		debug.SetGCPercent(was)
	}
}

var _ = putOff()

func putOff() bool {
	if told := debug.SetGCPercent(early); told != usual {
		debug.SetGCPercent(told)
		return false
	}
	// The first collection finds this unreachable and restores the usual setting.
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
	return true
}
