package diag

import (
	"errors"
	"path/filepath"
	"slices"
)

// Moved returns err with the positions of its errors replaced by move. An error without
// positions is returned unchanged.
func Moved(err error, move func(Pos) Pos) error {
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
		there := *e
		there.Pos = move(there.Pos)
		out[i] = &there
	}
	return out
}

// Below returns err with dir prepended to the file names of its positions.
func Below(dir string, err error) error {
	return Moved(err, func(p Pos) Pos { return p.below(dir) })
}

// WarningsBelow is Below for warnings.
func WarningsBelow(dir string, ws []Warning) []Warning {
	out := slices.Clone(ws)
	for i := range out {
		out[i].Pos = out[i].Pos.below(dir)
	}
	return out
}

func (p Pos) below(dir string) Pos {
	p.File = filepath.ToSlash(filepath.Join(dir, p.File))
	return p
}
