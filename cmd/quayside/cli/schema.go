package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/jsonschema"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render/profile"
	"github.com/quayside/quayside/subscription"
	"github.com/quayside/quayside/workspace"
)

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [name]",
		Short: "Print the JSON schema of a file, or of what a command prints",
		Long: doc(`
			Print a JSON schema (draft 2020-12). Those of files, for editors, are workspace
			(quayside.yaml), subscription and lock; inputs is what a tree says of a cluster to
			an ApplicationSet or a ResourceSet of yours. The schema of what a command prints with
			-o json is named after the command, such as status or catalog-show; it allows
			the command's own document and the list of errors that is printed in its place
			if the command fails. Without an argument, the names are listed.`),
		Example: examples(`
			quayside schema
			quayside schema workspace
			quayside schema catalog-show`),
		Args: func(cmd *cobra.Command, args []string) error { return wantArgs()(cmd, args[min(1, len(args)):]) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return slices.Sorted(maps.Keys(a.schemas())), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all := a.schemas()
			names := slices.Sorted(maps.Keys(all))
			text := []byte(strings.Join(names, "\n") + "\n")
			if len(args) > 0 {
				made, ok := all[args[0]]
				if !ok {
					return notFound("schema", args[0], names)
				}
				text = made()
			}
			_, err := a.out.Write(text)
			return err
		},
	}
}

// schemaName returns what the schema of a command's output is called.
func schemaName(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return strings.ReplaceAll(path, " ", "-")
}

// schemas returns what makes each schema, by name.
func (a *app) schemas() map[string]func() []byte {
	all := map[string]func() []byte{"workspace": workspace.Schema, "subscription": subscription.Schema, "lock": lockfile.JSONSchema, "adoption-plan": plan.Schema, "inputs": profile.InputSchema}
	for cmd, documents := range a.documents {
		name := schemaName(cmd)
		all[name] = func() []byte {
			return jsonschema.Output("https://quayside.dev/schema/"+name+".schema.json", cmd.CommandPath()+" -o json", append(documents, project.Failure{})...)
		}
	}
	return all
}
