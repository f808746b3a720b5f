package helm

import (
	"encoding/json"
	"fmt"

	"helm.sh/helm/v4/pkg/strvals"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/yamlnode"
)

// SetValues applies assignments to values. An assignment has the syntax of Helm's --set, such as "a.b=1,c={x,y}".
// Both values and the result are canonical JSON, or nil if empty.
func SetValues(values []byte, assignments []string) ([]byte, error) {
	if len(assignments) == 0 {
		return values, nil
	}
	set := map[string]any{}
	if values != nil {
		if err := utiljson.Unmarshal(values, &set); err != nil {
			return nil, err
		}
	}
	for _, a := range assignments {
		if err := Assign(set, a, false); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	return yamlnode.Canonical(raw)
}

// Assign changes values by an assignment in the syntax of Helm's --set or, for text, --set-string.
func Assign(values map[string]any, assignment string, text bool) error {
	flag, parse := "--set", strvals.ParseInto
	if text {
		flag, parse = "--set-string", strvals.ParseIntoString
	}
	if err := parse(assignment, values); err != nil {
		return fmt.Errorf("%s %q: %w", flag, assignment, err)
	}
	return nil
}
