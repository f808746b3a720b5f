package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
)

// The latest schema, without constraints.
const newest = `
CREATE TABLE package (name TEXT PRIMARY KEY, default_channel TEXT, add_mode TEXT);
CREATE TABLE channel (name TEXT, package_name TEXT, head_operatorbundle_name TEXT);
CREATE TABLE channel_entry (entry_id INTEGER PRIMARY KEY, channel_name TEXT, package_name TEXT, operatorbundle_name TEXT, replaces INTEGER, depth INTEGER);
CREATE TABLE operatorbundle (name TEXT PRIMARY KEY, csv TEXT, bundle TEXT, bundlepath TEXT, skiprange TEXT, version TEXT, replaces TEXT, skips TEXT, substitutesfor TEXT);
CREATE TABLE api (group_name TEXT, version TEXT, kind TEXT, plural TEXT);
CREATE TABLE api_provider (group_name TEXT, version TEXT, kind TEXT, operatorbundle_name TEXT, operatorbundle_version TEXT, operatorbundle_path TEXT);
CREATE TABLE api_requirer (group_name TEXT, version TEXT, kind TEXT, operatorbundle_name TEXT, operatorbundle_version TEXT, operatorbundle_path TEXT);
CREATE TABLE related_image (image TEXT, operatorbundle_name TEXT);
CREATE TABLE dependencies (type TEXT, value TEXT, operatorbundle_name TEXT, operatorbundle_version TEXT, operatorbundle_path TEXT);
CREATE TABLE properties (type TEXT, value TEXT, operatorbundle_name TEXT, operatorbundle_version TEXT, operatorbundle_path TEXT);
CREATE TABLE deprecated (operatorbundle_name TEXT PRIMARY KEY);
INSERT INTO package VALUES ('lamp', 'stable', NULL), ('oil', 'alpha', NULL);
INSERT INTO channel VALUES ('stable', 'lamp', 'lamp.v3'), ('beta', 'lamp', 'lamp.v2'), ('alpha', 'oil', 'oil.v1');
INSERT INTO operatorbundle (name, version, bundlepath, skiprange, replaces, skips) VALUES
  ('lamp.v1', '1.0.0', 'example.com/lamp@sha256:01', NULL, NULL, NULL),
  ('lamp.v2', '2.0.0', 'example.com/lamp@sha256:02', '<2.0.0', 'lamp.v1', ''),
  ('lamp.v3', '3.0.0', 'example.com/lamp@sha256:03', '', 'lamp.v1', 'lamp.v2,lamp.v2.1');
INSERT INTO operatorbundle (name, version, bundlepath, csv, bundle) VALUES ('oil.v1', '1.0.0', '',
  '{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"oil.v1"},"spec":{"displayName":"Oil","version":"1.0.0","installModes":[{"type":"OwnNamespace","supported":true}]}}',
  '{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"oil.v1"},"spec":{"displayName":"Oil","version":"1.0.0","installModes":[{"type":"OwnNamespace","supported":true}]}}
   {"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"}}');
INSERT INTO channel_entry VALUES
  (1, 'stable', 'lamp', 'lamp.v3', 2, 0), (2, 'stable', 'lamp', 'lamp.v1', NULL, 2), (3, 'stable', 'lamp', 'lamp.v3', 4, 1), (4, 'stable', 'lamp', 'lamp.v2', 2, 1),
  (5, 'stable', 'lamp', 'lamp.v3', 6, 1), (6, 'stable', 'lamp', 'lamp.v2.1', NULL, 1),
  (7, 'beta', 'lamp', 'lamp.v2', 8, 0), (8, 'beta', 'lamp', 'lamp.v1', NULL, 1), (9, 'alpha', 'oil', 'oil.v1', NULL, 0);
INSERT INTO properties (operatorbundle_name, type, value) VALUES
  ('lamp.v1', 'olm.package', '{"packageName":"lamp","version":"1.0.0"}'),
  ('lamp.v2', 'olm.package', '{"packageName":"lamp","version":"2.0.0"}'),
  ('lamp.v3', 'olm.package', '{"packageName":"lamp","version":"3.0.0"}'),
  ('lamp.v3', 'olm.gvk', '{"group":"x.io","kind":"Lamp","version":"v1"}'), ('lamp.v3', 'olm.gvk', '{"group":"x.io","kind":"Lamp","version":"v1"}');
INSERT INTO dependencies (operatorbundle_name, type, value) VALUES
  ('lamp.v3', 'olm.package', '{"packageName":"oil","version":">=1.0.0"}'), ('lamp.v3', 'olm.gvk', '{"group":"y.io","kind":"Oil","version":"v1","type":"olm.gvk"}'),
  ('lamp.v3', 'olm.label', '{"label":"bright"}'), ('lamp.v3', 'olm.constraint', '{"cel":{"rule":"true"}}');
INSERT INTO related_image VALUES ('example.com/b', 'lamp.v3'), ('example.com/a', 'lamp.v3');
INSERT INTO deprecated VALUES ('lamp.v1');
`

