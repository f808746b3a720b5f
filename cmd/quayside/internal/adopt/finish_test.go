package adopt_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/internal/k8s"
)

func TestClientConfigs(t *testing.T) {
	client := map[string]any{"service": map[string]any{"namespace": "a", "name": "s"}, "caBundle": "x"}
	hooks := []any{map[string]any{"clientConfig": client}, map[string]any{"clientConfig": map[string]any{"url": "https://a.example"}}}
	for name, c := range map[string]struct {
		object k8s.Object
		want   []map[string]any
	}{
		"webhooks":   {k8s.Object{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "webhooks": hooks}, []map[string]any{client, {"url": "https://a.example"}}},
		"conversion": {k8s.With(k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "x"), any(client), "spec", "conversion", "webhook", "clientConfig"), []map[string]any{client}},
		"API":        {k8s.With(k8s.New("apiregistration.k8s.io/v1", "APIService", "", "x"), any(client), "spec"), []map[string]any{client}},
		"others":     {k8s.With(k8s.New("v1", "Service", "a", "s"), any(client), "spec"), nil},
	} {
		if d := cmp.Diff(c.want, adopt.ClientConfigs(c.object)); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}
