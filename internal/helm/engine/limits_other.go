//go:build !unix

package engine

import "time"

// limitProcess limits memory. The other limits are enforced by startWatch and by the parent process.
func limitProcess() error {
	limitRuntime()
	time.Local = time.UTC // do not read the time zone of the machine
	return nil
}

// processCPU returns 0, so that only the limit of the elapsed time applies.
func processCPU() time.Duration { return 0 }

func processIsUsedUp() bool { return false }
