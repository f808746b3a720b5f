package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/resolve"
)

// blame returns err with the conflicts that only a catalog which cannot be
// read causes replaced by what is wrong with the catalog.
func (in *inputs) blame(err error) error {
	var conflicts resolve.Conflicts
	if len(in.index.Broken()) == 0 || !errors.As(err, &conflicts) {
		return err
	}
	waiting, needed := in.waiting()
	others := slices.DeleteFunc(slices.Clone(conflicts), func(c *resolve.Conflict) bool {
		return slices.ContainsFunc(c.Subscriptions, func(key string) bool { return waiting[key] })
	})
	if len(needed) == 0 || len(others) == len(conflicts) {
		return err
	}
	faults := brokenList(in.index, func(id catalog.ID) bool { return needed[id] })
	input := &inputError{fmt.Errorf("%w\nwaiting for it: %s", faults.Err(), count(len(waiting), "subscription"))}
	if len(others) == 0 {
		return input
	}
	return errors.Join(input, others)
}

// waiting returns the subscriptions that need a catalog which could not be
// read, and those catalogs. A subscription that names no catalog may need any
// of them where its package is in no other; one that a dependency got is known
// by its pin.
func (in *inputs) waiting() (subscriptions map[string]bool, catalogs map[catalog.ID]bool) {
	subscriptions, catalogs = map[string]bool{}, map[catalog.ID]bool{}
	broken := in.index.Broken()
	need := func(key string, id catalog.ID) {
		if broken[id] != nil {
			subscriptions[key] = true
			catalogs[id] = true
		}
	}
	for _, sub := range in.set.Subscriptions {
		if sub.Catalog != nil {
			need(sub.Key(), *sub.Catalog)
			continue
		}
		if len(in.index.Having(sub.Package)) == 0 {
			for id := range broken {
				need(sub.Key(), id)
			}
		}
	}
	if in.prev != nil {
		for _, p := range in.prev.Pins {
			if p.Generated {
				need(p.Namespace+"/"+p.Subscription, p.Catalog)
			}
		}
	}
	return subscriptions, catalogs
}
