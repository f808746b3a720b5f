package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of quayside",
		Example: examples(`quayside version -o json`),
		RunE:    func(*cobra.Command, []string) error { return a.printVersion() },
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

func (a *app) printVersion() error {
	v := versionView{a.version, runtime.Version(), platform()}
	return a.print(v, func(w io.Writer) { fmt.Fprint(w, a.versionLine()) })
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
