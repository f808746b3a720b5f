package diff

// Removal is the plan for an operator that goes.
type Removal struct{}

func planRemovals(before, after *view) []Removal { return nil }
