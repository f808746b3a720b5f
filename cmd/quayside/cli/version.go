package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionOptions struct {
	*app
}

func newVersion(a *app) *cobra.Command {
	o := &versionOptions{app: a}
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print the version of quayside",
		Example:           examples(`quayside version -o json`),
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return o.run() },
	}
	addOutput(cmd, a, nil, versionView{})
	return cmd
}

// versionView is what `quayside version` prints.
type versionView struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (o *versionOptions) run() error {
	v := versionView{o.version, runtime.Version(), platform()}
	return o.print(v, func(w io.Writer) error {
		_, err := io.WriteString(w, o.versionLine())
		return err
	})
}

// versionLine is what 'version' and --version print.
func (a *app) versionLine() string {
	return fmt.Sprintf("quayside %s (%s, %s)\n", a.version, runtime.Version(), platform())
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// buildVersion returns the module version that the go command recorded, or
// "devel".
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
