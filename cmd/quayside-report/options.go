package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// options holds the values of the flags.
type options struct {
	metrics, probes string
	leaderElect     bool
	leaseNamespace  string
	kubeconfig      string
	level           slog.Level
	version         bool
}

// parseFlags parses the command line and prints errors to stderr.
func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("quayside-report", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.metrics, "metrics-bind-address", ":8080", "`address` of /metrics; 0 for none")
	f.StringVar(&o.probes, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 for none")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "run as standby until the Lease quayside-reporter is acquired")
	f.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "`namespace` of the Lease (default: the pod's own)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: the pod's own cluster)")
	f.TextVar(&o.level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	f.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		err := fmt.Errorf("unknown argument %q", f.Arg(0))
		fmt.Fprintln(stderr, err)
		return o, err
	}
	return o, nil
}

// restConfig returns the client configuration for the API server.
func (o options) restConfig() (*rest.Config, error) {
	if o.kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", o.kubeconfig)
}

// moduleVersion returns the module version of this binary, or "devel".
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// newLogger returns a logger that writes JSON lines.
func newLogger(w io.Writer, level slog.Level) logr.Logger {
	return logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// Settings of the garbage collector. With 300 Installations and 20,000 objects, the live heap is 20
// MiB.
const (
	growth    = 20        // GOGC: heap growth in percent that starts a collection
	softLimit = 100 << 20 // GOMEMLIMIT in bytes: above it, collections are frequent
)

// limitMemory configures the garbage collector to use less memory and more CPU time, because the
// reporter is mostly idle. GOGC, GOMEMLIMIT and GOMAXPROCS in the environment take precedence.
func limitMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	if getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
	}
}
