package project_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/rbac"
)

// plansKeep leads each dump through the steps of its plan, as a cluster would go,
// and holds that nothing of it is told to be broken, that the tree's own roles give
// the operators all that OLM's do, and that it is seen how far the plan is.
func plansKeep(t *testing.T, _ fstest.MapFS) inspection {
	random := rand.New(rand.NewPCG(7, 8))
	ctx := context.Background()
	accounts, asked, notes := 0, 0, map[string]bool{}
	each := func(file string, d dumped, rep *adopt.Report) {
		p, err := plan.Make(plan.Input{
			Snapshot: d.seen, Report: rep, Lock: d.found.Lock, Rendered: d.found.Rendered, Manager: "argocd-controller", Namespaces: d.some(random),
		})
		check(t, err)
		c := &played{objects: map[kobj.Key]kobj.Object{}, tree: map[kobj.Key]kobj.Object{}}
		for _, o := range d.seen.All() {
			c.objects[o.Key] = o.Body()
		}
		for _, r := range d.found.Rendered {
			c.tree[r.Object.Key()] = r.Object
		}
		before := map[string]*verify.Evidence{}
		for _, s := range p.Steps {
			if ns := s.Namespace; before[ns] == nil && ns != "" {
				before[ns], err = verify.Capture(ctx, c, p, ns)
				check(t, err)
				accounts += len(before[ns].Accounts)
				asked += len(before[ns].Answers)
			}
			for _, a := range s.Actions {
				c.do(a)
			}
			c.rights = nil
			if s.Namespace == "" {
				continue
			}
			here := *p
			here.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(o plan.Step) bool { return o.Namespace != s.Namespace })
			rep, err := verify.Verify(ctx, c, &here, verify.Known{Before: before})
			check(t, err)
			for _, ns := range rep.Namespaces {
				for _, v := range ns.Verdicts {
					for _, f := range v.Findings {
						notes[f.Message] = true
					}
					if v.State == verify.Fails || v.State == verify.Unknown && before[ns.Namespace] != nil {
						t.Errorf("%s: after step %d (%s %s), %s of %s: %v", file, s.Number, s.Name, s.Namespace, v.Check, ns.Namespace, v.Findings)
					}
				}
				if shown := s.Name != plan.Backup && s.Name != plan.Fields && s.Manual == ""; shown && ns.Namespace == s.Namespace && ns.Step != s.Number {
					t.Errorf("%s: after step %d (%s %s) it is at %d", file, s.Number, s.Name, s.Namespace, ns.Step)
				}
			}
			if t.Failed() {
				break
			}
		}
	}
	return inspection{each, func() {
		t.Logf("%d accounts, %d reviews, %d notes", accounts, asked, len(notes))
		if accounts < 10 || asked < 1000 {
			t.Error("too little was compared")
		}
	}}
}

// played is a cluster that does what it is told as an API server would, as far as it
// matters here.
type played struct {
	objects map[kobj.Key]kobj.Object
	tree    map[kobj.Key]kobj.Object

	mu     sync.Mutex
	rights map[rbac.Subject]rbac.Set
}

func (c *played) do(a plan.Action) {
	key := a.Object.Key()
	o := c.objects[key]
	switch a.Do {
	case plan.Apply:
		if o == nil {
			o = kobj.With(c.tree[key], any("new "+key.String()), "metadata", "uid")
		}
		c.objects[key] = kobj.Label(o, kobj.TextMap(c.tree[key], "metadata", "labels"))
	case plan.Scale:
		for _, at := range [][]string{{"spec", "replicas"}, {"status", "replicas"}, {"status", "readyReplicas"}, {"status", "updatedReplicas"}} {
			o = kobj.With(o, any(a.To), at...)
		}
		c.objects[key] = o
	case plan.Annotate:
		for k, v := range a.Set {
			o = kobj.With(o, any(v), "metadata", "annotations", k)
		}
		c.objects[key] = o
	case plan.Unlabel:
		for _, k := range a.Unset {
			o = kobj.Without(o, "metadata", "labels", k)
		}
		c.objects[key] = o
	case plan.Unfinalize:
		c.objects[key] = kobj.Without(o, "metadata", "finalizers")
	case plan.Orphan, plan.Delete:
		c.remove(key, a.Do == plan.Orphan)
	case plan.Keep, plan.TakeOver, plan.Create, plan.Restore:
	}
}

func (c *played) remove(key kobj.Key, orphan bool) {
	uid := kobj.Text(c.objects[key], "metadata", "uid")
	delete(c.objects, key)
	for k, o := range c.objects {
		owners := kobj.Items(o, "metadata", "ownerReferences")
		rest := slices.DeleteFunc(slices.Clone(owners), func(w map[string]any) bool { return kobj.Text(w, "uid") == uid })
		switch {
		case len(rest) == len(owners):
		case len(rest) == 0 && !orphan && kobj.Text(owners[0], "kind") != "customresourcedefinition":
			c.remove(k, false)
		default:
			c.objects[k] = kobj.With(o, any(list(rest)), "metadata", "ownerReferences")
		}
	}
}

func list(items []map[string]any) []any {
	out := []any{}
	for _, i := range items {
		out = append(out, i)
	}
	return out
}

func (c *played) Get(_ context.Context, ref kobj.Ref) (kobj.Object, error) {
	return c.objects[ref.Key()], nil
}

func (c *played) List(_ context.Context, apiVersion, kind, namespace, _ string) ([]kobj.Object, error) {
	var out []kobj.Object
	for _, key := range slices.SortedFunc(maps.Keys(c.objects), kobj.Key.Compare) {
		if key.Group == kobj.Group(apiVersion) && key.Kind == kind && (namespace == "" || key.Namespace == namespace) {
			out = append(out, c.objects[key])
		}
	}
	return out, nil
}

func (c *played) Allowed(_ context.Context, r verify.Review) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rights == nil {
		var objects []map[string]any
		for _, o := range c.objects {
			objects = append(objects, o)
		}
		m, err := rbac.New(objects)
		if err != nil {
			return false, err
		}
		c.rights = map[rbac.Subject]rbac.Set{}
		for _, s := range m.Subjects() {
			c.rights[s] = rbac.NewSet(m.Of(s))
		}
	}
	parts := strings.Split(r.Account, ":")
	g := rbac.Grant{Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Name: r.Name, URL: r.Path}
	if r.Subresource != "" {
		g.Resource += "/" + r.Subresource
	}
	return c.rights[rbac.Subject{Kind: "ServiceAccount", Namespace: parts[2], Name: parts[3]}].Covers(g), nil
}
