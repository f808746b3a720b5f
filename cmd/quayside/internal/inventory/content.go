package inventory

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/render/needs"
)

// BundleContent is the content of a bundle that is not in the lock.
type BundleContent struct {
	Bundle  *bundle.Bundle
	Pin     lockfile.Pin    // pin of the bundle in its suggested namespace, with the widest install mode
	Objects []render.Object // objects that the pin installs; nil if they cannot be rendered
}

// Content describes the content of a bundle before the bundle is installed.
type Content struct {
	Bundle      string              `json:"bundle"`
	Maintainers []bundle.Maintainer `json:"maintainers,omitempty"`
	Links       []Link              `json:"links,omitempty"`
	Icon        *Icon               `json:"icon,omitempty"`
	Images      []string            `json:"images,omitempty"`
	ImageSizes  []ImageSize         `json:"imageSizes,omitempty" doc:"with --image-sizes, of each image"`
	Permissions *Permissions        `json:"permissions,omitempty"`
	Missing     []Supplier          `json:"missing,omitempty" doc:"needs that are met neither by spec.provides of any cluster nor by an operator in the lock"`
	Samples     []Sample            `json:"samples,omitempty" doc:"sample custom resources"`
}

// ImageSize is the size of an image in its registry.
type ImageSize struct {
	Image     string             `json:"image"`
	Platforms []oci.PlatformSize `json:"platforms,omitempty"`
	Error     string             `json:"error,omitempty" doc:"why the size is unknown"`
}

// String returns a text such as "quay.io/org/image:1: linux/amd64 35.2 MB, linux/arm64 33.9 MB".
func (s ImageSize) String() string {
	if s.Error != "" {
		return s.Image + ": size unknown: " + s.Error
	}
	var out []string
	for _, p := range s.Platforms {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s", p.Platform, megabytes(p.Bytes))))
	}
	return s.Image + ": " + strings.Join(out, ", ")
}

