// Package yamltest reads YAML as the tools do that take what quayside writes, for
// tests. It knows nothing of how quayside reads and writes.
//
// Start from [Decode].
package yamltest

import (
	"encoding/json"
	"math"

	"go.yaml.in/yaml/v3"
)

// Decode reads YAML as kustomize does, and returns what an object holds.
func Decode(data []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return Plain(v), nil
}

// Plain turns the numbers that decoders yield into those that an object holds. It
// changes v.
func Plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = Plain(e)
		}
	case []any:
		for i, e := range v {
			v[i] = Plain(e)
		}
	case int:
		return int64(v)
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return v
}
