// Package snapshot contains the objects of one cluster, read from a file of kubectl output, a directory of such
// files, a must-gather, or the live cluster.
//
// The package does not interpret the objects. It decodes the fields that every object has, and stores the rest
// as compressed text that is decoded on demand. A cluster with hundreds of operators therefore needs little
// memory. While reading, the package drops unused data: managed fields, unpacked bundles, the content of
// Secrets except public certificates, and the spec and status of copied ClusterServiceVersions.
//
// Start from [Load], [Read], [ReadLive] and [Snapshot].
package snapshot

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/s2"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// Snapshot holds the objects of a cluster. It is immutable.
type Snapshot struct {
	Unread  []Unread // kinds that could not be read, sorted
	Version string   // Kubernetes version, such as "1.36"; empty if unknown

	objects []*LiveObject // sorted by k8s.Key
	byKey   map[k8s.Key]*LiveObject
	byUID   map[string]*LiveObject
}

// Unread is a kind that could not be listed in a cluster.
type Unread struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Reason     string `json:"reason"` // message of the API server
}

// LiveObject is one object of a cluster.
type LiveObject struct {
	k8s.Key
	APIVersion string
	UID        string
	Labels     map[string]string
	Owners     []Owner
	Pos        diag.Pos // position in the input; zero if read from a live cluster

	version string // resourceVersion
	packed  []byte // compressed JSON, without unused data
}

// Owner is one of an object's ownerReferences.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Body decodes the object. The caller may modify the result. Whole numbers are int64.
func (o *LiveObject) Body() k8s.Object {
	return decodeObject(o.String(), o.text())
}

// At returns the value at a path of keys, or nil if there is none.
func (o *LiveObject) At(path ...string) any { return k8s.At(o.Body(), path...) }

// decodeObject decodes an object from valid JSON.
func decodeObject(name string, text []byte) map[string]any {
	var m map[string]any
	if err := utiljson.Unmarshal(text, &m); err != nil {
		panic("snapshot: " + name + " was read as invalid JSON: " + err.Error())
	}
	return m
}

// decode sets the fields of a struct by their json tags. It ignores values of the wrong type.
func (o *LiveObject) decode(into any) {
	_ = json.Unmarshal(o.text(), into) // the only possible errors are wrong types
}

// text returns the object as JSON.
func (o *LiveObject) text() []byte {
	text, err := s2.Decode(nil, o.packed)
	if err != nil {
		panic("snapshot: " + o.String() + " is damaged: " + err.Error())
	}
	return text
}

// All returns all objects, sorted by kind, group, namespace and name.
func (s *Snapshot) All() []*LiveObject { return slices.Clone(s.objects) }

// Kind returns the objects of one group and kind, sorted by namespace and name.
func (s *Snapshot) Kind(group, kind string) []*LiveObject {
	from, _ := slices.BinarySearchFunc(s.objects, k8s.Key{Group: group, Kind: kind}, func(o *LiveObject, k k8s.Key) int { return o.Compare(k) })
	to := from
	for to < len(s.objects) && s.objects[to].Group == group && s.objects[to].Kind == kind {
		to++
	}
	return slices.Clone(s.objects[from:to])
}

// Get returns an object, or nil if there is none.
func (s *Snapshot) Get(key k8s.Key) *LiveObject { return s.byKey[key] }

// ByUID returns the object with a UID, or nil if there is none.
func (s *Snapshot) ByUID(uid string) *LiveObject { return s.byUID[uid] }

// builder collects the objects of one cluster.
type builder struct {
	opt     Selection
	unread  []Unread
	byKey   map[k8s.Key]*LiveObject
	bytes   int64
	outer   []byte // buffer: last object, without its items
	scratch []byte // buffer: last object, as compact JSON
	packing []byte
	errs    diag.List
}

func newBuilder(opt Selection) *builder {
	return &builder{opt: opt, byKey: map[k8s.Key]*LiveObject{}}
}

// put adds an object. If the object is already there, put keeps the newer version.
func (b *builder) put(o *LiveObject) {
	before, twice := b.byKey[o.Key]
	switch {
	case twice && o.Kind == "Namespace" && o.Group == "" && o.UID != before.UID && o.UID != "" && before.UID != "":
		b.errs.Addf(o.Pos, "%s has a different UID at %s: the input has objects of two clusters; read one cluster at a time", o.Key, before.Pos)
		return
	case twice && !isNewer(o.version, before.version):
		return
	case twice:
		b.bytes -= int64(len(before.packed))
	case len(b.byKey) >= maxObjects:
		b.errs.Addf(diag.Pos{File: o.Pos.File}, "more than %d objects", maxObjects)
		return
	}
	if b.bytes += int64(len(o.packed)); b.bytes > maxKept {
		b.errs.Addf(diag.Pos{File: o.Pos.File}, "objects exceed the limit of %d bytes", int64(maxKept))
		return
	}
	b.byKey[o.Key] = o
}

// isNewer reports whether resourceVersion a is newer than b, or equal to b.
func isNewer(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a >= b
}

// isFull reports whether a limit is reached.
func (b *builder) isFull() bool {
	return len(b.errs) >= maxFaults || len(b.byKey) >= maxObjects || b.bytes > maxKept
}

// snapshot returns the collected objects. The error is a diag.List.
func (b *builder) snapshot() (*Snapshot, error) {
	if err := b.errs.Err(); err != nil {
		return nil, err
	}
	s := &Snapshot{Unread: b.unread, byKey: b.byKey, byUID: make(map[string]*LiveObject, len(b.byKey))}
	s.objects = slices.SortedFunc(maps.Values(b.byKey), func(x, y *LiveObject) int { return x.Compare(y.Key) })
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
