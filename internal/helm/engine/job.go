package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	helm "helm.sh/helm/v4/pkg/engine"

	"github.com/quayside/quayside/internal/helm/internal/wire"
)

// helmVersion is the version of Helm in .Capabilities.HelmVersion of templates. It equals the version in
// go.mod.
const helmVersion = "v4.3.1"

// maxWarnings is the largest number of Helm's messages in an answer.
const maxWarnings = 20

// job is one chart with the settings to template it with.
type job struct {
	req     *wire.Request
	files   [][]byte
	watch   *watch
	lookups map[string]bool // templates that call lookup
	names   []string        // paths of the executed templates, by the number in their first action
	sources map[string]string
	values  map[string]any // user's values
	merged  common.Values  // values with the defaults of the chart
}

func newJob(req *wire.Request, files [][]byte, w *watch) *job {
	return &job{req: req, files: files, watch: w, lookups: map[string]bool{}, sources: map[string]string{}}
}

// run renders the chart twice and returns the JSON of its objects. It fills in the other parts of
// the answer.
func (j *job) run(answer *wire.Answer) (objects [][]byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("templating failed: %v", r)
		}
		for name := range j.lookups {
			answer.Lookups = append(answer.Lookups, name)
		}
		slices.Sort(answer.Lookups)
	}()
	c, err := j.load()
	if err != nil {
		return nil, err
	}
	caps, err := j.capabilities(c)
	if err != nil {
		return nil, err
	}
	crds, err := crdManifests(c, j.watch)
	if err != nil {
		return nil, err
	}
	j.markTemplates(c, map[*chart.Chart]bool{})
	first, err := j.render(c, caps, false)
	if err != nil {
		return nil, err
	}
	second, err := j.render(c, caps, true)
	if err != nil {
		return nil, err
	}
	sorted, skipped, err := parseManifests(first, j.watch)
	if err != nil {
		return nil, err
	}
	if err := j.checkDeterminism(first, second); err != nil {
		return nil, err
	}
	answer.Skipped = skipped
	for _, m := range append(crds, sorted...) {
		objects = m.appendTo(answer, objects)
	}
	return objects, nil
}

// load returns the chart with the subcharts that the values enable.
func (j *job) load() (*chart.Chart, error) {
	j.values = map[string]any{}
	if err := json.Unmarshal(j.req.Values, &j.values); err != nil {
		return nil, fmt.Errorf("decoding values: %w", err)
	}
	files := make([]*archive.BufferedFile, len(j.req.Files))
	for i, f := range j.req.Files {
		files[i] = &archive.BufferedFile{Name: f.Path, Data: j.files[i]}
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	if t := c.Metadata.Type; t != "" && t != "application" {
		return nil, &wire.Error{Path: "Chart.yaml", Msg: fmt.Sprintf("a chart of type %s cannot be installed", t)}
	}
	if err := checkDependencies(c); err != nil {
		return nil, err
	}
	if err := chartutil.ValidateReleaseName(j.req.Release); err != nil {
		return nil, fmt.Errorf("release name %q: %w", j.req.Release, err)
	}
	sortDependencies(c)
	if err := chartutil.ProcessDependencies(c, common.Values(j.values)); err != nil {
		return nil, fmt.Errorf("processing the dependencies of the chart: %w", err)
	}
	return c, nil
}

// sortDependencies sorts the subcharts by name, because Helm returns them in random order.
func sortDependencies(c *chart.Chart) {
	deps := slices.SortedFunc(slices.Values(c.Dependencies()), func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	c.SetDependencies(deps...)
	for _, d := range deps {
		sortDependencies(d)
	}
}

// checkDependencies returns an error if the chart lacks the subchart for a dependency in Chart.yaml.
func checkDependencies(c *chart.Chart) error {
	var missing []string
	for _, d := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(sub *chart.Chart) bool { return sub.Name() == d.Name }) {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &wire.Error{
		Path: "Chart.yaml", Msg: "dependencies are missing in charts/: " + strings.Join(missing, ", "),
		Hint: "in the chart's directory, run 'helm dependency build'",
	}
}

// capabilities returns the capabilities of the cluster. It is an error if the chart excludes the
// Kubernetes version.
func (j *job) capabilities(c *chart.Chart) (*common.Capabilities, error) {
	caps := common.DefaultCapabilities.Copy()
	version, err := common.ParseKubeVersion(j.req.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("invalid Kubernetes version %q: %w", j.req.KubeVersion, err)
	}
	caps.KubeVersion = *version
	if j.req.APIVersions != nil {
		caps.APIVersions = j.req.APIVersions
	}
	caps.HelmVersion.Version = helmVersion
	caps.HelmVersion.GoVersion, caps.HelmVersion.KubeClientVersion = "go1.26", "v1.37" // constants, because the objects must not depend on the machine
	if r := c.Metadata.KubeVersion; r != "" && !chartutil.IsCompatibleRange(r, version.String()) {
		return nil, &wire.Error{Path: "Chart.yaml", Msg: fmt.Sprintf("the chart requires Kubernetes %s, and does not support %s", r, version.Version)}
	}
	return caps, nil
}

// render renders the chart once and returns the text of each template except NOTES.txt.
func (j *job) render(c *chart.Chart, caps *common.Capabilities, again bool) (map[string]string, error) {
	defer j.watch.reset()
	options := common.ReleaseOptions{Name: j.req.Release, Namespace: j.req.Namespace, Revision: 1, IsInstall: true}
	values, err := commonutil.ToRenderValuesWithSchemaValidation(c, j.values, options, caps, true)
	if err != nil {
		return nil, err
	}
	if !again {
		j.merged, _ = values["Values"].(common.Values)
		if err := validateValues(c, j.merged, c.Name(), j.watch); err != nil {
			return nil, err
		}
	}
	e := helm.Engine{CustomTemplateFuncs: j.functions(again)}
	texts, err := e.RenderWithContext(context.Background(), c, values)
	if err != nil {
		return nil, j.templateError(err)
	}
	total := 0
	for name, text := range texts {
		total += len(text)
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(texts, name)
		}
	}
	if total > wire.MaxOutput {
		return nil, fmt.Errorf("the templates render more than %d MiB", wire.MaxOutput>>20)
	}
	return texts, nil
}

// captureLog collects the messages that Helm logs. The returned function returns them, sorted and
// without repetitions.
func captureLog() func() []string {
	var b bytes.Buffer
	log.SetFlags(0)
	log.SetOutput(&limitedBuffer{&b})
	return func() []string {
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		slices.Sort(lines)
		lines = slices.DeleteFunc(slices.Compact(lines), func(s string) bool { return strings.TrimSpace(s) == "" })
		return lines[:min(len(lines), maxWarnings)]
	}
}

// limitedBuffer drops what exceeds 64 KiB.
type limitedBuffer struct{ b *bytes.Buffer }

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.b.Len() < 64<<10 {
		l.b.Write(p)
	}
	return len(p), nil
}

var errNetwork = errors.New("getHostByName is refused: templates have no network")
