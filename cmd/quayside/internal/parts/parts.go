// Package parts lists the optional parts of the program. To build without a part, remove its
// directory and its lines here.
package parts

import (
	adopt "github.com/quayside/quayside/cmd/quayside/internal/adopt/command"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
)

// All returns the optional parts of the program.
func All() []cli.Part {
	return []cli.Part{
		adopt.Part(),
	}
}
