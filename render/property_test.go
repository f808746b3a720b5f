package render

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/testing/yamltest"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestNoFieldIsLost compares each shipped object with its rendered form. All fields of the file must remain,
// except fields that the API server drops and fields that rendering changes on purpose: the namespace, subjects,
// old API versions, the Service and the CA of conversion webhooks, and annotations that control a tool.
func TestNoFieldIsLost(t *testing.T) {
	for _, dir := range sampleBundles(t) {
		t.Run(filepath.Base(filepath.Dir(dir))+"_"+filepath.Base(dir), func(t *testing.T) {
			b := loadBundle(t, dir)
			before := copyObjects(b.Objects)
			objects, _, err := Manifests(b, pinOf(b, "op-ns"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range b.Objects {
				if !k8s.Equal(map[string]any(before[i]), o.Object) {
					t.Errorf("%s was modified", o)
				}
			}
			rendered := map[string]Object{}
			for _, o := range objects {
				checkIsStored(t, o)
				rendered[o.Group()+" "+o.Kind()+" "+o.Name()+" "+o.Namespace()] = o
			}
			scope := newScopes(b.Objects)
			for _, o := range before {
				if o.APIVersion() == "" || strings.HasSuffix(o.APIVersion(), "v1beta1") {
					continue
				}
				ns := ""
				if scope.namespaced(o.Group(), o.Kind()) {
					ns = "op-ns"
				}
				got, ok := rendered[o.Group()+" "+o.Kind()+" "+o.Name()+" "+ns]
				if !ok {
					t.Errorf("%s is not rendered", o.Key())
					continue
				}
				decoded, err := yamltest.Decode(yamlnode.Encode(got))
				if err != nil {
					t.Fatal(err)
				}
				compareField(t, o.Key().String(), "", decoded, map[string]any(admit.NewTypes().Canonical(o)))
			}
		})
	}
}

// checkIsStored checks that the API server stores every field of a rendered object unchanged. Otherwise, Argo
// CD would always report a difference.
func checkIsStored(t *testing.T, o Object) {
	t.Helper()
	stored, err := admit.NewTypes().Stored(o)
	if err != nil {
		t.Errorf("%s: %v", o.Key(), err)
		return
	}
	var check func(at string, stored, rendered any)
	check = func(at string, stored, rendered any) {
		if r, ok := rendered.(map[string]any); ok {
			s, _ := stored.(map[string]any)
			for key, e := range r {
				if _, set := s[key]; !set {
					t.Errorf("%s: %s.%s = %v is not stored", o.Key(), at, key, e)
					continue
				}
				check(at+"."+key, s[key], e)
			}
			return
		}
		if r, ok := rendered.([]any); ok {
			s, _ := stored.([]any)
			if len(r) != len(s) {
				t.Errorf("%s: %s has %d items, stored are %d", o.Key(), at, len(r), len(s))
				return
			}
			for i, e := range r {
				check(fmt.Sprintf("%s[%d]", at, i), s[i], e)
			}
			return
		}
		if fmt.Sprint(stored) != fmt.Sprint(rendered) {
			t.Errorf("%s: %s is %v, stored is %v", o.Key(), at, rendered, stored)
		}
	}
	check("", map[string]any(stored), map[string]any(o))
}

func copyObjects(objects []bundle.ManifestObject) []Object {
	out := make([]Object, len(objects))
	for i, o := range objects {
		out[i] = k8s.Copy(o.Object)
	}
	return out
}

// compareField reports the fields of want that are missing or different in got.
func compareField(t *testing.T, object, at string, got, want any) {
	t.Helper()
	for _, allowed := range []string{
		".metadata.namespace", ".subjects[", ".spec.conversion.webhook.clientConfig", ".spec.conversion.strategy", ".spec.conversion.webhook.conversionReviewVersions",
		".metadata.annotations.cert-manager.io/inject-ca-from", ".spec.ports",
	} {
		if strings.HasPrefix(at, allowed) {
			return
		}
	}
	if w, ok := want.(map[string]any); ok {
		g, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %s: got %v, not an object", object, at, got)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			value, ok := g[key]
			if !ok && strings.HasPrefix(at, ".metadata.") && bundle.ControlledTool(key) != "" {
				continue
			}
			if unset := key == "creationTimestamp" && strings.HasSuffix(at, ".metadata") && w[key] == nil; !ok && unset {
				continue
			}
			if !ok && at+"."+key == ".metadata.annotations" {
				value, ok = map[string]any{}, true // kustomize drops empty objects
			}
			if !ok {
				t.Errorf("%s: %s.%s is missing", object, at, key)
				continue
			}
			compareField(t, object, at+"."+key, value, w[key])
		}
		return
	}
	if w, ok := want.([]any); ok {
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			t.Errorf("%s: %s: got %v, want a list of %d", object, at, got, len(w))
			return
		}
		for i := range w {
			compareField(t, object, fmt.Sprintf("%s[%d]", at, i), g[i], w[i])
		}
		return
	}
	if !k8s.Equal(got, want) {
		t.Errorf("%s: %s: got %v, want %v", object, at, got, want)
	}
}
