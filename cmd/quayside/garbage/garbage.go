// Package garbage puts the program's first garbage collection off.
//
// Most commands are over within some milliseconds, and for what they would
// spend on collecting they get nothing. Those that do more are collected as
// usual from then on, so that reading a large catalog takes no more memory than
// it did.
//
// Importing the package is all that there is to do, but for a command that holds
// much, which calls [Spare]. It imports next to nothing
// itself, and so it is initialized before most of the packages that the program
// is made of, which between them allocate enough for a collection while they
// are. GOGC in the environment wins.
package garbage

import (
	"runtime"
	"runtime/debug"
)

// How much more than what lives may be allocated before it is collected, in
// percent: until the first collection, after it, and where much lives.
const (
	early  = 400 // of the 4 MiB that a heap has at least: most commands end before 16 MiB
	usual  = 100
	sparse = 60
)

// Spare has a program that holds much collect more often than usual, once it has
// collected at all: it takes a fifth less memory, and a twentieth longer.
func Spare() {
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
	// The first collection finds that nobody holds this.
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
	return true
}
