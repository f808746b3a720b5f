package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/provided"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render/needs"
)

// unmetNeed is a need of an operator that some clusters do not meet.
type unmetNeed struct {
	needs.Need
	pin      lockfile.Pin
	clusters []string
}

// checkObservations returns a warning for each observation that is ignored because of a problem.
func checkObservations(s *State) (Findings, error) {
	var notes []diag.Warning
	for _, o := range s.Observed {
		if o.Problem != "" {
			notes = append(notes, diag.Warning{Code: "not-checked", Subject: o.Cluster, Msg: "observation ignored: " + o.Problem})
		}
	}
	return warningsOf(notes), nil
}

// checkNeeds returns the unmet needs of operators. The tree, spec.provides, the user's overlays, and
// observations of the clusters can meet a need. An unmet need is an error. A need of kind Config is only a
// warning, because the operator may create the missing object itself.
func checkNeeds(s *State) (Findings, error) {
	unmet, err := s.findUnmet()
	if err != nil {
		return nil, err
	}
	var faults Findings
	var notes []diag.Warning
	for _, n := range unmet {
		w := n.warning()
		w.Pos, w.Subject, w.Msg = s.declarationPos(n.pin), n.pin.Key(), n.pin.Key()+" "+w.Msg+s.formatClusters(n)
		w = s.waive([]diag.Warning{w})[0]
		if n.Kind == needs.Config {
			notes = append(notes, w)
			continue
		}
		faults = append(faults, Finding{Severity: Error, Code: w.Code, Pos: w.Pos, Subject: w.Subject, Msg: w.Msg, Hint: n.hint(w.Code), Waived: w.Waived})
	}
	return append(faults, warningsOf(diag.SortWarnings(notes))...), nil
}

// declarationPos returns the position of the declaration of an operator. For an operator without a
// declaration, it returns the position of the pin.
func (s *State) declarationPos(pin lockfile.Pin) diag.Pos {
	for _, d := range s.Declared().Subscriptions {
		if d.Namespace == pin.Namespace && d.Package == pin.Package {
			return d.Pos
		}
	}
	if p, ok := s.Lock.Pin(pin.Namespace, pin.Package); ok {
		return p.Pos
	}
	return pin.Pos
}

