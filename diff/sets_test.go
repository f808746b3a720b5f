package diff

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/boxset"
	"github.com/quayside/quayside/internal/k8s"
)

// drawList draws one to three of the given strings.
func drawList(t *rapid.T, label string, from ...string) []any {
	var out []any
	for _, s := range rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, 3, rapid.ID[string]).Draw(t, label) {
		out = append(out, s)
	}
	return out
}

// isMatched reports whether a rule of a webhook matches a request, as in the API server
// (apiserver/pkg/admission/plugin/webhook/predicates/rules).
func isMatched(h map[string]any, group, version, resource, sub, operation, scope string) bool {
	matches := func(list []string, s string) bool { return slices.Contains(list, "*") || slices.Contains(list, s) }
	return slices.ContainsFunc(k8s.Items(h, "rules"), func(r map[string]any) bool {
		inScope := k8s.Text(r, "scope") == "" || k8s.Text(r, "scope") == "*" || k8s.Text(r, "scope") == scope
		return inScope && matches(k8s.Texts(r, "apiGroups"), group) && matches(k8s.Texts(r, "apiVersions"), version) && matches(k8s.Texts(r, "operations"), operation) &&
			slices.ContainsFunc(k8s.Texts(r, "resources"), func(pattern string) bool {
				res, subPattern, _ := strings.Cut(pattern, "/")
				return (res == "*" || res == resource) && (subPattern == "*" || subPattern == sub)
			})
	})
}

// hasPoint reports whether a box has a point.
func hasPoint(boxes []boxset.Box, point map[string]string) bool {
	return slices.ContainsFunc(boxes, func(box boxset.Box) bool {
		for d, v := range box {
			if !v.Has(point[d]) {
				return false
			}
		}
		return true
	})
}

// TestWebhookRulesAgree computes the set of requests that a webhook newly covers, and checks it with every
// request of a small API.
func TestWebhookRulesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) map[string]any {
			h := map[string]any{"matchPolicy": "Exact"}
			var rules []any
			for i := range rapid.IntRange(0, 3).Draw(t, name) {
				label := fmt.Sprint(name, i)
				rules = append(rules, map[string]any{
					"apiGroups": drawList(t, label, "", "apps", "*"), "apiVersions": drawList(t, label, "v1", "v2", "*"), "operations": drawList(t, label, "CREATE", "DELETE", "*"),
					"resources": drawList(t, label, "pods", "pods/exec", "pods/*", "*", "*/*", "*/exec"), "scope": rapid.SampledFrom([]string{"*", "Cluster", "Namespaced", ""}).Draw(t, label),
				})
			}
			h["rules"] = rules
			return h
		}
		old, now := draw("old"), draw("now")
		more, err := boxset.Minus(requestBoxes(now), requestBoxes(old))
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range []string{"", "apps", "other"} {
			for _, version := range []string{"v1", "v2", "v3"} {
				for _, resource := range []string{"pods", "things"} {
					for _, sub := range []string{"", "exec", "log"} {
						for _, operation := range []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} {
							for _, scope := range []string{"Cluster", "Namespaced"} {
								want := isMatched(now, group, version, resource, sub, operation, scope) && !isMatched(old, group, version, resource, sub, operation, scope)
								point := map[string]string{"group": group, "version": version, "resource": resource, "subresource": sub, "operation": operation, "scope": scope}
								if hasPoint(more, point) != want {
									t.Fatalf("%v: %t, want %t", point, !want, want)
								}
							}
						}
					}
				}
			}
		}
	})
}

// drawSelector draws a label selector over the labels a and b.
func drawSelector(t *rapid.T, label string) map[string]any {
	s := map[string]any{}
	if rapid.Bool().Draw(t, label+" labels") {
		s["matchLabels"] = map[string]any{"a": rapid.SampledFrom([]string{"1", "2"}).Draw(t, label)}
	}
	var requirements []any
	for i := range rapid.IntRange(0, 2).Draw(t, label+" expressions") {
		at := fmt.Sprint(label, i)
		r := map[string]any{"key": rapid.SampledFrom([]string{"a", "b"}).Draw(t, at), "operator": rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, at)}
		if strings.HasSuffix(r["operator"].(string), "In") {
			r["values"] = drawList(t, at, "1", "2")
		}
		requirements = append(requirements, r)
	}
	if len(requirements) > 0 {
		s["matchExpressions"] = requirements
	}
	return s
}

