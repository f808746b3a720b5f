package verify

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/rbac"
)

// Dump returns what a snapshot holds as a Reader, which answers reviews as RBAC
// does. Pods are in no snapshot.
func Dump(s *snapshot.Snapshot) Reader { return &dump{Snapshot: s} }

type dump struct {
	*snapshot.Snapshot

	mu     sync.Mutex
	rights map[rbac.Subject]rbac.Set
}

// Get implements Reader.
func (d *dump) Get(_ context.Context, ref kobj.Ref) (kobj.Object, error) {
	if o := d.Snapshot.Get(ref.Key()); o != nil {
		return o.Body(), nil
	}
	return nil, nil
}

// List implements Reader.
func (d *dump) List(_ context.Context, apiVersion, kind, namespace, selector string) ([]kobj.Object, error) {
	selects, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	var out []kobj.Object
	for _, o := range d.Kind(kobj.Group(apiVersion), kind) {
		if (namespace == "" || o.Namespace == namespace) && selects.Matches(labels.Set(o.Labels)) {
			out = append(out, o.Body())
		}
	}
	return out, nil
}

// Allowed implements Reader.
func (d *dump) Allowed(ctx context.Context, r Review) (bool, error) {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(r.Account, accountPrefix), ":")
	if !ok {
		return false, fmt.Errorf("%q is no ServiceAccount", r.Account)
	}
	s := rbac.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.rights[s]; !known {
		roles, err := readRBAC(ctx, d)
		if err != nil {
			return false, err
		}
		m, err := roles.model(about([]rbac.Subject{s}))
		if err != nil {
			return false, err
		}
		if d.rights == nil {
			d.rights = map[rbac.Subject]rbac.Set{}
		}
		d.rights[s] = rbac.NewSet(m.Of(s))
	}
	return d.rights[s].Covers(r.grant()), nil
}

// once is a Reader that asks for everything but reviews one time.
type once struct {
	Reader

	mu    sync.Mutex
	known map[string]*answer
}

// answer is what a Reader returned.
type answer struct {
	sync.Once
	objects []kobj.Object
	err     error
}

func (o *once) ask(key string, read func() ([]kobj.Object, error)) ([]kobj.Object, error) {
	o.mu.Lock()
	a := o.known[key]
	if a == nil {
		a = &answer{}
		o.known[key] = a
	}
	o.mu.Unlock()
	a.Do(func() { a.objects, a.err = read() })
	return a.objects, a.err
}

// Get implements Reader.
func (o *once) Get(ctx context.Context, ref kobj.Ref) (kobj.Object, error) {
	found, err := o.ask(ref.String(), func() ([]kobj.Object, error) {
		body, err := o.Reader.Get(ctx, ref)
		return []kobj.Object{body}, err
	})
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// List implements Reader.
func (o *once) List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]kobj.Object, error) {
	return o.ask(strings.Join([]string{apiVersion, kind, namespace, selector}, "\x00"), func() ([]kobj.Object, error) {
		return o.Reader.List(ctx, apiVersion, kind, namespace, selector)
	})
}
