// Package snapshot holds the objects of one cluster as values, wherever they come
// from: files as kubectl writes them, a directory of such files, a must-gather,
// or the cluster itself.
//
// It reads and judges nothing. Of each object it keeps the head, and the rest as
// compact text that is decoded when somebody asks, so that a cluster with hundreds
// of operators fits into little memory. What nobody looks at is dropped while it
// is read: managed fields, unpacked bundles, the contents of Secrets but for
// public certificates, and all but the head of copied ClusterServiceVersions.
//
// Start from [Load], [Read], [Live] and [Snapshot].
package snapshot

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/s2"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
)

// Snapshot is what a cluster held. It is not modified once it is there.
type Snapshot struct {
	Passed map[string]int // objects that were passed over, by kind and group: "Pod", "Event.events.k8s.io"
	Unread []Unread       // what a cluster would not hand out, sorted

	objects []*Object // by kobj.Key
	byKey   map[kobj.Key]*Object
	byUID   map[string]*Object
}

// Unread is a kind of which a cluster would not hand out the objects.
type Unread struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Reason     string `json:"reason"` // in the server's words
}

// Object is one object of a cluster.
type Object struct {
	kobj.Key
	APIVersion string
	UID        string
	Labels     map[string]string
	Owners     []Owner
	Pos        diag.Pos // where it was read; zero for one of a live cluster

	version string // resourceVersion
	packed  []byte // JSON, without what nobody looks at, compressed
}

// Owner is one of an object's ownerReferences.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// Body returns the object, decoded anew each time: it is the caller's own. Whole
// numbers are int64.
func (o *Object) Body() kobj.Object {
	return decoded(o.String(), o.text())
}

// At returns what lies at a path of keys, nil where there is nothing: sooner than
// Body does of a large object.
func (o *Object) At(path ...string) any {
	value := []byte("null")
	dec := again(o.text())
	var find func(path []string) error
	find = func(path []string) (err error) {
		if len(path) == 0 {
			value, err = dec.ReadValue()
			value = bytes.Clone(value) // it is the decoder's
			return err
		}
		if dec.PeekKind() != '{' {
			return dec.SkipValue()
		}
		return members(dec, func(key string) error {
			if key == path[0] {
				return find(path[1:])
			}
			return dec.SkipValue()
		})
	}
	if err := find(path); err != nil {
		panic("snapshot: " + o.String() + " was read, and is no JSON: " + err.Error())
	}
	return decoded(o.String(), []byte(`{"v":`+string(value)+`}`))["v"]
}

// decoded returns a JSON object that was read before.
func decoded(name string, text []byte) map[string]any {
	var m map[string]any
	if err := utiljson.Unmarshal(text, &m); err != nil {
		panic("snapshot: " + name + " was read, and is no JSON: " + err.Error())
	}
	return m
}

// decode fills a struct by its json tags with what has the right type.
func (o *Object) decode(into any) {
	_ = json.Unmarshal(o.text(), into) // a field of another type than it should have stays empty
}

// text returns the object as JSON.
func (o *Object) text() []byte {
	text, err := s2.Decode(nil, o.packed)
	if err != nil {
		panic("snapshot: " + o.String() + " is not what was packed: " + err.Error())
	}
	return text
}

// All returns the objects by kind, group, namespace and name.
func (s *Snapshot) All() []*Object { return slices.Clone(s.objects) }

// Kind returns the objects of one group and kind, by namespace and name.
func (s *Snapshot) Kind(group, kind string) []*Object {
	from, _ := slices.BinarySearchFunc(s.objects, kobj.Key{Group: group, Kind: kind}, func(o *Object, k kobj.Key) int { return o.Compare(k) })
	to := from
	for to < len(s.objects) && s.objects[to].Group == group && s.objects[to].Kind == kind {
		to++
	}
	return slices.Clone(s.objects[from:to])
}

// Get returns an object, nil where there is none.
func (s *Snapshot) Get(key kobj.Key) *Object { return s.byKey[key] }

// ByUID returns the object with a UID, nil where there is none.
func (s *Snapshot) ByUID(uid string) *Object { return s.byUID[uid] }

// builder collects the objects of one cluster.
type builder struct {
	opt     Options
	passed  map[string]int
	unread  []Unread
	byKey   map[kobj.Key]*Object
	bytes   int64
	one     []byte // the object that was read last, without its items
	scratch []byte // the object that was read last, as compact JSON
	packing []byte
	errs    diag.List
}

func newBuilder(opt Options) *builder {
	return &builder{opt: opt, passed: map[string]int{}, byKey: map[kobj.Key]*Object{}}
}

// put adds an object. Of one that was read twice the newer stays.
func (b *builder) put(o *Object) {
	before, twice := b.byKey[o.Key]
	switch {
	case twice && o.Kind == "Namespace" && o.Group == "" && o.UID != before.UID && o.UID != "" && before.UID != "":
		b.errs.Addf(o.Pos, "%s has another UID than at %s: these are objects of two clusters; read one at a time", o.Key, before.Pos)
		return
	case twice && !newer(o.version, before.version):
		return
	case twice:
		b.bytes -= int64(len(before.packed))
	case len(b.byKey) >= maxObjects:
		b.errs.Addf(diag.Pos{File: o.Pos.File}, "more than the %d objects allowed", maxObjects)
		return
	}
	if b.bytes += int64(len(o.packed)); b.bytes > maxKept {
		b.errs.Addf(diag.Pos{File: o.Pos.File}, "more than the %d bytes of objects allowed", int64(maxKept))
		return
	}
	b.byKey[o.Key] = o
}

// newer reports whether a resourceVersion is behind another one, or as good.
func newer(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a >= b
}

// full reports whether nothing more is worth reading.
func (b *builder) full() bool {
	return len(b.errs) >= maxFaults || len(b.byKey) >= maxObjects || b.bytes > maxKept
}

// snapshot returns what was collected. The error is a diag.List.
func (b *builder) snapshot() (*Snapshot, error) {
	if err := b.errs.Err(); err != nil {
		return nil, err
	}
	s := &Snapshot{Passed: b.passed, Unread: b.unread, byKey: b.byKey, byUID: make(map[string]*Object, len(b.byKey))}
	s.objects = slices.SortedFunc(maps.Values(b.byKey), func(x, y *Object) int { return x.Compare(y.Key) })
	for _, o := range s.objects {
		if o.UID != "" {
			s.byUID[o.UID] = o
		}
	}
	slices.SortFunc(s.Unread, func(x, y Unread) int {
		return strings.Compare(x.APIVersion+" "+x.Kind, y.APIVersion+" "+y.Kind)
	})
	return s, nil
}
