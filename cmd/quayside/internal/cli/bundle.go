package cli

import "github.com/spf13/cobra"

func newBundle(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Validate bundles, for authors of operators",
		Long: Doc(`
			Validate bundles. A bundle is one version of an operator: a directory with manifests/
			(the ClusterServiceVersion, the CRDs and other objects) and metadata/annotations.yaml
			(the package and its channels).`),
		Example: Examples(`quayside bundle validate catalog-src/etcd/0.9.4`),
		RunE:    Group,
	}
	cmd.AddCommand(newBundleValidate(a))
	return cmd
}
