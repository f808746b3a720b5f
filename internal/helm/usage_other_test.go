//go:build !unix

package helm

import "time"

// childrenCPU returns 0: the time is not known.
func childrenCPU() time.Duration { return 0 }
