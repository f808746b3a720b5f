package boxset

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// drawBoxes draws up to four boxes over three dimensions. A dimension has the values a, b and c, and infinitely many others.
func drawBoxes(t *rapid.T, label string) []Box {
	values := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3)
	var out []Box
	for i := range rapid.IntRange(0, 4).Draw(t, label) {
		box := Box{}
		for _, d := range []string{"x", "y", "z"} {
			switch name := fmt.Sprint(label, i, d); rapid.IntRange(0, 2).Draw(t, name) {
			case 0:
				box[d] = Of(values.Draw(t, name)...)
			case 1:
				box[d] = Except(values.Draw(t, name)...)
			}
		}
		out = append(out, box)
	}
	return out
}

func contains(list []Box, point map[string]string) bool {
	for _, box := range list {
		inside := true
		for d, v := range box {
			inside = inside && v.Has(point[d])
		}
		if inside {
			return true
		}
	}
	return false
}

// TestMinusAgrees compares Minus with an enumeration of all points.
func TestMinusAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawBoxes(t, "a"), drawBoxes(t, "b")
		got, err := Minus(a, b)
		if err != nil {
			t.Fatal(err)
		}
		all := []string{"a", "b", "c", "any other"}
		for _, x := range all {
			for _, y := range all {
				for _, z := range all {
					point := map[string]string{"x": x, "y": y, "z": z}
					if want := contains(a, point) && !contains(b, point); contains(got, point) != want {
						t.Fatalf("%v: %t, want %t, in %v", point, !want, want, got)
					}
				}
			}
		}
	})
}

// TestTooLarge subtracts boxes so that the difference needs a box for every combination of dimensions.
func TestTooLarge(t *testing.T) {
	var cuts []Box
	for i := range 40 {
		cuts = append(cuts, Box{fmt.Sprintf("d%d", i): Of("a"), fmt.Sprintf("e%d", i): Of("b")})
	}
	if _, err := Minus([]Box{{}}, cuts); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}
