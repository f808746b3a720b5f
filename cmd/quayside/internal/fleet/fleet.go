package fleet

import (
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// Fleet is a set of clusters with their rendered tree.
type Fleet struct {
	*Tree
	Name     string // name of the states in a comparison
	Settings *settings.Workspace
	Lock     *lockfile.File // nil without a lock
}

// New returns the fleet of a tree. lock may be nil. name is the name of the fleet's states in a comparison.
func New(name string, w *settings.Workspace, lock *lockfile.File, t *Tree) Fleet {
	return Fleet{Tree: t, Name: name, Settings: w, Lock: lock}
}

// Pins returns the pins of the lock, or nil without a lock.
func (f *Fleet) Pins() []lockfile.Pin {
	if f.Lock == nil {
		return nil
	}
	return f.Lock.Pins
}

// Group is the state of clusters that get the same objects.
type Group struct {
	Clusters []string
	State    diff.State
}

// BaseState returns the state before overlays.
func (f *Fleet) BaseState() (diff.State, error) {
	base := diff.State{Name: f.Name, Pins: f.Pins()}
	var err error
	base.Objects, err = diff.Objects(f.Manifests, base.Pins)
	return base, err
}

// ForEachGroup divides the named clusters into groups that get the same objects, and calls visit with each
// group. It keeps one state in memory at a time, because there may be thousands of groups.
func (f *Fleet) ForEachGroup(names []string, base diff.State, visit func(Group) error) error {
	index := map[string]int{}
	var inputs []Inputs
	var clusters [][]string
	for _, name := range names {
		x, err := f.Inputs(name)
		if err != nil {
			return err
		}
		key := x.Key()
		i, known := index[key]
		if !known {
			i = len(inputs)
			index[key], inputs, clusters = i, append(inputs, x), append(clusters, nil)
		}
		clusters[i] = append(clusters[i], name)
	}
	cache := f.NewBase(base)
	for i, x := range inputs {
		got, err := cache.State(x)
		if err != nil {
			return err
		}
		if err := visit(Group{clusters[i], got}); err != nil {
			return err
		}
	}
	return nil
}
