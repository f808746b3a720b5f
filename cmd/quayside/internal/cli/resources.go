package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/status"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/terminal"
)

type resourcesOptions struct {
	*app
	compare.ResourceOptions
	login loginFlags
	by    string
}

func newResources(a *app) *cobra.Command {
	o := &resourcesOptions{app: a}
	cmd := &cobra.Command{
		Use:   "resources",
		Short: "Sum the CPU and memory that the operators request and use",
		Long: Doc(`
			Sum the requests and limits of the operators' pods, by operator and cluster, after
			overlays. Deployments and StatefulSets count with their replicas, a DaemonSet counts as
			one pod, although each node has one. Pods that an operator creates itself are not in
			the manifests.

			With --context or --kubeconfig, also print the present use of the pods of a cluster, if
			it has the API metrics.k8s.io. The pods of a DaemonSet then count on all nodes.

			For costs and a history, tools such as OpenCost and Prometheus can group the objects by
			their label quayside.dev/package.`),
		Example: Examples(`
			quayside resources
			quayside resources --all -o json

			# by the teams in a label of the workloads
			quayside resources --by label=team

			# with the present use of a cluster
			quayside resources --context prod`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			label, byLabel := strings.CutPrefix(o.by, "label=")
			switch {
			case byLabel && label != "":
				o.ByOwner, o.Label = true, label
			case o.by == "owner":
				o.ByOwner = true
			case o.by != "operator":
				return Usagef(cmd, "--by %s: must be operator, owner or label=KEY", o.by)
			}
			return o.run(cmd.Context())
		},
	}
	o.login.addFlags(cmd, a)
	f := cmd.Flags()
	f.StringVar(&o.Cluster, "cluster", "", "only the cluster with this `NAME` in quayside.yaml")
	f.StringVar(&o.by, "by", "operator", "sum by `KEY`: operator; owner, as in spec.owners; or label=NAME, the value of that label of the workloads")
	addOutput(cmd, a, nil, inventory.Resources{})
	addAll(cmd, a)
	addOffline(cmd, a)
	o.offer(cmd, "cluster", a.completions(edit.Completer.Clusters))
	return cmd
}

func (o *resourcesOptions) run(ctx context.Context) error {
	p, lock, err := o.openLocked()
	if err != nil {
		return err
	}
	measure := o.login != loginFlags{}
	if o.Cluster != "" || measure {
		if o.Cluster, err = p.Settings.ClusterName(o.Cluster, "--cluster"); err != nil {
			return err
		}
	}
	if o.ByOwner && o.Label == "" && len(p.Settings.Owners) == 0 {
		return diag.Hintf(p.Settings.At("spec"), "list the owners and their operators, or use --by label=KEY", "spec.owners is empty")
	}
	r, messages, err := compare.Resources(ctx, p, lock, o.ResourceOptions)
	if o.logMessages(messages); err != nil {
		return err
	}
	if measure {
		client, err := cluster.Open(o.login.options(o.app))
		if err != nil {
			return err
		}
		if err := status.MeasureUse(ctx, client, &r); err != nil {
			return err
		}
	}
	if err := o.print(r, func(io.Writer) { o.table(&r).Write(o.out) }); err != nil {
		return err
	}
	if r.Unmeasured != "" {
		o.log.Note("not all pods have metrics: %s", r.Unmeasured)
	}
	return nil
}

// table returns a table of the sums by operator or owner, and by cluster.
func (o *resourcesOptions) table(r *inventory.Resources) *terminal.Table {
	t := &terminal.Table{Head: []string{"operator", "clusters", "pods", "cpu", "cpu limit", "memory", "memory limit", "no limit"}}
	if o.ByOwner {
		t.Head[0] = "owner"
	}
	used := r.Total.Used != nil
	if used {
		t.Head = append(t.Head, "running", "cpu used", "memory used")
	}
	row := func(subject, clusters string, s *inventory.Amounts) {
		cells := []string{subject, clusters, strconv.Itoa(s.Pods), s.CPU.Request, s.CPU.Limit, s.Memory.Request, s.Memory.Limit, strconv.Itoa(s.Unlimited)}
		switch {
		case used && s.Used != nil:
			cells = append(cells, strconv.Itoa(s.Used.Pods), s.Used.CPU, s.Used.Memory)
		case used:
			cells = append(cells, "", "", "")
		}
		t.Add(cells...)
	}
	for i := range r.Operators {
		if s := &r.Operators[i]; !o.ByOwner {
			row(s.Operator, strings.Join(s.Clusters, ","), &s.Amounts)
		}
	}
	for i := range r.Owners {
		row(r.Owners[i].Owner, strings.Join(r.Owners[i].Clusters, ","), &r.Owners[i].Amounts)
	}
	clusters := 0
	for i := range r.Clusters {
		row("total", strings.Join(r.Clusters[i].Clusters, ","), &r.Clusters[i].Amounts)
		clusters += len(r.Clusters[i].Clusters)
	}
	if clusters > 1 {
		row("total", fmt.Sprintf("all %d", clusters), &r.Total)
	}
	return t
}
