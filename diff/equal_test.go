package diff

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestEqualValues(t *testing.T) {
	t.Parallel()
	leaf := rapid.SampledFrom([]any{nil, "", "a", "b", true, false, int64(0), int64(1), 0.0, 1.5, []any{}, []any(nil), map[string]any{}, map[string]any(nil)})
	value := leaf
	for range 3 {
		inner := value
		value = rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(inner, 1, 2), func(list []any) any { return list }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), inner, 1, 2), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		for _, pair := range [][2]any{{a, b}, {a, a}, {[]any{a}, []any{b}}} {
			if got, want := equalValues(pair[0], pair[1]), reflect.DeepEqual(pair[0], pair[1]); got != want {
				t.Fatalf("equalValues(%#v, %#v) = %v, reflect.DeepEqual returns %v", pair[0], pair[1], got, want)
			}
		}
	})
}
