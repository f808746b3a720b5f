package resolve_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// answer is quayside's result for one namespace.
type answer struct {
	Outcome   string     `json:"outcome"` // "fixpoint" or "conflict"
	Installed []string   `json:"installed"`
	Rounds    [][]string `json:"rounds,omitempty"`
	Generated []string   `json:"generated,omitempty"`
	fault     string     // a fault regardless of OLM's answer, or ""
	pins      []lockfile.Pin
	conflicts []*explain.Conflict
	free      []presentBundle // ClusterServiceVersions without a subscription that were not replaced
}

// declarations returns the declarations of a problem and the options to solve it.
func (p *problem) declarations(t *testing.T) (*declare.Set, resolve.Options) {
	t.Helper()
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": p.Objects})
	if err != nil {
		t.Fatal(err)
	}
	decl, err := declare.Parse(p.ID+".json", list)
	if err != nil {
		t.Fatalf("%s: %v", p.ID, err)
	}
	opt := resolve.Options{
		Upgrade: true, Hops: -1, KeepGoing: true, Requirements: "warn", AllowOverlap: true,
		GlobalNamespaces: []string{p.GlobalCatalogNamespace}, AllowDowngrade: p.allowDowngrade,
	}
	for _, s := range decl.Subscriptions {
		if s.Approval == declare.Manual {
			opt.Named = append(opt.Named, resolve.Target{Namespace: s.Namespace, Package: s.Package})
		}
	}
	return decl, opt
}

// solve returns quayside's answer for each namespace after all rounds. It also resolves once with one hop. The
// result must equal the first round.
func (p *problem) solve(t *testing.T, x *catalog.Index) map[string]answer {
	t.Helper()
	decl, opt := p.declarations(t)
	res, err := resolve.Resolve(x, decl, nil, opt)
	if err != nil {
		t.Fatalf("%s: %v", p.ID, err)
	}
	opt.Hops = 1
	once, err := resolve.Resolve(x, decl, nil, opt)
	if err != nil {
		t.Fatalf("%s: %v", p.ID, err)
	}
	out := map[string]answer{}
	for _, ns := range p.Expect.Namespaces {
		a := p.answer(ns.Namespace, decl, res)
		first := p.answer(ns.Namespace, decl, once)
		if a.fault = cmp.Or(a.fault, first.fault, p.findNeedless(first.pins, decl, ns.Namespace)); a.fault == "" && !slices.EqualFunc(a.Rounds[:min(1, len(a.Rounds))], first.Rounds, slices.Equal) {
			a.fault = "one hop is not the first of all"
		}
		out[ns.Namespace] = a
	}
	return out
}

func (p *problem) answer(ns string, decl *declare.Set, res *resolve.Result) answer {
	a := answer{Outcome: "fixpoint", Installed: []string{}, free: presentBundles(nil, decl, ns)}
	for _, c := range res.Conflicts {
		if c.Namespace == ns {
			a.Outcome = "conflict"
			a.conflicts = append(a.conflicts, c)
		}
	}
	for _, pin := range res.Lock.Pins {
		if pin.Namespace != ns {
			continue
		}
		a.pins = append(a.pins, pin)
		a.Installed = append(a.Installed, formatPin(pin))
		if pin.Generated() {
			a.Generated = append(a.Generated, fmt.Sprintf("%s %s %s %s", pin.Subscription(), pin.Package, pin.Channel, pin.Catalog.ID))
		}
	}
	for _, moves := range res.Rounds {
		var round []string
		for _, m := range moves {
			if m.Namespace == ns && m.To != "" {
				round = append(round, m.To)
			}
		}
		slices.Sort(round)
		if len(round) > 0 {
			a.Rounds = append(a.Rounds, round)
		}
	}
	slices.Sort(a.Installed)
	slices.Sort(a.Generated)
	if a.fault = p.findMisplaced(a, decl, ns); a.fault == "" && a.Outcome == "fixpoint" {
		a.fault = findUnsound(res.Lock.Pins, decl, ns)
	}
	return a
}

// formatPin formats a pin like the elements of answer.Installed: the bundle, then its subscriptions.
func formatPin(p lockfile.Pin) string {
	subs := []string{p.Subscription()}
	for _, s := range p.RequestedBy {
		subs = append(subs, strings.TrimPrefix(s, p.Namespace+"/"))
	}
	slices.Sort(subs)
	return fmt.Sprintf("%s %s", p.Bundle, strings.Join(slices.Compact(subs), ","))
}

// csvs returns the names of installed bundles, sorted. Each argument is a name, followed by its subscriptions.
func csvs(installed []string) []string {
	var names []string
	for _, i := range installed {
		names = append(names, strings.Fields(i)[0])
	}
	slices.Sort(names)
	return names
}

// differs returns the first difference between a and got, or "".
func (a answer) differs(got answer) string {
	switch {
	case a.Outcome != got.Outcome:
		return "another outcome"
	case !slices.Equal(a.Installed, got.Installed):
		return "another end"
	case !slices.EqualFunc(a.Rounds, got.Rounds, slices.Equal):
		return "other rounds"
	case !slices.Equal(a.Generated, got.Generated):
		return "other generated subscriptions"
	}
	return ""
}
