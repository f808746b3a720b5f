package render

import (
	"testing"

	"github.com/quayside/quayside/internal/yamlnode"
)

// FuzzConfig applies any JSON as a config to a Deployment. The config must be either applied or rejected.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"env":[{"name":"A","value":"b"}],"envFrom":[],"resources":{"limits":{"cpu":"1"}},"nodeSelector":{"a":"b"}}`))
	f.Add([]byte(`{"volumes":[{"name":"v"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"tolerations":[{}],"affinity":{"nodeAffinity":{}},"annotations":{"a":1}}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"env":[1,null],"selector":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseConfig(data)
		if err != nil {
			return
		}
		o := Object{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c"}}}}},
		}
		c.applyInPlace(o)
		if _, err := yamlnode.Documents("x", yamlnode.Encode(o), yamlnode.Limits{}); err != nil {
			t.Errorf("the result cannot be parsed: %v", err)
		}
	})
}
