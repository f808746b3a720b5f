package runtest

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/clustertest"
)

// Serve starts an API server on loopback for the objects of a cluster, and returns a kubeconfig. The server is
// closed at the end of the test. After every change, it advances the time of the cluster, so that the
// controllers can act.
func Serve(t testing.TB, c *Cluster) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler{c})
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return clustertest.KubeconfigOf(server.URL, ca, clustertest.Token)
}

type handler struct{ c *Cluster }

type object = map[string]any

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, err := h.handle(r)
	var status *apierrors.StatusError
	switch {
	case errors.As(err, &status):
		write(w, int(status.ErrStatus.Code), object{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status.ErrStatus.Code,
			"reason": status.ErrStatus.Reason, "message": status.ErrStatus.Message, "details": status.ErrStatus.Details,
		})
	case err != nil:
		clustertest.Refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
	case out == nil:
		clustertest.Refuse(w, http.StatusNotFound, "NotFound", "not found")
	default:
		write(w, http.StatusOK, out)
	}
}

func write(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

// handle handles a request. If it returns nil, the object was not found.
func (h handler) handle(r *http.Request) (any, error) {
	if r.Header.Get("Authorization") != "Bearer "+clustertest.Token {
		return nil, apierrors.NewUnauthorized("Unauthorized")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	apiVersion, rest := "", []string(nil)
	switch {
	case parts[0] == "api" && len(parts) > 1:
		apiVersion, rest = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 2:
		apiVersion, rest = parts[1]+"/"+parts[2], parts[3:]
	default:
		return nil, nil
	}
	if len(rest) == 0 {
		return h.discover(apiVersion), nil
	}
	at := k8s.Ref{APIVersion: apiVersion}
	if len(rest) > 2 && rest[0] == "namespaces" {
		at.Namespace, rest = rest[1], rest[2:]
	}
	if at.Kind = h.kinds(apiVersion)[rest[0]]; at.Kind == "" {
		return nil, nil
	}
	if len(rest) > 1 {
		at.Name = rest[1]
	}
	return h.request(r, at, body)
}

// request handles a request for objects of a kind.
func (h handler) request(r *http.Request, at k8s.Ref, body []byte) (any, error) {
	var sent object
	if len(body) > 0 && body[0] == '{' {
		if err := utiljson.Unmarshal(body, &sent); err != nil {
			return nil, err
		}
	}
	ctx, query := r.Context(), r.URL.Query()
	dryRun := query.Get("dryRun") == "All" || len(k8s.List(sent, "dryRun")) > 0
	if r.Method != http.MethodGet && !dryRun {
		defer h.c.AdvanceTime(syncDelay)
	}
	switch r.Method + " " + r.Header.Get("Content-Type") {
	case "GET ":
		if at.Name == "" {
			items, err := h.c.List(ctx, at.APIVersion, at.Kind, at.Namespace, query.Get("labelSelector"))
			return object{"kind": at.Kind + "List", "apiVersion": at.APIVersion, "metadata": object{}, "items": items}, err
		}
		o, err := h.c.Get(ctx, at)
		if o == nil {
			return nil, err
		}
		return o, err
	case "POST application/json":
		if at.Kind == "SubjectAccessReview" {
			return h.review(r, sent)
		}
		return h.c.Create(ctx, sent, dryRun)
	case "DELETE application/json":
		return object{"kind": "Status", "apiVersion": "v1", "status": "Success"}, h.c.Delete(ctx, at, cluster.DeleteOptions{
			UID: k8s.Text(sent, "preconditions", "uid"), ResourceVersion: k8s.Text(sent, "preconditions", "resourceVersion"),
			Orphan: k8s.Text(sent, "propagationPolicy") == "Orphan",
		}, dryRun)
	case "PATCH application/apply-patch+yaml":
		return h.c.Apply(ctx, sent, query.Get("fieldManager"), query.Get("force") == "true", dryRun)
	case "PATCH application/merge-patch+json":
		return h.c.Patch(ctx, at, cluster.Patch{Merge: sent}, dryRun)
	case "PATCH application/json-patch+json":
		var ops []cluster.Operation
		if err := utiljson.Unmarshal(body, &ops); err != nil {
			return nil, err
		}
		return h.c.Patch(ctx, at, cluster.Patch{JSON: ops}, dryRun)
	}
	return nil, errors.New("not implemented by the test server")
}

func (h handler) review(r *http.Request, sent object) (any, error) {
	spec := k8s.Map(sent, "spec")
	of := k8s.Map(spec, "resourceAttributes")
	allowed, err := h.c.Allowed(r.Context(), verify.Review{
		Account: k8s.Text(spec, "user"), Namespace: k8s.Text(of, "namespace"), Verb: k8s.Text(of, "verb") + k8s.Text(spec, "nonResourceAttributes", "verb"),
		Group: k8s.Text(of, "group"), Resource: k8s.Text(of, "resource"), Subresource: k8s.Text(of, "subresource"), Name: k8s.Text(of, "name"),
		Path: k8s.Text(spec, "nonResourceAttributes", "path"),
	})
	return object{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": object{"allowed": allowed}}, err
}

// kinds returns the kinds of one group and version by their plural names. It knows built-in kinds and the kinds
// of existing objects.
func (h handler) kinds(apiVersion string) map[string]string {
	out := map[string]string{}
	add := func(version, kind string) {
		if version == apiVersion {
			out[resourceName(k8s.Group(version), kind)] = kind
		}
	}
	for version, kinds := range map[string]string{
		"v1":                              "ConfigMap Namespace Pod Secret Service ServiceAccount",
		"apps/v1":                         "Deployment ReplicaSet",
		"authorization.k8s.io/v1":         "SubjectAccessReview",
		"rbac.authorization.k8s.io/v1":    "ClusterRole ClusterRoleBinding Role RoleBinding",
		"admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
		"apiextensions.k8s.io/v1":         "CustomResourceDefinition",
		"operators.coreos.com/v1alpha1":   "ClusterServiceVersion InstallPlan Subscription",
		"operators.coreos.com/v1":         "Operator OperatorGroup",
		"operators.coreos.com/v2":         "OperatorCondition",
	} {
		for _, kind := range strings.Fields(kinds) {
			add(version, kind)
		}
	}
	for _, o := range h.c.Objects() {
		add(o.APIVersion(), o.Kind())
	}
	return out
}

// resourceName returns the plural name of a kind.
func resourceName(group, kind string) string {
	return cmp.Or(k8s.Resource(group, kind), strings.ToLower(kind)+"s") // reviews are not stored objects
}

func (h handler) discover(apiVersion string) any {
	kinds := h.kinds(apiVersion)
	if len(kinds) == 0 {
		return nil
	}
	var list []any
	for name, kind := range kinds {
		list = append(list, object{"name": name, "kind": kind, "namespaced": !h.isClusterScoped(k8s.Group(apiVersion), kind)})
	}
	return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": apiVersion, "resources": list}
}

func (h handler) isClusterScoped(group, kind string) bool {
	return !k8s.Namespaced(group, kind) || slices.ContainsFunc(h.c.Objects(), func(o k8s.Object) bool { return o.Is(group, kind) && o.Namespace() == "" })
}
