package oci

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

const (
	tagLists = "tags" // kind of record in the store: the last known tags of a repository
	maxTags  = 50_000
)

// Tags returns the tags of a repository, "registry/name", sorted. It asks the first mirror that lists tags,
// or else the registry. With Offline, it returns the tags of the last call.
func (c *Client) Tags(ctx context.Context, repository string) ([]string, error) {
	src, err := ParseReference(string(Remote) + ":" + repository)
	if err != nil {
		return nil, err
	}
	up, err := c.upstream(src)
	if err != nil {
		return nil, err
	}
	if c.Offline {
		record, err := c.Store.Record(tagLists, src.Name)
		if err != nil {
			return nil, wrapImageError(repository, &OfflineError{Missing: "tags of " + src.Name})
		}
		return strings.Fields(string(record)), nil
	}
	var errs []error
	for _, repo := range up.repos {
		tags, err := c.listTags(ctx, repo)
		if err == nil {
			slices.Sort(tags)
			return tags, c.Store.PutRecord(tagLists, src.Name, []byte(strings.Join(tags, "\n")))
		}
		errs = append(errs, err)
	}
	return nil, wrapImageError(repository, joinAttemptErrors(errs))
}

// listTags fetches the tags of a repository.
func (c *Client) listTags(ctx context.Context, repo name.Repository) ([]string, error) {
	connection, err := c.connect(ctx, repo)
	if err != nil {
		return nil, err
	}
	pages, err := connection.puller.Lister(ctx, repo)
	if err != nil {
		return nil, connection.redact(err)
	}
	var out []string
	for pages.HasNext() {
		page, err := pages.Next(ctx)
		if err != nil {
			return nil, connection.redact(err)
		}
		if out = append(out, page.Tags...); len(out) > maxTags {
			return nil, fmt.Errorf("repository %s has more than %d tags", repo.Name(), maxTags)
		}
	}
	return out, nil
}
