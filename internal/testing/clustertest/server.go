// Package clustertest provides an API server on loopback for tests of cluster readers. It implements only the
// necessary part of the Kubernetes API: discovery, single objects, paged lists with label selectors,
// metadata-only responses, errors as Status objects, TLS with its own certificate, and a bearer token. It
// runs no controllers. [Server.Settle] sets the status that controllers would set.
package clustertest

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/servertest"
)

// Token is the bearer token of the server.
const Token = "clustertest-token-8c1f"

// Object is an object of the API, as decoded from JSON.
type Object = map[string]any

// Server is an API server. It is safe for concurrent use.
type Server struct {
	URL string

	servertest.Guard // Requests returns method and URL

	server  *httptest.Server
	mu      sync.Mutex
	objects map[string]Object // key: "Kind.apiVersion namespace/name"
}

// New starts a server, and stops it at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{objects: map[string]Object{}}
	s.Server = http.HandlerFunc(s.answer)
	s.Line = func(r *http.Request) string { return r.Method + " " + r.URL.String() }
	s.server = httptest.NewUnstartedServer(s)
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0) // do not log errors: some tests use clients that reject the certificate
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	s.URL = s.server.URL
	return s
}

// Close stops the server before the end of the test.
func (s *Server) Close() { s.server.Close() }

// Kubeconfig returns a kubeconfig with the current context "test". For each name in more, it has another context
// with the same server and credentials.
func (s *Server) Kubeconfig(more ...string) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	return KubeconfigOf(s.URL, ca, Token, more...)
}

// KubeconfigOf is like [Server.Kubeconfig], for any server and token. If ca is nil, the client trusts the CAs
// of the machine.
func KubeconfigOf(server string, ca []byte, token string, more ...string) string {
	contexts := []any{}
	for _, name := range append([]string{"test"}, more...) {
		contexts = append(contexts, Object{"name": name, "context": Object{"cluster": "test", "user": "test"}})
	}
	config := Object{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{Object{"name": "test", "cluster": Object{"server": server, "certificate-authority-data": ca}}},
		"users":    []any{Object{"name": "test", "user": Object{"token": token}}},
		"contexts": contexts,
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		panic(err) // impossible: all values are strings
	}
	return string(text) + "\n"
}

// Put adds objects, or replaces them.
func (s *Server) Put(objects ...Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		s.objects[objectKey(o)] = o
	}
}

// Delete removes an object, if it exists.
func (s *Server) Delete(kind, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.objects, func(_ string, o Object) bool { return o["kind"] == kind && hasName(o, namespace, name) })
}

// Edit changes an object in place. It panics if the object does not exist.
func (s *Server) Edit(kind, namespace, name string, edit func(Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		if o["kind"] == kind && hasName(o, namespace, name) {
			edit(o)
			return
		}
	}
	panic(fmt.Sprintf("clustertest: no %s %s/%s", kind, namespace, name))
}

func objectKey(o Object) string {
	return fmt.Sprintf("%v.%v %s/%s", o["kind"], o["apiVersion"], k8s.Text(o, "metadata", "namespace"), k8s.Text(o, "metadata", "name"))
}

func hasName(o Object, namespace, name string) bool {
	return k8s.Text(o, "metadata", "namespace") == namespace && k8s.Text(o, "metadata", "name") == name
}

// Refuse writes an error response with a Status object.
func Refuse(w http.ResponseWriter, code int, reason, message string) {
	writeJSON(w, code, Object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(http.ErrAbortHandler) // the client has closed the connection
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+Token {
		Refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		return
	}
	if r.Method != http.MethodGet {
		Refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "this server is only read")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/version" {
		writeJSON(w, http.StatusOK, Object{"major": "1", "minor": "36+", "gitVersion": "v1.36.3"})
		return
	}
	if r.URL.Path == "/apis" {
		s.listGroups(w)
		return
	}
	apiVersion, rest, ok := splitPath(r.URL.Path)
	kinds := s.kinds(apiVersion)
	switch {
	case !ok || len(kinds) == 0:
		Refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case len(rest) == 0:
		s.discover(w, apiVersion, kinds)
	default:
		s.objectsAt(w, r, apiVersion, kinds, rest)
	}
}

