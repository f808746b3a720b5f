package snapshot

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/k8s"
)

// Release is a release of Helm. Its revisions are Secrets.
type Release struct {
	Name, Namespace string
	Revision        int    // newest revision
	Status          string // status of the newest revision, such as "deployed"
	Records         []*LiveObject
	Fault           string // reason why the content of the newest revision cannot be read

	Chart, Version string         // name and version of the chart
	Values         map[string]any // the user's values
	Objects        []*LiveObject  // manifests that Helm installed, without CRDs of the directory crds/
	Hooks          []*LiveObject
}

// IsReleaseRecord reports whether an object is a Secret in which Helm stores a revision of a release.
func IsReleaseRecord(key k8s.Key) bool { return ReleaseOf(key) != "" }

// ReleaseOf returns the name of the release whose revision a Secret stores, or "".
func ReleaseOf(key k8s.Key) string {
	name, ok := strings.CutPrefix(key.Name, "sh.helm.release.v1.")
	if i := strings.LastIndex(name, ".v"); ok && i > 0 && key.Is("Secret") {
		return name[:i]
	}
	return ""
}

// RecordSelector returns the label selector for all revisions of the named releases.
func RecordSelector(names ...string) string {
	return "owner=helm,name in (" + strings.Join(names, ",") + ")"
}

// Labels of objects that Helm or a HelmRelease of Flux installed, API groups of Flux and Argo CD, and the label
// and the value that mark an installed revision.
const (
	byHelm            = k8s.LabelManagedBy + "=Helm"
	FluxRelease       = FluxGroup + "/name"
	FluxReleaseIn     = FluxGroup + "/namespace"
	FluxGroup         = "helm.toolkit.fluxcd.io"
	FluxSources       = "source.toolkit.fluxcd.io"
	ArgoGroup         = "argoproj.io"
	statusOfRelease   = "status"
	statusOfInstalled = "deployed"
)

// holdsRelease reports whether a Secret stores the installed revision of a selected release.
func (opt Selection) holdsRelease(o *LiveObject) bool {
	return IsReleaseRecord(o.Key) && slices.Contains(opt.Releases, o.Labels["name"]) && o.Labels[statusOfRelease] == statusOfInstalled
}

// Releases returns the selected releases of Helm, sorted by the namespace of their objects and by name. With
// Flux, the Secrets of a release may be in another namespace than the objects.
func (s *Snapshot) Releases() []*Release {
	at := map[[2]string]*Release{}
	for _, o := range s.Kind("", "Secret") {
		name := o.Labels["name"]
		if !IsReleaseRecord(o.Key) || name == "" || o.Labels["owner"] != "helm" {
			continue
		}
		r := at[[2]string{o.Namespace, name}]
		if r == nil {
			r = &Release{Name: name, Namespace: o.Namespace}
			at[[2]string{o.Namespace, name}] = r
		}
		r.Records = append(r.Records, o)
	}
	var out []*Release
	for _, r := range at {
		slices.SortFunc(r.Records, func(x, y *LiveObject) int { return cmp.Compare(revisionOf(x), revisionOf(y)) })
		last := r.Records[len(r.Records)-1]
		r.Revision, r.Status = revisionOf(last), last.Labels[statusOfRelease]
		for _, o := range r.Records {
			if o.Labels[statusOfRelease] == statusOfInstalled {
				if err := r.read(o); err != nil {
					r.Fault = err.Error()
				}
			}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(x, y *Release) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name), x.Records[0].Compare(y.Records[0].Key))
	})
	return out
}

func revisionOf(record *LiveObject) int {
	n, _ := strconv.Atoi(record.Labels["version"])
	return n
}

// maxRelease is the maximum size of a decompressed release, in bytes.
const maxRelease = 32 << 20

// read decodes the content of a revision.
func (r *Release) read(record *LiveObject) error {
	encoded, _ := record.At("data", "release").(string)
	if encoded == "" {
		return errors.New("has no content: export the Secret with 'kubectl get secret -o json'")
	}
	outer, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return err
	}
	text, err := base64.StdEncoding.DecodeString(string(outer))
	if err != nil {
		return err
	}
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) { // Helm 2 did not compress
		unpacked, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return err
		}
		if text, err = io.ReadAll(io.LimitReader(unpacked, maxRelease+1)); err != nil {
			return err
		}
	}
	if len(text) > maxRelease {
		return fmt.Errorf("exceeds the limit of %d bytes", maxRelease)
	}
	var body struct {
		Namespace string
		Chart     struct {
			Metadata struct{ Name, Version string }
		}
		Config   json.RawMessage
		Manifest string
		Hooks    []struct {
			Manifest string
			Events   []string
		}
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return err
	}
	if len(body.Config) > 0 {
		if err := utiljson.Unmarshal(body.Config, &r.Values); err != nil {
			return err
		}
	}
	r.Namespace, r.Chart, r.Version = cmp.Or(body.Namespace, r.Namespace), body.Chart.Metadata.Name, body.Chart.Metadata.Version
	if r.Objects, err = readManifest(body.Manifest); err != nil {
		return err
	}
	for _, h := range body.Hooks {
		if slices.Contains(h.Events, "test") {
			continue
		}
		objects, err := readManifest(h.Manifest)
		if err != nil {
			return err
		}
		r.Hooks = append(r.Hooks, objects...)
	}
	return nil
}

// readManifest returns the objects in a manifest of Helm.
func readManifest(text string) ([]*LiveObject, error) {
	s, err := Read("manifest", strings.NewReader(text), Selection{manifest: true, Keep: func(string, string) bool { return true }})
	if err != nil {
		return nil, err
	}
	return s.All(), nil
}

// Find returns the object in the cluster for an object of a release, or nil. In a manifest, the namespace of an
// object may be missing.
func (s *Snapshot) Find(r *Release, o *LiveObject) *LiveObject {
	if found := s.Get(o.Key); found != nil || o.Namespace != "" {
		return found
	}
	key := o.Key
	key.Namespace = r.Namespace
	return s.Get(key)
}

// recordKinds returns the selector for the Secrets of the selected releases, or nil if none is selected.
func (opt Selection) recordKinds() []kindSelector {
	if len(opt.Releases) == 0 {
		return nil
	}
	return []kindSelector{{"v1", "Secret", RecordSelector(opt.Releases...)}}
}

// releaseKinds returns the kinds of the releases' objects. It omits a kind if snapshotKinds already selects all
// of these objects.
func (s *Snapshot) releaseKinds() []kindSelector {
	known, out, byFlux := snapshotKinds(), []kindSelector(nil), false
	add := func(w kindSelector) {
		same := func(k kindSelector) bool {
			return k.kind == w.kind && k8s.Group(k.apiVersion) == k8s.Group(w.apiVersion) && (k.labels == "" || k.labels == w.labels)
		}
		if !slices.ContainsFunc(known, same) {
			known, out = append(known, w), append(out, w)
		}
	}
	for _, r := range s.Releases() {
		for _, o := range append(slices.Clone(r.Objects), r.Hooks...) {
			add(kindSelector{o.APIVersion, o.Kind, byHelm})
			live := s.Find(r, o)
			byFlux = byFlux || live != nil && live.Labels[FluxRelease] != ""
		}
	}
	if byFlux {
		out = append(out, fluxReleaseKinds()...)
	}
	return out
}
