package format_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/format"
)

// TestAsksOfCharts checks which APIs of the cluster a lock records for a chart.
func TestAsksOfCharts(t *testing.T) {
	const monitor, other = "monitoring.coreos.com/v1/ServiceMonitor", "example.com/v1"
	const object = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\n"
	f, ok := format.Find("helm")
	if !ok {
		t.Fatal("no format helm")
	}
	for name, c := range map[string]struct {
		template string
		want     []string
	}{
		"an object":     {object, nil},
		"a version":     {"{{ if semverCompare \">1.30\" .Capabilities.KubeVersion.Version }}" + object + "{{ end }}", nil},
		"an API":        {"{{ if .Capabilities.APIVersions.Has \"monitoring.coreos.com/v1\" }}" + object + "{{ end }}", []string{monitor}},
		"without a dot": {"{{ if has \"monitoring.coreos.com/v1\" (index .Capabilities \"APIVersions\") }}" + object + "{{ end }}", []string{monitor}},
	} {
		files := fstest.MapFS{
			"Chart.yaml":       {Data: []byte("apiVersion: v2\nname: lamp\nversion: 1.0.0\n")},
			"README.md":        {Data: []byte("Needs monitoring.coreos.com/v1.\n")},
			"templates/a.yaml": {Data: []byte(c.template)},
		}
		got, err := f.Asks(files, []string{monitor, other})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
	packed := fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: lamp\nversion: 1.0.0\n")}, "charts/sub-1.0.0.tgz": {Data: []byte("packed")}}
	if got, err := f.Asks(packed, []string{monitor, other}); err != nil || len(got) != 2 {
		t.Errorf("packed: got %q, %v, want both: a packed subchart may ask for anything", got, err)
	}
}
