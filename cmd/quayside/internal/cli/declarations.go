package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/terminal"
)

func newDeclarations(a *app) *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use:   "declarations",
		Short: "List the declarations of the repository, and which are not read",
		Long: Doc(`
			List the objects of OLM in the repository, and the text that looks like one, such as a
			template of a Helm chart. The list shows what applies each of them to which cluster,
			and whether this workspace reads it: if not, why not.

			See also: docs/declarations.md

			Exit codes: 0 done; 1 with --check, a declaration is not read; 2 an error.`),
		Example: Examples(`
			quayside declarations
			quayside declarations --check -o json`),
		RunE: func(*cobra.Command, []string) error { return listDeclarations(a, check) },
	}
	cmd.Flags().BoolVar(&check, "check", false, "fail if a declaration is not read")
	addOutput(cmd, a, nil, declarationsView{})
	return cmd
}

// declarationsView is the output of `quayside declarations`.
type declarationsView struct {
	Declarations []workspace.DeclarationState `json:"declarations"`
}

func listDeclarations(a *app, check bool) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	states, err := p.DeclarationStates()
	if err != nil {
		return err
	}
	if err := a.printTable(declarationsView{states}, declarationTable(states)); err != nil {
		return err
	}
	read := countRead(states)
	a.log.Note("read %d of %s", read, diag.Count(len(states), "declaration"))
	if check && read < len(states) {
		return errDiffers
	}
	return nil
}

// countRead returns the number of declarations that are read.
func countRead(states []workspace.DeclarationState) int {
	n := 0
	for _, s := range states {
		if s.Read {
			n++
		}
	}
	return n
}

// declarationTable returns a table of declarations. Those that are not read come first.
func declarationTable(states []workspace.DeclarationState) *terminal.Table {
	t := &terminal.Table{Head: []string{"declaration", "position", "clusters", "applied by", "state"}}
	for _, read := range []bool{false, true} {
		for _, s := range states {
			if s.Read != read {
				continue
			}
			name := strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
			state := "read"
			if !read {
				state = "not read: " + s.Reason
			}
			t.Add(fmt.Sprintf("%s %s", s.Kind, name), s.Pos, strings.Join(s.Clusters, ", "), strings.Join(s.AppliedBy, ", "), state)
		}
	}
	return t
}
