package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/quayside/quayside/internal/sanitize"
)

// Client reads from the API server of one kubeconfig context. It is safe for concurrent use.
type Client struct {
	Context string // name of the context; "in-cluster" for the ServiceAccount of a pod
	Server  string // address of the server, without credentials

	rest     rest.Interface
	objects  dynamic.Interface
	metadata metadata.Interface // client for kinds of which only the metadata is read

	mu     sync.Mutex
	groups map[string]func() (map[string]resource, error) // cached discovery results, by "group/version"
}

// UnreachableError is returned for a cluster that gives no usable response: the connection failed,
// the server's certificate is not trusted, or the credentials were rejected.
type UnreachableError struct {
	Context, Server string
	Err             error
}

// Error returns the cause, with the context and the server.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cluster of context %q at %s: %v", e.Context, e.Server, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Forget drops the cached results of discovery, because the cluster may serve other kinds now.
func (c *Client) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.groups)
}

// convertError converts an error of client-go: the failure of a single request to an
// *apierrors.StatusError, and the failure of the whole cluster to an *UnreachableError. It returns an error
// of ctx unchanged. The result never contains the server's address, which may contain a password.
func (c *Client) convertError(ctx context.Context, err error) error {
	var status *apierrors.StatusError
	var sent *url.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case apierrors.IsUnauthorized(err):
		return c.newUnreachableError(errors.New("credentials rejected (401 Unauthorized)"))
	case errors.As(err, &status):
		status.ErrStatus.Message = sanitize.TruncateLine(status.ErrStatus.Message, maxMessageBytes)
		return status
	case errors.As(err, &sent):
		return c.newUnreachableError(sent.Err)
	default:
		return newStatusError(0, "decoding the response: "+sanitize.TruncateLine(err.Error(), maxMessageBytes))
	}
}

func (c *Client) newUnreachableError(err error) error {
	return &UnreachableError{Context: c.Context, Server: c.Server, Err: err}
}

// hasCode reports whether err is a response with one of the HTTP status codes.
func hasCode(err error, codes ...int32) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && slices.Contains(codes, status.ErrStatus.Code)
}

// newClient returns a client for the server and the credentials in config.
func newClient(config *rest.Config, client *http.Client) (*Client, error) {
	objects, err := rest.UnversionedRESTClientForConfigAndClient(dynamic.ConfigFor(config), client)
	if err != nil {
		return nil, err
	}
	objectMetadata, err := metadata.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &Client{rest: objects, objects: dynamic.New(objects), metadata: objectMetadata, groups: map[string]func() (map[string]resource, error){}}, nil
}
