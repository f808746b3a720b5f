package k8s

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClientConfigs(t *testing.T) {
	client := map[string]any{"service": map[string]any{"namespace": "a", "name": "s"}, "caBundle": "x"}
	hooks := []any{map[string]any{"clientConfig": client}, map[string]any{"clientConfig": map[string]any{"url": "https://a.example"}}}
	for name, c := range map[string]struct {
		object Object
		want   []map[string]any
	}{
		"webhooks":   {Object{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "webhooks": hooks}, []map[string]any{client, {"url": "https://a.example"}}},
		"conversion": {With(New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "x"), any(client), "spec", "conversion", "webhook", "clientConfig"), []map[string]any{client}},
		"API":        {With(New("apiregistration.k8s.io/v1", "APIService", "", "x"), any(client), "spec"), []map[string]any{client}},
		"others":     {With(New("v1", "Service", "a", "s"), any(client), "spec"), nil},
	} {
		if d := cmp.Diff(c.want, ClientConfigs(c.object)); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}
