package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

// VendoredImage is one image to be kept in a layout.
type VendoredImage struct {
	Name   string `json:"name"`   // the full reference that it is found by: "quay.io/org/catalog:v1", "quay.io/org/bundle@sha256:…"
	Digest string `json:"digest"` // what the reference stands for
}

// VendorReport says how a layout compares with what it should hold. File names
// are relative to the layout, sorted.
type VendorReport struct {
	Added   []string `json:"added"`   // or, of a check, missing
	Removed []string `json:"removed"` // or, of a check, superfluous
	Kept    int      `json:"kept"`    // files
	Bytes   int64    `json:"bytes"`   // of all files, in the end
	New     int64    `json:"-"`       // of the images' files that were added
}

// VendorOptions says what a layout is for. The zero value is for what this
// project reads of images.
type VendorOptions struct {
	Check  bool // nothing is written
	Mirror bool // the images are for others to run: all platforms are kept, what the layout holds already stays, and what passes through the store does not stay there
}

// Changed reports whether anything differed.
func (r *VendorReport) Changed() bool { return len(r.Added)+len(r.Removed) > 0 }

// Vendor makes the OCI layout in dir hold these images of registries and
// nothing else. Of a multi-platform image the layout gets the index and the
// one image that [Client.Open] takes. What dir holds already is not fetched
// again; blobs are written before the index that names them, and those that
// are no longer needed go last. The same images give the same bytes. With
// VendorOptions.Mirror, several goroutines may add to one layout at once.
func (c *Client) Vendor(ctx context.Context, dir string, images []VendoredImage, opt VendorOptions) (*VendorReport, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	v := &vendoring{VendorOptions: opt, client: c, dir: abs, need: map[string]bool{}, report: &VendorReport{Added: []string{}, Removed: []string{}}}
	release, err := v.begin()
	if err != nil {
		return nil, fmt.Errorf("writing the layout %q: %w", dir, err)
	}
	defer release()
	var entries []layoutEntry
	for _, im := range images {
		e, err := v.image(ctx, im)
		if err != nil {
			return nil, wrap(im.Name, err)
		}
		entries = append(entries, e)
	}
	if err := v.finish(entries); err != nil {
		return nil, fmt.Errorf("writing the layout %q: %w", dir, err)
	}
	slices.Sort(v.report.Added)
	slices.Sort(v.report.Removed)
	return v.report, nil
}

// vendoring is the making of one layout.
type vendoring struct {
	VendorOptions
	client *Client
	dir    string
	need   map[string]bool // paths
	report *VendorReport
}

// begin makes the directory a layout, so that one which is cut short can be
// gone on with, and says until release is called that it is written to. What
// others add would be removed at the end, so that they wait until then; with
// Mirror they need not.
func (v *vendoring) begin() (release func(), err error) {
	lock := v.client.lockFor("layout " + v.dir)
	lock.Lock()
	defer lock.Unlock()
	unlock, tidy := func() {}, []string{"."}
	if v.Mirror { // else the blobs are tidied at the end, and reported
		tidy = append(tidy, blobsDir)
	}
	if !v.Check {
		if err := os.MkdirAll(v.dir, 0o755); err != nil {
			return nil, err
		}
		if unlock, err = store.Lock(v.dir, layoutWait); err != nil { // another one may be about to make it a layout
			return nil, err
		}
	}
	if err = filetree.Replaceable(v.dir, layoutFile, "an OCI layout"); err == nil {
		err = v.file(layoutFile, []byte(layoutVersion))
	}
	if err != nil || v.Check {
		unlock()
		return unlock, err
	}
	done, err := useLayout(v.dir, tidy...)
	if err != nil || v.Mirror {
		unlock()
		return done, err
	}
	return func() { done(); unlock() }, nil
}

func (v *vendoring) image(ctx context.Context, im VendoredImage) (layoutEntry, error) {
	src, err := ParseSource(im.Name)
	if err != nil {
		return layoutEntry{}, err
	}
	up, err := v.client.upstream(Source{Kind: Remote, Name: src.Name, Digest: im.Digest})
	if err != nil {
		return layoutEntry{}, err
	}
	data, err := up.manifest(ctx, im.Digest)
	if err != nil {
		return layoutEntry{}, err
	}
	parts, err := v.client.parts(ctx, up, im.Digest, data, !v.Mirror)
	if err != nil {
		return layoutEntry{}, err
	}
	for _, p := range parts {
		if err := v.part(ctx, up, p); err != nil {
			return layoutEntry{}, err
		}
	}
	root := parts[len(parts)-1]
	return layoutEntry{
		MediaType: root.mediaType, Digest: root.digest, Size: int(root.size),
		Annotations: map[string]string{refName: src.String()},
	}, nil
}

