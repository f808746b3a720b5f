package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/jsonschema"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [name]",
		Short: "Print the JSON schema of a file or of a command's output",
		Long: Doc(`
			Print a JSON schema (draft 2020-12). Without a name, list the names.

			  workspace, subscription, lock   the files, for editors
			  inputs                          parameters of a cluster in the tree, for your own
			                                  ApplicationSet or ResourceSet
			  status, catalog-show, …         the output of a command with -o json, named after the
			                                  command; also valid for the errors of a failed command`),
		Example: Examples(`
			quayside schema
			quayside schema workspace
			quayside schema catalog-show`),
		Args: func(cmd *cobra.Command, args []string) error { return WantArgs()(cmd, args[min(1, len(args)):]) },
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
				generate, ok := all[args[0]]
				if !ok {
					return notFound("schema", args[0], names)
				}
				text = generate()
			}
			_, err := a.out.Write(text)
			return err
		},
	}
}

// schemaName returns the name of the schema for a command's output.
func schemaName(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return strings.ReplaceAll(path, " ", "-")
}

// schemas returns a function for each schema, by name.
func (a *app) schemas() map[string]func() []byte {
	all := map[string]func() []byte{"workspace": settings.Schema, "subscription": declare.Schema, "lock": lockfile.JSONSchema, "inputs": profile.InputSchema}
	for _, p := range a.parts {
		maps.Copy(all, p.Schemas)
	}
	for cmd, documents := range a.documents {
		name := schemaName(cmd)
		all[name] = func() []byte {
			return jsonschema.Output("https://quayside.dev/schema/"+name+".schema.json", cmd.CommandPath()+" -o json", append(documents, workspace.Failure{})...)
		}
	}
	return all
}
