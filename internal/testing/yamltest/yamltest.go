// Package yamltest decodes YAML in tests in the same way as the tools that use quayside's output.
// It does not use quayside's own decoder.
//
// Start from [Decode].
package yamltest

import (
	"encoding/json"
	"math"

	"go.yaml.in/yaml/v3"
)

// Decode decodes YAML as kustomize does. It converts numbers like [Plain].
func Decode(data []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return Plain(v), nil
}

// Plain converts the decoders' number types to int64 where the value is an exact integer. It modifies v.
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
