package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// resource is the API resource that serves a kind.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

// requestNamespace returns the namespace for a request. For a namespaced kind this is namespace, where ""
// means all namespaces. For a cluster-scoped kind it is "".
func (r resource) requestNamespace(namespace string) string {
	if r.namespaced {
		return namespace
	}
	return ""
}

// noKindError is returned for a kind that the server does not serve.
type noKindError struct{ message string }

func (e *noKindError) Error() string { return e.message }

// resource returns the API resource of a kind. It sends one discovery request for each group and
// version. It returns a *noKindError if the server does not serve the kind, or an error from
// convertError.
func (c *Client) resource(ctx context.Context, apiVersion, kind string) (resource, error) {
	c.mu.Lock()
	discovered := c.groups[apiVersion]
	if discovered == nil {
		discovered = sync.OnceValues(func() (map[string]resource, error) { return c.discover(ctx, apiVersion) })
		c.groups[apiVersion] = discovered
	}
	c.mu.Unlock()
	kinds, err := discovered()
	if err != nil {
		return resource{}, err
	}
	r, ok := kinds[kind]
	if !ok {
		return resource{}, &noKindError{"the cluster serves no kind " + kind + " in " + apiVersion}
	}
	return r, nil
}

// discover requests the kinds of one group and version. It does not use the discovery package of
// client-go, which would link the types of all APIs into the program.
func (c *Client) discover(ctx context.Context, apiVersion string) (map[string]resource, error) {
	path := []string{"api", apiVersion}
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		path = []string{"apis", group, version}
	}
	none := &noKindError{"the cluster serves no " + apiVersion}
	if slices.ContainsFunc(path, func(s string) bool { return s == "" || len(rest.IsValidPathSegmentName(s)) > 0 }) {
		return nil, none
	}
	var list metav1.APIResourceList
	err := c.convertError(ctx, c.rest.Get().AbsPath(path...).Do(ctx).Into(&list))
	if hasCode(err, http.StatusNotFound) {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	version := schema.FromAPIVersionAndKind(apiVersion, "").GroupVersion()
	kinds := map[string]resource{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") { // skip subresources such as status and scale
			kinds[r.Kind] = resource{version.WithResource(r.Name), r.Namespaced}
		}
	}
	return kinds, nil
}

// Version returns the minor version of the API server, such as "1.36", or "" if the server does not
// report it.
func (c *Client) Version(ctx context.Context) (string, error) {
	text, err := c.rest.Get().AbsPath("version").Do(ctx).Raw()
	if err = c.convertError(ctx, err); hasCode(err, http.StatusNotFound) {
		return "", nil
	}
	var info struct{ Major, Minor string }
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	minor := strings.TrimRight(info.Minor, "+") // some distributions append "+" to the minor version
	if err != nil || info.Major == "" || minor == "" {
		return "", err
	}
	return info.Major + "." + minor, nil
}

// APIs returns the group and version of every API of the server, sorted. It omits the core group.
func (c *Client) APIs(ctx context.Context) ([]string, error) {
	var list metav1.APIGroupList
	if err := c.convertError(ctx, c.rest.Get().AbsPath("apis").Do(ctx).Into(&list)); err != nil {
		return nil, err
	}
	var out []string
	for _, group := range list.Groups {
		for _, v := range group.Versions {
			out = append(out, v.GroupVersion)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
