package verify

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// SnapshotReader returns a Reader for a snapshot. It answers access reviews by the RBAC objects in the
// snapshot. It finds no pods, because snapshots have none.
func SnapshotReader(s *snapshot.Snapshot) Reader { return &snapshotReader{Snapshot: s} }

type snapshotReader struct {
	*snapshot.Snapshot

	mu     sync.Mutex
	grants map[k8s.Subject]k8s.GrantSet
}

// Get implements Reader.
func (d *snapshotReader) Get(_ context.Context, ref k8s.Ref) (k8s.Object, error) {
	if o := d.Snapshot.Get(ref.Key()); o != nil {
		return o.Body(), nil
	}
	return nil, nil
}

// List implements Reader.
func (d *snapshotReader) List(_ context.Context, apiVersion, kind, namespace, selector string) ([]k8s.Object, error) {
	selects, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	var out []k8s.Object
	for _, o := range d.Kind(k8s.Group(apiVersion), kind) {
		if (namespace == "" || o.Namespace == namespace) && selects.Matches(labels.Set(o.Labels)) {
			out = append(out, o.Body())
		}
	}
	return out, nil
}

// Allowed implements Reader.
func (d *snapshotReader) Allowed(ctx context.Context, r Review) (bool, error) {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(r.Account, accountPrefix), ":")
	if !ok {
		return false, fmt.Errorf("%q is not a ServiceAccount", r.Account)
	}
	s := k8s.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.grants[s]; !known {
		roles, err := readRBAC(ctx, d)
		if err != nil {
			return false, err
		}
		m, err := roles.permissions(bindingFilter([]k8s.Subject{s}))
		if err != nil {
			return false, err
		}
		if d.grants == nil {
			d.grants = map[k8s.Subject]k8s.GrantSet{}
		}
		d.grants[s] = k8s.NewGrantSet(m.Of(s))
	}
	return d.grants[s].Covers(r.grant()), nil
}

// cachedReader is a Reader that caches all results except those of access reviews.
type cachedReader struct {
	Reader

	mu      sync.Mutex
	entries map[string]*cacheEntry
}

// cacheEntry is the cached result of a Reader.
type cacheEntry struct {
	sync.Once
	objects []k8s.Object
	err     error
}

func (o *cachedReader) lookUp(key string, read func() ([]k8s.Object, error)) ([]k8s.Object, error) {
	o.mu.Lock()
	a := o.entries[key]
	if a == nil {
		a = &cacheEntry{}
		o.entries[key] = a
	}
	o.mu.Unlock()
	a.Do(func() { a.objects, a.err = read() })
	return a.objects, a.err
}

// Get implements Reader.
func (o *cachedReader) Get(ctx context.Context, ref k8s.Ref) (k8s.Object, error) {
	found, err := o.lookUp(ref.String(), func() ([]k8s.Object, error) {
		body, err := o.Reader.Get(ctx, ref)
		return []k8s.Object{body}, err
	})
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// List implements Reader.
func (o *cachedReader) List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]k8s.Object, error) {
	return o.lookUp(strings.Join([]string{apiVersion, kind, namespace, selector}, "\x00"), func() ([]k8s.Object, error) {
		return o.Reader.List(ctx, apiVersion, kind, namespace, selector)
	})
}
