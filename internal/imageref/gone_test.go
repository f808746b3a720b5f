package imageref

import "testing"

// TestFindGone looks up images in the table (in several spellings), their successors, and similar images.
func TestFindGone(t *testing.T) {
	for image, want := range map[string]string{
		"gcr.io/kubebuilder/kube-rbac-proxy:v0.13.1":               "quay.io/brancz/kube-rbac-proxy",
		"GCR.io:443/kubebuilder/kube-rbac-proxy":                   "quay.io/brancz/kube-rbac-proxy",
		"gcr.io/kubebuilder/kube-rbac-proxy-amd64:v1":              "still there",
		"k8s.gcr.io/sig-storage/csi-provisioner:v2":                "registry.k8s.io/sig-storage/csi-provisioner",
		"k8s.gcr.io/pause@sha256:" + hex64:                         "registry.k8s.io/pause",
		"bitnami/kubectl:1.20":                                     "docker.io/bitnamilegacy/kubectl",
		"docker.io/bitnami/sealed-secrets-controller:0.27":         "still there",
		"docker.io/bitnamilegacy/kubectl:1.20":                     "still there",
		"gcr.io/spark-operator/spark:v3.1.1":                       "",
		"quay.io/brancz/kube-rbac-proxy:v0.13.1":                   "still there",
		"no image: gcr.io/kubebuilder/kube-rbac-proxy is no image": "still there",
	} {
		got := "still there"
		if _, successor, gone := FindGone(image); gone {
			got = successor
		}
		if got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
	for _, g := range goneImages() {
		if _, _, gone := FindGone(g.successor + "/x"); gone && g.successor != "" {
			t.Errorf("the successor of %s is gone, too", g.prefix)
		}
	}
}

const hex64 = "1111111111111111111111111111111111111111111111111111111111111111"
