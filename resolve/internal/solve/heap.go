package solve

// heap is a priority queue of atoms, sorted by activity in recent conflicts (VSIDS), then by
// number. It contains only atoms that occur in a constraint. The others remain false.
type heap struct {
	items  []int
	at     []int // at[atom] is its index in items, or -1
	weight []float64
	step   float64
}

// grow makes room for atoms with numbers below n.
func (h *heap) grow(n int) {
	if h.step == 0 {
		h.step = 1
	}
	for len(h.at) < n {
		h.at = append(h.at, -1)
		h.weight = append(h.weight, 0)
	}
}

func (h *heap) less(a, b int) bool {
	if h.weight[a] != h.weight[b] {
		return h.weight[a] > h.weight[b]
	}
	return a < b
}

func (h *heap) push(a int) {
	if h.at[a] >= 0 {
		return
	}
	h.at[a] = len(h.items)
	h.items = append(h.items, a)
	h.up(h.at[a])
}

func (h *heap) pop() (int, bool) {
	if len(h.items) == 0 {
		return 0, false
	}
	top := h.items[0]
	last := len(h.items) - 1
	h.swap(0, last)
	h.items = h.items[:last]
	h.at[top] = -1
	h.down(0)
	return top, true
}

func (h *heap) bump(a int) {
	h.weight[a] += h.step
	if h.weight[a] > 1e100 {
		for i := range h.weight {
			h.weight[i] *= 1e-100
		}
		h.step *= 1e-100
	}
	if h.at[a] >= 0 {
		h.up(h.at[a])
	}
}

func (h *heap) decay() { h.step /= 0.95 }

func (h *heap) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.at[h.items[i]], h.at[h.items[j]] = i, j
}

func (h *heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.items[i], h.items[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if child+1 < len(h.items) && h.less(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.less(h.items[child], h.items[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
