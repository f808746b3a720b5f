package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/deliver"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/sign"
	"github.com/quayside/quayside/internal/sanitize"
)

type pushOptions struct {
	*app
	workspace.Signing
	clusters    []string
	environment bool
	at          string
	branch      string
	bom         bool
	repository  string // value of --bundle-repository
}

func newPush(a *app) *cobra.Command {
	o := &pushOptions{app: a}
	cmd := &cobra.Command{
		Use:   "push {oci://REGISTRY/REPOSITORY[:TAG] | oci:DIRECTORY[:TAG] | {DIRECTORY | LAYOUT} IMAGE}",
		Short: "Push the rendered tree as an artifact, or a bundle or catalog as an image",
		Long: Doc(`
			Push the rendered tree of a commit to a registry or an OCI layout, as one OCI artifact
			that Flux (OCIRepository) and Argo CD can apply. With two arguments, push a bundle or a
			catalog instead: a directory, which quayside validates and builds like 'quayside
			build', or an image in an OCI layout. quayside prints the reference of a tree with its
			digest.

			quayside pushes the tree of HEAD, or of --at. The work tree must not have changes, the
			tree must be up to date with its lock, and all overlays must build. --cluster limits the
			artifact to the files of these clusters. The artifact includes all files that the
			overlays use, and its paths begin where spec.gitops.path expects them.

			The same commit and branch give the same digest on every machine. Use --branch in CI,
			where a commit is checked out instead of a branch.

			--sign signs the artifact and its SLSA provenance with a cosign key, or keyless. --bom
			attaches a bill of materials, which --sign also signs. The tag is set last, after the
			signatures are in the registry.

			Credentials are those of 'podman login' and 'docker login'.

			See also: docs/artifacts.md
			Exit codes: 0 done; 1 the tree is out of date with its lock; 2 an error.`),
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
						return Usagef(cmd, "--%s is only for the rendered tree: omit the flag, or %q", flag, args[0])
					}
				}
				return o.pushImage(cmd, args[0], args[1])
			}
			if !strings.HasPrefix(args[0], "oci:") {
				return Usagef(cmd, "%q is not a push target: use oci://registry/repository:tag or oci:directory:tag; to push a bundle or catalog, add a target as the second argument", args[0])
			}
			if o.repository != "" {
				return Usagef(cmd, "--bundle-repository is for catalogs: name the catalog's directory first")
			}
			for _, flag := range []string{"bom", "sign"} {
				if cmd.Flags().Changed(flag) && !strings.HasPrefix(args[0], "oci://") {
					return Usagef(cmd, "--%s requires a registry: an OCI layout has no referrers", flag)
				}
			}
			if cmd.Flags().Changed("sign") && o.Key == "" {
				return Usagef(cmd, "--sign requires a key file or 'keyless'")
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.clusters, "cluster", nil, "push the tree of `CLUSTER`; may be given several times")
	f.BoolVar(&o.environment, "environment", false, "push the tree of all clusters (default)")
	f.StringVar(&o.at, "at", "", "push the tree of `REVISION` instead of HEAD")
	f.StringVar(&o.branch, "branch", "", "record `BRANCH` as the commit's branch (default: the current branch)")
	f.BoolVar(&o.bom, "bom", false, "attach a bill of materials, as printed by 'quayside images -o cyclonedx'")
	addSigning(cmd, &o.Signing)
	addBundleRepository(cmd, &o.repository)
	cmd.MarkFlagsMutuallyExclusive("cluster", "environment")
	a.offer(cmd, "cluster", a.completions(edit.Completer.Clusters))
	addOutput(cmd, a, nil, deliver.PushResult{}, imageView{})
	return cmd
}

// addSigning adds the flags that select a signer.
func addSigning(cmd *cobra.Command, s *workspace.Signing) {
	f := cmd.Flags()
	f.StringVar(&s.Key, "sign", "", "sign with the private key in `FILE`, such as cosign.key, with its password in COSIGN_PASSWORD; or 'keyless'")
	f.StringVar(&s.Fulcio, "fulcio-url", "https://fulcio.sigstore.dev", "keyless: `URL` of the certificate authority")
	f.StringVar(&s.Rekor, "rekor-url", "https://rekor.sigstore.dev", "keyless: `URL` of the transparency log; empty for none")
	f.StringVar(&s.Timestamp, "timestamp-url", "", "keyless: `URL` of a timestamp authority; required without a transparency log")
	f.StringVar(&s.TokenFile, "identity-token", "", "keyless: the `FILE` with the identity token (default: SIGSTORE_ID_TOKEN, or GitHub's)")
}

func (o *pushOptions) run(ctx context.Context, to string) error {
	p, here, err := o.openForArgs()
	if err != nil {
		return err
	}
	var signer *sign.Signer
	if o.Key != "" {
		if signer, err = here.Signer(ctx, o.Signing); err != nil {
			return err
		}
	}
	tree, err := deliver.LoadTree(ctx, p, deliver.LoadOptions{At: o.at, Branch: o.branch, Clusters: o.clusters})
	if err != nil {
		return err
	}
	d := deliver.PushOptions{To: to, Project: p, Here: here, Signer: signer}
	if o.bom {
		d.BOM = o.collectBOM
	}
	sent, err := tree.Push(ctx, d)
	if err != nil {
		return err
	}
	sent.Log(o.log)
	return o.print(sent, func(w io.Writer) { fmt.Fprintln(w, sanitize.Line(sent.Reference)) })
}

// pushImage pushes a bundle or a catalog. A directory is built first; an existing image is copied.
func (o *pushOptions) pushImage(cmd *cobra.Command, from, to string) error {
	_, here, err := o.openForArgs()
	if err != nil {
		return err
	}
	if arg, err := here.ParseArgument(from); err == nil && arg.Image != "" {
		if o.repository != "" {
			return Usagef(cmd, "--bundle-repository is for directories: %q is an image already", from)
		}
		digest, err := here.CopyImage(cmd.Context(), arg, to)
		if err != nil {
			return err
		}
		return o.printImage(imageView{Image: to, Digest: digest})
	}
	built, err := o.build(cmd.Context(), here, []string{from}, o.repository)
	if err != nil {
		return err
	}
	if err := o.send(cmd.Context(), here, built, to); err != nil {
		return err
	}
	return o.printImage(built.view(to))
}

// send pushes the bundle images that a catalog refers to, each with its version as the tag. Then it
// pushes the built image to the reference in to.
func (o *pushOptions) send(ctx context.Context, here *workspace.Project, built *builtImage, to string) error {
	client, err := here.Client()
	if err != nil {
		return err
	}
	if built.catalog != nil {
		defer o.log.Done()
		for _, b := range built.catalog.Bundles {
			src, err := oci.ParseReference(b.Ref)
			if err != nil {
				return err
			}
			o.log.Progress("pushing %s", b.Ref)
			tag := oci.Reference{Kind: oci.Remote, Name: src.Name, Tag: "v" + strings.ReplaceAll(b.Bundle.CSV.Version, "+", "_")}
			if err := client.Push(ctx, tag.String(), b.Packed); err != nil {
				return err
			}
		}
	}
	return client.Push(ctx, to, built.packed)
}
