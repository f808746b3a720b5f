// Command testcluster holds every server of a Kubernetes control plane in one
// binary, so that shared packages are linked once:
//
//	testcluster {etcd | kube-apiserver | kube-controller-manager | kube-scheduler | kwok} [flags]
//
// Each server takes its own flags. It is for tests on one machine and for
// nothing else.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // time zones of CronJobs, because a test machine may have no files for them

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

const usage = "usage: testcluster {etcd | kube-apiserver | kube-controller-manager | kube-scheduler | kwok} [flags]"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	// Every server reads its flags from os.Args itself.
	os.Args = os.Args[1:]
	os.Exit(run(os.Args[0]))
}

// run starts the named server and returns its exit code once it has ended.
func run(server string) int {
	var command *cobra.Command
	switch server {
	case "etcd":
		etcdmain.Main(os.Args)
		return 0
	case "kwok":
		return report(runKwok())
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	default:
		return report(fmt.Errorf("unknown server %q\n%s", server, usage))
	}
	return cli.Run(command)
}

// runKwok simulates the nodes and their pods.
func runKwok() error {
	// k8s.io/component-base registers a --version that is not a bool in the process's own flag
	// set. Cobra would merge it into kwok's flags and fail.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return err
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
