// Package parts lists the optional parts of the program. To build without a part, remove its
// folder and its lines here.
package parts

import (
	"github.com/quayside/quayside/cmd/quayside/cli"
	olmexit "github.com/quayside/quayside/olmexit/command"
)

// All returns the parts.
func All() []cli.Part {
	return []cli.Part{
		olmexit.Part(),
	}
}
