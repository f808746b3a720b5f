package overlay

// BuildListed exports buildListed.
func (o *Overlay) BuildListed() ([][]byte, bool) { return o.buildListed() }
