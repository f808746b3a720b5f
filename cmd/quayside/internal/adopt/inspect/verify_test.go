package inspect_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

// checkVerification executes the plan of each dump step by step in a simulated cluster. No check may fail. The
// roles of the tree must give operators all permissions of OLM's roles. Verify must report the progress of the
// plan.
func checkVerification(t *testing.T, _ fstest.MapFS) dumpCheck {
	random := rand.New(rand.NewPCG(7, 8))
	ctx := context.Background()
	accounts, asked, notes := 0, 0, map[string]bool{}
	each := func(file string, d clusterDump, rep *adopt.Inspection) {
		p, err := plan.Make(plan.Input{
			Snapshot: d.seen, Report: rep, Lock: d.found.Lock, Rendered: d.found.Rendered, Manager: "argocd-controller", Namespaces: d.sampleNamespaces(random),
		})
		check(t, err)
		c := &simulatedCluster{objects: map[k8s.Key]k8s.Object{}, tree: map[k8s.Key]k8s.Object{}}
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
			rep, err := verify.Verify(ctx, c, &here, verify.KnownProgress{Before: before})
			check(t, err)
			for _, ns := range rep.Namespaces {
				for _, v := range ns.Verdicts {
					for _, f := range v.Findings {
						notes[f.Message] = true
					}
					if v.State == verify.Failed || v.State == verify.Unknown && before[ns.Namespace] != nil {
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
	return dumpCheck{each, func() {
		t.Logf("%d accounts, %d reviews, %d notes", accounts, asked, len(notes))
		if accounts < 10 || asked < 500 {
			t.Error("too few permissions were compared")
		}
	}}
}

// simulatedCluster simulates the parts of an API server that the checks need.
type simulatedCluster struct {
	objects map[k8s.Key]k8s.Object
	tree    map[k8s.Key]k8s.Object

	mu     sync.Mutex
	rights map[k8s.Subject]k8s.GrantSet
}

func (c *simulatedCluster) do(a plan.Action) {
	key := a.Object.Key()
	o := c.objects[key]
	switch a.Do {
	case plan.Apply:
		if o == nil {
			o = k8s.With(c.tree[key], any("new "+key.String()), "metadata", "uid")
		}
		c.objects[key] = k8s.Label(o, k8s.TextMap(c.tree[key], "metadata", "labels"))
	case plan.Scale:
		for _, at := range [][]string{{"spec", "replicas"}, {"status", "replicas"}, {"status", "readyReplicas"}, {"status", "updatedReplicas"}} {
			o = k8s.With(o, any(a.To), at...)
		}
		c.objects[key] = o
	case plan.Annotate:
		for k, v := range a.Set {
			o = k8s.With(o, any(v), "metadata", "annotations", k)
		}
		c.objects[key] = o
	case plan.Unlabel:
		for _, k := range a.Unset {
			o = k8s.Without(o, "metadata", "labels", k)
		}
		c.objects[key] = o
	case plan.Unfinalize:
		c.objects[key] = k8s.Without(o, "metadata", "finalizers")
	case plan.Orphan, plan.Delete:
		c.remove(key, a.Do == plan.Orphan)
	case plan.Save, plan.TransferFields, plan.Create, plan.RestartPods, plan.Restore, plan.Disown, plan.SuspendRelease, plan.ResumeRelease:
	}
}

func (c *simulatedCluster) remove(key k8s.Key, orphan bool) {
	uid := k8s.Text(c.objects[key], "metadata", "uid")
	delete(c.objects, key)
	for k, o := range c.objects {
		owners := k8s.Items(o, "metadata", "ownerReferences")
		rest := slices.DeleteFunc(slices.Clone(owners), func(w map[string]any) bool { return k8s.Text(w, "uid") == uid })
		switch {
		case len(rest) == len(owners):
		case len(rest) == 0 && !orphan && k8s.Text(owners[0], "kind") != "customresourcedefinition":
			c.remove(k, false)
		default:
			c.objects[k] = k8s.With(o, any(list(rest)), "metadata", "ownerReferences")
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

func (c *simulatedCluster) Get(_ context.Context, ref k8s.Ref) (k8s.Object, error) {
	return c.objects[ref.Key()], nil
}

func (c *simulatedCluster) List(_ context.Context, apiVersion, kind, namespace, _ string) ([]k8s.Object, error) {
	var out []k8s.Object
	for _, key := range slices.SortedFunc(maps.Keys(c.objects), k8s.Key.Compare) {
		if key.Group == k8s.Group(apiVersion) && key.Kind == kind && (namespace == "" || key.Namespace == namespace) {
			out = append(out, c.objects[key])
		}
	}
	return out, nil
}

func (c *simulatedCluster) Allowed(_ context.Context, r verify.Review) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rights == nil {
		var objects []map[string]any
		for _, o := range c.objects {
			objects = append(objects, o)
		}
		m, err := k8s.NewPermissions(objects)
		if err != nil {
			return false, err
		}
		c.rights = map[k8s.Subject]k8s.GrantSet{}
		for _, s := range m.Subjects() {
			c.rights[s] = k8s.NewGrantSet(m.Of(s))
		}
	}
	parts := strings.Split(r.Account, ":")
	g := k8s.Grant{Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Name: r.Name, URL: r.Path}
	if r.Subresource != "" {
		g.Resource += "/" + r.Subresource
	}
	return c.rights[k8s.Subject{Kind: "ServiceAccount", Namespace: parts[2], Name: parts[3]}].Covers(g), nil
}
