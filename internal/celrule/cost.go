package celrule

import (
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// estimator says what calls cost that looked at their arguments: CEL's own
// count leaves out most of that, and all functions that are not its own.
type estimator struct{}

const (
	bytesPerStep = 16
	callCost     = 2
	partCost     = 4    // to look at one value in a list or a map
	startRegexp  = 100  // to compile a pattern and to begin with it
	repeated     = 1000 // how often a pattern may repeat a part of it
)

// CallCost returns the cost of a call that has returned.
func (estimator) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := callCost + length(result)/bytesPerStep
	if long, ok := mayTakeLong(function); ok {
		cost += long.cost(args[0], args[1])
		return &cost
	}
	if function == overloads.StartsWith || function == overloads.EndsWith {
		args = args[1:]
	}
	for _, a := range args {
		cost += text(a) / bytesPerStep
	}
	return &cost
}

// matching returns what it takes to match a text against a pattern.
func matching(v, pattern ref.Val) uint64 {
	size := text(pattern)
	if s, ok := pattern.(types.String); ok && strings.Contains(string(s), "{") {
		size *= repeated
	}
	return (startRegexp + text(v)) * size / bytesPerStep
}

// text returns the length of a string in bytes, 0 of anything else.
func text(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	}
	return 0
}

// length returns the length of a string or of a list.
func length(v ref.Val) uint64 {
	if list, ok := v.(traits.Lister); ok {
		if n, ok := list.Size().(types.Int); ok {
			return uint64(max(n, 0))
		}
	}
	return text(v)
}

// weight returns how many steps it takes to look at all of v, or, once that is
// more than limit, something above limit. The same list may stand in another one
// any number of times.
func weight(v ref.Val, limit uint64) uint64 {
	sum := text(v) / bytesPerStep
	add := func(part ref.Val) {
		if sum <= limit {
			sum += partCost + weight(part, limit-sum)
		}
	}
	switch v := v.(type) {
	case traits.Lister:
		for i, n := uint64(0), length(v); i < n && sum <= limit; i++ {
			add(v.Get(types.Int(i)))
		}
	case traits.Mapper:
		for it := v.Iterator(); sum <= limit && it.HasNext() == types.True; {
			key := it.Next()
			add(key)
			add(v.Get(key))
		}
	}
	return sum
}

// bounded is a call that may take long: it is not begun where it costs more than
// one evaluation may. CEL counts when a call has returned, and with lists within
// lists that might not be for years.
type bounded struct {
	interpreter.InterpretableCall
	cost func(x, y ref.Val) uint64
	call func(x, y ref.Val) ref.Val
}

// mayTakeLong returns what a function costs and does that may take longer than
// its arguments are long; false for any other.
func mayTakeLong(function string) (bounded, bool) {
	switch function {
	case operators.Equals:
		return bounded{cost: comparing, call: types.Equal}, true
	case operators.NotEquals:
		return bounded{cost: comparing, call: func(x, y ref.Val) ref.Val { return types.Bool(types.Equal(x, y) != types.True) }}, true
	case operators.In:
		return bounded{cost: seeking, call: contains}, true
	case overloads.Matches:
		return bounded{cost: matching, call: matches}, true
	}
	return bounded{}, false
}

// bound replaces the calls that may take long.
func bound(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, ok := i.(interpreter.InterpretableCall); ok {
		if long, ok := mayTakeLong(call.Function()); ok {
			long.InterpretableCall = call
			return long, nil
		}
	}
	return i, nil
}

func comparing(x, y ref.Val) uint64 { return min(weight(x, onceCost), weight(y, onceCost)) }

func seeking(_, list ref.Val) uint64 { return weight(list, onceCost) }

func contains(x, list ref.Val) ref.Val {
	if all, ok := list.(traits.Container); ok {
		return all.Contains(x)
	}
	return types.MaybeNoSuchOverloadErr(list)
}

func matches(x, pattern ref.Val) ref.Val {
	if s, ok := x.(traits.Matcher); ok {
		return s.Match(pattern)
	}
	return types.MaybeNoSuchOverloadErr(x)
}

// Eval evaluates the call.
func (b bounded) Eval(vars interpreter.Activation) ref.Val { return b.Exec(interpreter.AsFrame(vars)) }

// Exec evaluates the call.
func (b bounded) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := b.Args()
	x, y := args[0].Exec(frame), args[1].Exec(frame)
	for _, v := range []ref.Val{x, y} {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	if b.cost(x, y) > onceCost {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: ErrCost.Error()})
	}
	return b.call(x, y)
}
