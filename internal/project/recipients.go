package project

import (
	"strings"

	"github.com/quayside/quayside/internal/treeview"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Recipients returns what of the lock each cluster gets, in the order of
// quayside.yaml.
func (p *Project) Recipients(lock *lockfile.File) ([]treeview.Cluster, error) {
	var out []treeview.Cluster
	known := map[string][]string{} // by globs
	for _, c := range p.Settings.Clusters {
		globs := strings.Join(c.Operators, "\x00")
		gets, ok := known[globs]
		if !ok {
			for _, pin := range lock.Pins {
				yes, err := (render.Cluster{Operators: c.Operators}).Gets(pin.Key())
				if err != nil {
					return nil, err
				}
				if yes {
					gets = append(gets, pin.Key())
				}
			}
			known[globs] = gets
		}
		out = append(out, treeview.Cluster{Name: c.Name, Gets: gets})
	}
	return out, nil
}
