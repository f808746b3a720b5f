package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/quayside/quayside/internal/diag"
)

// Options select the cluster to read, and its timeouts.
type Options struct {
	File      string        // the only kubeconfig to read; empty: use Files
	Files     []string      // kubeconfigs to merge: the first that sets a value takes precedence; missing files are skipped
	Context   string        // name of the context; empty: the current context of the kubeconfig
	InCluster bool          // use the ServiceAccount of the pod if there is no kubeconfig
	UserAgent string        // such as "quayside/v1.0.0"
	Timeout   time.Duration // maximum time for each response; 0: 30 seconds
}

// inCluster is used as the context name for the ServiceAccount of a pod.
const inCluster = "in-cluster"

// Contexts returns the names of the contexts in the kubeconfigs, sorted.
func Contexts(opt Options) ([]string, error) {
	config, err := opt.load()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(config.Contexts)), nil
}

// Open reads the kubeconfig and returns a client for the selected context. It sends no request.
func Open(opt Options) (*Client, error) {
	config, name, err := opt.login()
	if err != nil {
		return nil, err
	}
	config.UserAgent = opt.UserAgent
	config.QPS = -1 // no rate limit by client-go: limitedTransport limits requests
	config.WarningHandler = rest.NoWarnings{}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("context %q: the server's address: %w", name, withoutAddress(err))
	}
	if u := server.User; u != nil {
		server.User = nil
		if password, has := u.Password(); has && config.Username == "" && config.BearerToken == "" {
			config.Username, config.Password = u.Username(), password
		}
		config.Host = server.String()
	}
	sender, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("context %q: %w", name, err)
	}
	c, err := newClient(config, &http.Client{
		Transport:     &limitedTransport{cmp.Or(sender.Transport, http.DefaultTransport), cmp.Or(opt.Timeout, 30*time.Second), make(chan struct{}, maxRequests)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	if err != nil {
		return nil, fmt.Errorf("context %q: %w", name, withoutAddress(err))
	}
	c.Context, c.Server = name, strings.TrimSuffix(server.String(), "/")
	return c, nil
}

// login returns the configuration for connecting to the cluster, and the name of the context.
func (opt Options) login() (*rest.Config, string, error) {
	loaded, err := opt.load()
	if err != nil {
		return nil, "", err
	}
	if len(loaded.Contexts) == 0 && len(loaded.Clusters) == 0 {
		if opt.InCluster && opt.Context == "" {
			config, err := rest.InClusterConfig()
			return config, inCluster, err
		}
		return nil, "", fmt.Errorf("no kubeconfig with a context (tried %s): specify one with --kubeconfig", strings.Join(opt.files(), ", "))
	}
	name := cmp.Or(opt.Context, loaded.CurrentContext)
	names := slices.Sorted(maps.Keys(loaded.Contexts))
	switch {
	case name == "":
		return nil, "", fmt.Errorf("the kubeconfig has no current context: specify one with --context (available: %s)", strings.Join(names, ", "))
	case !slices.Contains(names, name):
		return nil, "", fmt.Errorf("no context %q in the kubeconfig (available: %s)%s", name, strings.Join(names, ", "), diag.DidYouMean(name, names))
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*loaded, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("context %q: %w", name, err)
	}
	return config, name, nil
}

func (opt Options) load() (*api.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: opt.File, Precedence: opt.Files}
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return config, nil
}

func (opt Options) files() []string {
	if opt.File != "" {
		return []string{opt.File}
	}
	return opt.Files
}

// withoutAddress returns the cause of an error of net/url or net/http, because the error itself
// contains the address, which may contain a password.
func withoutAddress(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