// The first schema: it has edges only in channel_entry, and the API tables refer to channel entries.
const oldest = `
CREATE TABLE package (name string, default_channel string);
CREATE TABLE channel (name string, package_name string, head_operatorbundle_name string);
CREATE TABLE channel_entry (entry_id INTEGER PRIMARY KEY, channel_name string, package_name string, operatorbundle_name string, replaces int, depth int);
CREATE TABLE operatorbundle (name string, csv blob, bundle blob, skiprange string, version string, bundlepath string);
CREATE TABLE api_provider (group_name string, version string, kind string, plural string, channel_entry_id int);
CREATE TABLE api_requirer (group_name string, version string, kind string, plural string, channel_entry_id int);
INSERT INTO package VALUES ('lamp', 'stable');
INSERT INTO channel VALUES ('stable', 'lamp', 'lamp.v3');
INSERT INTO operatorbundle (name, version, bundlepath) VALUES
  ('lamp.v1', '1.0.0', 'example.com/lamp:1'), ('lamp.v2', '2.0.0', 'example.com/lamp:2'), ('lamp.v3', '3.0.0', 'example.com/lamp:3');
INSERT INTO channel_entry VALUES
  (1, 'stable', 'lamp', 'lamp.v3', 2, 0), (2, 'stable', 'lamp', 'lamp.v1', NULL, 2), (3, 'stable', 'lamp', 'lamp.v3', 4, 1), (4, 'stable', 'lamp', 'lamp.v2', 2, 1);
INSERT INTO api_provider VALUES ('x.io', 'v1', 'Lamp', 'lamps', 1);
INSERT INTO api_requirer VALUES ('y.io', 'v1', 'Oil', 'oils', 1);
`

// createDatabase returns a directory with a database index.db that a script creates.
func createDatabase(t testing.TB, script string) fs.FS {
	t.Helper()
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	if _, err := db.ExecContext(context.Background(), script); err != nil {
		t.Fatal(err)
	}
	return os.DirFS(dir)
}

// formatContent returns a catalog as text with one item per line, for comparisons.
func formatContent(c catalog.Content) string {
	var b strings.Builder
	for _, p := range c.Packages {
		b.WriteString("package " + p.Name + " " + p.DefaultChannel + "\n")
		for _, ch := range p.Channels {
			b.WriteString("channel " + ch.Name + ":")
			for _, e := range ch.Entries {
				b.WriteString(" " + e.Name)
				if e.Replaces != "" {
					b.WriteString("<" + e.Replaces)
				}
				for _, s := range e.Skips {
					b.WriteString("+" + s)
				}
				b.WriteString(e.SkipRange)
			}
			b.WriteString("\n")
		}
		for _, v := range p.Bundles {
			b.WriteString("bundle " + v.Name + " " + v.Image + "\n")
			for _, prop := range v.Properties {
				b.WriteString("  " + prop.Type + " " + string(prop.Value) + "\n")
			}
			for _, im := range v.RelatedImages {
				b.WriteString("  image " + im.Image + "\n")
			}
		}
	}
	return b.String()
}

// TestNewest loads a database with the latest schema.
func TestNewest(t *testing.T) {
	fsys := createDatabase(t, newest)
	c, err := LoadFS(t.Context(), fsys, "index.db")
	if err != nil {
		t.Fatal(err)
	}
	want := `package lamp stable
channel beta: lamp.v1 lamp.v2<lamp.v1<2.0.0
channel stable: lamp.v1 lamp.v2<lamp.v1<2.0.0 lamp.v3<lamp.v1+lamp.v2+lamp.v2.1
bundle lamp.v1 example.com/lamp@sha256:01
  olm.package {"packageName":"lamp","version":"1.0.0"}
  olm.deprecated {}
bundle lamp.v2 example.com/lamp@sha256:02
  olm.package {"packageName":"lamp","version":"2.0.0"}
bundle lamp.v3 example.com/lamp@sha256:03
  olm.gvk {"group":"x.io","kind":"Lamp","version":"v1"}
  olm.package {"packageName":"lamp","version":"3.0.0"}
  olm.constraint {"cel":{"rule":"true"}}
  olm.gvk.required {"group":"y.io","kind":"Oil","version":"v1"}
  olm.label.required {"label":"bright"}
  olm.package.required {"packageName":"oil","versionRange":">=1.0.0"}
  image example.com/a
  image example.com/b
package oil alpha
channel alpha: oil.v1
bundle oil.v1 
  olm.package {"packageName":"oil","version":"1.0.0"}
`
	if d := cmp.Diff(want, strings.ReplaceAll(formatContent(c), `\u003e`, ">")); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	oil := c.Packages[1].Bundles[0]
	if !oil.Embedded || c.Packages[0].Bundles[0].Embedded || oil.Metadata.DisplayName != "Oil" ||
		!cmp.Equal(oil.Metadata.InstallModes, []catalog.InstallMode{catalog.OwnNamespace}) {
		t.Errorf("oil: %+v", oil)
	}
	if _, err := catalog.New(c); err != nil {
		t.Error(err)
	}
}

