package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"slices"
)

// The objects of a file-based catalog.
type (
	fbcPackage struct {
		Schema         string `json:"schema"` // olm.package
		Name           string `json:"name"`
		DefaultChannel string `json:"defaultChannel"`
	}
	fbcChannel struct {
		Schema  string     `json:"schema"` // olm.channel
		Name    string     `json:"name"`
		Package string     `json:"package"`
		Entries []fbcEntry `json:"entries"`
	}
	fbcEntry struct {
		Name      string   `json:"name"`
		Replaces  string   `json:"replaces,omitempty"`
		Skips     []string `json:"skips,omitempty"`
		SkipRange string   `json:"skipRange,omitempty"`
	}
	fbcBundle struct {
		Schema        string     `json:"schema"` // olm.bundle
		Name          string     `json:"name"`
		Package       string     `json:"package"`
		Image         string     `json:"image,omitempty"`
		Properties    []property `json:"properties"`
		RelatedImages []fbcImage `json:"relatedImages,omitempty"`
	}
	fbcImage struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
)

// encode returns a package as text of a file-based catalog: what a reader of
// these makes of ClusterServiceVersions and properties holds for a database,
// too.
func (l *loader) encode(p *packageRow) ([]byte, error) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	if err := out.Encode(fbcPackage{"olm.package", p.name, p.defaultChannel}); err != nil {
		return nil, err
	}
	members := map[string]bool{}
	for _, ch := range sorted(p.channels, func(c *channelRow) string { return c.name }) {
		if err := out.Encode(l.channel(p.name, ch, members)); err != nil {
			return nil, err
		}
	}
	var names []string
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b, err := l.bundle(p.name, l.bundles[name])
		if err != nil {
			return nil, err
		}
		if err := out.Encode(b); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// channel returns a channel's entries by name, and adds them to members.
func (l *loader) channel(pkg string, ch *channelRow, members map[string]bool) fbcChannel {
	rows := map[string][]entryRow{}
	for _, r := range ch.entries {
		rows[r.bundle] = append(rows[r.bundle], r)
		members[r.bundle] = true
	}
	out := fbcChannel{Schema: "olm.channel", Name: ch.name, Package: pkg, Entries: []fbcEntry{}}
	for name, of := range rows {
		b := l.bundles[name]
		replaces, skips := l.edges(b, of)
		out.Entries = append(out.Entries, fbcEntry{Name: name, Replaces: replaces, Skips: skips, SkipRange: b.skipRange})
	}
	slices.SortFunc(out.Entries, func(a, b fbcEntry) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// bundle returns one bundle, with its ClusterServiceVersion where the database
// holds it.
func (l *loader) bundle(pkg string, b *bundleRow) (fbcBundle, error) {
	out := fbcBundle{Schema: "olm.bundle", Name: b.name, Package: pkg, Image: b.image, Properties: b.all(pkg)}
	for _, image := range b.images {
		out.RelatedImages = append(out.RelatedImages, fbcImage{Image: image})
	}
	err := l.query(l.ctx, "SELECT csv FROM operatorbundle WHERE name = ? LIMIT 1", 1, func(row []sql.NullString) error {
		if csv := []byte(row[0].String); len(csv) > 0 {
			value, err := json.Marshal(map[string][]byte{"data": csv}) // in base64
			out.Properties = append(out.Properties, property{"olm.bundle.object", value})
			return err
		}
		return nil
	}, b.name)
	return out, err
}