// findUnmet returns each unmet need once, with the clusters that do not meet it.
func (s *State) findUnmet() ([]unmetNeed, error) {
	var out []unmetNeed
	places := map[string]int{}         // in out
	known := map[string][]needs.Need{} // by operator and settings
	equal := map[string][]int{}        // unmet needs of equal clusters
	var patched func(cluster string) fleet.Patch
	if len(s.Overlays) > 0 {
		f, err := s.Fleet()
		if err != nil {
			return nil, err
		}
		patched = f.Patches()
	}
	for _, c := range s.Settings.Clusters {
		key := c.Shared() + fmt.Sprintf("%q", c.Provides)
		if len(s.Overlays[c.Name]) > 0 || s.observation(c) != nil {
			key += c.Name
		}
		unmet, seen := equal[key]
		if !seen {
			inCluster, patch := known, fleet.Patch{}
			if len(s.Overlays[c.Name]) > 0 {
				inCluster, patch = map[string][]needs.Need{}, patched(c.Name)
			}
			found, err := s.findUnmetIn(c, patch, inCluster)
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

// findUnmetIn returns the unmet needs in a cluster. patch contains the changes of its overlays. known caches
// the needs of each operator.
func (s *State) findUnmetIn(c profile.Cluster, patch fleet.Patch, known map[string][]needs.Need) ([]unmetNeed, error) {
	operators, shared, err := s.Rendered.ClusterObjects(c.Name)
	if err != nil {
		return nil, err
	}
	shared = patch.Apply(shared)
	for i := range operators {
		operators[i].Objects = patch.Apply(operators[i].Objects)
	}
	supply, err := s.clusterSupply(c)
	if err != nil {
		return nil, err
	}
	if s.Rendered.RunsOLM() {
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
		key := o.Pin.Key() + c.ObjectSettings()
		if _, ok := known[key]; !ok {
			known[key] = needs.Find(o, shared, s.isOpenShift())
		}
		for _, n := range supply.Unmet(known[key]) {
			out = append(out, unmetNeed{Need: n, pin: o.Pin})
		}
	}
	return out, nil
}

func (s *State) isOpenShift() bool { return s.Settings.OpenShiftVersion != "" }

// clusterSupply returns the APIs and objects that a cluster has without the rendered tree. They are listed in
// the settings, in the observation of the cluster, or in the files of its overlays.
func (s *State) clusterSupply(c profile.Cluster) (*needs.Supply, error) {
	supply := needs.NewSupply(s.isOpenShift())
	provides := s.Settings.EffectiveCluster(c).Provides
	supply.AddAPIs(provides.APIs...)
	objects := provides.Objects
	if seen := s.observation(c); seen != nil {
		supply.AddAPIs(seen.APIs...)
		objects = slices.Concat(objects, seen.Classes)
	}
	for _, text := range objects {
		key, err := provided.ParseObject(text)
		if err != nil {
			return nil, err
		}
		supply.AddKeys(key)
	}
	return supply, s.addOverlayObjects(supply, c.Name)
}

// observation returns the observation of a cluster, or nil.
func (s *State) observation(c profile.Cluster) *health.Summary {
	for _, o := range s.Observed {
		if o.Problem == "" && (o.Cluster == c.Name || o.Cluster == "" && len(s.Settings.Clusters) == 1) {
			return o
		}
	}
	return nil
}

// addOverlayObjects adds the objects in the files of a cluster's overlays, without building them. It ignores
// invalid files, because the build of the overlays reports them.
func (s *State) addOverlayObjects(supply *needs.Supply, cluster string) error {
	dir, err := s.OverlayFiles(cluster)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !yamlnode.HasExtension(name) {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		objects, _ := yamlnode.Objects(name, data, yamlnode.Limits{})
		for _, o := range objects {
			supply.AddObjects(k8s.Object(o))
		}
		return nil
	})
}

// formatClusters returns the end of a message about a need: the clusters that do not meet it. It returns "" if
// these are all clusters that get the operator.
func (s *State) formatClusters(n unmetNeed) string {
	if all, err := profile.ClustersThatGet(n.pin.Key(), s.Settings.Clusters); err == nil && len(n.clusters) == len(all) {
		return ""
	}
	return " (cluster " + diag.Some(n.clusters, 5) + ")"
}

// warning describes the need. Its message is preceded by the name of the operator.
func (n unmetNeed) warning() diag.Warning {
	by := diag.Some(n.By, 3)
	switch n.Kind {
	case needs.API:
		return diag.Warning{Code: "missing-api", Msg: fmt.Sprintf("needs API %s (%s), which neither the tree nor spec.provides has: %s", n.APIVersion, strings.Join(n.Kinds, ", "), by)}
	case needs.OLM:
		return diag.Warning{Code: "missing-olm", Msg: "cannot run without OLM: " + by}
	case needs.PodSecurity:
		return diag.Warning{Code: "pod-security", Msg: fmt.Sprintf("has pods that Namespace %s rejects (Pod Security level %s): %s: %s", n.Object.Name, n.Level, by, strings.Join(n.Why, ", "))}
	case needs.Namespace:
		return diag.Warning{Code: "missing-namespace", Msg: fmt.Sprintf("has objects in namespace %s, which neither the tree nor spec.provides has, such as %s", n.Object.Name, by)}
	case needs.Config:
		return diag.Warning{Code: "missing-config", Msg: fmt.Sprintf("needs %s for %s, and may create it itself: if the object already exists in the cluster, add %s to spec.provides.objects", n.Object, by, provided.FormatObject(n.Object))}
	default:
		return diag.Warning{Code: "missing-object", Msg: fmt.Sprintf("needs %s, which neither the tree nor spec.provides has: %s", n.Object, by)}
	}
}

// hint returns three ways to fix the error. code is the code for its waiver.
func (n unmetNeed) hint(code string) string {
	waiver := "or add a waiver for " + code
	switch n.Kind {
	case needs.API:
		if certificates.Issues(k8s.Group(n.APIVersion), n.Kinds[0]) {
			waiver = "or choose another issuer in spec.certificates"
		}
		return fmt.Sprintf("add the operator that serves it (quayside catalog search --provides %s/%s), list %s in spec.provides.apis of %s, %s", k8s.Group(n.APIVersion), n.Kinds[0], n.APIVersion, settings.FileName, waiver)
	case needs.OLM:
		return fmt.Sprintf("leave the operator to OLM (docs/adopt.md), list operators.coreos.com/v1alpha1 in spec.provides.apis of %s if OLM runs there, %s", settings.FileName, waiver)
	case needs.PodSecurity:
		return "lower the label pod-security.kubernetes.io/enforce of the declared Namespace, install the operator into another namespace, or patch the pods in an overlay"
	case needs.Namespace:
		return fmt.Sprintf("declare the Namespace, list %s in spec.provides.objects of %s if something else creates it, %s", provided.FormatObject(n.Object), settings.FileName, waiver)
	default:
		return fmt.Sprintf("add it to overlays/<cluster>/resources, list %s in spec.provides.objects of %s, %s", provided.FormatObject(n.Object), settings.FileName, waiver)
	}
}
