package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/terminal"
)

func newResources(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resources",
		Short: "Sum the CPU and memory that the operators request",
		Long: Doc(`
			Sum the requests and limits of the operators' pods, by operator and cluster, after
			overlays. Deployments and StatefulSets count with their replicas, a DaemonSet counts as
			one pod, although each node has one. Pods that an operator creates itself are not in
			the manifests.

			For costs and a history, tools such as OpenCost and Prometheus can group the objects by
			their label quayside.dev/package.`),
		Example: Examples(`
			quayside resources
			quayside resources --all -o json`),
		RunE: func(cmd *cobra.Command, _ []string) error { return printResources(cmd.Context(), a) },
	}
	addOutput(cmd, a, nil, inventory.Resources{})
	addAll(cmd, a)
	addOffline(cmd, a)
	return cmd
}

func printResources(ctx context.Context, a *app) error {
	p, lock, err := a.openLocked()
	if err != nil {
		return err
	}
	r, messages, err := compare.Resources(ctx, p, lock)
	if a.logMessages(messages); err != nil {
		return err
	}
	t := &terminal.Table{Head: []string{"operator", "clusters", "pods", "cpu", "cpu limit", "memory", "memory limit", "no limit"}}
	row := func(operator string, clusters []string, s inventory.Amounts) {
		t.Add(operator, strings.Join(clusters, ","), strconv.Itoa(s.Pods), s.CPU.Request, s.CPU.Limit, s.Memory.Request, s.Memory.Limit, strconv.Itoa(s.Unlimited))
	}
	for _, o := range r.Operators {
		row(o.Operator, o.Clusters, o.Amounts)
	}
	for _, c := range r.Clusters {
		row("total", c.Clusters, c.Amounts)
	}
	return a.printTable(r, t)
}