// part copies one part, unless the layout has it.
func (v *vendoring) part(ctx context.Context, from origin, p part) error {
	name, err := blobPath(p.digest)
	if err != nil {
		return err
	}
	if v.need[name] {
		return nil
	}
	v.need[name] = true
	v.report.Bytes += p.size
	lock := v.client.lockFor("layout " + v.dir + " " + p.digest)
	lock.Lock()
	defer lock.Unlock()
	path := filepath.Join(v.dir, filepath.FromSlash(name))
	if intact(path, p.digest) {
		v.report.Kept++
		return nil
	}
	v.report.Added = append(v.report.Added, name)
	v.report.New += p.size
	if v.Check {
		return nil
	}
	// What is there and damaged must not be taken for the source.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	held := v.client.Store.Has(p.digest)
	r, err := whole(ctx, from, p)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read from
	if err := writeFile(path, r); err != nil || held || !v.Mirror {
		return err
	}
	return v.client.Store.Remove(p.digest)
}

// intact reports whether a file has that digest.
func intact(path, digest string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	v := store.NewVerifier(f, digest, -1)
	defer func() { _ = v.Close() }() // only read from
	return v.Drain() == nil
}

// writeFile writes what r holds to path, all of it or nothing.
func writeFile(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempBlob+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already where the rename succeeded
	_, err = io.Copy(f, r)
	if err := errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

const tempBlob = ".new-"

// finish writes the index and removes what it does not name.
func (v *vendoring) finish(entries []layoutEntry) error {
	lock := v.client.lockFor("layout " + v.dir)
	lock.Lock()
	defer lock.Unlock()
	if v.Mirror && !v.Check {
		unlock, err := store.Lock(v.dir, layoutWait)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if v.Mirror {
		entries = append(entries, v.others(entries)...)
	}
	index, err := formatIndex(entries)
	if err != nil {
		return err
	}
	if err := v.file("index.json", index); err != nil || v.Mirror {
		return err
	}
	return v.prune()
}

// others returns the entries of the layout whose names are not among those of
// entries.
func (v *vendoring) others(entries []layoutEntry) []layoutEntry {
	index, err := v.client.layoutIndex(v.dir)
	if err != nil {
		return nil // nothing that could be read
	}
	return slices.DeleteFunc(index.Manifests, func(old layoutEntry) bool {
		return slices.ContainsFunc(entries, func(e layoutEntry) bool { return e.Annotations[refName] == old.Annotations[refName] })
	})
}

// file writes a file of the layout, unless it is there.
func (v *vendoring) file(name string, data []byte) error {
	v.report.Bytes += int64(len(data))
	path := filepath.Join(v.dir, name)
	if intact(path, store.DigestOf(data)) {
		v.report.Kept++
		return nil
	}
	v.report.Added = append(v.report.Added, name)
	if v.Check {
		return nil
	}
	return replaceFile(path, data)
}

// prune removes blobs that nothing needs, and what a killed process left.
func (v *vendoring) prune() error {
	files, err := os.ReadDir(filepath.Join(v.dir, "blobs", "sha256"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, f := range files {
		name := "blobs/sha256/" + f.Name()
		if v.need[name] || !imageref.IsDigest("sha256:"+f.Name()) && !strings.HasPrefix(f.Name(), tempBlob) {
			continue
		}
		v.report.Removed = append(v.report.Removed, name)
		if v.Check {
			continue
		}
		if err := os.Remove(filepath.Join(v.dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}

// layoutAt opens the layout in a directory; the error is fs.ErrNotExist where
// there is none. The caller closes its files.
func (c *Client) layoutAt(path string) (*layout, error) {
	if path == "" {
		return nil, fs.ErrNotExist
	}
	dir, err := c.openDir(path)
	if err != nil {
		return nil, err
	}
	return &layout{files: dir, limit: c.Limits.withDefaults().Manifest}, nil
}

// VendoredDigest returns the digest of what the vendored layout has below a
// reference by tag, "" where it has nothing.
func (c *Client) VendoredDigest(ref string) string {
	src, err := ParseSource(ref)
	if err != nil || src.Digest != "" {
		return src.Digest
	}
	return c.vendoredTag(src)
}

// vendoredManifest returns a manifest of the vendored layout; the error is
// fs.ErrNotExist where it does not hold it.
func (c *Client) vendoredManifest(ctx context.Context, digest string) ([]byte, error) {
	l, err := c.layoutAt(c.Vendored)
	if err != nil {
		return nil, err
	}
	defer l.files.Close()
	return l.manifest(ctx, digest)
}

// vendoredBlob opens a blob of the vendored layout, as vendoredManifest.
func (c *Client) vendoredBlob(ctx context.Context, digest string, size int64) (*store.Verifier, error) {
	l, err := c.layoutAt(c.Vendored)
	if err != nil {
		return nil, err
	}
	defer l.files.Close() // files that are open stay open
	v, err := l.blob(ctx, digest, size)
	if err != nil {
		return nil, err
	}
	return v.Explain(func(m *store.MismatchError) error {
		return fmt.Errorf("the copy in %s is damaged: %w", c.Vendored, m)
	}), nil
}

// vendoredTag returns the digest that the vendored layout has for a reference
// by tag, "" where it has none.
func (c *Client) vendoredTag(src Source) string {
	index, err := c.layoutIndex(c.Vendored)
	if err != nil {
		return ""
	}
	for _, e := range index.Manifests {
		if e.Annotations[refName] == src.String() && imageref.IsDigest(e.Digest) {
			return e.Digest
		}
	}
	return ""
}
