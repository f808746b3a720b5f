package filetree

// AddStarter is Add, as earlier versions had it, for a file that is only written where none stands, and is
// the user's from then on.
func (t *Tree) AddStarter(name string, data []byte) error {
	if err := t.Add(name, data); err != nil {
		return err
	}
	t.starters[name] = true
	return nil
}
