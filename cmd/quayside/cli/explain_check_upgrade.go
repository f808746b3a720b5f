package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/checkup"
)

type checkUpgradeOptions struct {
	*app
	target   checkup.Target
	clusters []string
}

func newCheckUpgrade(a *app) *cobra.Command {
	o := &checkUpgradeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "check-upgrade {--kubernetes VERSION | --openshift VERSION}...",
		Short: "Say whether what the lock installs can live on another version of the cluster",
		Long: doc(`
			Ask of every operator in the lock, and of everything that clusters get, whether
			it can live on another version of Kubernetes or OpenShift: what bundles say of
			themselves (minKubeVersion, olm.maxOpenShiftVersion) and catalogs of their support,
			objects at APIs that are no longer served there, overlays built, and custom
			resources of this repository that their definitions refuse.

			Where an operator is in the way, upgrades are looked for that can be made before
			the cluster's, as few as help: each answer was resolved, rendered and asked the
			same. Nothing is written.

			Exit codes: 0 it can live there; 1 it cannot; 2 an error.`),
		Example: examples(`
			quayside check-upgrade --kubernetes 1.37 --offline

			# and on the OpenShift that is made of it
			quayside check-upgrade --kubernetes 1.37 --openshift 5.0 --offline -o json`),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.Var((*versionFlag)(&o.target.Kubernetes), "kubernetes", "`VERSION` of Kubernetes to ask about, such as 1.37")
	f.Var((*versionFlag)(&o.target.OpenShift), "openshift", "`VERSION` of OpenShift to ask about, such as 5.0")
	f.StringSliceVar(&o.clusters, "cluster", nil, "look at what `CLUSTER` gets (default: all); may be repeated")
	cmd.MarkFlagsOneRequired("kubernetes", "openshift")
	a.offer(cmd, "cluster", a.overlays)
	addOffline(cmd, a)
	addOutput(cmd, a, nil, checkup.Report{})
	addAll(cmd, a, "cluster")
	return cmd
}

// versionFlag is a version of a cluster, without the "v" that some put before it.
type versionFlag string

func (f *versionFlag) String() string { return string(*f) }

// Type is what help calls it.
func (f *versionFlag) Type() string { return "version" }

// Set takes 1.37, 1.37.2 or v1.37.
func (f *versionFlag) Set(s string) error {
	s = strings.TrimPrefix(s, "v")
	if !regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}(\.[0-9]{1,9})?$`).MatchString(s) {
		return fmt.Errorf("want a version such as 1.37 or 1.37.2")
	}
	*f = versionFlag(s)
	return nil
}

func (o *checkUpgradeOptions) run(cmd *cobra.Command) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	r, err := checkup.Run(cmd.Context(), p, o.target, o.clusters)
	if err != nil {
		return err
	}
	o.talk.Done()
	for _, note := range r.Notes {
		o.talk.Note("%s", note)
	}
	if err := o.print(r, func(io.Writer) { r.Write(o.out) }); err != nil || r.Lives {
		return err
	}
	return errDiffers
}