// splitPath splits a request path into the API version, such as "apps/v1", and the segments after it.
func splitPath(path string) (apiVersion string, rest []string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		return parts[1], parts[2:], true
	case len(parts) >= 3 && parts[0] == "apis":
		return parts[1] + "/" + parts[2], parts[3:], true
	}
	return "", nil, false
}

func (s *Server) discover(w http.ResponseWriter, apiVersion string, kinds []Kind) {
	var list []any
	for _, k := range kinds {
		list = append(list,
			Object{"name": k.Plural, "kind": k.Kind, "namespaced": k.Namespaced, "verbs": []any{"get", "list"}},
			Object{"name": k.Plural + "/status", "kind": k.Kind, "namespaced": k.Namespaced})
	}
	writeJSON(w, http.StatusOK, Object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": apiVersion, "resources": list})
}

// listGroups writes the list of all API groups except the core group.
func (s *Server) listGroups(w http.ResponseWriter) {
	versions := map[string][]any{}
	add := func(group, version string) {
		versions[group] = append(versions[group], Object{"groupVersion": group + "/" + version, "version": version})
	}
	for _, k := range builtinKinds() {
		if group, version, ok := strings.Cut(k.APIVersion, "/"); ok {
			add(group, version)
		}
	}
	for _, o := range s.objects {
		if o["kind"] == "CustomResourceDefinition" {
			for _, v := range k8s.Items(o, "spec", "versions") {
				add(k8s.Text(o, "spec", "group"), k8s.Text(v, "name"))
			}
		}
	}
	var groups []any
	for _, group := range slices.Sorted(maps.Keys(versions)) {
		groups = append(groups, Object{"name": group, "versions": versions[group]})
	}
	writeJSON(w, http.StatusOK, Object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

// objectsAt answers a request for an object or for a list. rest is the path after the API version, in segments.
func (s *Server) objectsAt(w http.ResponseWriter, r *http.Request, apiVersion string, kinds []Kind, rest []string) {
	namespace := ""
	if len(rest) >= 3 && rest[0] == "namespaces" {
		namespace, rest = rest[1], rest[2:]
	}
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Plural == rest[0] })
	if i < 0 || len(rest) > 2 {
		Refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	if len(rest) == 1 {
		s.list(w, r, apiVersion, kinds[i], namespace)
		return
	}
	o, ok := s.objects[fmt.Sprintf("%s.%s %s/%s", kinds[i].Kind, apiVersion, namespace, rest[1])]
	if !ok {
		Refuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", kinds[i].Plural, rest[1]))
		return
	}
	writeJSON(w, http.StatusOK, formatObject(r, o, false))
}

// formatObject returns the whole object or only its metadata, as requested. An item of a list has no kind.
func formatObject(r *http.Request, o Object, item bool) Object {
	out := maps.Clone(o)
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		out = Object{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o["metadata"]}
	}
	if item {
		delete(out, "apiVersion")
		delete(out, "kind")
	}
	return out
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, apiVersion string, k Kind, namespace string) {
	query := r.URL.Query()
	wanted, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		Refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	var found []Object
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		o := s.objects[name]
		if o["kind"] != k.Kind || o["apiVersion"] != apiVersion || namespace != "" && k8s.Text(o, "metadata", "namespace") != namespace {
			continue
		}
		if wanted.Matches(labels.Set(k8s.TextMap(o, "metadata", "labels"))) {
			found = append(found, formatObject(r, o, true))
		}
	}
	from, _ := strconv.Atoi(query.Get("continue"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	from = min(from, len(found))
	to := min(from+cmp.Or(limit, len(found)), len(found))
	meta := Object{"resourceVersion": "7"}
	if to < len(found) {
		meta["continue"], meta["remainingItemCount"] = strconv.Itoa(to), len(found)-to
	}
	writeJSON(w, http.StatusOK, Object{"kind": k.Kind + "List", "apiVersion": apiVersion, "metadata": meta, "items": found[from:to:to]})
}
