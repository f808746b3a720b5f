package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
)

// signingOptions is what a command that signs takes.
type signingOptions struct{ project.Signing }

// addTo gives cmd the flags, of which flag names the key.
func (o *signingOptions) addTo(cmd *cobra.Command, flag string) {
	cmd.Flags().StringVar(&o.Key, flag, "", "sign with the private key in `FILE`, as cosign.key, whose password is in COSIGN_PASSWORD; or 'keyless'")
	cmd.Flags().StringVar(&o.Fulcio, "fulcio-url", "https://fulcio.sigstore.dev", "keyless: who issues the certificate")
	cmd.Flags().StringVar(&o.Rekor, "rekor-url", "https://rekor.sigstore.dev", "keyless: the log that makes the signature known; empty for none")
	cmd.Flags().StringVar(&o.Timestamp, "timestamp-url", "", "keyless: who says when it was signed, where no log does")
	cmd.Flags().StringVar(&o.TokenFile, "identity-token", "", "keyless: the `FILE` with the token that proves the identity (default: SIGSTORE_ID_TOKEN, or GitHub's)")
}

func newSign(a *app) *cobra.Command {
	o := &signingOptions{}
	cmd := &cobra.Command{
		Use:   "sign <image>",
		Short: "Sign an image of a registry as cosign does",
		Long: doc(`
			Sign an image of a registry, by digest: a bundle, a catalog or an artifact that was
			pushed. The signature stands beside the image in both of cosign's forms, as a tag
			sha256-….sig, where Flux looks for it, and as a sigstore bundle that refers to the
			image. spec.trust takes either.

			With a key nothing is asked of any service, and an image that it has signed
			is left as it is. With --key keyless an authority issues a certificate for the
			identity that a token proves, and a public log makes both known. What spec.trust
			takes for signed already is then left.`),
		Example: examples(`
			# a key pair that 'cosign generate-key-pair' made
			quayside sign --key cosign.key registry.example.com/ops/catalog@sha256:1b5f…

			# in a job that may ask for an identity token, with services of your own
			quayside sign --key keyless --fulcio-url https://fulcio.example.com --rekor-url https://rekor.example.com registry.example.com/ops/catalog@sha256:1b5f…`),
		Args: wantArgs("an image"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.sign(cmd, o, args[0]) },
	}
	o.addTo(cmd, "key")
	addOutput(cmd, a, nil, signedView{})
	return cmd
}

func (a *app) sign(cmd *cobra.Command, o *signingOptions, image string) error {
	if o.Key == "" {
		return usagef(cmd, "sign with what? name --key")
	}
	p, here, err := a.here()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	signer, err := here.Signer(ctx, o.Signing)
	if err != nil {
		return err
	}
	ref, sent, err := p.Sign(ctx, signer, image)
	if err != nil {
		return err
	}
	v := signedView{Image: ref, State: "present"}
	if sent {
		v.State = "signed"
	}
	return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "%-8s %s\n", v.State, inert.Line(v.Image)) })
}

// signedView is what sign prints.
type signedView struct {
	Image string `json:"image"`
	State string `json:"state" form:"enum=signed|present" doc:"Whether it was signed now, or was before."`
}
