package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vfs"

	"github.com/quayside/quayside/internal/sanitize"
)

const (
	maxValue = 64 << 20 // maximum bytes of a value
	maxHeap  = 1 << 30  // maximum heap of SQLite in bytes, for all open databases together
)

// limits bounds the resources for reading an untrusted database. Generated columns of such a database can
// compute large values, and damaged tables can contain endless rows.
type limits struct {
	file int64         // bytes of the database file
	rows int           // rows of one query
	read int64         // bytes of all values read; four times the file size is added to this limit
	time time.Duration // for reading the whole database
}

func defaultLimits() limits {
	return limits{file: 2 << 30, rows: 5_000_000, read: 64 << 20, time: 2 * time.Minute}
}

// database is an open SQLite database in a file system.
type database struct {
	conn    *sql.Conn
	tables  map[string]map[string]bool // table → set of its columns
	limit   limits
	left    int64 // bytes of values that may still be read
	closers []func() error
}

// openDatabase opens the database in a file of fsys. name is the path of the file. The caller must close the database.
func openDatabase(ctx context.Context, fsys fs.FS, name string, limit limits) (*database, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > limit.file {
		return nil, fmt.Errorf("%d bytes exceed the limit of %d", info.Size(), limit.file)
	}
	d := &database{tables: map[string]map[string]bool{}, limit: limit, left: limit.read + 4*info.Size()}
	if err := d.connect(ctx, fsys, name); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) connect(ctx context.Context, fsys fs.FS, name string) error {
	via, files, err := vfs.New(fsys)
	if err != nil {
		return err
	}
	d.closers = append(d.closers, files.Close)
	// The schema is untrusted: disable functions with side effects, and detect corrupt cells.
	// Sorting must not use temporary files, so that it is bounded by the memory limit.
	options := url.Values{
		"vfs": {via}, "immutable": {"1"}, "mode": {"ro"}, "_defensive": {"1"},
		"_pragma": {"trusted_schema(0)", "cell_size_check(1)", "query_only(1)", "mmap_size(0)", "temp_store(memory)", fmt.Sprintf("hard_heap_limit(%d)", maxHeap)},
	}
	pool, err := sql.Open("sqlite", "file:"+(&url.URL{Path: name}).EscapedPath()+"?"+options.Encode())
	if err != nil {
		return err
	}
	d.closers = append(d.closers, pool.Close)
	if d.conn, err = pool.Conn(ctx); err != nil {
		return err
	}
	d.closers = append(d.closers, d.conn.Close)
	if _, err := sqlite.Limit(d.conn, sqlite3.SQLITE_LIMIT_LENGTH, maxValue); err != nil {
		return err
	}
	if err := d.checkPages(ctx); err != nil {
		return err
	}
	return d.readSchema(ctx)
}

// checkPages returns an error if a page belongs to two tables. With shared pages, a small file
// could contain endless rows.
func (d *database) checkPages(ctx context.Context) error {
	return d.query(ctx, "PRAGMA quick_check(1)", 1, func(row []sql.NullString) error {
		if row[0].String == "ok" {
			return nil
		}
		lines := strings.Split(strings.TrimSpace(row[0].String), "\n")
		return fmt.Errorf("the database is damaged: %s", sanitize.Truncate(lines[len(lines)-1], maxShown))
	})
}

func (d *database) close() error {
	var errs []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	d.closers = nil
	return errors.Join(errs...)
}

// readSchema reads the names of tables and their columns. Views and virtual tables are ignored.
func (d *database) readSchema(ctx context.Context) error {
	var names []string
	err := d.query(ctx, "SELECT name, sql FROM sqlite_master WHERE type = 'table'", 2, func(row []sql.NullString) error {
		if !strings.HasPrefix(strings.ToUpper(strings.TrimSpace(row[1].String)), "CREATE VIRTUAL") {
			names = append(names, row[0].String)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		columns := map[string]bool{}
		err := d.query(ctx, "SELECT name FROM pragma_table_info(?)", 1, func(row []sql.NullString) error {
			columns[row[0].String] = true
			return nil
		}, name)
		if err != nil {
			return err
		}
		d.tables[name] = columns
	}
	for _, name := range []string{"package", "channel", "channel_entry", "operatorbundle"} {
		if d.tables[name] == nil {
			return fmt.Errorf("not a catalog: it has no table %q", name)
		}
	}
	return nil
}

// has reports whether a table has all of these columns.
func (d *database) has(table string, columns ...string) bool {
	return d.tables[table] != nil && !slices.ContainsFunc(columns, func(c string) bool { return !d.tables[table][c] })
}

// column returns an SQL expression for a column of operatorbundle: its name, or NULL if the table
// does not have this column.
func (d *database) column(name string) string {
	if d.has("operatorbundle", name) {
		return name
	}
	return "NULL"
}

// errTooLong is the cause of the context's cancellation after the time limit.
var errTooLong = errors.New("time limit for reading a catalog exceeded")

// query runs a query and calls row for each row of the result, which has n columns.
func (d *database) query(ctx context.Context, text string, n int, row func([]sql.NullString) error, args ...any) error {
	err := d.queryRows(ctx, text, n, row, args...)
	if err != nil && errors.Is(context.Cause(ctx), errTooLong) {
		return errTooLong
	}
	return err
}

func (d *database) queryRows(ctx context.Context, text string, n int, row func([]sql.NullString) error, args ...any) error {
	rows, err := d.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // ignore the error: rows.Err returns it
	values, into := make([]sql.NullString, n), make([]any, n)
	for i := range values {
		into[i] = &values[i]
	}
	for count := 0; rows.Next(); count++ {
		if count == d.limit.rows {
			return fmt.Errorf("more than %d rows", d.limit.rows)
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for _, v := range values {
			d.left -= int64(len(v.String))
		}
		if d.left < 0 {
			return errors.New("its tables return far more data than the file contains")
		}
		if err := row(values); err != nil {
			return err
		}
	}
	return rows.Err()
}
