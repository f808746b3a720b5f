package project_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

// TestFinish records in locks what clusters have of OLM's, and wants finishing to
// undo that and no more: the lock is the one of before, each Deployment of an
// operator restarts, and what called OLM's certificates has a CA.
func TestFinish(t *testing.T) {
	all := clusters(t)
	e := env(t)
	e.Talk = quiet{}
	for file, services := range map[string][]string{
		"argocd/before.json":    {"argocd/argocd-operator-controller-manager-service"},
		"dynatrace/before.json": {"dynatrace/dynatrace-webhook-service"},
		"grafana/before.json":   {},
		"rabbitmq/before.json":  {"rabbitmq/rabbitmq-cluster-operator-service", "rabbitmq/messaging-topology-operator-service"},
	} {
		d := dump(t, e, all, file)
		found, err := d.p.Inspect(context.Background(), d.seen, "default")
		check(t, err)
		p := reopened(t, e, d.p, project.LockFile, string(lockfile.Format(found.Lock)))
		got, err := p.Finish(context.Background(), nil)
		check(t, err)
		if string(lockfile.Format(got.Lock)) != string(lockfile.Format(d.lock)) {
			t.Errorf("%s: the lock is not the one of before", file)
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
				// OLM lets whoever serves a webhook ask who calls; the tree lets who
				// serves an API.
				asks := strings.HasSuffix(o.Name, ".auth-delegator") || strings.HasSuffix(o.Name, ".auth-reader")
				if o.Change == "removed" && o.Kind != "OperatorCondition" && !asks {
					t.Errorf("%s: %s goes", file, o.Key())
				}
			}
		}
		if !slices.Equal(served, services) {
			t.Errorf("%s: certificates of %q, want %q", file, served, services)
		}
	}
}

// reopened writes a file of a workspace and opens that again.
func reopened(t *testing.T, e project.Env, p *project.Project, name, text string) *project.Project {
	t.Helper()
	dir := p.Name()
	check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	out, err := project.Open(project.Files(os.DirFS(dir), dir, "."), e)
	check(t, err)
	return out
}
