package k8s_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
)

// TestPool checks that shared objects keep their content, and that equal parts of two objects
// are stored once.
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := k8s.NewPool()
		for range 3 {
			common, other := mapping(3).Draw(t, "common"), mapping(3).Draw(t, "other")
			a, b := k8s.Object{"x": k8s.Copy(common), "y": k8s.Copy(other)}, k8s.Object{"z": []any{k8s.Copy(common)}}
			wantA, wantB := k8s.Copy(a), k8s.Copy(b)
			p.Share(a)
			p.Share(b)
			if !k8s.Equal(a, wantA) || !k8s.Equal(b, wantB) {
				t.Fatalf("%v and %v, want %v and %v", a, b, wantA, wantB)
			}
			if x, y := reflect.ValueOf(a["x"]), reflect.ValueOf(k8s.List(b, "z")[0]); x.Pointer() != y.Pointer() {
				t.Fatalf("%v is stored twice", common)
			}
		}
	})
}
