package resolve

func (w *world) report(first *state, last *round, st *state) {}
