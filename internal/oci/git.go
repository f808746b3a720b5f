package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"time"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/store"
)

// Kinds of records in the store: the last known tags of a Git repository, and the files of a commit.
const (
	gitTags  = "git-tags"
	gitFiles = "git-files"
)

// Limits for Git servers.
const (
	maxPack    = 512 << 20 // maximum bytes of a response with a commit
	maxTagList = 32 << 20  // maximum bytes of a response with the list of tags, which is kept in memory
	gitTimeout = 10 * time.Minute
)

// gitServer returns a Git repository on a server. Responses above limit bytes are errors. Requests use the
// login for images of the same host.
func (c *Client) gitServer(at string, limit int64) (gitrepo.Server, error) {
	u, err := url.Parse(at)
	if err != nil {
		return gitrepo.Server{}, fmt.Errorf("%q is not a URL", at)
	}
	through, login, err := c.connectTo(u, referrer{}, limit)
	return gitrepo.Server{URL: at, Transport: through, Username: login.login.config.Username, Password: login.login.config.Password}, err
}

// GitTags returns the commit of each tag of a Git repository, by the name of the tag. The rules for URLs are
// the same as in Download. With Offline, it returns the tags of the last call.
func (c *Client) GitTags(ctx context.Context, at string) (map[string]string, error) {
	var tags map[string]string
	if c.Offline {
		record, err := c.Store.Record(gitTags, at)
		if err != nil || json.Unmarshal(record, &tags) != nil {
			return nil, &OfflineError{Missing: "tags of " + at}
		}
		return tags, nil
	}
	server, err := c.gitServer(at, maxTagList)
	if err != nil {
		return nil, fmt.Errorf("listing the tags of %s: %w", at, err)
	}
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	if tags, err = server.Tags(ctx); err != nil {
		return nil, fmt.Errorf("listing the tags of %s: %w", at, err)
	}
	record, err := json.Marshal(tags)
	if err == nil {
		_ = c.Store.PutRecord(gitTags, at, record) // without a record, Offline does not find the tags
	}
	return tags, nil
}

// GitFiles calls choose with the files of the commit of a tag, and returns its result as a file system. The
// store keeps the result by URL, commit and key. Different functions choose therefore need different keys.
// The rules for URLs are the same as in Download.
func (c *Client) GitFiles(ctx context.Context, at, tag, commit, key string, choose func(commit fs.FS) (map[string][]byte, error)) (fs.FS, error) {
	name := at + " " + commit + " " + key
	if digest, err := c.Store.Record(gitFiles, name); err == nil {
		if data, err := c.Store.Read(string(digest), maxPack); err == nil {
			return filesIn(data)
		}
	}
	if c.Offline {
		return nil, &OfflineError{Missing: fmt.Sprintf("tag %s of %s", tag, at)}
	}
	server, err := c.gitServer(at, maxPack)
	if err != nil {
		return nil, fmt.Errorf("tag %s of %s: %w", tag, at, err)
	}
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	var data []byte
	err = server.Read(ctx, tag, commit, func(v *gitrepo.Revision) error {
		files, err := choose(v.FS("."))
		if err == nil {
			data, err = json.Marshal(files)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tag %s of %s: %w", tag, at, err)
	}
	digest := store.DigestOf(data)
	if c.Store.Put(ctx, digest, bytes.NewReader(data), maxPack) == nil {
		_ = c.Store.PutRecord(gitFiles, name, []byte(digest)) // without a record, the next run downloads again
	}
	return filesIn(data)
}

// filesIn returns the files that GitFiles encoded.
func filesIn(data []byte) (fs.FS, error) {
	var files map[string][]byte
	if err := json.Unmarshal(data, &files); err != nil {
		return nil, err
	}
	t := filetree.New()
	for name, data := range files {
		if err := t.Add(name, data); err != nil {
			return nil, err
		}
	}
	return t.FS(), nil
}
