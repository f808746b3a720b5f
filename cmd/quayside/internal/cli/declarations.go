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
		Short: "List the declarations of the repository, with the reasons why some are not read",
		Long: Doc(`
			List the objects of OLM in the repository, and the text that looks like one, such as a
			template of a Helm chart. The list shows the object that applies each of them, its
			cluster, and whether this workspace reads it, otherwise with the reason. HelmReleases of
			Flux, and Applications and ApplicationSets of Argo CD with a chart, come last if they
			are not selected as operators.

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
	read, selected := countRead(states)
	a.log.Note("read %d of %s", read, diag.Count(selected, "declaration"))
	if check && read < selected {
		return errDiffers
	}
	return nil
}

// countRead returns the number of selected declarations that are read, and the number of all selected ones.
func countRead(states []workspace.DeclarationState) (read, selected int) {
	for _, s := range states {
		if s.Read {
			read++
		}
		if s.Selected {
			selected++
		}
	}
	return read, selected
}

// declarationTable returns a table of declarations. Declarations that are not read come first, and charts that
// are not selected come last.
func declarationTable(states []workspace.DeclarationState) *terminal.Table {
	t := &terminal.Table{Head: []string{"declaration", "position", "clusters", "applied by", "state"}}
	for _, group := range []workspace.DeclarationState{{Selected: true}, {Selected: true, Read: true}, {}} {
		for _, s := range states {
			if s.Read != group.Read || s.Selected != group.Selected {
				continue
			}
			name := strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
			state := "not read: " + s.Reason
			if s.Read {
				state = "read"
				for i, r := range s.Operators {
					state += map[bool]string{true: ": ", false: ", "}[i == 0] + r.String()
				}
			}
			t.Add(fmt.Sprintf("%s %s", s.Kind, name), s.Pos, strings.Join(s.Clusters, ", "), strings.Join(s.AppliedBy, ", "), state)
		}
	}
	return t
}
