package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/provided"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/render/needs"
)

// unmetNeed is a need of an operator that some clusters do not meet.
type unmetNeed struct {
	needs.Need
	pin      lockfile.Pin
	clusters []string
}

// unmetNeeds returns the needs of operators that neither the tree, nor spec.provides, nor the user's
// overlays, nor observations of the clusters meet. Faults are needs without which a cluster rejects
// objects or pods.
func (p *Project) unmetNeeds(lock *lockfile.File, res *render.Result) (faults diag.List, notes []diag.Warning, err error) {
	for _, s := range p.Observed {
		if s.Problem != "" {
			notes = append(notes, diag.Warning{Code: "not-checked", Subject: s.Cluster, Msg: "observation ignored: " + s.Problem})
		}
	}
	unmet, err := p.findUnmet(res)
	if err != nil || len(unmet) == 0 {
		return nil, notes, err
	}
	declared := &declare.Set{}
	if set, err := p.DeclarationsIfAny(); err == nil { // otherwise, resolve reports the error
		if set, err = CompleteFromLock(set, lock); err == nil {
			declared = set
		}
	}
	for _, n := range unmet {
		w := n.warning()
		w.Pos, w.Subject, w.Msg = declarationPos(n.pin, declared, lock), n.pin.Key(), n.pin.Key()+" "+w.Msg+p.formatClusters(n)
		w = p.Waive([]diag.Warning{w})[0]
		switch {
		case n.Kind == needs.Config:
			notes = append(notes, w)
		case !w.Waived:
			faults = append(faults, diag.Hintf(w.Pos, n.hint(w.Code), "%s [%s]", w.Msg, w.Code))
		}
	}
	return faults, diag.SortWarnings(notes), nil
}

// CheckNeeds logs the needs of operators that may be unmet, and returns an error for each one that is
// unmet.
func (p *Project) CheckNeeds(res *render.Result) error {
	lock, err := p.NeedLock()
	if err != nil {
		return err
	}
	faults, notes, err := p.unmetNeeds(lock, res)
	p.Log.Warn(notes)
	return errors.Join(err, faults.Err())
}

// declarationPos returns the position of the declaration of an operator or, if there is none, of its
// pin.
func declarationPos(pin lockfile.Pin, declared *declare.Set, lock *lockfile.File) diag.Pos {
	for _, s := range declared.Subscriptions {
		if s.Namespace == pin.Namespace && s.Package == pin.Package {
			return s.Pos
		}
	}
	if p, ok := lock.Pin(pin.Namespace, pin.Package); ok {
		return p.Pos
	}
	return pin.Pos
}

// findUnmet returns each unmet need once, with the clusters that do not meet it.
func (p *Project) findUnmet(res *render.Result) ([]unmetNeed, error) {
	overlays, _, err := p.Overlays()
	if err != nil {
		return nil, err
	}
	var out []unmetNeed
	places := map[string]int{}         // in out
	known := map[string][]needs.Need{} // by operator and config
	equal := map[string][]int{}        // unmet needs of equal clusters
	var patched func(cluster string) Patch
	if p.Patched != nil && len(overlays) > 0 {
		if patched, err = p.Patched(p, res); err != nil {
			return nil, err
		}
	}
	for _, c := range p.Settings.Clusters {
		key := c.Shared() + fmt.Sprintf("%q", c.Provides)
		if len(overlays[c.Name]) > 0 || p.observation(c) != nil {
			key += c.Name
		}
		unmet, seen := equal[key]
		if !seen {
			inCluster, patch := known, Patch{}
			if patched != nil && len(overlays[c.Name]) > 0 {
				inCluster, patch = map[string][]needs.Need{}, patched(c.Name)
			}
			found, err := p.findUnmetIn(c, res, patch, inCluster)
			if err != nil {
				return nil, err
			}
			for _, n := range found {
				id := n.pin.Key() + " " + n.ID()
				if _, ok := places[id]; !ok {
					places[id] = len(out)
					out = append(out, n)
				}
				unmet = append(unmet, places[id])
			}
			equal[key] = unmet
		}
		for _, i := range unmet {
			out[i].clusters = append(out[i].clusters, c.Name)
		}
	}
	return out, nil
}

// findUnmetIn returns the unmet needs in a cluster, whose overlay patch applies. It adds the needs of each
// operator to known.
func (p *Project) findUnmetIn(c profile.Cluster, res *render.Result, patch Patch, known map[string][]needs.Need) ([]unmetNeed, error) {
	operators, shared, err := res.ClusterObjects(c.Name)
	if err != nil {
		return nil, err
	}
	shared = patch.Apply(shared)
	for i := range operators {
		operators[i].Objects = patch.Apply(operators[i].Objects)
	}
	supply, err := p.clusterSupply(c)
	if err != nil {
		return nil, err
	}
	if res.RunsOLM() {
		supply.AddAPIs(provided.OLMAPIs()...)
	}
	for _, o := range patch { // with generated objects
		if o != nil {
			supply.AddObjects(o)
		}
	}
	supply.AddObjects(shared...)
	for _, o := range operators {
		supply.AddObjects(o.Objects...)
	}
	var out []unmetNeed
	for _, o := range operators {
		key := o.Pin.Key() + string(c.Config)
		if _, ok := known[key]; !ok {
			known[key] = needs.Find(o, shared, p.isOpenShift())
		}
		for _, n := range supply.Unmet(known[key]) {
			out = append(out, unmetNeed{Need: n, pin: o.Pin})
		}
	}
	return out, nil
}

