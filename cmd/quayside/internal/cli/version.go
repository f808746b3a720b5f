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
		Use:   "version",
		Short: "Print the version of quayside",
		Long: Doc(`
			Print the version of quayside, the commit that it was built from, and the platform.`),
		Example: Examples(`quayside version -o json`),
		RunE: func(*cobra.Command, []string) error {
			return a.print(a.buildInfo(), func(w io.Writer) { fmt.Fprint(w, a.versionLine()) })
		},
	}
	addOutput(cmd, a, nil, versionView{})
	return cmd
}

// versionView is the output of `quayside version`.
type versionView struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty" doc:"Commit from which this binary was built. Absent if the binary was not built from a clone."`
	Date     string `json:"date,omitempty" doc:"Commit time in UTC."`
	Modified bool   `json:"modified,omitempty" doc:"Whether the program was built with uncommitted changes."`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildInfo returns the build information of this binary.
func (a *app) buildInfo() versionView {
	v := versionView{Version: a.version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// versionLine returns the text that 'quayside version' and --version print.
func (a *app) versionLine() string {
	v := a.buildInfo()
	from := ""
	if v.Commit != "" {
		from = fmt.Sprintf("commit %.12s of %s", v.Commit, v.Date)
		if v.Modified {
			from += " with changes"
		}
		from += ", "
	}
	return fmt.Sprintf("quayside %s (%s%s, %s)\n", v.Version, from, v.Go, v.Platform)
}

// buildVersion returns the module version of this binary, or "devel".
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
