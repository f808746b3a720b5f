// Package parts names the parts of the program that it is whole without: each is taken
// out with its folder and its lines here.
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