func TestObjects(t *testing.T) {
	fsys := createDatabase(t, newest)
	got, err := Objects(t.Context(), fsys, "index.db", "oil", "oil.v1")
	if err != nil || len(got) != 2 {
		t.Fatalf("%d objects, %v", len(got), err)
	}
	var second struct{ Kind string }
	if err := json.Unmarshal(got[1], &second); err != nil || second.Kind != "ConfigMap" {
		t.Errorf("got %s, %v", got[1], err)
	}
	if got, err := Objects(t.Context(), fsys, "index.db", "lamp", "lamp.v1"); err != nil || len(got) != 0 {
		t.Errorf("a bundle without embedded manifests: %d objects, %v", len(got), err)
	}
	broken := createDatabase(t, newest+`UPDATE operatorbundle SET bundle = '{"kind"' WHERE name = 'oil.v1';`)
	if _, err := Objects(t.Context(), broken, "index.db", "oil", "oil.v1"); err == nil || !strings.Contains(err.Error(), `bundle "oil.v1"`) {
		t.Errorf("truncated manifests: %v", err)
	}
	for _, of := range [][2]string{{"oil", "oil.v2"}, {"lamp", "oil.v1"}} {
		if _, err := Objects(t.Context(), fsys, "index.db", of[0], of[1]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", of, err)
		}
	}
}

