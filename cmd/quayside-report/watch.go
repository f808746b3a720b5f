package main

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/reporter"
)

// watch runs the reporter until ctx ends.
func watch(ctx context.Context, o options, log logr.Logger) error {
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	return reporter.Run(ctx, config, reporter.Config{
		Judge: health.Judge, Log: log, Version: moduleVersion(),
		MetricsAddress: o.metrics, ProbeAddress: o.probes,
		LeaderElection: o.leaderElect, LeaderElectionNamespace: o.leaseNamespace,
	})
}
