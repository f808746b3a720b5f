package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// group is what discovery says of one group and version.
type group struct {
	once  sync.Once
	kinds map[string]resource
	err   error // an *answer where the server has no such group or cannot say
}

// resource is how a kind is addressed.
type resource struct {
	path       string // "/apis/apps/v1"
	plural     string // "deployments"
	namespaced bool
}

// at returns the path of all objects in a namespace, or everywhere where that
// is empty.
func (r resource) at(namespace string) string {
	if r.namespaced && namespace != "" {
		return r.path + "/namespaces/" + url.PathEscape(namespace) + "/" + r.plural
	}
	return r.path + "/" + r.plural
}

// ErrNoKind is a kind that the server does not serve.
var ErrNoKind = errors.New("no such kind")

// Path returns where the server has the objects of a kind in a namespace, or in the
// whole cluster where that is empty. The error is ErrNoKind where it does not serve
// the kind, an *UnreachableError, that of ctx, or what the server said.
func (c *Cluster) Path(ctx context.Context, apiVersion, kind, namespace string) (string, error) {
	r, err := c.resource(ctx, apiVersion, kind)
	return r.at(namespace), err
}

// resource asks the server how it serves a kind, once for each group and
// version. The error is ErrNoKind where it does not, else as that of get.
func (c *Cluster) resource(ctx context.Context, apiVersion, kind string) (resource, error) {
	c.mu.Lock()
	g := c.groups[apiVersion]
	if g == nil {
		g = &group{}
		c.groups[apiVersion] = g
	}
	c.mu.Unlock()
	g.once.Do(func() { g.kinds, g.err = c.discover(ctx, apiVersion) })
	if g.err != nil {
		return resource{}, g.err
	}
	r, ok := g.kinds[kind]
	if !ok {
		return resource{}, fmt.Errorf("%w: the cluster serves no kind %s in %s", ErrNoKind, kind, apiVersion)
	}
	return r, nil
}

func (c *Cluster) discover(ctx context.Context, apiVersion string) (map[string]resource, error) {
	path := "/api/" + url.PathEscape(apiVersion)
	if name, version, ok := strings.Cut(apiVersion, "/"); ok {
		path = "/apis/" + url.PathEscape(name) + "/" + url.PathEscape(version)
	}
	var list struct {
		Resources []struct {
			Name       string `json:"name"`
			Kind       string `json:"kind"`
			Namespaced bool   `json:"namespaced"`
		} `json:"resources"`
	}
	err := c.get(ctx, path, nil, plainJSON, longest, &list)
	var said *answer
	if errors.As(err, &said) && said.code == http.StatusNotFound {
		return nil, fmt.Errorf("%w: the cluster serves no %s", ErrNoKind, apiVersion)
	}
	if err != nil {
		return nil, err
	}
	kinds := map[string]resource{}
	for _, r := range list.Resources {
		if !strings.Contains(r.Name, "/") { // status, scale and the like
			kinds[r.Kind] = resource{path: path, plural: url.PathEscape(r.Name), namespaced: r.Namespaced}
		}
	}
	return kinds, nil
}
