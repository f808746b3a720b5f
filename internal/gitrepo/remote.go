package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Limits for a commit from a server.
const (
	maxObjects  = 1_000_000 // maximum number of commits, directories and files
	maxInflated = 2 << 30   // maximum bytes of all of them
)

// Server is a repository on an HTTP server, for reading commits without a clone. The transport limits the size
// of a response, and checks addresses.
type Server struct {
	URL       string
	Transport http.RoundTripper
	Username  string // empty: no login
	Password  string
}

// connect starts a session and returns the references of the server.
func (s Server) connect(ctx context.Context) (transport.UploadPackSession, *packp.AdvRefs, error) {
	at, err := transport.NewEndpoint(s.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("%q is not a URL", s.URL)
	}
	var login transport.AuthMethod
	if s.Username != "" {
		login = &githttp.BasicAuth{Username: s.Username, Password: s.Password}
	}
	session, err := githttp.NewClient(&http.Client{Transport: s.Transport}).NewUploadPackSession(at, login)
	if err != nil {
		return nil, nil, err
	}
	refs, err := session.AdvertisedReferencesContext(ctx)
	return session, refs, err
}

// Tags returns the commits of all tags by name.
func (s Server) Tags(ctx context.Context) (map[string]string, error) {
	_, refs, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name := range refs.References {
		if ref := plumbing.ReferenceName(name); ref.IsTag() {
			out[ref.Short()] = commitOf(refs, ref).String()
		}
	}
	return out, nil
}

// commitOf returns the hash of the commit that a tag refers to.
func commitOf(refs *packp.AdvRefs, tag plumbing.ReferenceName) plumbing.Hash {
	if commit, annotated := refs.Peeled[string(tag)]; annotated {
		return commit
	}
	return refs.References[string(tag)]
}

// Read downloads the commit of a tag, without its history, and calls read with it. The commit is valid until
// read returns. If the tag no longer refers to this commit, Read returns an error.
func (s Server) Read(ctx context.Context, tag, commit string, read func(v *Revision) error) error {
	session, refs, err := s.connect(ctx)
	if err != nil {
		return err
	}
	name := plumbing.NewTagReferenceName(tag)
	if got := commitOf(refs, name); got.String() != commit {
		return fmt.Errorf("tag %q refers to commit %s, expected %s", tag, got, commit)
	}
	req := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	req.Wants = []plumbing.Hash{refs.References[string(name)]}
	req.Depth = packp.DepthCommits(1)
	if !refs.Capabilities.Supports(capability.Shallow) {
		return errors.New("the server cannot send a commit without its history")
	}
	if err := req.Capabilities.Set(capability.Shallow); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "quayside-git-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	response, err := session.UploadPack(ctx, req)
	if err != nil {
		return err
	}
	defer response.Close()
	repo, err := unpack(dir, packIn(req.Capabilities, response))
	if err != nil {
		return err
	}
	v, err := repo.resolveRevision(tag, commit)
	if err != nil {
		return err
	}
	return read(v)
}

// packIn returns the pack in a response.
func packIn(with *capability.List, response io.Reader) io.Reader {
	switch {
	case with.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, response)
	case with.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, response)
	}
	return response
}

// unpack returns a repository in dir with the objects of a pack.
func unpack(dir string, pack io.Reader) (*Repo, error) {
	f, err := os.CreateTemp(dir, "pack-")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := io.Copy(f, pack); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if err := checkPack(f); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	objects := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault())
	opened, err := git.Init(objects, nil)
	if err != nil {
		return nil, err
	}
	return &Repo{git: opened, objects: objects, gitDir: dir, common: dir}, packfile.UpdateObjectStorage(objects, f)
}

// checkPack checks the number and size of the objects in a pack, before go-git holds them in memory.
func checkPack(pack io.ReadSeeker) error {
	scan := packfile.NewScanner(pack)
	_, count, err := scan.Header()
	if err != nil {
		return err
	}
	if count > maxObjects {
		return fmt.Errorf("%d objects, the limit is %d", count, maxObjects)
	}
	var total int64
	for range count {
		h, err := scan.NextObjectHeader()
		if err != nil {
			return err
		}
		size := h.Length
		if size > maxFile {
			return fmt.Errorf("an object has %d bytes, the limit is %d", size, int64(maxFile))
		}
		start := &firstBytes{}
		if _, _, err := scan.NextObject(start); err != nil { // more objects than h.Length are an error
			return err
		}
		if h.Type.IsDelta() {
			if size = start.deltaSize(); size > maxFile || size < 0 {
				return fmt.Errorf("an object has %d bytes, the limit is %d", size, int64(maxFile))
			}
		}
		if total += size; total > maxInflated {
			return fmt.Errorf("more than %d bytes", int64(maxInflated))
		}
	}
	return nil
}

// firstBytes keeps the first bytes that are written to it.
type firstBytes struct{ data []byte }

// Write implements io.Writer.
func (f *firstBytes) Write(p []byte) (int, error) {
	if n := 20 - len(f.data); n > 0 { // two numbers of 64 bits
		f.data = append(f.data, p[:min(n, len(p))]...)
	}
	return len(p), nil
}

// deltaSize returns the size of the object that a delta results in, which is the second number in the delta.
func (f *firstBytes) deltaSize() int64 {
	numbers, at, shift := [2]int64{}, 0, 0
	for _, b := range f.data {
		if shift > 56 {
			return -1
		}
		numbers[at] |= int64(b&0x7f) << shift
		if shift += 7; b&0x80 != 0 {
			continue
		}
		if at++; at == len(numbers) {
			return numbers[1]
		}
		shift = 0
	}
	return -1
}
