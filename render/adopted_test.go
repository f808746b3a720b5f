package render

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io/fs"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// certificate returns a CA certificate like those of OLM, in PEM.
func certificate(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(zeroReader{})
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true}
	der, err := x509.CreateCertificate(zeroReader{}, of, of, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// zeroReader is a random source of zeros, for keys that need not be secret.
type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { return len(p), nil }

// newWebhookBundle returns a bundle with a conversion webhook, an admission webhook, and pods that
// mount the author's certificate at the path of OLM's certificate.
func newWebhookBundle() fstest.MapFS {
	b := newBundle("x", "1.0.0", "v1")
	csv := string(b["manifests/csv.yaml"].Data)
	csv = strings.Replace(csv, "metadata: {name: x.v1.0.0}", "metadata: {name: x.v1.0.0, annotations: {note: of the CSV, own: of the CSV, gone: of the CSV}}", 1)
	csv = strings.Replace(csv, "{type: OwnNamespace, supported: true}, {type: SingleNamespace, supported: true}, {type: MultiNamespace, supported: true}, ", "", 1)
	from, _, _ := strings.Cut(csv, "      deployments:")
	csv = from + `      deployments:
      - name: d
        spec:
          selector: {matchLabels: {a: b}}
          template:
            metadata: {labels: {a: b}, annotations: {own: of the pods}}
            spec:
              volumes: [{name: theirs, secret: {secretName: s}}, {name: tmp, emptyDir: {}}]
              containers:
              - {name: c, image: i, volumeMounts: [{name: theirs, mountPath: /tmp/k8s-webhook-server/serving-certs}, {name: tmp, mountPath: /tmp}]}
              - {name: e, image: i, volumeMounts: [{name: webhook-cert, mountPath: /elsewhere}]}
  webhookdefinitions:
  - {type: ConversionWebhook, generateName: c, deploymentName: d, containerPort: 443, conversionCRDs: [things.x.io], sideEffects: None, admissionReviewVersions: [v1]}
  - {type: ValidatingAdmissionWebhook, generateName: v.x.io, deploymentName: d, containerPort: 443, sideEffects: None, admissionReviewVersions: [v1]}
`
	b["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte(csv)}
	return b
}

func renderAdopted(t *testing.T, adopted *lockfile.Adopted) map[string]Object {
	t.Helper()
	lock := &lockfile.File{Pins: []lockfile.Pin{{
		Namespace: "ns", Package: "x", Bundle: "x.v1.0.0", Version: "1.0.0", InstallMode: "AllNamespaces", OperatorGroup: "og", Adopted: adopted,
	}}}
	res, err := All(lock, Options{}, func(lockfile.Pin) (fs.FS, error) { return newWebhookBundle(), nil })
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Object{}
	for _, r := range res.Objects {
		out[r.Object.Kind()+"/"+r.Object.Name()] = r.Object
	}
	return out
}

// TestAdopted checks which details of OLM's objects an adopted operator keeps, and that other operators have
// none of these details.
func TestAdopted(t *testing.T) {
	ca := certificate(t)
	block, _ := pem.Decode([]byte(ca))
	plain := renderAdopted(t, nil)
	got := renderAdopted(t, &lockfile.Adopted{
		Condition:    "x.v1.0.0",
		Certificates: []string{base64.StdEncoding.EncodeToString(block.Bytes)},
		Annotations:  []lockfile.Annotation{{Deployment: "d", Name: "olmcahash", Value: "abc"}, {Deployment: "other", Name: "no", Value: "no"}, {Deployment: "d", Name: "gone", Absent: true}},
	})
	template := k8s.Map(got["Deployment/d"], "spec", "template")
	want := map[string]string{
		"note": "of the CSV", "own": "of the CSV", "olmcahash": "abc",
		"olm.operatorGroup": "og", "olm.operatorNamespace": "ns", "olm.targetNamespaces": "",
		"operatorframework.io/properties": `{"properties":[{"type":"olm.gvk","value":{"group":"x.io","kind":"Thing","version":"v1"}},{"type":"olm.package","value":{"packageName":"x","version":"1.0.0"}}]}`,
	}
	if d := cmp.Diff(want, k8s.TextMap(template, "metadata", "annotations")); d != "" {
		t.Errorf("annotations: -want +got\n%s", d)
	}
	names := func(m map[string]any, key string) (out []string) {
		for _, item := range k8s.Items(m, key) {
			out = append(out, k8s.Text(item, "name"))
		}
		return out
	}
	pod := k8s.Map(template, "spec")
	containers := k8s.Items(pod, "containers")
	for what, pair := range map[string][2][]string{
		"volumes":         {{"theirs", "tmp", "apiservice-cert", "webhook-cert"}, names(pod, "volumes")},
		"mounts":          {{"webhook-cert", "tmp", "apiservice-cert"}, names(containers[0], "volumeMounts")},
		"mounted already": {{"webhook-cert", "apiservice-cert"}, names(containers[1], "volumeMounts")},
		"account":         {{"default"}, {k8s.Text(pod, "serviceAccountName")}},
		"condition":       {{"x.v1.0.0"}, {k8s.Text(k8s.Items(containers[0], "env")[0], "value")}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: want %v, got %v", what, pair[0], pair[1])
		}
	}
	bundle := base64.StdEncoding.EncodeToString([]byte(ca))
	for key, path := range map[string][]string{
		"CustomResourceDefinition/things.x.io": {"spec", "conversion", "webhook", "clientConfig", "caBundle"},
	} {
		if k8s.Text(got[key], path...) != bundle {
			t.Errorf("%s does not have the adopted CA", key)
		}
	}
	hook := got["ValidatingWebhookConfiguration/ns.x.v.x.io"]
	if k8s.Text(k8s.Items(hook, "webhooks")[0], "clientConfig", "caBundle") != bundle {
		t.Errorf("the webhook does not have the adopted CA: %v", hook)
	}
	for _, key := range []string{"Certificate/d-service-cert", "CustomResourceDefinition/" + conditionCRD} {
		if got[key] != nil || plain[key] == nil {
			t.Errorf("%s: exists if adopted: %v, otherwise: %v", key, got[key] != nil, plain[key] != nil)
		}
	}
	for key, wanted := range map[string]bool{
		"OperatorCondition/x.v1.0.0": true, "OperatorCondition/x": false,
		"ClusterRoleBinding/ns.x.default.auth-delegator": true, "RoleBinding/ns.x.default.auth-reader": true,
	} {
		if (got[key] != nil) != wanted || (plain[key] != nil) == wanted {
			t.Errorf("%s: exists if adopted: %v, otherwise: %v", key, got[key] != nil, plain[key] != nil)
		}
	}
}

// TestAdoptedCertificates checks that only certificates are accepted. In particular, a private key is rejected,
// because it would be written to the tree.
func TestAdoptedCertificates(t *testing.T) {
	for _, text := range []string{"%", base64.StdEncoding.EncodeToString([]byte("key"))} {
		lock := &lockfile.File{Pins: []lockfile.Pin{{Namespace: "ns", Package: "x", Bundle: "x.v1.0.0", Version: "1.0.0", InstallMode: "AllNamespaces", Adopted: &lockfile.Adopted{Condition: "x.v1.0.0", Certificates: []string{text}}}}}
		_, err := All(lock, Options{}, func(lockfile.Pin) (fs.FS, error) { return newWebhookBundle(), nil })
		if err == nil || !strings.Contains(err.Error(), "adopted: certificates[0]: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
