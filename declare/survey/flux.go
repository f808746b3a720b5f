package survey

import (
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// addDirectories adds the directories that the object n of a tool applies. applier describes the fields of the
// object's kind.
func (s *scanner) addDirectories(e *Entry, n *yamlnode.Node, applier profile.Applier) {
	fields := decode(n)
	for _, where := range applier.Paths {
		nodes := yamlnode.NodesAt(n, where)
		if len(nodes) == 0 && applier.Sources == "" {
			continue
		}
		a := Applied{Entry: e, Pos: e.at(n, where), Dir: cleanDir(textAt(n, where)), recurse: true, suspended: isTrue(n, "spec.suspend"), ignoreFile: applier.Ignores}
		for _, target := range applier.Targets {
			if c := textAt(n, target); c != "" {
				a.Cluster = c
			}
		}
		if applier.Sources != "" {
			source, foreign := s.sourceOf(n)
			if foreign {
				continue
			}
			a.ignore = source.ignored
			a.Changes = s.fluxChanges(fields, e.Pos.File)
		}
		s.addDirs(e, a, func(*Applied) {})
	}
}

// sourceOf returns the source that a Flux Kustomization names. The second result is true if that
// source is not this repository.
func (s *scanner) sourceOf(n *yamlnode.Node) (sourceObject, bool) {
	kind := textAt(n, "spec.sourceRef.kind")
	if kind != "GitRepository" {
		return sourceObject{}, true // an artifact whose content comes from elsewhere
	}
	namespace := textAt(n, "spec.sourceRef.namespace")
	if namespace == "" {
		namespace = textAt(n, "metadata.namespace")
	}
	source, known := s.sources[sourceKey(kind, namespace, textAt(n, "spec.sourceRef.name"))]
	if !known && textAt(n, "spec.path") == "" && !s.assumeOwn {
		return source, true // without a path, nothing suggests that the unknown source is this repository
	}
	return source, known && s.isForeign(source.url)
}

func sourceKey(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// fluxChanges returns the changes that a Flux Kustomization in a file makes. fields are its fields.
func (s *scanner) fluxChanges(fields map[string]any, file string) Changes {
	var typed struct {
		Spec struct {
			TargetNamespace string         `json:"targetNamespace"`
			NamePrefix      string         `json:"namePrefix"`
			NameSuffix      string         `json:"nameSuffix"`
			Patches         []types.Patch  `json:"patches"`
			Images          []types.Image  `json:"images"`
			Components      []string       `json:"components"`
			PostBuild       map[string]any `json:"postBuild"`
			CommonMetadata  struct {
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"commonMetadata"`
		} `json:"spec"`
	}
	data, err := yaml.Marshal(fields)
	if err == nil {
		err = yaml.Unmarshal(data, &typed)
	}
	spec := typed.Spec
	c := Changes{
		Namespace: spec.TargetNamespace, NamePrefix: spec.NamePrefix, NameSuffix: spec.NameSuffix, Patches: spec.Patches, Images: spec.Images, Components: spec.Components,
		Labels: spec.CommonMetadata.Labels, Annotations: spec.CommonMetadata.Annotations,
	}
	s.addVariables(&c, spec.PostBuild, k8s.Text(fields, "metadata", "namespace"), file)
	if err != nil {
		c.Unknown = append(c.Unknown, "the patches, images or components")
	}
	return c
}