// matchesLabels reports whether a selector matches labels, according to Kubernetes.
func matchesLabels(t *rapid.T, selector map[string]any, have map[string]string) bool {
	s, ok := k8s.SelectorOf(selector)
	if !ok {
		t.Fatalf("selector %v", selector)
	}
	return s.Matches(labels.Set(have))
}

// allLabels returns all sets of the labels a and b, with the values 1, 2 and 3.
func allLabels() []map[string]string {
	var out []map[string]string
	for _, a := range []string{"", "1", "2", "3"} {
		for _, b := range []string{"", "1", "2", "3"} {
			set := map[string]string{}
			if a != "" {
				set["a"] = a
			}
			if b != "" {
				set["b"] = b
			}
			out = append(out, set)
		}
	}
	return out
}

// addLabels adds labels to a point.
func addLabels(point map[string]string, prefix string, have map[string]string, keys ...string) {
	for _, key := range keys {
		point[prefix+key] = absentLabel
		if v, is := have[key]; is {
			point[prefix+key] = v
		}
	}
}

// TestSelectorsAgree computes the labels that a selector newly matches, and checks them with all sets of labels.
func TestSelectorsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, now := drawSelector(t, "old"), drawSelector(t, "now")
		more, err := boxset.Minus([]boxset.Box{labelBox("", now)}, []boxset.Box{labelBox("", old)})
		if err != nil {
			t.Fatal(err)
		}
		for _, have := range allLabels() {
			point := map[string]string{}
			addLabels(point, "", have, "a", "b")
			if want := matchesLabels(t, now, have) && !matchesLabels(t, old, have); hasPoint(more, point) != want {
				t.Fatalf("%v: %t, want %t", have, !want, want)
			}
		}
	})
}

// connection is ingress from a pod with labels in a namespace with labels, or from an address.
type connection struct {
	pod, peer, namespace map[string]string
	address, protocol    string
	port                 int64
}

// allows reports whether a NetworkPolicy allows a connection to a pod in namespace ops.
func allows(t *rapid.T, policy map[string]any, c connection) bool {
	if !matchesLabels(t, k8s.Map(policy, "spec", "podSelector"), c.pod) || !slices.Contains(k8s.Texts(policy, "spec", "policyTypes"), "Ingress") {
		return false
	}
	return slices.ContainsFunc(k8s.Items(policy, "spec", "ingress"), func(rule map[string]any) bool {
		from := len(k8s.List(rule, "from")) == 0 || slices.ContainsFunc(k8s.Items(rule, "from"), func(peer map[string]any) bool {
			if block := k8s.Map(peer, "ipBlock"); block != nil {
				return c.address != "" && (k8s.Text(block, "cidr") == "0.0.0.0/0" || strings.HasPrefix(c.address, "10.")) && !(strings.HasPrefix(c.address, "10.1.") && len(k8s.Texts(block, "except")) > 0)
			}
			if c.address != "" {
				return false
			}
			inNamespace := c.namespace["kubernetes.io/metadata.name"] == "ops"
			if s, is := peer["namespaceSelector"]; is {
				inNamespace = matchesLabels(t, s.(map[string]any), c.namespace)
			}
			s, is := peer["podSelector"]
			return inNamespace && (!is || matchesLabels(t, s.(map[string]any), c.peer))
		})
		ports := len(k8s.List(rule, "ports")) == 0 || slices.ContainsFunc(k8s.Items(rule, "ports"), func(p map[string]any) bool {
			first, last, numbered := portRange(p)
			return k8s.Text(p, "protocol") == c.protocol && (!numbered || first <= int(c.port) && int(c.port) <= last)
		})
		return from && ports
	})
}

