package run

// Entries returns the entries of the journal in order.
func (j *Journal) Entries() []Entry { return j.entries }