func megabytes(n int64) string {
	if n < 1e5 {
		return "less than 0.1 MB"
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// AddImageSizes looks up the sizes of the images in their registries. It calls progress before each request.
func (c *Content) AddImageSizes(ctx context.Context, client *oci.Client, progress func(format string, args ...any)) error {
	for _, image := range c.Images {
		progress("size of %s", image)
		size := ImageSize{Image: image}
		var err error
		if size.Platforms, err = client.Sizes(ctx, "image:"+image); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			size.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		c.ImageSizes = append(c.ImageSizes, size)
	}
	return nil
}

// Link is a link to a page about the operator.
type Link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Icon is a picture that browsers can show.
type Icon struct {
	MediaType string `json:"mediaType"`
	Data      string `json:"data" doc:"in base64"`
}

// Permissions describes the most severe finding about permissions that diff would report for a newly added operator.
type Permissions struct {
	Severity string `json:"severity"`
	Rule     string `json:"rule"`
	Message  string `json:"message"`
	Findings int    `json:"findings" doc:"number of findings about permissions"`
}

// Supplier is a need with the packages that meet it.
type Supplier struct {
	Need     string   `json:"need"`
	Packages []string `json:"packages"`
}

// String returns a text such as "monitoring.coreos.com/v1 ServiceMonitor (from prometheus)".
func (s Supplier) String() string {
	if len(s.Packages) == 0 {
		return s.Need + " (from no package of the catalogs)"
	}
	return s.Need + " (from " + diag.Some(s.Packages, 5) + ")"
}

// Sample is a sample custom resource in the annotation alm-examples.
type Sample struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Problem    string `json:"problem,omitempty" doc:"why the API server rejects it"`

	Object k8s.Object `json:"-"`
}

// String returns a text such as "EtcdCluster example".
func (s Sample) String() string { return strings.TrimSpace(s.Kind + " " + s.Name) }

// Surroundings describes the workspace in which an operator would be installed.
type Surroundings struct {
	Settings *settings.Workspace
	Lock     *lockfile.File  // may be nil
	Packages []cache.Summary // of the catalogs
}

// NewContent describes the content of a bundle for the workspace in which it would be installed.
func NewContent(c *BundleContent, here Surroundings) (*Content, error) {
	csv := c.Bundle.CSV
	out := &Content{Bundle: csv.Name, Maintainers: csv.Maintainers, Icon: newIcon(csv.Icon)}
	for _, l := range csv.Links {
		out.Links = append(out.Links, Link(l))
	}
	for _, im := range csv.RelatedImages {
		out.Images = append(out.Images, im.Image)
	}
	for _, o := range c.Objects {
		for _, container := range k8s.Containers(k8s.PodSpec(o)) {
			out.Images = append(out.Images, k8s.Text(container, "image"))
		}
	}
	out.Images = slices.DeleteFunc(out.Images, func(image string) bool { return image == "" })
	slices.Sort(out.Images)
	out.Images = slices.Compact(out.Images)
	var err error
	if out.Permissions, err = newPermissions(c.Pin, c.Objects); err != nil {
		return nil, err
	}
	supply := here.supply()
	supply.AddObjects(c.Objects...)
	supply.AddAPIs("operators.coreos.com/v2/OperatorCondition") // every tree contains it if an operator needs it
	operator := render.ClusterOperator{Pin: c.Pin, NativeAPIs: csv.NativeAPIs, Objects: slices.DeleteFunc(slices.Clone(c.Objects), func(o k8s.Object) bool { return k8s.IsCRD(o) })}
	for _, n := range supply.Unmet(needs.Find(operator, nil, false)) {
		if n.Kind == needs.API {
			out.Missing = append(out.Missing, here.apiSupplier(n))
		}
	}
	out.Samples, err = readSamples(c.Bundle)
	return out, err
}

// apiSupplier returns the packages that provide a needed API.
func (h Surroundings) apiSupplier(n needs.Need) Supplier {
	group, version, _ := strings.Cut(n.APIVersion, "/")
	return h.supplier(n.APIVersion+" "+strings.Join(n.Kinds, ", "), func(s cache.Summary) bool {
		return slices.ContainsFunc(s.APIs, func(g catalog.GVK) bool {
			return g.Group == group && g.Version == version && (len(n.Kinds) == 0 || slices.Contains(n.Kinds, g.Kind))
		})
	})
}

func (h Surroundings) supplier(need string, meets func(cache.Summary) bool) Supplier {
	s := Supplier{Need: need, Packages: []string{}}
	for _, p := range h.Packages {
		if meets(p) && !slices.Contains(s.Packages, p.Name) {
			s.Packages = append(s.Packages, p.Name)
		}
	}
	return s
}

// RequirementSuppliers returns the packages that meet each requirement for an API or a package.
func (h Surroundings) RequirementSuppliers(b *catalog.Bundle) []Supplier {
	var out []Supplier
	for _, r := range b.Requires() {
		switch r.Kind {
		case catalog.RequireGVK:
			out = append(out, h.supplier(formatRequirement(r), func(s cache.Summary) bool { return slices.Contains(s.APIs, r.GVK) }))
		case catalog.RequirePackage:
			out = append(out, h.supplier(formatRequirement(r), func(s cache.Summary) bool { return s.Name == r.Package }))
		default: // not about one API or package
		}
	}
	slices.SortFunc(out, func(a, b Supplier) int { return strings.Compare(a.Need, b.Need) })
	return slices.CompactFunc(out, func(a, b Supplier) bool { return a.Need == b.Need })
}

// newIcon returns an icon, or nil if its format may run code in browsers.
func newIcon(i bundle.Icon) *Icon {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(i.Base64), ""))
	known := []string{"image/png", "image/jpeg", "image/gif", "image/svg+xml"}
	if err != nil || len(data) == 0 || !slices.Contains(known, i.MediaType) {
		return nil
	}
	return &Icon{MediaType: i.MediaType, Data: base64.StdEncoding.EncodeToString(data)}
}

