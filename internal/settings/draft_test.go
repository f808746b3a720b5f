package settings

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/provided"
)

// TestDraft parses the texts of drafts, and checks that each text has exactly the settings of its draft.
func TestDraft(t *testing.T) {
	name := rapid.StringMatching(`[a-z]([a-z0-9-]{0,8}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		d := Draft{
			Name:              rapid.SampledFrom([]string{"", "prod", "1", "true"}).Draw(t, "name"),
			KubernetesVersion: rapid.SampledFrom([]string{"", "1.30", "1.34.2"}).Draw(t, "kubernetes"),
			OpenShiftVersion:  rapid.SampledFrom([]string{"", "4.20"}).Draw(t, "openshift"),
			Profile:           profile.Name(rapid.SampledFrom(append(profile.Names(), "")).Draw(t, "profile")),
			Path:              rapid.SampledFrom([]string{"", ".", "envs/prod"}).Draw(t, "path"),
			GlobalCatalogs:    rapid.SampledFrom([][]string{nil, {"olm", "1"}}).Draw(t, "global"),
		}
		if d.Profile == profile.ArgoCD || d.Profile == profile.Flux {
			d.RepoURL = rapid.SampledFrom([]string{"", "https://git.example.com/fleet.git"}).Draw(t, "url")
		}
		for _, n := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID[string]).Draw(t, "catalogs") {
			d.Catalogs = append(d.Catalogs, CatalogSettings{Name: n, Namespace: rapid.SampledFrom([]string{"", "olm"}).Draw(t, "namespace"), Source: source.Ref("oci:" + n)})
		}
		w, err := Parse(FileName, d.Text())
		if err != nil {
			t.Fatalf("%v\n%s", err, d.Text())
		}
		want := Default()
		want.Name, want.File, want.Fields, want.GitOps = d.Name, FileName, w.Fields, w.GitOps
		want.KubernetesVersion, want.OpenShiftVersion, want.Catalogs = d.KubernetesVersion, d.OpenShiftVersion, d.Catalogs
		if len(d.GlobalCatalogs) > 0 {
			want.GlobalCatalogs = d.GlobalCatalogs
		}
		if d.Profile != "" {
			want.Profile = d.Profile
		}
		if d.OpenShiftVersion != "" {
			want.Certificates = certificates.OpenShiftServiceCA
			want.Provides = profile.Provides{APIs: provided.OpenShiftAPIs(), Objects: provided.OpenShiftObjects()}
		}
		if !reflect.DeepEqual(w, want) {
			t.Fatalf("got  %+v\nwant %+v\n%s", w, want, d.Text())
		}
		if (w.GitOps != nil) != (d.RepoURL != "") || w.GitOps != nil && w.GitOps.RepoURL != d.RepoURL {
			t.Fatalf("gitops %+v of %q", w.GitOps, d.RepoURL)
		}
	})
}
