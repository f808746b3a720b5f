package build_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/build"
)

// The files of a valid bundle.
const (
	annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: lamp, operators.operatorframework.io.bundle.channels.v1: stable}"
	csv         = `kind: ClusterServiceVersion
apiVersion: operators.coreos.com/v1alpha1
metadata: {name: lamp.v1.0.0}
spec:
  version: 1.0.0
  installModes: [{type: AllNamespaces, supported: true}]
  install: {strategy: deployment, spec: {deployments: []}}
`
)

// validity is the result of a validator for a bundle.
type validity int

const (
	accepts validity = iota
	warns
	refuses
)

// agreement is a test case of operator-framework's validators.
type agreement struct {
	name       string
	them, here validity // their result, and that of quayside
	message    string   // part of quayside's messages
	why        string   // reason for a difference
}

func agreements() []agreement {
	const (
		converted = "converted from apiextensions.k8s.io/v1beta1 to apiextensions.k8s.io/v1"
		lost      = "what it ships at an old version has no successor that means the same"
		schema    = "no API server takes a definition at apiextensions.k8s.io/v1 without a schema; they decode both versions into one type"
		console   = "taste of OperatorHub.io and of its console; nothing is installed otherwise for it"
		stocked   = "an optional validator of theirs, about good practice in a cluster; diff and policy say what RBAC and disruption budgets bring"
		served    = "render converts it to what the target serves, or says that it cannot (rendering rule 8); their validator is optional"
		author    = "OLM and quayside install it: what is made twice is joined, what is not owned is applied, what is an example is shown"
	)
	return []agreement{
		{"badAnnotationNames.csv.yaml", refuses, warns, `"olm.skiprange" is a misspelling of "olm.skipRange"`, author},
		{"badName.csv.yaml", refuses, warns, "longer than 63", author},
		{"bundle_with_deprecated_resources", warns, refuses, "is also generated from the CSV's permissions", lost},
		{"bundle_with_metadata", accepts, refuses, `"bundle_with_metadata-operator-controller-manager" is not a valid name`, "the API server refuses a Deployment of that name"},
		{"correct.csv.empty.example.yaml", accepts, refuses, "selector is missing", "the API server refuses a Deployment without a selector"},
		{"correct.csv.olm.properties.annotation.yaml", refuses, refuses, "selector is missing", ""},
		{"correct.csv.with.conversion.webhook.yaml", accepts, refuses, "the CSV has no deployment", "both OLMs refuse a webhook of a deployment that is missing"},
		{"correct.csv.yaml", accepts, warns, "spec.labels is not used", "OLM does not read spec.labels and spec.selector"},
		{"dataTypeMismatch.csv.yaml", refuses, warns, "spec.labels is not used", "maintainers are nothing that is installed, and are not read"},
		{"deprecatedVersion.crd.yaml", accepts, refuses, "spec.versions: Invalid value: must have exactly one version marked as storage version", schema},
		{"deprecated_api_1_25", warns, refuses, "no API version with the same fields", lost},
		{"duplicateVersions.crd.yaml", refuses, refuses, `version "v1beta2" appears twice`, ""},
		{"incorrect.csv.with.conversion.webhook.yaml", refuses, refuses, "the CSV has no deployment", ""},
		{"invalid.alm-examples.csv.yaml", refuses, warns, "alm-examples is not a list of objects", author},
		{"invalid_bundle", refuses, refuses, `owned CRD "etcdclusters.etcd.database.coreos.com" is not in the bundle`, ""},
		{"invalid_bundle_2", warns, warns, "the CSV does not own version v1beta2", ""},
		{"invalid_bundle_3", refuses, refuses, "duplicate object", ""},
		{"invalid_bundle_operatorhub", refuses, refuses, "spec.version is missing", ""},
		{"invalid_bundle_sa", refuses, warns, "ServiceAccount etcd-operator is also generated from the CSV's permissions", author},
		{"invalid_min_kube_version.csv.yaml", refuses, warns, `spec.minKubeVersion: version "1.21"`, "OLM v1 does not read it"},
		{"noConversionReviewVersions.crd.yaml", refuses, refuses, "conversionReviewVersions: Required value", ""},
		{"noInstallMode.csv.yaml", refuses, refuses, "spec.installModes: no install mode is supported", ""},
		{"removed_api_1_25", refuses, refuses, "no API version with the same fields", ""},
		{"removed_api_1_26", refuses, warns, "converted from autoscaling/v2beta2 to autoscaling/v2", served},
		{"v1.crd.yaml", accepts, refuses, "schema.openAPIV3Schema: Required value", schema},
		{"v1beta1.crd.yaml", accepts, warns, "the CSV does not own version", "alone here, in a bundle whose CSV is another's"},
		{"valid_bundle", accepts, warns, converted, served},
		{"valid_bundle_2", accepts, refuses, `owned CRD "TestTwos.test.example.com" is not in the bundle`, "no API server takes a definition of that name"},
		{"valid_bundle_custom_categories", accepts, warns, converted, served},
		{"valid_bundle_v1", accepts, warns, "is also generated from the CSV's permissions", "a case of their validator of removed APIs; that of bundles refuses what is made twice"},
		{"valid_bundle_v1beta1", accepts, warns, converted, served},
		{"invalid_bundle_with_hidden", refuses, refuses, "schema.openAPIV3Schema: Required value", "for another reason: hidden files are no manifests to any OLM, and are passed over"},
		{"invalid_bundle_with_subdir", refuses, refuses, "subdirectory not supported", ""},
		{"invalid_pdb_maxUnavailable.yaml", warns, warns, "converted from policy/v1beta1 to policy/v1", stocked},
		{"invalid_pdb_minAvailable.yaml", warns, warns, "converted from policy/v1beta1 to policy/v1", stocked},
		{"invalid_priorityclass.yaml", warns, accepts, "", stocked},
		{"invalid_role_create_pdb.yaml", warns, accepts, "", stocked},
		{"invalid_role_modify_scc.yaml", warns, accepts, "", stocked},
		{"valid_pdb.yaml", accepts, warns, "converted from policy/v1beta1 to policy/v1", served},
		{"valid_priorityclass.yaml", accepts, accepts, "", ""},
		{"valid_role_get_pdb.yaml", accepts, accepts, "", ""},
		{"valid_role_get_scc.yaml", accepts, accepts, "", ""},
	}
}

