package filetree

import (
	"io/fs"
	"testing"
)

// FuzzIndex parses any text as an index and checks that no path leads out of the tree.
func FuzzIndex(f *testing.F) {
	f.Add("# files\na/b.yaml " + sum([]byte("x")) + "\nc.yaml\n")
	f.Add("../x\n")
	f.Add("/etc/passwd\na\\b\n" + Index + "\n")
	f.Add(".\n")
	f.Add("<<<<<<< a\nx " + sum(nil) + "\n=======\nx " + sum([]byte("x")) + " starter\n>>>>>>> b\n")
	f.Fuzz(func(t *testing.T, text string) {
		x, _, err := parseIndex(Index, []byte(text))
		if err != nil {
			return
		}
		for name := range x {
			if !fs.ValidPath(name) || name == "." || isIndex(name) {
				t.Errorf("path %q", name)
			}
		}
	})
}
