package diag

import (
	"errors"
	"path/filepath"
	"slices"
)

// MapPositions returns err with each position replaced by move(position). An error without
// positions is returned unchanged.
func MapPositions(err error, move func(Pos) Pos) error {
	var list List
	if !errors.As(err, &list) {
		var one *Error
		if !errors.As(err, &one) {
			return err
		}
		list = List{one}
	}
	out := make(List, len(list))
	for i, e := range list {
		moved := *e
		moved.Pos = move(moved.Pos)
		out[i] = &moved
	}
	return out
}

// PrefixPositions returns err with dir prepended to the files in its positions.
func PrefixPositions(dir string, err error) error {
	return MapPositions(err, func(p Pos) Pos { return p.inDir(dir) })
}

// PrefixWarnings returns ws with dir prepended to the files in their positions.
func PrefixWarnings(dir string, ws []Warning) []Warning {
	out := slices.Clone(ws)
	for i := range out {
		out[i].Pos = out[i].Pos.inDir(dir)
	}
	return out
}

func (p Pos) inDir(dir string) Pos {
	p.File = filepath.ToSlash(filepath.Join(dir, p.File))
	return p
}
