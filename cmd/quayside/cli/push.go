package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/deliver"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/oci/sign"
)

type pushOptions struct {
	*app
	workspace.Signing
	clusters    []string
	environment bool
	at          string
	branch      string
	bom         bool
	repository  string // --bundle-repository
}

func newPush(a *app) *cobra.Command {
	o := &pushOptions{app: a}
	cmd := &cobra.Command{
		Use:   "push {oci://REGISTRY/REPOSITORY[:TAG] | oci:DIRECTORY[:TAG] | {DIRECTORY | LAYOUT} IMAGE}",
		Short: "Push the rendered tree as an artifact, or a bundle or catalog as an image",
		Long: Doc(`
			With one argument, push the rendered tree as one OCI artifact, as Flux's
			OCIRepository and Argo CD's OCI source take it, to a registry or into an OCI
			layout. With two, push a bundle or a catalog: a directory, which is validated and
			built as by 'quayside build', or an image in an OCI layout; with
			--bundle-repository the images of a catalog's bundles are pushed before it, each
			tagged with its version. Prints the reference by digest. What follows is about
			the tree.

			What is pushed is the tree of the commit that is checked out, or of the one that
			--at names: the whole environment, or with --cluster what these clusters get of
			it, and all that their overlays build from, wherever that lies in the repository.
			The artifact begins where spec.gitops.path finds the tree below it (default:
			spec.output), so that the paths in what Flux or Argo CD apply are right.

			The same commit of the same branch gives the same digest on every machine: name
			the branch where a commit is checked out, as in CI. What the registry holds
			already is not sent again; the tag moves.

			With --sign the artifact is signed, by its digest, in both of cosign's forms, and so
			is a statement of what it was made of beside it (provenance, as SLSA has it), and with
			--bom one of the bill of materials. With a key, an artifact that it has signed is left
			as it is; with --sign keyless, one that spec.trust takes for signed. The tag moves last, so
			that whoever follows it never sees an artifact without its signature.

			A work tree that differs from the commit is refused, and so is a tree that is not
			what its lock says, or an overlay that does not build.

			Credentials are those of 'podman login' and 'docker login'.

			Exit codes: 0 done; 1 the tree is not what the lock says; 2 an error.`),
		Example: Examples(`
			quayside push oci://registry.example.com/fleet/stage:main
			quayside push oci://registry.example.com/fleet/default:main --cluster default
			quayside push oci://registry.example.com/fleet/stage:main --sign cosign.key

			# a bundle, and a catalog with its bundles
			quayside push catalog-src/memcached-operator/0.0.1 registry.example.com/ops/memcached-operator:v0.0.1
			quayside push catalog-src registry.example.com/ops/catalog:v1 --bundle-repository registry.example.com/ops/{package}`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return WantArgs("a target such as oci://registry/repository:tag")(cmd, args)
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				for _, flag := range []string{"at", "bom", "branch", "cluster", "environment", "fulcio-url", "identity-token", "rekor-url", "sign", "timestamp-url"} {
					if cmd.Flags().Changed(flag) {
						return Usagef(cmd, "--%s is only for the rendered tree: leave out the flag, or %q", flag, args[0])
					}
				}
				return o.pushImage(cmd, args[0], args[1])
			}
			if !strings.HasPrefix(args[0], "oci:") {
				return Usagef(cmd, "%q: want oci://registry/repository:tag or oci:directory:tag; a bundle or catalog also needs a target", args[0])
			}
			if o.repository != "" {
				return Usagef(cmd, "--bundle-repository is for catalogs: name the catalog's directory first")
			}
			for _, flag := range []string{"bom", "sign"} {
				if cmd.Flags().Changed(flag) && !strings.HasPrefix(args[0], "oci://") {
					return Usagef(cmd, "--%s needs a registry: an OCI layout has no referrers", flag)
				}
			}
			if cmd.Flags().Changed("sign") && o.Key == "" {
				return Usagef(cmd, "--sign needs a key file or 'keyless' file or 'keyless'")
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.clusters, "cluster", nil, "push the tree of `CLUSTER`; may be given several times")
	f.BoolVar(&o.environment, "environment", false, "push the tree of all clusters (default)")
	f.StringVar(&o.at, "at", "", "push the tree of `REVISION`, whatever is checked out")
	f.StringVar(&o.branch, "branch", "", "record `BRANCH` as the commit's branch (default: the current branch)")
	f.BoolVar(&o.bom, "bom", false, "attach a bill of materials, as printed by 'quayside images -o cyclonedx'")
	f.StringVar(&o.Key, "sign", "", "sign with the private key in `FILE`, such as cosign.key, with its password in COSIGN_PASSWORD; or 'keyless'")
	f.StringVar(&o.Fulcio, "fulcio-url", "https://fulcio.sigstore.dev", "keyless: the certificate authority")
	f.StringVar(&o.Rekor, "rekor-url", "https://rekor.sigstore.dev", "keyless: the transparency log; empty for none")
	f.StringVar(&o.Timestamp, "timestamp-url", "", "keyless: the timestamp authority, without a transparency log")
	f.StringVar(&o.TokenFile, "identity-token", "", "keyless: the `FILE` with the identity token (default: SIGSTORE_ID_TOKEN, or GitHub's)")
	addBundleRepository(cmd, &o.repository)
	cmd.MarkFlagsMutuallyExclusive("cluster", "environment")
	a.offer(cmd, "cluster", a.overlays)
	addOutput(cmd, a, nil, deliver.PushResult{}, builtView{})
	return cmd
}

func (o *pushOptions) run(ctx context.Context, to string) error {
	p, here, err := o.here()
	if err != nil {
		return err
	}
	var signer *sign.Signer
	if o.Key != "" {
		if signer, err = here.Signer(ctx, o.Signing); err != nil {
			return err
		}
	}
	cargo, err := deliver.LoadTree(ctx, p, deliver.LoadOptions{At: o.at, Branch: o.branch, Clusters: o.clusters})
	if err != nil {
		return err
	}
	d := deliver.PushOptions{To: to, Project: p, Here: here, Signer: signer}
	if o.bom {
		d.BOM = collectBOM
	}
	sent, err := cargo.Push(ctx, d)
	if err != nil {
		return err
	}
	sent.Log(o.log)
	return o.print(sent, func(w io.Writer) { fmt.Fprintln(w, inert.Line(sent.Reference)) })
}
