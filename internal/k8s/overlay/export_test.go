package overlay

// BuildListed returns the objects of BuildTree, or false if only kustomize can determine them.
func (o *Overlay) BuildListed() ([][]byte, bool) { return o.buildListed() }
