package kobj_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/kobj"
)

// TestPool holds that objects stay what they are, and that what two of them have in
// common is there once.
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := kobj.NewPool()
		for range 3 {
			common, other := mapping(3).Draw(t, "common"), mapping(3).Draw(t, "other")
			a, b := kobj.Object{"x": kobj.Copy(common), "y": kobj.Copy(other)}, kobj.Object{"z": []any{kobj.Copy(common)}}
			wantA, wantB := kobj.Copy(a), kobj.Copy(b)
			p.Share(a)
			p.Share(b)
			if !kobj.Equal(a, wantA) || !kobj.Equal(b, wantB) {
				t.Fatalf("%v and %v, want %v and %v", a, b, wantA, wantB)
			}
			if x, y := reflect.ValueOf(a["x"]), reflect.ValueOf(kobj.List(b, "z")[0]); x.Pointer() != y.Pointer() {
				t.Fatalf("%v is there twice", common)
			}
		}
	})
}
