package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/internal/diag"
)

// LoadFS decodes the database in a file of fsys. name is the path of the file, which must implement io.Seeker.
// The caller sets ID, Source and Digest. The error is a diag.List of all faults; their positions have no line.
func LoadFS(ctx context.Context, fsys fs.FS, name string) (catalog.Content, error) {
	return loadFS(ctx, fsys, name, defaultLimits())
}

func loadFS(ctx context.Context, fsys fs.FS, name string, limit limits) (c catalog.Content, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit.time, errTooLong)
	defer cancel()
	d, err := openDatabase(ctx, fsys, name, limit)
	if err != nil {
		return c, diag.Errorf(diag.Pos{File: name}, "reading the database: %w", err)
	}
	defer func() { err = errors.Join(err, d.close()) }()
	l := &loader{database: d, ctx: ctx, file: name, bundles: map[string]*bundleRow{}, packages: map[string]*packageRow{}}
	if err := l.read(); err != nil {
		return c, diag.Errorf(diag.Pos{File: name}, "reading the database: %w", err)
	}
	return l.content()
}

// Objects returns the manifests of a bundle in the database. It returns none if the database refers
// to an image instead. If the bundle does not exist, the error wraps fs.ErrNotExist.
func Objects(ctx context.Context, fsys fs.FS, name, pkg, bundle string) (objects [][]byte, err error) {
	limit := defaultLimits()
	ctx, cancel := context.WithTimeoutCause(ctx, limit.time, errTooLong)
	defer cancel()
	d, err := openDatabase(ctx, fsys, name, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer func() { err = errors.Join(err, d.close()) }()
	found := false
	query := `SELECT b.csv, b.bundle FROM operatorbundle b WHERE b.name = ?
		AND EXISTS (SELECT 1 FROM channel_entry e WHERE e.operatorbundle_name = b.name AND e.package_name = ?) LIMIT 1`
	err = d.query(ctx, query, 2, func(row []sql.NullString) error {
		found = true
		objects, err = splitObjects(row[1].String)
		if len(objects) == 0 && row[0].String != "" {
			objects = [][]byte{[]byte(row[0].String)}
		}
		return err
	}, bundle, pkg)
	if err == nil && !found {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("%s: bundle %q of package %q: %w", name, bundle, pkg, err)
	}
	return objects, nil
}

// splitObjects splits a concatenation of JSON objects.
func splitObjects(stream string) ([][]byte, error) {
	var out [][]byte
	dec := json.NewDecoder(strings.NewReader(stream))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("its manifests: %w", err)
		}
		out = append(out, raw)
	}
}

// loader holds the rows of all tables while a catalog is loaded.
type loader struct {
	*database
	ctx      context.Context //nolint:containedctx // lives no longer than one call
	file     string
	packages map[string]*packageRow
	bundles  map[string]*bundleRow
	faults   diag.List
}

type packageRow struct {
	name, defaultChannel string
	channels             map[string]*channelRow
}

type channelRow struct {
	name    string
	entries []entryRow // sorted by distance from the channel head, then in table order
}

// entryRow is a row of the table channel_entry: a bundle in a channel, and a bundle that it
// replaces or skips.
type entryRow struct {
	bundle, replaces string
}

type bundleRow struct {
	name, version, image       string
	replaces, skips, skipRange string
	embedded                   bool
	properties                 []catalog.Property
	images                     []string
	deprecated                 bool
	requires                   []catalog.Property
}

// read reads all tables, without the manifests of bundles.
func (l *loader) read() error {
	for _, step := range []func() error{
		l.readPackages, l.readBundles, l.readEntries, l.readTables, l.readAPIs,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) eachRow(query string, columns int, row func(r []string)) error {
	return l.query(l.ctx, query, columns, func(values []sql.NullString) error {
		r := make([]string, len(values))
		for i, v := range values {
			r[i] = v.String
		}
		row(r)
		return nil
	})
}

func (l *loader) readPackages() error {
	err := l.eachRow("SELECT DISTINCT name, default_channel FROM package ORDER BY name", 2, func(r []string) {
		if l.packages[r[0]] != nil {
			l.faults.Addf(diag.Pos{File: l.file}, "duplicate package %q", r[0])
			return
		}
		l.packages[r[0]] = &packageRow{name: r[0], defaultChannel: r[1], channels: map[string]*channelRow{}}
	})
	if err != nil {
		return err
	}
	return l.eachRow("SELECT DISTINCT name, package_name FROM channel ORDER BY package_name, name", 2, func(r []string) {
		p := l.packages[r[1]]
		if p == nil {
			l.faults.Addf(diag.Pos{File: l.file}, "channel %q belongs to a missing package, %q", r[0], r[1])
			return
		}
		p.channels[r[0]] = &channelRow{name: r[0]}
	})
}

func (l *loader) readBundles() error {
	query := fmt.Sprintf("SELECT name, %s, %s, %s, %s, %s, coalesce(length(bundle), 0) + coalesce(length(csv), 0) FROM operatorbundle ORDER BY name",
		l.column("version"), l.column("bundlepath"), l.column("replaces"), l.column("skips"), l.column("skiprange"))
	return l.eachRow(query, 7, func(r []string) {
		if r[0] == "" {
			return
		}
		if l.bundles[r[0]] != nil {
			l.faults.Addf(diag.Pos{File: l.file}, "duplicate bundle %q", r[0])
			return
		}
		l.bundles[r[0]] = &bundleRow{
			name: r[0], version: r[1], image: r[2], replaces: r[3], skips: r[4], skipRange: r[5],
			embedded: r[2] == "" && r[6] != "0",
		}
	})
}

// readEntries reads the entries of all channels. It omits an entry whose bundle does not exist: the bundle was
// skipped, or the channel is truncated below its successor.
func (l *loader) readEntries() error {
	id := "rowid"
	if l.has("channel_entry", "entry_id") {
		id = "entry_id"
	}
	query := fmt.Sprintf(`SELECT e.package_name, e.channel_name, e.operatorbundle_name, r.operatorbundle_name
		FROM channel_entry e LEFT JOIN channel_entry r ON e.replaces = r.%s ORDER BY e.depth, e.%s`, id, id)
	return l.eachRow(query, 4, func(r []string) {
		p := l.packages[r[0]]
		switch {
		case p == nil || p.channels[r[1]] == nil:
			l.faults.Addf(diag.Pos{File: l.file}, "bundle %q is in a missing channel: %q of package %q", r[2], r[1], r[0])
		case l.bundles[r[2]] != nil:
			ch := p.channels[r[1]]
			ch.entries = append(ch.entries, entryRow{r[2], r[3]})
		}
	})
}

// assemble returns the data of a package. The caller encodes the data as a file-based catalog and decodes it
// again, so that package fbc processes CSVs and properties.
func (l *loader) assemble(p *packageRow) catalog.PackageData {
	out := catalog.PackageData{Name: p.name, DefaultChannel: p.defaultChannel}
	members := map[string]*bundleRow{}
	for _, ch := range sortedValues(p.channels, func(c *channelRow) string { return c.name }) {
		rows := map[string][]entryRow{}
		for _, r := range ch.entries {
			rows[r.bundle] = append(rows[r.bundle], r)
		}
		data := catalog.ChannelData{Name: ch.name}
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			b := l.bundles[name]
			members[name] = b
			replaces, skips := l.edges(b, rows[name])
			data.Entries = append(data.Entries, catalog.EntryData{Name: name, Replaces: replaces, Skips: skips, SkipRange: b.skipRange})
		}
		out.Channels = append(out.Channels, data)
	}
	for _, b := range sortedValues(members, func(b *bundleRow) string { return b.name }) {
		data := catalog.BundleData{Name: b.name, Image: b.image, Properties: b.allProperties(p.name)}
		for _, image := range b.images {
			data.RelatedImages = append(data.RelatedImages, catalog.RelatedImage{Image: image})
		}
		out.Bundles = append(out.Bundles, data)
	}
	return out
}

