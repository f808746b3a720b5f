package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

// VendoredImage is an image to store in a layout.
type VendoredImage struct {
	Name   string `json:"name"`   // full reference: "quay.io/org/catalog:v1" or "quay.io/org/bundle@sha256:…"
	Digest string `json:"digest"` // digest of the image
}

// VendorReport lists the changes of a layout, or in check mode, the changes that are needed. File
// names are relative to the layout and sorted.
type VendorReport struct {
	Added    []string `json:"added"`   // files added; in check mode, missing files
	Removed  []string `json:"removed"` // files removed; in check mode, unneeded files
	Kept     int      `json:"kept"`    // number of files that did not change
	Bytes    int64    `json:"bytes"`   // size of all files afterwards
	NewBytes int64    `json:"-"`       // size of the added manifests and blobs
}

// VendorOptions are the options of [Client.Vendor]. With the zero value, the layout contains only
// the parts of images that quayside reads.
type VendorOptions struct {
	Check  bool // check mode: write nothing
	Mirror bool // for other tools: include all platforms, keep existing content, and do not keep blobs in the store
}

// Changed reports whether a file was, or must be, added or removed.
func (r *VendorReport) Changed() bool { return len(r.Added)+len(r.Removed) > 0 }

// Vendor updates the OCI layout in dir so that it contains exactly these images. Of a multi-platform image,
// it stores the index and the image that [Client.Open] chooses. Blobs that the layout has are not fetched.
// Blobs are written before the index, and unneeded ones are removed last. The same images give the same
// bytes. With VendorOptions.Mirror, several goroutines may add to the same layout concurrently.
func (c *Client) Vendor(ctx context.Context, dir filetree.Dir, images []VendoredImage, opt VendorOptions) (*VendorReport, error) {
	v := &layoutUpdate{VendorOptions: opt, client: c, dir: dir, need: map[string]bool{}, report: &VendorReport{Added: []string{}, Removed: []string{}}}
	release, err := v.begin()
	if err != nil {
		return nil, fmt.Errorf("writing the layout %q: %w", dir, err)
	}
	defer release()
	var entries []layoutEntry
	for _, im := range images {
		e, err := v.copyImage(ctx, im)
		if err != nil {
			return nil, wrapImageError(im.Name, err)
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

// layoutUpdate is the state of updating one layout.
type layoutUpdate struct {
	VendorOptions
	client *Client
	dir    filetree.Dir
	root   *os.Root        // nil in check mode if the layout does not exist
	need   map[string]bool // paths of the files that the images need
	report *VendorReport
}

// begin creates the files that mark the layout, so that an interrupted run can be continued, and
// locks the layout until release is called. Other processes must wait, because finish would remove
// the files that they add. With Mirror, nothing is removed, and there is no lock.
func (v *layoutUpdate) begin() (release func(), err error) {
	lock := v.client.lockFor("layout " + v.dir.String())
	lock.Lock()
	defer lock.Unlock()
	release = func() {}
	defer func() {
		if err != nil {
			release()
		}
	}()
	if _, missing := fs.Stat(v.dir.FS(), "."); !v.Check || !errors.Is(missing, fs.ErrNotExist) {
		if v.root, err = openLayout(v.dir); err != nil {
			return release, err
		}
		release = func() { _ = v.root.Close() }
	}
	tidy := []string{"."}
	if v.Mirror { // without Mirror, finish removes and reports unneeded blobs
		tidy = append(tidy, blobsDir)
	}
	unlock := func() {}
	if !v.Check {
		if unlock, err = lockLayout(v.root); err != nil { // wait for a process that may be writing the layout
			return release, err
		}
		closeRoot := release
		release = func() { unlock(); closeRoot() }
	}
	if v.root != nil {
		err = filetree.CheckReplaceable(v.root.FS(), layoutFile, "an OCI layout")
	}
	if err == nil {
		err = v.putFile(layoutFile, []byte(layoutVersion))
	}
	if err != nil || v.Check {
		return release, err
	}
	done, err := useLayout(v.root, tidy...)
	if err != nil {
		return release, err
	}
	if v.Mirror {
		unlock()
		return func() { done(); _ = v.root.Close() }, nil
	}
	locked := release
	return func() { done(); locked() }, nil
}

func (v *layoutUpdate) copyImage(ctx context.Context, im VendoredImage) (layoutEntry, error) {
	src, err := ParseReference(im.Name)
	if err != nil {
		return layoutEntry{}, err
	}
	up, err := v.client.upstream(Reference{Kind: Remote, Name: src.Name, Digest: im.Digest})
	if err != nil {
		return layoutEntry{}, err
	}
	data, err := up.manifest(ctx, im.Digest)
	if err != nil {
		return layoutEntry{}, err
	}
	parts, err := v.client.listParts(ctx, up, im.Digest, data, !v.Mirror)
	if err != nil {
		return layoutEntry{}, err
	}
	for _, p := range parts {
		if err := v.copyPart(ctx, up, p); err != nil {
			return layoutEntry{}, err
		}
	}
	root := parts[len(parts)-1]
	return layoutEntry{
		MediaType: root.mediaType, Digest: root.digest, Size: int(root.size),
		Annotations: map[string]string{refName: src.String()},
	}, nil
}

// copyPart copies one part to the layout, unless the layout has it.
func (v *layoutUpdate) copyPart(ctx context.Context, from origin, p part) error {
	name, err := blobPath(p.digest)
	if err != nil {
		return err
	}
	if v.need[name] {
		return nil
	}
	v.need[name] = true
	v.report.Bytes += p.size
	lock := v.client.lockFor("layout " + v.dir.String() + " " + p.digest)
	lock.Lock()
	defer lock.Unlock()
	if v.hasDigest(name, p.digest) {
		v.report.Kept++
		return nil
	}
	v.report.Added = append(v.report.Added, name)
	v.report.NewBytes += p.size
	if v.Check {
		return nil
	}
	// Remove the damaged file first: the vendored layout is also a source of blobs.
	if err := v.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	held := v.client.Store.Has(p.digest)
	r, err := openVerified(ctx, from, p)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // ignore the error: the part was only read
	if err := writeFile(v.root, name, r); err != nil || held || !v.Mirror {
		return err
	}
	return v.client.removeBlob(p.digest)
}

// hasDigest reports whether the content of a file in the layout has this digest.
func (v *layoutUpdate) hasDigest(name, digest string) bool {
	if v.root == nil {
		return false
	}
	f, err := v.root.Open(name)
	if err != nil {
		return false
	}
	content := store.NewVerifier(f, digest, -1)
	defer func() { _ = content.Close() }() // ignore the error: the file was only read
	return content.Drain() == nil
}

// writeFile writes the content of r to a file of a layout, atomically.
func writeFile(root *os.Root, name string, r io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, temporary, err := filetree.CreateTemp(root, path.Dir(name), tempBlob)
	if err != nil {
		return err
	}
	defer func() { _ = root.Remove(temporary) }() // after a successful rename, there is nothing to remove
	_, err = io.Copy(f, r)
	if err := errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return root.Rename(temporary, name)
}

const tempBlob = ".new-"

// finish writes the index and removes unneeded blobs.
func (v *layoutUpdate) finish(entries []layoutEntry) error {
	lock := v.client.lockFor("layout " + v.dir.String())
	lock.Lock()
	defer lock.Unlock()
	if v.Mirror && !v.Check {
		unlock, err := lockLayout(v.root)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if v.Mirror {
		entries = append(entries, v.otherEntries(entries)...)
	}
	index, err := formatIndex(entries)
	if err != nil {
		return err
	}
	if err := v.putFile("index.json", index); err != nil || v.Mirror {
		return err
	}
	return v.prune()
}

// otherEntries returns the entries of the existing index whose names are not in entries.
func (v *layoutUpdate) otherEntries(entries []layoutEntry) []layoutEntry {
	index, err := (&layout{files: dirFiles{v.root.FS()}, limit: v.client.Limits.withDefaults().Manifest}).index()
	if err != nil {
		return nil // there is no index, or it is invalid
	}
	return slices.DeleteFunc(index.Manifests, func(old layoutEntry) bool {
		return slices.ContainsFunc(entries, func(e layoutEntry) bool { return e.Annotations[refName] == old.Annotations[refName] })
	})
}

// putFile writes a file of the layout, unless its content is the same.
func (v *layoutUpdate) putFile(name string, data []byte) error {
	v.report.Bytes += int64(len(data))
	if v.hasDigest(name, store.DigestOf(data)) {
		v.report.Kept++
		return nil
	}
	v.report.Added = append(v.report.Added, name)
	if v.Check {
		return nil
	}
	return replaceFile(v.root, name, data)
}

// prune removes unneeded blobs, and temporary files that killed processes left.
func (v *layoutUpdate) prune() error {
	if v.root == nil {
		return nil
	}
	files, err := fs.ReadDir(v.root.FS(), blobsDir)
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
		if err := v.root.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// VendoredDigest returns the digest that a reference by tag has in the vendored layout, or "" if
// the layout does not contain it.
func (c *Client) VendoredDigest(ref string) string {
	src, err := ParseReference(ref)
	if err != nil || src.Digest != "" {
		return src.Digest
	}
	return c.vendored().tag(src)
}
