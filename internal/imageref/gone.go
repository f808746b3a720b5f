package imageref

import "slices"

// goneImage describes a group of images that their registry no longer serves.
type goneImage struct {
	prefix    string   // see [CutPrefix]
	successor string   // prefix of the same images in another registry; empty if there are none
	since     string   // "2025-03"
	source    string   // announcement
	except    []string // prefixes of images that are still there
}

// goneImages returns all groups of images that are known to be gone.
func goneImages() []goneImage {
	return []goneImage{
		{"gcr.io/kubebuilder/kube-rbac-proxy", "quay.io/brancz/kube-rbac-proxy", "2025-03", "https://github.com/kubernetes-sigs/kubebuilder/discussions/3907", nil},
		{"k8s.gcr.io", "registry.k8s.io", "2023-04", "https://kubernetes.io/blog/2023/03/10/image-registry-redirect", nil},
		{"gcr.io/google_containers", "registry.k8s.io", "2023-04", "https://kubernetes.io/blog/2023/03/10/image-registry-redirect", nil},
		{"gcr.io/google-containers", "registry.k8s.io", "2023-04", "https://kubernetes.io/blog/2023/03/10/image-registry-redirect", nil},
		{"gcr.io/spark-operator", "", "2023-10", "https://github.com/kubeflow/spark-operator/issues/1860", nil},
		{"gcr.io/coreos-k8s-scale-testing", "", "2020-02", "https://github.com/coreos/etcd-operator/issues/2156", nil},
		{"docker.io/bitnami", "docker.io/bitnamilegacy", "2025-09", "https://github.com/bitnami/containers/issues/83267", []string{"docker.io/bitnami/sealed-secrets-controller", "docker.io/bitnami/sealed-secrets-kubeseal", "docker.io/bitnami/minideb"}},
	}
}

// FindGone reports whether an image is known to be gone from its registry. If so, it returns the reason in
// why. In successor it returns the image that replaces it, without tag and digest, or "" if there is none.
func FindGone(image string) (why, successor string, ok bool) {
	if !Valid(image) {
		return "", "", false
	}
	name := Split(image).Name()
	for _, g := range goneImages() {
		rest, found := CutPrefix(name, g.prefix)
		if !found || slices.ContainsFunc(g.except, func(prefix string) bool { _, kept := CutPrefix(name, prefix); return kept }) {
			continue
		}
		if g.successor != "" {
			successor = g.successor + rest
		}
		return "its registry stopped serving it in " + g.since + " (" + g.source + ")", successor, true
	}
	return "", "", false
}
