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

// estimator computes the cost of function calls. The cost of a call grows with the size of its arguments.
// CEL's own estimate omits most of this cost, and all costs of custom functions.
type estimator struct{}

const (
	bytesPerStep   = 16
	callCost       = 2
	partCost       = 4    // cost of visiting one value in a list or map
	startRegexp    = 100  // cost of compiling a pattern and starting the match
	maxRepetitions = 1000 // maximum number of repetitions of a part of a pattern
)

// CallCost returns the cost of a completed call.
func (estimator) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := callCost + valueLength(result)/bytesPerStep
	if long, ok := expensiveCall(function); ok {
		cost += long.cost(args[0], args[1])
		return &cost
	}
	if function == overloads.StartsWith || function == overloads.EndsWith {
		args = args[1:]
	}
	for _, a := range args {
		cost += byteLength(a) / bytesPerStep
	}
	return &cost
}

// patternCost returns the cost of matching a text against a pattern.
func patternCost(v, pattern ref.Val) uint64 {
	size := byteLength(pattern)
	if s, ok := pattern.(types.String); ok && strings.Contains(string(s), "{") {
		size *= maxRepetitions
	}
	return (startRegexp + byteLength(v)) * size / bytesPerStep
}

// byteLength returns the length of a string in bytes, or 0 for any other value.
func byteLength(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	}
	return 0
}

// valueLength returns the length of a string or of a list.
func valueLength(v ref.Val) uint64 {
	if list, ok := v.(traits.Lister); ok {
		if n, ok := list.Size().(types.Int); ok {
			return uint64(max(n, 0))
		}
	}
	return byteLength(v)
}

// valueCost returns the number of steps to visit all of v. If it is more than limit, the result is any
// number above limit. Without a limit, visiting all of v may take years, because a list can contain the
// same list many times.
func valueCost(v ref.Val, limit uint64) uint64 {
	sum := byteLength(v) / bytesPerStep
	add := func(part ref.Val) {
		if sum <= limit {
			sum += partCost + valueCost(part, limit-sum)
		}
	}
	switch v := v.(type) {
	case traits.Lister:
		for i, n := uint64(0), valueLength(v); i < n && sum <= limit; i++ {
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

// boundedCall is a call of an expensive function. If the cost would exceed evaluationLimit, the call fails
// before the function starts. CEL itself counts the cost only after a call, and a call on nested lists
// may take years.
type boundedCall struct {
	interpreter.InterpretableCall
	cost func(x, y ref.Val) uint64
	call func(x, y ref.Val) ref.Val
}

// expensiveCall returns the cost and the implementation of a function whose time is not linear in
// the size of its arguments. It returns false for any other function.
func expensiveCall(function string) (boundedCall, bool) {
	switch function {
	case operators.Equals:
		return boundedCall{cost: comparisonCost, call: types.Equal}, true
	case operators.NotEquals:
		return boundedCall{cost: comparisonCost, call: func(x, y ref.Val) ref.Val { return types.Bool(types.Equal(x, y) != types.True) }}, true
	case operators.In:
		return boundedCall{cost: searchCost, call: listContains}, true
	case overloads.Matches:
		return boundedCall{cost: patternCost, call: matchesPattern}, true
	}
	return boundedCall{}, false
}

// withCostLimits replaces calls of expensive functions with a boundedCall.
func withCostLimits(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, ok := i.(interpreter.InterpretableCall); ok {
		if long, ok := expensiveCall(call.Function()); ok {
			long.InterpretableCall = call
			return long, nil
		}
	}
	return i, nil
}

func comparisonCost(x, y ref.Val) uint64 {
	return min(valueCost(x, evaluationLimit), valueCost(y, evaluationLimit))
}

func searchCost(_, list ref.Val) uint64 { return valueCost(list, evaluationLimit) }

func listContains(x, list ref.Val) ref.Val {
	if all, ok := list.(traits.Container); ok {
		return all.Contains(x)
	}
	return types.MaybeNoSuchOverloadErr(list)
}

func matchesPattern(x, pattern ref.Val) ref.Val {
	if s, ok := x.(traits.Matcher); ok {
		return s.Match(pattern)
	}
	return types.MaybeNoSuchOverloadErr(x)
}

// Eval evaluates the call.
func (b boundedCall) Eval(vars interpreter.Activation) ref.Val {
	return b.Exec(interpreter.AsFrame(vars))
}

// Exec evaluates the call.
func (b boundedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := b.Args()
	x, y := args[0].Exec(frame), args[1].Exec(frame)
	for _, v := range []ref.Val{x, y} {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	if b.cost(x, y) > evaluationLimit {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: ErrCost.Error()})
	}
	return b.call(x, y)
}
