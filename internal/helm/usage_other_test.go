//go:build !unix

package helm

import "time"

// childrenCPU returns 0: the time is not known.
func childrenCPU() time.Duration { return 0 }

// childrenRSS returns 0: the memory is not known.
func childrenRSS() int64 { return 0 }

// ownRSS returns 0: the memory is not known.
func ownRSS() int64 { return 0 }

// ownCPU returns 0: the time is not known.
func ownCPU() time.Duration { return 0 }
