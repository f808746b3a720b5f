// Package garbage delays the program's first garbage collection.
//
// Most commands end within some milliseconds and gain nothing from a collection. After the first collection,
// Go's default applies, so that a command with a large catalog needs no more memory than without this package.
//
// To use the package, import it. It imports almost nothing, so Go initializes it before most other packages.
// Their initialization allocates enough to start a collection. Commands with a large heap also call
// [CollectMore]. GOGC in the environment takes precedence.
package garbage

import (
	"runtime"
	"runtime/debug"
)

// Values of GOGC: a collection starts when the heap has grown by this percentage since the last collection.
const (
	early  = 400 // before the first collection, which starts at 16 MiB; most commands end earlier
	usual  = 100 // after the first collection; the default of Go
	sparse = 60  // with a large live heap
)

// CollectMore makes collections more frequent. It has no effect before the first collection. With a large heap,
// it saves 20 percent of the memory and costs 5 percent more time.
func CollectMore() {
	if old := debug.SetGCPercent(sparse); old != usual {
		debug.SetGCPercent(old)
	}
}

var _ = delayCollection()

// delayCollection delays the first collection. It does nothing and returns false if GOGC is set.
func delayCollection() bool {
	if old := debug.SetGCPercent(early); old != usual {
		debug.SetGCPercent(old)
		return false
	}
	// When the first collection finds that the new object is unreachable, this function restores the default.
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
	return true
}
