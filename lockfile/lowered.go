package lockfile

import "slices"

// Side is the lock of a commit that a merge joins.
type Side struct {
	Name string // of the commit: "MERGE_HEAD"
	Lock *File  // nil: the commit has none
}

// Lowering is a pin whose version is below the one that a side of a merge has.
type Lowering struct {
	Pin    Pin    // of the settled lock; empty where that has none
	Higher Pin    // of the side
	Side   string // name
}

// Lowerings returns the pins of a settled lock that are below the version to which a
// side raised them since the base; of several sides the highest counts. A pin that only
// one side has was raised. Two kinds of pins are lowered on purpose, and left out: those
// that another side lowered to the same version, and those whose replaces names the
// higher bundle, which resolving records when it is allowed to go down. A nil lock is
// empty.
func Lowerings(settled, base *File, sides ...Side) []Lowering {
	var out []Lowering
	for _, pin := range settled.sorted().Pins {
		was, known := find(base, pin)
		var highest Lowering
		lowered := false
		for _, s := range sides {
			theirs, ok := find(s.Lock, pin)
			switch {
			case !ok:
			case known && theirs.CompareVersions(was) < 0:
				lowered = lowered || theirs.CompareVersions(pin) == 0
			case (!known || theirs.CompareVersions(was) > 0) && (highest.Side == "" || theirs.CompareVersions(highest.Higher) > 0):
				highest = Lowering{Pin: pin, Higher: theirs, Side: s.Name}
			}
		}
		if highest.Side != "" && !lowered && pin.CompareVersions(highest.Higher) < 0 && pin.Replaces != highest.Higher.Bundle {
			out = append(out, highest)
		}
	}
	return out
}

// Accepted returns the lowered pin with a record that it replaces the higher one.
func (l Lowering) Accepted() Pin {
	l.Pin.Replaces, l.Pin.Skipped = l.Higher.Bundle, nil
	return l.Pin
}

// Vanished returns what sides have of operators that a settled lock has no pin of: of
// several sides the highest. Their Pin is empty. A nil lock is empty.
func Vanished(settled *File, sides ...Side) []Lowering {
	var out []Lowering
	for _, s := range sides {
		for _, pin := range s.Lock.sorted().Pins {
			if _, ok := find(settled, pin); ok {
				continue
			}
			i := slices.IndexFunc(out, func(l Lowering) bool { return l.Higher.Key() == pin.Key() })
			if i < 0 {
				out = append(out, Lowering{Higher: pin, Side: s.Name})
			} else if pin.CompareVersions(out[i].Higher) > 0 {
				out[i] = Lowering{Higher: pin, Side: s.Name}
			}
		}
	}
	return out
}

// find returns the pin of the same operator in a lock.
func find(f *File, pin Pin) (Pin, bool) {
	if f == nil {
		return Pin{}, false
	}
	return f.Pin(pin.Namespace, pin.Package)
}