// readCSV returns the ClusterServiceVersion of a bundle as the only manifest.
func (l *loader) readCSV(_, bundle string) (manifests [][]byte, err error) {
	err = l.query(l.ctx, "SELECT csv FROM operatorbundle WHERE name = ? LIMIT 1", 1, func(row []sql.NullString) error {
		if row[0].String != "" {
			manifests = append(manifests, []byte(row[0].String))
		}
		return nil
	}, bundle)
	return manifests, err
}

// edges returns the bundles that b replaces and skips. Newer schemas store them in columns
// of operatorbundle. In older schemas, each row of channel_entry stores one of these bundles: the first
// row the replaced bundle, the other rows the skipped bundles.
func (l *loader) edges(b *bundleRow, rows []entryRow) (replaces string, skips []string) {
	if l.has("operatorbundle", "replaces", "skips") {
		for name := range strings.SplitSeq(b.skips, ",") {
			if name = strings.TrimSpace(name); name != "" {
				skips = append(skips, name)
			}
		}
		return b.replaces, skips
	}
	for _, r := range rows {
		switch {
		case r.replaces == "" || r.replaces == replaces || slices.Contains(skips, r.replaces):
		case replaces == "":
			replaces = r.replaces
		default:
			skips = append(skips, r.replaces)
		}
	}
	return replaces, skips
}

func (l *loader) content() (catalog.Content, error) {
	var c catalog.Content
	for _, p := range sortedValues(l.packages, func(p *packageRow) string { return p.name }) {
		var text bytes.Buffer
		if err := fbc.Encode(&text, catalog.Content{Packages: []catalog.PackageData{l.assemble(p)}}, l.readCSV); err != nil {
			return c, diag.Errorf(diag.Pos{File: l.file}, "%w", err)
		}
		part, err := fbc.Decode(l.file, &text)
		if err != nil {
			l.addFault(err)
			continue
		}
		l.setMissingFields(&part)
		c.Packages = append(c.Packages, part.Packages...)
		c.Warnings = append(c.Warnings, part.Warnings...)
	}
	c.Warnings = diag.SortWarnings(c.Warnings)
	return c, l.faults.Err()
}

// addFault adds the faults from decoding an encoded package. It drops their positions, which refer
// to the temporary encoding.
func (l *loader) addFault(err error) {
	var list diag.List
	if !errors.As(err, &list) {
		l.faults.Add(diag.Pos{File: l.file}, err)
	}
	for _, e := range list {
		l.faults = append(l.faults, &diag.Error{Pos: diag.Pos{File: l.file}, Msg: e.Msg, Err: e.Err})
	}
}

// setMissingFields completes c after encoding and decoding: it sets Embedded, and sets all
// positions to the database file.
func (l *loader) setMissingFields(c *catalog.Content) {
	here := diag.Pos{File: l.file}
	for i := range c.Warnings {
		c.Warnings[i].Pos = here
	}
	for i := range c.Packages {
		p := &c.Packages[i]
		p.Pos = here
		for j := range p.Channels {
			p.Channels[j].Pos = here
			for k := range p.Channels[j].Entries {
				p.Channels[j].Entries[k].Pos = here
			}
		}
		for j := range p.Bundles {
			p.Bundles[j].Pos = here
			p.Bundles[j].Embedded = l.bundles[p.Bundles[j].Name].embedded
		}
	}
}

func sortedValues[T any](m map[string]*T, name func(*T) string) []*T {
	out := make([]*T, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *T) int { return cmp.Compare(name(a), name(b)) })
	return out
}
