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

// options are the flags.
type options struct {
	metrics, probes string
	leaderElect     bool
	leaseNamespace  string
	kubeconfig      string
	level           slog.Level
	version         bool
}

// parse reads the command line. What is wrong with it is said on stderr.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("quayside-report", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.metrics, "metrics-bind-address", ":8080", "`address` of /metrics; 0 for none")
	f.StringVar(&o.probes, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 for none")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "stand by until the Lease quayside-reporter is ours")
	f.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "`namespace` of the Lease (default: the pod's own)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that names the cluster (default: the one that the pod runs in)")
	f.TextVar(&o.level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	f.BoolVar(&o.version, "version", false, "print the version and end")
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

// config returns how to reach the API server.
func (o options) config() (*rest.Config, error) {
	if o.kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", o.kubeconfig)
}

// version returns the module version that the go command recorded, or "devel".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// logger returns a log of JSON lines.
func logger(w io.Writer, level slog.Level) logr.Logger {
	return logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// How much the heap may grow before it is collected, in percent, and how large
// the program may become before it is collected whatever it costs. Of 300
// Installations with 20,000 objects 20 MiB live.
const (
	growth    = 20
	softLimit = 100 << 20
)

// limitMemory keeps the program small: a reporter has much time and little to
// say. GOGC and GOMEMLIMIT, where they are set, are left alone.
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
