// Package memo remembers results of pure functions between runs of the program.
//
// The key of a result is a digest of everything that determines the result, so that a result is never out of
// date. The results of earlier runs are in one file, which is read when the first result is needed. A file that
// is damaged, or that another version of the program wrote, is ignored.
//
// Start from [New] and [Remember].
package memo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// MaxSize is the maximum size of a file in bytes. The results of all kustomizations of a large repository fit
// into such a file, and reading it takes little time.
const MaxSize = 16 << 20

// key is the digest of a function and its input.
type key [sha256.Size]byte

// Results are remembered results of functions. They are safe for concurrent use. A nil *Results remembers nothing.
type Results struct {
	version string
	read    func() ([]byte, error)
	write   func([]byte) error

	mu     sync.Mutex
	opened bool
	stored map[key][]byte // results in the file; nil until they are needed
	used   map[key][]byte // results that this run asked for, as far as they fit into the file
	size   int            // number of bytes in used
	added  bool           // whether this run added a result to used
}

// New returns the results in a file. read returns the content of the file, and write replaces it. Results of
// another version of the program are ignored.
func New(version string, read func() ([]byte, error), write func([]byte) error) *Results {
	return &Results{version: version, read: read, write: write, used: map[key][]byte{}}
}

// Remember returns the result of f(), or of an earlier call. name identifies the function, and input contains
// everything that determines the result. Errors are not remembered. The caller must not modify the result.
func Remember[T any](r *Results, name string, input []byte, f func() (T, error)) (T, error) {
	if out, found := Find[T](r, name, input); found {
		return out, nil
	}
	out, err := f()
	if err != nil || r == nil {
		return out, err
	}
	mode, _ := cbor.EncOptions{Sort: cbor.SortBytewiseLexical}.EncMode() // the same results give the same file
	if data, err := mode.Marshal(out); err == nil {
		r.add(r.key(name, input), data)
	}
	return out, nil
}

// Find returns the result of an earlier call of [Remember] with the same name and input, and whether there
// is one.
func Find[T any](r *Results, name string, input []byte) (out T, found bool) {
	if r == nil {
		return out, false
	}
	data, found := r.find(r.key(name, input))
	return out, found && cbor.Unmarshal(data, &out) == nil
}

func (r *Results) key(name string, input []byte) key {
	head := binary.AppendUvarint(nil, uint64(len(r.version)))
	head = binary.AppendUvarint(append(head, r.version...), uint64(len(name)))
	return sha256.Sum256(slices.Concat(head, []byte(name), input))
}

// find returns a result, and records that this run uses it.
func (r *Results) find(k key) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, found := r.used[k]
	if found {
		return data, true
	}
	if !r.opened {
		r.opened = true
		if text, err := r.read(); err == nil {
			r.stored = parse(text)
		}
	}
	if data, found = r.stored[k]; found {
		r.use(k, data)
	}
	return data, found
}

func (r *Results) add(k key, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added = r.use(k, data) || r.added
}

// use adds a result to r.used. It returns false if the result does not fit into the file.
func (r *Results) use(k key, data []byte) bool {
	size := len(k) + binary.MaxVarintLen64 + len(data)
	if sha256.Size+r.size+size > MaxSize {
		return false
	}
	r.used[k] = data
	r.size += size
	return true
}

// Save writes the results, if this run added any. If the file would exceed MaxSize, Save drops results that
// this run did not use.
func (r *Results) Save() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.added {
		return
	}
	r.added = false
	if text, err := r.read(); err == nil { // another command may have added results meanwhile
		r.stored = parse(text)
	}
	_ = r.write(r.encode()) // ignore the error: the next run computes the results again
}

// encode returns the content of the file: its checksum, the results that this run used, and then the other
// results. Both groups are sorted by key.
func (r *Results) encode() []byte {
	out := make([]byte, sha256.Size)
	add := func(results map[key][]byte) {
		for _, k := range slices.SortedFunc(maps.Keys(results), func(a, b key) int { return bytes.Compare(a[:], b[:]) }) {
			if data := results[k]; len(out)+len(k)+binary.MaxVarintLen64+len(data) <= MaxSize {
				out = binary.AppendUvarint(append(out, k[:]...), uint64(len(data)))
				out = append(out, data...)
			}
		}
	}
	add(r.used)
	maps.DeleteFunc(r.stored, func(k key, _ []byte) bool { _, used := r.used[k]; return used })
	add(r.stored)
	sum := sha256.Sum256(out[sha256.Size:])
	copy(out, sum[:])
	return out
}

// parse returns the results in a file. It returns nil if the file is damaged.
func parse(text []byte) map[key][]byte {
	if len(text) < sha256.Size || sha256.Sum256(text[sha256.Size:]) != key(text[:sha256.Size]) {
		return nil
	}
	out := map[key][]byte{}
	for text = text[sha256.Size:]; len(text) > 0; {
		if len(text) < len(key{}) {
			return nil
		}
		k := key(text[:len(key{})])
		text = text[len(k):]
		size, n := binary.Uvarint(text)
		if n <= 0 || size > uint64(len(text)-n) {
			return nil
		}
		out[k] = text[n : n+int(size)]
		text = text[n+int(size):]
	}
	return out
}