// newPermissions rates the permissions that the objects of a pin grant. It returns nil if they grant none.
func newPermissions(pin lockfile.Pin, objects []render.Object) (*Permissions, error) {
	after := diff.State{Name: pin.Bundle, Pins: []lockfile.Pin{pin}}
	for _, o := range objects {
		after.Objects = append(after.Objects, diff.Object{Operator: pin.Key(), Content: o})
	}
	r, err := diff.Compare(diff.State{Name: "an empty cluster"}, after, diff.CompareOptions{})
	if err != nil {
		return nil, err
	}
	var out *Permissions
	for _, f := range r.Findings { // the most severe is first
		if !strings.HasPrefix(f.Rule, "rbac.") {
			continue
		}
		if out == nil {
			out = &Permissions{Severity: f.Severity.String(), Rule: f.Rule, Message: strings.Replace(f.Message, "may now ", "may ", 1)}
		}
		out.Findings++
	}
	return out, nil
}

// maxSamples is the maximum number of samples of a bundle.
const maxSamples = 1000

// readSamples returns the sample custom resources of a bundle. A sample that the API server would
// reject contains the reason.
func readSamples(b *bundle.Bundle) ([]Sample, error) {
	text := b.CSV.Annotations["alm-examples"]
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var list []any
	if err := utiljson.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("annotation alm-examples is not a list of objects: %w", err)
	}
	kinds := map[[2]string]*admit.Kind{}
	budget := admit.NewBudget()
	for _, o := range b.Objects {
		if k8s.IsCRD(o.Object) {
			if kind, err := admit.Open(o.Object, budget); err == nil {
				crd := k8s.ParseCRD(o.Object)
				kinds[[2]string{crd.Group, crd.Kind}] = kind
			}
		}
	}
	var out []Sample
	for i, item := range list[:min(len(list), maxSamples)] {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("annotation alm-examples: item %d is not an object", i+1)
		}
		o := k8s.Object(fields)
		s := Sample{APIVersion: o.APIVersion(), Kind: o.Kind(), Name: o.Name(), Object: o}
		kind, owned := kinds[[2]string{o.Group(), o.Kind()}]
		switch {
		case !owned:
			s.Problem = "the bundle has no CustomResourceDefinition of the kind"
		case o.Name() == "":
			s.Problem = "metadata.name is missing"
		default:
			s.Problem = strings.Join(kind.Refusals(o), "; ")
		}
		out = append(out, s)
	}
	return out, nil
}

// SampleFiles returns a distinct file name for each sample, such as "etcdcluster-example.yaml".
func SampleFiles(samples []Sample) []string {
	used := map[string]bool{}
	var out []string
	for _, s := range samples {
		words := strings.FieldsFunc(strings.ToLower(s.Kind+"-"+s.Name), func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9')
		})
		base := strings.Join(words, "-")
		base = cmp.Or(base[:min(len(base), 100)], "sample")
		name := base + ".yaml"
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s-%d.yaml", base, n)
		}
		used[name] = true
		out = append(out, name)
	}
	return out
}

// String returns a text such as "critical: ServiceAccount x can … (rbac.escalate, the worst of 3 findings)".
func (p *Permissions) String() string {
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("%s: %s (%s", p.Severity, p.Message, p.Rule)
	if p.Findings > 1 {
		text += fmt.Sprintf(", the worst of %d findings", p.Findings)
	}
	return text + ")"
}

// supply returns the APIs that each cluster provides, and the APIs of the operators in the lock.
func (h Surroundings) supply() *needs.Supply {
	w, lock := h.Settings, h.Lock
	out := needs.NewSupply(w.OpenShiftVersion != "")
	provided := map[string]int{}
	for _, c := range w.Clusters {
		for _, api := range w.EffectiveCluster(c).Provides.APIs {
			if provided[api]++; provided[api] == len(w.Clusters) {
				out.AddAPIs(api)
			}
		}
	}
	if lock == nil {
		return out
	}
	for _, p := range lock.Pins {
		for _, g := range catalog.Read(p.Properties).Provides {
			out.AddAPIs(g.Group + "/" + g.Version + "/" + g.Kind)
		}
	}
	return out
}
