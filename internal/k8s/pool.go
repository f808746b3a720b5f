package k8s

import (
	"encoding/binary"
	"slices"
)

// Pool deduplicates parts of objects, such as the schemas of pods in many CRDs.
type Pool struct {
	scalars map[any]uint64
	nodes   map[string]node // by the numbers of their parts
	last    uint64
}

// node is a shared mapping or list with its number.
type node struct {
	v  any
	no uint64
}

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{scalars: map[any]uint64{}, nodes: map[string]node{}} }

// Share replaces the mappings and lists in o by equal ones of previously shared objects. No
// other code may refer to o during the call. Afterwards, o must not be modified in place.
func (p *Pool) Share(o Object) {
	for key, v := range o {
		o[key], _ = p.share(v)
	}
}

// share returns the shared value equal to v, and the unique number of its content.
func (p *Pool) share(v any) (any, uint64) {
	var key []byte
	switch v := v.(type) {
	case map[string]any:
		members := make([][2]uint64, 0, len(v))
		for name, item := range v {
			one, no := p.share(item)
			v[name] = one
			members = append(members, [2]uint64{p.scalar(name), no})
		}
		slices.SortFunc(members, func(a, b [2]uint64) int { return int(a[0]) - int(b[0]) })
		key = append(key, '{')
		for _, m := range members {
			key = binary.AppendUvarint(binary.AppendUvarint(key, m[0]), m[1])
		}
	case []any:
		key = append(key, '[')
		for i, item := range v {
			one, no := p.share(item)
			v[i] = one
			key = binary.AppendUvarint(key, no)
		}
	default:
		return v, p.scalar(v)
	}
	n, ok := p.nodes[string(key)]
	if !ok {
		p.last++
		n = node{v, p.last}
		p.nodes[string(key)] = n
	}
	return n.v, n.no
}

// scalar returns the number of a value that is neither a mapping nor a list.
func (p *Pool) scalar(v any) uint64 {
	no, ok := p.scalars[v]
	if !ok {
		p.last++
		no = p.last
		p.scalars[v] = no
	}
	return no
}
