package helm

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// metadataFile has the metadata of a chart.
const metadataFile = "Chart.yaml"

// Metadata is the content of Chart.yaml.
type Metadata struct {
	Name         string
	Version      string // a semantic version
	AppVersion   string
	KubeVersion  string // range of Kubernetes versions
	Type         string // "", "application" or "library"
	Deprecated   bool
	Description  string
	Home         string
	Icon         string
	Keywords     []string
	Sources      []string
	Maintainers  []Maintainer
	Annotations  map[string]string
	Dependencies []Dependency
}

// Maintainer is a person or a team.
type Maintainer struct{ Name, Email, URL string }

// Dependency is a subchart.
type Dependency struct{ Name, Version, Repository, Alias, Condition string }

// maxMetadata limits the size of Chart.yaml.
const maxMetadata = 1 << 20 // bytes

// chartFile has the fields of Chart.yaml. As in Helm, numbers and booleans are accepted as text.
type chartFile struct {
	APIVersion  raw            `json:"apiVersion"`
	Name        raw            `json:"name"`
	Version     raw            `json:"version"`
	AppVersion  raw            `json:"appVersion"`
	KubeVersion raw            `json:"kubeVersion"`
	Type        raw            `json:"type"`
	Deprecated  bool           `json:"deprecated"`
	Description raw            `json:"description"`
	Home        raw            `json:"home"`
	Icon        raw            `json:"icon"`
	Keywords    []raw          `json:"keywords"`
	Sources     []raw          `json:"sources"`
	Annotations map[string]raw `json:"annotations"`
	Maintainers []struct {
		Name  raw `json:"name"`
		Email raw `json:"email"`
		URL   raw `json:"url"`
	} `json:"maintainers"`
	Dependencies []struct {
		Name       raw `json:"name"`
		Version    raw `json:"version"`
		Repository raw `json:"repository"`
		Alias      raw `json:"alias"`
		Condition  raw `json:"condition"`
	} `json:"dependencies"`
}

// raw is a scalar as JSON.
type raw = json.RawMessage

// ReadMetadata parses the Chart.yaml of a chart and, for an old chart, requirements.yaml. As in
// Helm, unknown fields are ignored, and a version that is not a semantic version is an error.
// Errors have positions.
func ReadMetadata(files map[string][]byte) (Metadata, error) {
	data, ok := files[metadataFile]
	if !ok {
		return Metadata{}, errors.New("the chart has no Chart.yaml")
	}
	f, positions, err := parseChartFile(metadataFile, data)
	if err != nil {
		return Metadata{}, err
	}
	m := f.metadata()
	if old, ok := files["requirements.yaml"]; ok && text(f.APIVersion) != "v2" && len(m.Dependencies) == 0 {
		r, _, err := parseChartFile("requirements.yaml", old)
		if err != nil {
			return Metadata{}, err
		}
		m.Dependencies = r.metadata().Dependencies
	}
	if m.Name == "" || m.Name == "." || m.Name == ".." || path.Base(m.Name) != m.Name {
		return Metadata{}, diag.Errorf(positions.At("name", diag.Pos{File: metadataFile}), "%q is not the name of a chart", m.Name)
	}
	if _, err := semver.NewVersion(m.Version); err != nil {
		return Metadata{}, diag.Errorf(positions.At("version", diag.Pos{File: metadataFile}), "version %q of chart %s is not a semantic version", m.Version, m.Name)
	}
	return m, nil
}

func parseChartFile(file string, data []byte) (*chartFile, diag.Fields, error) {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{Bytes: maxMetadata, Repeated: true})
	if err != nil {
		return nil, nil, err
	}
	if len(docs) == 0 {
		return new(chartFile), nil, nil
	}
	f := new(chartFile)
	return f, yamlnode.Positions(file, docs[0]), yamlnode.DecodeOpen(file, docs[0], f)
}

func (f *chartFile) metadata() Metadata {
	m := Metadata{
		Name: text(f.Name), Version: text(f.Version), AppVersion: text(f.AppVersion), KubeVersion: text(f.KubeVersion),
		Type: text(f.Type), Deprecated: f.Deprecated, Description: text(f.Description), Home: text(f.Home), Icon: text(f.Icon),
		Keywords: texts(f.Keywords), Sources: texts(f.Sources),
	}
	for _, p := range f.Maintainers {
		m.Maintainers = append(m.Maintainers, Maintainer{text(p.Name), text(p.Email), text(p.URL)})
	}
	for _, d := range f.Dependencies {
		m.Dependencies = append(m.Dependencies, Dependency{text(d.Name), text(d.Version), text(d.Repository), text(d.Alias), text(d.Condition)})
	}
	if len(f.Annotations) > 0 {
		m.Annotations = map[string]string{}
		for k, v := range f.Annotations {
			m.Annotations[k] = text(v)
		}
	}
	return m
}

// text returns a JSON scalar as text on one line, and "" for null, a list or a map.
func text(r raw) string {
	var s string
	switch {
	case len(r) == 0 || bytes.ContainsAny(r[:1], "n[{"):
		return ""
	case json.Unmarshal(r, &s) != nil:
		return string(r)
	}
	return strings.Join(strings.Fields(s), " ")
}

func texts(list []raw) []string {
	var out []string
	for _, r := range list {
		if s := text(r); s != "" {
			out = append(out, s)
		}
	}
	return out
}
