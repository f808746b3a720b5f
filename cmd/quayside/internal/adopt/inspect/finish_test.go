package inspect_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
)

// checkFinish records OLM's settings in the locks of some dumps. Finish must restore the previous lock. It must
// report that the operators restart, and that their certificates change from OLM's to another provider's.
func checkFinish(t *testing.T, _ fstest.MapFS) dumpCheck {
	serve := map[string][]string{
		"argocd/before.json":    {"argocd/argocd-operator-controller-manager-service"},
		"dynatrace/before.json": {"dynatrace/dynatrace-webhook-service"},
		"grafana/before.json":   {},
		"rabbitmq/before.json":  {"rabbitmq/rabbitmq-cluster-operator-service", "rabbitmq/messaging-topology-operator-service"},
	}
	each := func(file string, d clusterDump, _ *adopt.Inspection) {
		services, asked := serve[file]
		if !asked {
			return
		}
		delete(serve, file)
		d.stand.write(t, workspace.LockFile, lockfile.Format(d.found.Lock))
		got, err := inspect.Finish(context.Background(), d.stand.open(t), nil)
		check(t, err)
		if string(lockfile.Format(got.Lock)) != string(lockfile.Format(d.lock)) {
			t.Errorf("%s: the lock differs from the previous one", file)
		}
		var served []string
		for _, op := range got.Operators {
			served = append(served, op.Certificates...)
			if len(op.Restarts) == 0 || op.Condition.From != op.Bundle || op.Condition.To != op.Package {
				t.Errorf("%s: %+v", file, op)
			}
			if issues := slices.Equal(op.Needs, []string{"Certificate.cert-manager.io", "Issuer.cert-manager.io"}); issues != (len(op.Certificates) > 0) {
				t.Errorf("%s: %s needs %q", file, op.Package, op.Needs)
			}
			for _, o := range op.Objects {
				// OLM generates these bindings for accounts that serve webhooks or APIs. The tree has them only
				// for accounts that serve APIs.
				asks := strings.HasSuffix(o.Name, ".auth-delegator") || strings.HasSuffix(o.Name, ".auth-reader")
				if o.Change == "removed" && o.Kind != "OperatorCondition" && !asks {
					t.Errorf("%s: %s is removed", file, o.Key)
				}
			}
		}
		if !slices.Equal(served, services) {
			t.Errorf("%s: certificates of %q, want %q", file, served, services)
		}
	}
	return dumpCheck{each, func() {
		if len(serve) > 0 {
			t.Errorf("there are no dumps for %v", serve)
		}
	}}
}
