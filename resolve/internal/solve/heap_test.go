package solve

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHeapPopsByWeight compares pop with a linear search for the heaviest member. Of members with equal weight,
// the search returns the one with the lowest number.
func TestHeapPopsByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const atoms = 20
		var h heap
		h.grow(atoms / 2)
		h.grow(atoms)
		var members []int
		weight, step := make([]float64, atoms), 1.0
		popped := func() {
			got, ok := h.pop()
			if ok != (len(members) > 0) {
				t.Fatalf("members %v: pop returned a member: %v", members, ok)
			}
			if !ok {
				return
			}
			slices.Sort(members)
			want := members[0]
			for _, a := range members {
				if weight[a] > weight[want] {
					want = a
				}
			}
			if got != want {
				t.Fatalf("members %v, weights %v: got %d, want %d", members, weight, got, want)
			}
			members = slices.DeleteFunc(members, func(a int) bool { return a == want })
		}
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			a := rapid.IntRange(0, atoms-1).Draw(t, "atom")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				if h.push(a); !slices.Contains(members, a) {
					members = append(members, a)
				}
			case 2:
				h.bump(a)
				weight[a] += step
			case 3:
				h.decay()
				step /= 0.95
			default:
				popped()
			}
		}
		for len(members) > 0 {
			popped()
		}
		popped()
	})
}

// TestHeapNeverOverflows decays the weights so often that they are scaled down many times. The order must still
// depend on the most recent conflicts.
func TestHeapNeverOverflows(t *testing.T) {
	var h heap
	h.grow(4)
	for range 50_000 {
		h.decay()
		h.bump(0)
	}
	for _, a := range []int{3, 1, 2} {
		h.decay()
		h.bump(a)
		h.bump(a)
	}
	for a, w := range h.weight {
		if math.IsInf(w, 0) || math.IsNaN(w) || w <= 0 {
			t.Errorf("atom %d has weight %v", a, w)
		}
	}
	for _, a := range []int{1, 2, 3} {
		h.push(a)
	}
	for _, want := range []int{2, 1, 3} {
		if got, ok := h.pop(); !ok || got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}
