// Package parts lists the optional parts of the program. To build without a part, remove the directory of the
// part and its lines in this file.
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
