package sqlite

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/catalog"
)

// FuzzLoad loads any bytes as an index database.
func FuzzLoad(f *testing.F) {
	for _, script := range []string{newest, oldest} {
		data, err := fs.ReadFile(createDatabase(f, "PRAGMA page_size = 512; VACUUM;"+script), "index.db")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys := fstest.MapFS{"index.db": {Data: data}}
		c, err := LoadFS(t.Context(), fsys, "index.db")
		if err == nil {
			_, _ = catalog.New(c)
		}
	})
}