// TestOldest loads a database with the first schema.
func TestOldest(t *testing.T) {
	c, err := LoadFS(t.Context(), createDatabase(t, oldest), "index.db")
	if err != nil {
		t.Fatal(err)
	}
	want := `package lamp stable
channel stable: lamp.v1 lamp.v2<lamp.v1 lamp.v3<lamp.v1+lamp.v2
bundle lamp.v1 example.com/lamp:1
  olm.package {"packageName":"lamp","version":"1.0.0"}
bundle lamp.v2 example.com/lamp:2
  olm.package {"packageName":"lamp","version":"2.0.0"}
bundle lamp.v3 example.com/lamp:3
  olm.gvk {"group":"x.io","kind":"Lamp","version":"v1"}
  olm.gvk.required {"group":"y.io","kind":"Oil","version":"v1"}
  olm.package {"packageName":"lamp","version":"3.0.0"}
`
	if d := cmp.Diff(want, formatContent(c)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"not a catalog", "CREATE TABLE x (y TEXT);", `index.db: reading the database: not a catalog: it has no table "package"`},
		{"a view instead of a table", "CREATE TABLE t (name TEXT); CREATE VIEW package AS SELECT * FROM t;", `no table "package"`},
		{"broken property", newest + `INSERT INTO properties (operatorbundle_name, type, value) VALUES ('lamp.v1', 'olm.gvk', '{');`, `bundle "lamp.v1": property "olm.gvk": "{" is not JSON`},
		{"broken dependency", newest + `INSERT INTO dependencies (operatorbundle_name, type, value) VALUES ('lamp.v1', 'olm.gvk', '[]');`, `bundle "lamp.v1": dependency "olm.gvk":`},
		{"channel without a package", newest + `INSERT INTO channel VALUES ('x', 'gone', 'y');`, `channel "x" belongs to a missing package, "gone"`},
		{"entry without a channel", newest + `INSERT INTO channel_entry VALUES (99, 'gone', 'lamp', 'lamp.v1', NULL, 0);`, `bundle "lamp.v1" is in a missing channel: "gone" of package "lamp"`},
		{"package twice", oldest + `INSERT INTO package VALUES ('lamp', 'beta');`, `duplicate package "lamp"`},
		{"bundle twice", oldest + `INSERT INTO operatorbundle (name, version) VALUES ('lamp.v1', '9.0.0');`, `duplicate bundle "lamp.v1"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := LoadFS(t.Context(), createDatabase(t, tt.script), "index.db")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := LoadFS(t.Context(), os.DirFS(t.TempDir()), "index.db"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := LoadFS(t.Context(), fstest.MapFS{"index.db": {Data: []byte("not a database, though long enough to be looked at")}}, "index.db"); err == nil || !strings.Contains(err.Error(), "not a database") {
		t.Errorf("no database: %v", err)
	}
}

// TestLarge sorts more rows than fit into the default memory of the library.
func TestLarge(t *testing.T) {
	c, err := LoadFS(t.Context(), createDatabase(t, newest+`
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
		INSERT INTO properties (operatorbundle_name, type, value) SELECT 'lamp.v1', 'example.com/x', '"' || i || printf('%.*c', 500, 'x') || '"' FROM n;`), "index.db")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Packages[0].Bundles[0].Properties); n != 15_002 {
		t.Errorf("%d properties", n)
	}
}

// TestComputed checks that a schema that computes too many rows or bytes is rejected early.
func TestComputed(t *testing.T) {
	const rows = ` WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) `
	for _, tt := range []struct {
		name   string
		time   time.Duration
		script string
		want   string
	}{
		{"columns", time.Minute, `DROP TABLE package; CREATE TABLE package (n int, name TEXT GENERATED ALWAYS AS (printf('%d%.*c', n, 1000000, 'x')), default_channel TEXT);
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150) INSERT INTO package (n) SELECT i FROM n;`, "far more data than the file contains"},
		{"a join", 200 * time.Millisecond, `DROP TABLE channel_entry; CREATE TABLE channel_entry (entry_id int, channel_name string, package_name string, operatorbundle_name string, replaces int, depth int);` +
			rows + `INSERT INTO channel_entry SELECT 1, 'stable', 'lamp', 'lamp.v1', 1, i FROM n;`, "time limit for reading a catalog exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limit := defaultLimits()
			limit.time = tt.time
			_, err := loadFS(t.Context(), createDatabase(t, oldest+tt.script), "index.db", limit)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	fsys := createDatabase(t, newest)
	for want, change := range map[string]func(*limits){
		"bytes exceed the limit of 1000": func(l *limits) { l.file = 1000 },
		"more than 3 rows":               func(l *limits) { l.rows = 3 },
	} {
		limit := defaultLimits()
		change(&limit)
		if _, err := loadFS(t.Context(), fsys, "index.db", limit); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	d, err := openDatabase(t.Context(), fsys, "index.db", defaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var heap int64
	err = d.conn.QueryRowContext(t.Context(), "PRAGMA hard_heap_limit").Scan(&heap)
	if err := errors.Join(err, d.close()); err != nil || heap != maxHeap {
		t.Errorf("the library may use %d bytes, want %d: %v", heap, maxHeap, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := LoadFS(ctx, fsys, "index.db"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestDamaged overwrites random bytes of a database. The result must be an error or valid
// content, without a panic.
func TestDamaged(t *testing.T) {
	for _, script := range []string{newest, oldest} {
		data, err := fs.ReadFile(createDatabase(t, script), "index.db")
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			damaged := bytes.Clone(data)
			for range 1 + random.IntN(20) {
				damaged[random.IntN(len(damaged))] = byte(random.IntN(256))
			}
			c, err := LoadFS(t.Context(), fstest.MapFS{"index.db": {Data: damaged}}, "index.db")
			if err == nil {
				_, _ = catalog.New(c)
			}
		}
		for _, size := range []int{0, 1, 99, 100, 512, 4096, len(data) / 2} {
			if _, err := LoadFS(t.Context(), fstest.MapFS{"index.db": {Data: data[:size]}}, "index.db"); err == nil {
				t.Errorf("truncated to %d bytes: no error", size)
			}
		}
	}
}

// TestBomb loads a database with a page that refers to one child many times. With several such levels,
// the number of rows would grow exponentially.
func TestBomb(t *testing.T) {
	fsys := createDatabase(t, newest+`
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
		INSERT INTO related_image SELECT 'example.com/image-' || i, 'lamp.v3' FROM n;`)
	data, err := fs.ReadFile(fsys, "index.db")
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDatabase(t.Context(), fsys, "index.db", defaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var root int
	err = d.conn.QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_master WHERE name = 'related_image'").Scan(&root)
	if err := errors.Join(err, d.close()); err != nil {
		t.Fatal(err)
	}
	size := int(binary.BigEndian.Uint16(data[16:]))
	page := data[(root-1)*size : root*size]
	cells := int(binary.BigEndian.Uint16(page[3:]))
	if page[0] != 5 || cells < 2 {
		t.Fatalf("page %d is not an interior page with children", root)
	}
	first := page[binary.BigEndian.Uint16(page[12:]):][:4]
	for i := range cells {
		copy(page[binary.BigEndian.Uint16(page[12+2*i:]):], first)
	}
	if _, err := LoadFS(t.Context(), fstest.MapFS{"index.db": {Data: data}}, "index.db"); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v", err)
	}
}