// TestReferees validates the test data of operator-framework's validators. It skips files that are
// not bundles, such as OperatorGroups and Dockerfiles.
func TestReferees(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CONFORMANCE")
	if root == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is not set")
	}
	root = filepath.Join(root, "referees", "validation")
	var found []string
	for _, glob := range []string{"validation/internal/testdata/*", "validation/internal/testdata/objects/*", "manifests/testdata/invalid*"} {
		paths, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %q, %v", glob, paths, err)
		}
		found = append(found, paths...)
	}
	cases := map[string]agreement{}
	agreed := 0
	for _, a := range agreements() {
		cases[a.name] = a
		switch {
		case a.them == a.here:
			agreed++
		case a.why == "":
			t.Errorf("%s: they say %d and here it is %d, for no reason", a.name, a.them, a.here)
		}
	}
	row := fmt.Sprintf("| %d | %d | %d | `cmd/quayside/internal/build/referees_test.go` |", len(cases), agreed, len(cases)-agreed)
	if page, err := os.ReadFile("../../../../docs/contributing/developing.md"); err != nil || !strings.Contains(string(page), row) {
		t.Errorf("docs/contributing/developing.md does not say %q: %v", row, err)
	}
	t.Logf("%d cases: %d agreed, %d differ for a reason", len(cases), agreed, len(cases)-agreed)
	for _, name := range []string{"badAnnotationNames.og.yaml", "correct.og.yaml", "categories.json", "dockerfile", "objects"} {
		cases[name] = agreement{name: name, them: -1}
	}
	for _, path := range found {
		a, ok := cases[filepath.Base(path)]
		delete(cases, filepath.Base(path))
		switch {
		case !ok:
			t.Errorf("%s is in no line of the table", path)
		case a.them >= 0:
			got, text := validate(t, path)
			if got != a.here || !strings.Contains(text, a.message) {
				t.Errorf("%s: got %d, want %d with %q:\n%s", a.name, got, a.here, a.message, text)
			}
		}
	}
	for name := range cases {
		t.Errorf("%s is not among their test data", name)
	}
}

// validate validates a bundle directory or a single manifest. It validates a CSV without its CRDs, and any
// other manifest together with a valid CSV.
func validate(t *testing.T, path string) (validity, string) {
	t.Helper()
	fsys := fstest.MapFS{"metadata/annotations.yaml": {Data: []byte(annotations)}}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	alone := !info.IsDir()
	if !alone {
		files := os.DirFS(path)
		if _, err := fs.Stat(files, "manifests"); err == nil {
			files, _ = fs.Sub(files, "manifests")
		}
		if err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || name == "." {
				return err
			}
			if e.IsDir() {
				fsys["manifests/"+name] = &fstest.MapFile{Mode: fs.ModeDir}
				return nil
			}
			data, err := fs.ReadFile(files, name)
			fsys["manifests/"+name] = &fstest.MapFile{Data: data}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	} else {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fsys["manifests/a.yaml"] = &fstest.MapFile{Data: data}
		if !strings.Contains(string(data), "kind: ClusterServiceVersion") {
			alone = false
			fsys["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte(csv)}
		}
	}
	_, warnings, err := build.Check(fsys, "")
	var text []string
	got := accepts
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			if !alone || !strings.Contains(line, ": owned CRD ") {
				text, got = append(text, line), refuses
			}
		}
	}
	for _, w := range warnings {
		text, got = append(text, w.String()), max(got, warns)
	}
	return got, strings.Join(text, "\n")
}
