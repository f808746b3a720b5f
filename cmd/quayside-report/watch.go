package main

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/report/kube"
)

// watch runs the reporter until ctx ends.
func watch(ctx context.Context, o options, log logr.Logger) error {
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	config, err := o.config()
	if err != nil {
		return err
	}
	return kube.Run(ctx, config, kube.Options{
		Judge: report.Judge, Log: log, Version: version(),
		MetricsAddress: o.metrics, ProbeAddress: o.probes,
		LeaderElection: o.leaderElect, LeaderElectionNamespace: o.leaseNamespace,
	})
}
