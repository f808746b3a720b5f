package olm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Services implements the Services that the API server calls: it admits all requests to webhooks, converts
// custom resources by changing their version, and serves aggregated APIs without kinds. Each namespace has its
// own CA, which issues the certificates of its Services. OLM has such a CA for each operator.
type Services struct {
	Socket string // receives the API server's calls to Services

	calls  hijackedListener
	server *http.Server

	mu     sync.Mutex
	cas    map[string]*ca              // by namespace
	leaves map[string]*tls.Certificate // by Service name
}

type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// NewServices starts the servers. They end with the test.
func NewServices(t testing.TB) *Services {
	t.Helper()
	dir, err := os.MkdirTemp("", "svc") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &Services{Socket: filepath.Join(dir, "s"), cas: map[string]*ca{}, leaves: map[string]*tls.Certificate{}}
	proxied, err := net.Listen("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Handler: http.HandlerFunc(s.connect), ReadHeaderTimeout: 10 * time.Second}
	s.calls = hijackedListener{make(chan net.Conn), proxied.Addr(), make(chan struct{})}
	go func() { _ = proxy.Serve(proxied) }()
	listener := tls.NewListener(s.calls, &tls.Config{GetCertificate: s.certificate, MinVersion: tls.VersionTLS12})
	s.server = &http.Server{Handler: http.HandlerFunc(answerRequest), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listener) }()
	t.Cleanup(func() {
		_ = s.server.Close()
		_ = proxy.Close()
		_ = os.RemoveAll(dir)
	})
	return s
}

// connect accepts a CONNECT request of the API server to any Service, and hands the connection to
// s.server.
func (s *Services) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		conn.Close()
		return
	}
	select {
	case s.calls.conns <- conn:
	case <-s.calls.closed:
		conn.Close()
	}
}

// hijackedListener is a listener that returns connections that were already accepted.
type hijackedListener struct {
	conns  chan net.Conn
	addr   net.Addr
	closed chan struct{}
}

// Accept returns the next connection.
func (h hijackedListener) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept return an error.
func (h hijackedListener) Close() error { close(h.closed); return nil }

// Addr returns the address at which the connections were accepted.
func (h hijackedListener) Addr() net.Addr { return h.addr }

// certificate returns the certificate for the requested host name, such as "webhook.my-etcd.svc".
func (s *Services) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	parts := strings.Split(hello.ServerName, ".")
	if len(parts) < 3 || parts[2] != "svc" {
		return nil, fmt.Errorf("%q is not the host name of a Service", hello.ServerName)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.leaves[hello.ServerName]; found != nil {
		return found, nil
	}
	issuer, err := s.ca(parts[1])
	if err != nil {
		return nil, err
	}
	leaf, _, err := issuer.leaf(hello.ServerName)
	if err != nil {
		return nil, err
	}
	s.leaves[hello.ServerName] = leaf
	return leaf, nil
}

// ca returns the CA of a namespace.
func (s *Services) ca(namespace string) (*ca, error) {
	if found := s.cas[namespace]; found != nil {
		return found, nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "olm-selfsigned-" + namespace, Organization: []string{"Red Hat, Inc."}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(2, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	made := &ca{key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	if made.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	s.cas[namespace] = made
	return made, nil
}

// CA returns the certificate of a namespace's CA in PEM.
func (s *Services) CA(namespace string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	issuer, err := s.ca(namespace)
	if err != nil {
		return "", err
	}
	return string(issuer.pem), nil
}

// leaf returns a certificate for that name, also in the format of OLM's Secrets.
func (c *ca) leaf(name string) (*tls.Certificate, map[string]string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: c.cert.NotBefore, NotAfter: c.cert.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key.Public(), c.key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	data := map[string]string{"tls.crt": encode("CERTIFICATE", der), "tls.key": encode("PRIVATE KEY", private), "olmCAKey": base64.StdEncoding.EncodeToString(c.pem)}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, data, nil
}

// replaceCerts replaces OLM's CA in an object by the CA of the namespace of the object's Service. In a Secret,
// it replaces OLM's certificate by a certificate from the CA of the Secret's namespace.
func (s *Services) replaceCerts(o *unstructured.Unstructured) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data, has, _ := unstructured.NestedMap(o.Object, "data"); has && o.GetKind() == "Secret" && data["olmCAKey"] != nil {
		issuer, err := s.ca(o.GetNamespace())
		if err != nil {
			return err
		}
		_, made, err := issuer.leaf(strings.TrimSuffix(o.GetName(), "-cert") + "." + o.GetNamespace() + ".svc")
		if err != nil {
			return err
		}
		for key, value := range made {
			data[key] = value
		}
		return unstructured.SetNestedMap(o.Object, data, "data")
	}
	return s.replaceCAs(o.Object)
}

// replaceCAs sets the CA in every nested mapping that has a Service and a CA.
func (s *Services) replaceCAs(v any) error {
	switch v := v.(type) {
	case map[string]any:
		service, _ := v["service"].(map[string]any)
		if namespace, ok := service["namespace"].(string); ok && v["caBundle"] != nil {
			issuer, err := s.ca(namespace)
			if err != nil {
				return err
			}
			v["caBundle"] = base64.StdEncoding.EncodeToString(issuer.pem)
		}
		for key, inner := range v {
			if key == "schema" || key == "managedFields" {
				continue
			}
			if err := s.replaceCAs(inner); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range v {
			if err := s.replaceCAs(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// answerRequest answers a request to a webhook, a converter or an aggregated API.
func answerRequest(w http.ResponseWriter, r *http.Request) {
	var in struct {
		APIVersion, Kind string
		Request          struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		}
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	out := map[string]any{"apiVersion": in.APIVersion, "kind": in.Kind}
	switch in.Kind {
	case "AdmissionReview":
		out["response"] = map[string]any{"uid": in.Request.UID, "allowed": true}
	case "ConversionReview":
		for _, o := range in.Request.Objects {
			o["apiVersion"] = in.Request.DesiredAPIVersion
		}
		out["response"] = map[string]any{"uid": in.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": in.Request.Objects}
	default:
		group, version, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"), "/")
		if version == "" || strings.Contains(version, "/") {
			http.NotFound(w, r)
			return
		}
		out = map[string]any{"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": group + "/" + version, "resources": []any{}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}