// drawPolicy draws a NetworkPolicy for ingress.
func drawPolicy(t *rapid.T, label string) map[string]any {
	var rules []any
	for i := range rapid.IntRange(0, 2).Draw(t, label) {
		rule, at := map[string]any{}, fmt.Sprint(label, i)
		var from, ports []any
		for j := range rapid.IntRange(0, 2).Draw(t, at+" from") {
			peer, at := map[string]any{}, fmt.Sprint(at, j)
			switch rapid.IntRange(0, 4).Draw(t, at) {
			case 0:
				peer["podSelector"] = drawSelector(t, at)
			case 1:
				peer["namespaceSelector"] = drawSelector(t, at)
			case 2:
				peer["namespaceSelector"], peer["podSelector"] = drawSelector(t, at), drawSelector(t, at)
			case 3:
				peer["ipBlock"] = map[string]any{"cidr": "0.0.0.0/0"}
			case 4:
				peer["ipBlock"] = map[string]any{"cidr": "10.0.0.0/8", "except": []any{"10.1.0.0/16"}}
			}
			from = append(from, peer)
		}
		for j := range rapid.IntRange(0, 2).Draw(t, at+" ports") {
			port, at := map[string]any{"protocol": "TCP"}, fmt.Sprint(at, "port", j)
			switch rapid.IntRange(0, 2).Draw(t, at) {
			case 0:
				port["port"] = int64(80)
			case 1:
				port["port"], port["endPort"] = int64(70), int64(90)
			}
			ports = append(ports, port)
		}
		if rule["from"] = from; len(from) == 0 {
			delete(rule, "from")
		}
		if rule["ports"] = ports; len(ports) == 0 {
			delete(rule, "ports")
		}
		rules = append(rules, rule)
	}
	return map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": map[string]any{"name": "n", "namespace": "ops"},
		"spec": map[string]any{"podSelector": drawSelector(t, label+" pods"), "policyTypes": []any{"Ingress"}, "ingress": rules},
	}
}

// TestNetworkPoliciesAgree computes the traffic that a policy newly allows, and checks it with many connections.
func TestNetworkPoliciesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, now := drawPolicy(t, "old"), drawPolicy(t, "now")
		r := newRanges()
		before, after := r.compare(pair{&Object{Content: old}, &Object{Content: now}})
		more, err := boxset.Minus(after.allowed, before.allowed)
		if err != nil {
			t.Fatal(err)
		}
		sets := allLabels()
		pick := func(name string) map[string]string { return rapid.SampledFrom(sets).Draw(t, name) }
		for i := range 20 {
			at := fmt.Sprint("connection", i)
			c := connection{pod: pick(at), peer: pick(at), protocol: rapid.SampledFrom([]string{"TCP", "UDP"}).Draw(t, at), port: rapid.SampledFrom([]int64{60, 75, 80, 95}).Draw(t, at)}
			c.namespace = map[string]string{"kubernetes.io/metadata.name": rapid.SampledFrom([]string{"ops", "other"}).Draw(t, at)}
			for k, v := range pick(at) {
				c.namespace[k] = v
			}
			point := map[string]string{"direction": "Ingress", "protocol": c.protocol, "address": notPod}
			if c.address = rapid.SampledFrom([]string{"", "10.0.0.1", "10.1.0.1", "8.8.8.8"}).Draw(t, at); c.address != "" {
				point["address"] = map[string]string{"10.0.0.1": "10.0.0.0", "10.1.0.1": "10.1.0.0", "8.8.8.8": "0.0.0.0"}[c.address]
				for !slices.ContainsFunc(r.addresses, func(a netip.Addr) bool { return a.String() == point["address"] }) {
					point["address"] = map[string]string{"10.1.0.0": "10.0.0.0", "10.0.0.0": "0.0.0.0"}[point["address"]]
				}
			}
			for _, first := range r.ports {
				if first <= int(c.port) {
					point["port"] = fmt.Sprint(first)
				}
			}
			addLabels(point, "pod ", c.pod, "a", "b")
			addLabels(point, "peer ", c.peer, "a", "b")
			addLabels(point, "namespace ", c.namespace, "a", "b", "kubernetes.io/metadata.name")
			if want := allows(t, now, c) && !allows(t, old, c); hasPoint(more, point) != want {
				t.Fatalf("%+v: %t, want %t\nold %v\nnow %v", c, !want, want, old, now)
			}
		}
	})
}

