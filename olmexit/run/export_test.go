package run

// Entries returns what was done, in order.
func (j *Journal) Entries() []Entry { return j.entries }
