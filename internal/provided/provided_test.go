package provided_test

import (
	"testing"

	"github.com/quayside/quayside/internal/provided"
)

func TestParseObject(t *testing.T) {
	for text, want := range map[string]string{
		"Secret/ns/name":     "",
		"StorageClass//fast": "",
		"Secret/name":        `"Secret/name" is not an object such as Secret/ns/name or StorageClass//fast`,
		"Secrt/ns/name":      `unknown kind "Secrt": no operator needs it (available: ConfigMap, Namespace, PersistentVolumeClaim, PriorityClass, RuntimeClass, Secret, ServiceAccount, StorageClass) (did you mean "Secret"?)`,
		"Secret//name":       `"Secret//name" has no valid namespace: expected Secret/namespace/name`,
		"StorageClass/ns/x":  `"StorageClass/ns/x" has a namespace, but the kind is cluster-scoped: expected StorageClass//name`,
		"Secret/ns/":         `"Secret/ns/" has no valid name: expected Secret/namespace/name, or Kind//name if the kind is cluster-scoped`,
	} {
		key, err := provided.ParseObject(text)
		got := ""
		if err != nil {
			got = err.Error()
		} else if back := provided.FormatObject(key); back != text {
			t.Errorf("%s is formatted as %s", text, back)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