// TestNetworkPolicies rates added and changed NetworkPolicies.
func TestNetworkPolicies(t *testing.T) {
	policy := func(spec string) string {
		return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: net, namespace: ops}\nspec: {" + spec + "}"
	}
	const own = "podSelector: {matchLabels: {app: demo}}, "
	for _, c := range []struct{ before, after, want string }{
		{"", "podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {}}]}]", "high network.allowed"},
		{"", own + "policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {}}]}]", "high network.allowed"},
		{"", own + "ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: x, operator: NotIn, values: ['1']}]}}]}]", "high network.allowed"},
		{"", own + "ingress: [{from: [{namespaceSelector: {}}], ports: [{port: 1, endPort: 65535}]}]", "high network.allowed"},
		{"", own + "ingress: [{from: [{namespaceSelector: {}}], ports: [{port: 1, endPort: 20000}]}, {from: [{namespaceSelector: {}}], ports: [{port: 20001, endPort: 40000}]}]", "high network.allowed"},
		{"", own + "ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/1}}, {ipBlock: {cidr: 128.0.0.0/1}}]}]", "high network.allowed"},
		{"", own + "ingress: [{from: [{ipBlock: {cidr: '2000::/3'}}]}]", "high network.allowed"},
		{"", own + "ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]", "low network.allowed"},
		{"", own + "ingress: [{ports: [{port: 8443}]}]", "low network.allowed"},
		{"", own + "ingress: [{from: [{namespaceSelector: {}}], ports: [{port: 8443}]}]", "low network.allowed"},
		{"", own + "policyTypes: [Egress], egress: [{}]", "low network.allowed"},
		{"", "podSelector: {}, policyTypes: [Egress], egress: [{}]", "high network.allowed"},
		{"", "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {matchLabels: {app: demo}}}]}]", "medium network.allowed"},
		{"", "podSelector: {}, policyTypes: [Ingress]", "low network.blocked"},
		{own + "ingress: [{ports: [{port: 80}]}]", own + "ingress: [{ports: [{port: 80, protocol: TCP}]}]", ""},
		{own + "ingress: [{ports: [{port: 80}]}]", own + "ingress: [{ports: [{port: 80}]}, {ports: [{port: 81}]}]", "high network.allowed"},
		{own + "ingress: [{ports: [{port: 80}, {port: 81}]}]", own + "ingress: [{ports: [{port: 80, endPort: 81}]}]", "low objects.changed"},
		{own + "ingress: [{ports: [{port: 80}, {port: 81}]}]", own + "ingress: [{ports: [{port: 80}]}]", "medium network.blocked"},
		{"podSelector: {}, policyTypes: [Ingress, Egress]", "podSelector: {}, policyTypes: [Ingress]", "high network.allowed"},
		{"podSelector: {}, policyTypes: [Ingress]", own + "policyTypes: [Ingress]", "high network.allowed"},
	} {
		before := container("")
		if c.before != "" {
			before = doc(before, policy(c.before))
		}
		got := lines(compareManifests(t, before, doc(container(""), policy(c.after))))
		if len(got) > 1 || len(got) == 0 && c.want != "" || len(got) == 1 && (c.want == "" || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s → %s: %q, want %s", c.before, c.after, got, c.want)
		}
	}
}

