package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/disk"
	"github.com/quayside/quayside/internal/stamp"
	"github.com/quayside/quayside/registry"
)

// subject is a catalog that was found but not read.
type subject struct {
	name  string         // of its index
	looks []func() state // ways to find out its state: the first that fits the index is right, the last one always
	tree  func() (*tree, error)
	close func()
}

// now returns the state that sub is in.
func (sub *subject) now() state {
	if len(sub.looks) == 0 {
		return state{}
	}
	return sub.looks[len(sub.looks)-1]()
}

// state is what a catalog is at some time.
type state struct {
	key   string   // differs from that of any other state
	keep  bool     // an index of the state is of use later
	names []string // of a directory's files
}

// subject finds what a reference names, without reading it.
func (s *space) subject(ctx context.Context, client *registry.Client, ref string) (*subject, error) {
	switch scheme, rest, _ := strings.Cut(ref, ":"); scheme {
	case "dir", "bundles", "package-manifests", "sqlite":
		return s.fileSubject(ctx, client, ref, rest)
	case "oci-archive", "docker-archive":
		src, err := registry.ParseSource(ref)
		if err != nil {
			return nil, err
		}
		return s.fileSubject(ctx, client, ref, src.Name)
	case "oci", "image":
		im, err := s.openImage(ctx, client, ref)
		if err != nil {
			return nil, err
		}
		name := "image " + string(im.Digest())
		return &subject{
			name:  name,
			looks: []func() state{func() state { return state{key: s.version + " " + name, keep: true} }},
			tree:  func() (*tree, error) { return treeOf(ctx, im) },
			close: func() { _ = im.Close() },
		}, nil
	default:
		t, err := s.tree(ctx, client, ref)
		return &subject{tree: func() (*tree, error) { return t, nil }, close: func() {}}, err
	}
}

// fileSubject is a catalog of files that are not named by a digest: a directory
// with all that lies in it, or one file. Its path is part of ref.
func (s *space) fileSubject(ctx context.Context, client *registry.Client, ref, path string) (*subject, error) {
	abs, err := filepath.Abs(s.path(path))
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(s.path(path)) // whose error names it as the user does
	if err != nil {
		return nil, err
	}
	name := strings.Replace(ref, path, abs, 1)
	of := func(st stamp.Stamp, err error) state {
		if err != nil {
			return state{} // reading it says what is wrong
		}
		return state{s.version + " " + name + " " + st.Text(), st.Settled(), st.Names()}
	}
	sub := &subject{
		name:  name,
		tree:  func() (*tree, error) { return s.tree(ctx, client, ref) },
		close: func() {},
	}
	if !info.IsDir() {
		fsys := os.DirFS(filepath.Dir(abs))
		sub.looks = []func() state{func() state {
			st := of(stamp.Again(fsys, []string{filepath.Base(abs)}))
			st.names = nil // there is nothing to remember
			return st
		}}
		return sub, nil
	}
	fsys := os.DirFS(abs)
	sub.looks = []func() state{
		func() state {
			names, _ := client.Store.Record(namesKind, name) // any names will do, for they are checked
			return of(stamp.Again(fsys, strings.Split(string(names), "\n")))
		},
		func() state { return of(stamp.Of(fsys)) },
	}
	return sub, nil
}

// read reads the whole catalog and writes its index.
func (sub *subject) read(ctx context.Context, client *registry.Client, src source) (*catalog.Catalog, error) {
	now := sub.now() // before the first byte is read
	t, err := sub.tree()
	if err != nil {
		return nil, err
	}
	defer t.close()
	return sub.whole(ctx, client, src, t, now)
}

// whole reads the whole catalog from t and writes its index.
func (sub *subject) whole(ctx context.Context, client *registry.Client, src source, t *tree, now state) (*catalog.Catalog, error) {
	content, err := t.content(ctx)
	if err != nil {
		return nil, err
	}
	if content.Digest, err = t.digest(); err != nil {
		return nil, err
	}
	src.fill(&content)
	cat, err := catalog.New(content)
	if err == nil && now.keep {
		sub.writeIndex(client, t, now, cat)
	}
	return cat, err
}

// writeIndex leaves an index for the next run. That it cannot be written, say
// to a read-only disk, costs that run time and no more.
func (sub *subject) writeIndex(client *registry.Client, t *tree, now state, cat *catalog.Catalog) {
	err := client.Store.PutFile(indexKind, sub.name, func(f *os.File) error {
		return disk.Write(f, now.key, t.kept(cat.Digest()), cat)
	})
	if err == nil {
		sub.keepRecords(client, t, now, cat.Digest())
	}
}

// keepRecords keeps what belongs to an index but is not in it.
func (sub *subject) keepRecords(client *registry.Client, t *tree, now state, digest catalog.Digest) {
	if now.names != nil {
		_ = client.Store.PutRecord(namesKind, sub.name, []byte(strings.Join(now.names, "\n")))
	}
	if digest != "" && t.kept(digest) == "" {
		sub.keepDigest(client, now, digest)
	}
}

// keepDigest remembers the digest of a directory.
func (sub *subject) keepDigest(client *registry.Client, now state, digest catalog.Digest) {
	_ = client.Store.PutRecord(digestKind, sub.name, []byte(now.key+"\n"+string(digest)))
}
