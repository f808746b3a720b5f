package fbc

import (
	"testing"
	"testing/fstest"
)

// FuzzIgnore reads any text as .indexignore. Loading must end with some files excluded, or with
// an error.
func FuzzIgnore(f *testing.F) {
	for _, s := range []string{"*.md\n!a.md\n/docs/\n", "**/a/**\n[a-\n\\", "# no\n\n  \n!\n/\n", "a*b?c[!x]\\*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		one := `{"schema":"olm.package","name":"a","defaultChannel":"b"}` + "\n" +
			`{"schema":"olm.channel","package":"a","name":"b","entries":[{"name":"a.v1"}]}` + "\n" +
			`{"schema":"olm.bundle","package":"a","name":"a.v1","image":"x","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}`
		c, err := LoadFS(fstest.MapFS{".indexignore": {Data: []byte(text)}, "a/catalog.json": {Data: []byte(one)}})
		if err == nil && len(c.Packages) > 1 {
			t.Errorf("%d packages", len(c.Packages))
		}
	})
}
