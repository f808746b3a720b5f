package filetree

import (
	"path/filepath"
	"strings"
)

// Within reports whether name is dir or a path below dir. Both must be slash-separated, clean and
// relative, without "..".
func Within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// Relative returns name relative to dir. Both must be slash-separated, clean and relative.
func Relative(dir, name string) string {
	if rest, below := strings.CutPrefix(name, dir+"/"); below {
		return rest
	}
	rel, _ := filepath.Rel(dir, name)
	return filepath.ToSlash(rel)
}
