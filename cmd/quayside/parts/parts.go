// Package parts lists the optional parts of the program. To build without a part, remove its
// directory and its lines here.
package parts

import (
	"github.com/quayside/quayside/cmd/quayside/cli"
	olmexit "github.com/quayside/quayside/olmexit/command"
)

// All returns the optional parts of the program.
func All() []cli.Part {
	return []cli.Part{
		olmexit.Part(),
	}
}
