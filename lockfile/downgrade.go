package lockfile

import "slices"

// Side is the lock of one of the commits that were merged.
type Side struct {
	Name string // name of the commit, such as "MERGE_HEAD"
	Lock *File  // nil: the commit has no lock
}

// Downgrade is a pin whose version is lower in a merged lock than on one of the merged sides.
type Downgrade struct {
	Pin    Pin    // pin in the merged lock; empty if the merged lock has none
	Higher Pin    // pin on this side, with the higher version
	Side   string // name of the side
}

// Downgrades compares the pins of a merged lock with the pins of the merged sides. For each operator, it
// considers the sides that have upgraded or added the operator since base. It returns the merged pins whose
// version is lower than on such a side, each with the side that has the highest version.
//
// Intentional downgrades are omitted. A downgrade is intentional if another side downgraded to the merged
// version, or if Replaces of the merged pin names the higher bundle: then the user has allowed the downgrade. A
// nil lock counts as empty.
func Downgrades(merged, base *File, sides ...Side) []Downgrade {
	var out []Downgrade
	for _, pin := range merged.sorted().Pins {
		was, known := findPin(base, pin)
		var highest Downgrade
		lowered := false
		for _, s := range sides {
			theirs, ok := findPin(s.Lock, pin)
			switch {
			case !ok:
			case known && theirs.CompareVersions(was) < 0:
				lowered = lowered || theirs.CompareVersions(pin) == 0
			case (!known || theirs.CompareVersions(was) > 0) && (highest.Side == "" || theirs.CompareVersions(highest.Higher) > 0):
				highest = Downgrade{Pin: pin, Higher: theirs, Side: s.Name}
			}
		}
		if highest.Side != "" && !lowered && pin.CompareVersions(highest.Higher) < 0 && pin.Replaces != highest.Higher.Bundle {
			out = append(out, highest)
		}
	}
	return out
}

// AllowedPin returns the downgraded pin, marked as allowed by the user: Replaces names the higher bundle.
func (l Downgrade) AllowedPin() Pin {
	l.Pin.Replaces, l.Pin.Skipped = l.Higher.Bundle, nil
	return l.Pin
}

// RemovedPins returns the operators that have a pin on a side, but not in the merged lock. For each of them, the
// field Higher contains the pin with the highest version, and the field Pin is empty. A nil lock counts as empty.
func RemovedPins(merged *File, sides ...Side) []Downgrade {
	var out []Downgrade
	for _, s := range sides {
		for _, pin := range s.Lock.sorted().Pins {
			if _, ok := findPin(merged, pin); ok {
				continue
			}
			i := slices.IndexFunc(out, func(l Downgrade) bool { return l.Higher.Key() == pin.Key() })
			if i < 0 {
				out = append(out, Downgrade{Higher: pin, Side: s.Name})
			} else if pin.CompareVersions(out[i].Higher) > 0 {
				out[i] = Downgrade{Higher: pin, Side: s.Name}
			}
		}
	}
	return out
}

// findPin returns the pin in f of the same operator as pin, and whether there is one.
func findPin(f *File, pin Pin) (Pin, bool) {
	if f == nil {
		return Pin{}, false
	}
	return f.Pin(pin.Namespace, pin.Package)
}