func (p *Project) isOpenShift() bool { return p.Settings.OpenShiftVersion != "" }

// clusterSupply returns everything that a cluster has without the rendered tree: the lists of the settings,
// its observation, and the objects in the files of its overlays.
func (p *Project) clusterSupply(c profile.Cluster) (*needs.Supply, error) {
	s := needs.NewSupply(p.isOpenShift())
	s.AddAPIs(slices.Concat(p.Settings.Provides.APIs, c.Provides.APIs)...)
	objects := slices.Concat(p.Settings.Provides.Objects, c.Provides.Objects)
	if seen := p.observation(c); seen != nil {
		s.AddAPIs(seen.APIs...)
		objects = append(objects, seen.Classes...)
	}
	for _, text := range objects {
		key, err := provided.ParseObject(text)
		if err != nil {
			return nil, err
		}
		s.AddKeys(key)
	}
	return s, p.addOverlayObjects(s, c.Name)
}

// observation returns the observation of a cluster, or nil.
func (p *Project) observation(c profile.Cluster) *health.Summary {
	for _, s := range p.Observed {
		if s.Problem == "" && (s.Cluster == c.Name || s.Cluster == "" && len(p.Settings.Clusters) == 1) {
			return s
		}
	}
	return nil
}

// addOverlayObjects adds the objects in the files of a cluster's overlays, without building them.
// Invalid files are reported where the overlays are built.
func (p *Project) addOverlayObjects(s *needs.Supply, cluster string) error {
	dir, err := p.lookup(path.Join(p.OverlaysDir(), cluster))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fs.WalkDir(dir.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !yamlnode.HasExtension(name) {
			return err
		}
		data, err := fs.ReadFile(dir.FS, name)
		if err != nil {
			return err
		}
		objects, _ := yamlnode.Objects(name, data, yamlnode.Limits{})
		for _, o := range objects {
			s.AddObjects(k8s.Object(o))
		}
		return nil
	})
}

// formatClusters returns the clusters of a need as the end of a message, or "" if they are all clusters
// that get the operator.
func (p *Project) formatClusters(n unmetNeed) string {
	if all, err := profile.ClustersThatGet(n.pin.Key(), p.Settings.Clusters); err == nil && len(n.clusters) == len(all) {
		return ""
	}
	return " (cluster " + diag.Some(n.clusters, 5) + ")"
}

// warning describes the need. The name of the operator precedes the message.
func (n unmetNeed) warning() diag.Warning {
	by := diag.Some(n.By, 3)
	switch n.Kind {
	case needs.API:
		return diag.Warning{Code: "missing-api", Msg: fmt.Sprintf("needs API %s (%s), which neither the tree nor spec.provides has: %s", n.APIVersion, strings.Join(n.Kinds, ", "), by)}
	case needs.OLM:
		return diag.Warning{Code: "missing-olm", Msg: "cannot run without OLM: " + by}
	case needs.PodSecurity:
		return diag.Warning{Code: "pod-security", Msg: fmt.Sprintf("has pods that Namespace %s rejects, because it enforces Pod Security level %s: %s: %s", n.Object.Name, n.Level, by, strings.Join(n.Why, ", "))}
	case needs.Config:
		return diag.Warning{Code: "missing-config", Msg: fmt.Sprintf("needs %s, which it may create itself, for %s: if it exists, add %s to spec.provides.objects", n.Object, by, provided.FormatObject(n.Object))}
	default:
		return diag.Warning{Code: "missing-object", Msg: fmt.Sprintf("needs %s, which neither the tree nor spec.provides has: %s", n.Object, by)}
	}
}

// hint returns three ways to solve the error with a code.
func (n unmetNeed) hint(code string) string {
	waiver := "or add a waiver for " + code
	switch n.Kind {
	case needs.API:
		if certificates.Issues(k8s.Group(n.APIVersion), n.Kinds[0]) {
			waiver = "or choose another issuer in spec.certificates"
		}
		return fmt.Sprintf("add the operator that serves it (quayside catalog search %s), list %s in spec.provides.apis of %s, %s", strings.ToLower(n.Kinds[0]), n.APIVersion, settings.FileName, waiver)
	case needs.OLM:
		return fmt.Sprintf("leave the operator to OLM (docs/adopt.md), list operators.coreos.com/v1alpha1 in spec.provides.apis of %s if OLM runs there, %s", settings.FileName, waiver)
	case needs.PodSecurity:
		return "lower the label pod-security.kubernetes.io/enforce of the declared Namespace, install the operator into another namespace, or patch the pods in an overlay"
	default:
		return fmt.Sprintf("add it to overlays/<cluster>/resources, list %s in spec.provides.objects of %s, %s", provided.FormatObject(n.Object), settings.FileName, waiver)
	}
}