// TestCertificates requests certificates for identities of the cluster in many spellings.
func TestCertificates(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := func(subject pkix.Name, extensions ...pkix.Extension) string {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject, ExtraExtensions: extensions}, key)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}); err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(out.Bytes())
	}
	certificate := func(spec string) string {
		return "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c, namespace: ops}\nspec: {secretName: c, issuerRef: {name: a, kind: ClusterIssuer}, " + spec + "}"
	}
	csr := func(request string) string {
		return "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: c}\nspec: {signerName: a.example/b, request: " + request + "}"
	}
	isCA := pkix.Extension{Id: []int{2, 5, 29, 19}, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}
	selfSigned := "apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata: {name: a, namespace: ops}\nspec: {selfSigned: {}}"
	for _, c := range []struct{ object, want string }{
		{certificate("dnsNames: [a]"), ""},
		{certificate("subject: {organizations: ['system:masters']}"), "critical certificates.identity: - → system:masters"},
		{certificate("commonName: 'system:kube-controller-manager'"), "critical certificates.identity: - → system:kube-controller-manager"},
		{certificate("literalSubject: 'CN=x,O=system:nodes'"), "critical certificates.identity: - → system:nodes"},
		{certificate(`literalSubject: 'CN=x,2.5.4.10=s\79stem\3Amasters'`), "critical certificates.identity: - → system:masters"},
		{certificate("literalSubject: 'O=#0c0e73797374656d3a6d617374657273'"), "critical certificates.identity: - → system:masters"},
		{certificate("isCA: true"), "critical certificates.authority"},
		{certificate("usages: [cert sign]"), "critical certificates.authority"},
		{doc(strings.Replace(certificate("isCA: true"), "ClusterIssuer", "Issuer", 1), selfSigned), "medium certificates.authority"},
		{csr(request(pkix.Name{CommonName: "x", Organization: []string{"system:masters"}})), "critical certificates.identity: - → system:masters"},
		{csr(request(pkix.Name{CommonName: "x"}, isCA)), "critical certificates.authority"},
		{csr(request(pkix.Name{CommonName: "x"})), "high objects.added"},
		{strings.NewReplacer("certificates.k8s.io", "cert-manager.io", "CertificateSigningRequest", "CertificateRequest").Replace(csr(request(pkix.Name{CommonName: "system:node:a"}))), "critical certificates.identity: - → system:node:a"},
		{"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, namespace: ops, annotations: {cert-manager.io/subject-organizations: 'a,system:masters'}}", "critical certificates.identity: - → system:masters"},
		{deployment("{volumes: [{name: v, csi: {driver: csi.cert-manager.io, volumeAttributes: {csi.cert-manager.io/is-ca: 'true'}}}], containers: [{name: m, image: 'quay.io/a/b@sha256:1'}]}"), "critical certificates.authority"},
	} {
		got := lines(compareManifests(t, account, doc(account, c.object)))
		if got = append(got, ""); got[0] != c.want {
			t.Errorf("%s:\n%q, want %q", c.object, got, c.want)
		}
	}
	changed := lines(compareManifests(t, certificate("commonName: a"), certificate("commonName: 'system:node:a'")))
	if d := cmp.Diff([]string{"critical certificates.identity: - → system:node:a", "low objects.changed: spec.commonName=a → spec.commonName=system:node:a"}, changed); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestPolicyParameters changes the parameters of admission policies.
func TestPolicyParameters(t *testing.T) {
	configMap := func(name, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: ops, labels: {a: b}}\ndata: {allowed: " + value + "}"
	}
	const (
		head    = "apiVersion: admissionregistration.k8s.io/v1\nkind: "
		policy  = head + "ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec: {paramKind: {apiVersion: v1, kind: ConfigMap}}"
		kyverno = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: [{context: [{name: a, configMap: {name: x, namespace: ops}}]}]}"
	)
	bound := func(ref string) string {
		return doc(policy, head+"ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: {policyName: p, paramRef: {"+ref+"}}")
	}
	for _, c := range []struct {
		policy string
		want   Severity
	}{
		{policy, High},
		{bound("name: x, namespace: ops"), High},
		{bound("selector: {matchLabels: {a: b}}"), High},
		{bound("name: other, namespace: ops"), Info},
		{bound("name: x, namespace: other"), Info},
		{strings.Replace(policy, "apiVersion: v1, kind: ConfigMap", "apiVersion: a/v1, kind: ConfigMap", 1), Info},
		{kyverno, High},
		{strings.Replace(kyverno, "name: x, ", "name: y, ", 1), Info},
	} {
		r := compareManifests(t, doc(c.policy, configMap("x", "none")), doc(c.policy, configMap("x", "all")))
		if len(r.Findings) != 1 || r.Findings[0].Severity != c.want {
			t.Errorf("%s: %q, want %s", c.policy, lines(r), c.want)
		}
	}
}

// TestTooManyPermissions compares more permissions than the limit: the finding is that they were not compared.
func TestTooManyPermissions(t *testing.T) {
	list := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprint("r", i))
		}
		return strings.Join(out, ", ")
	}
	got := lines(compareManifests(t, doc(account, binding, clusterRole()), doc(account, binding, clusterRole(rule(list(500), list(500), "get")))))
	if len(got) == 0 || got[0] != "high rbac.not-compared" {
		t.Errorf("%q", got)
	}
}
