package cache_test

import (
	"fmt"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
)

// BenchmarkOpen opens the index of 400 packages and reads ten of them: without lifecycles, and
// with lifecycles of twelve versions with four phases each.
func BenchmarkOpen(b *testing.B) {
	for _, versions := range []int{0, 12} {
		c := sample(400)
		var names []string
		for i := range c.Packages {
			c.Packages[i].Lifecycles = nil
			if versions > 0 {
				c.Packages[i].Lifecycles = []catalog.LifecycleData{{Versions: supportedVersions(versions)}}
			}
			if i%40 == 0 {
				names = append(names, c.Packages[i].Name)
			}
		}
		data := write(b, c)
		b.Run(fmt.Sprintf("lifecycles-%d", versions), func(b *testing.B) {
			for b.Loop() {
				got, err := cache.PickNames(names...)([]*cache.Index{open(b, data)}, catalog.Needs{})
				if err != nil || len(got) != 1 || len(got[0].Packages) != len(names) {
					b.Fatalf("%d catalogs, %v", len(got), err)
				}
			}
			b.ReportMetric(float64(len(data))/1e3, "kB")
		})
	}
}

// supportedVersions returns support periods of this number of versions.
func supportedVersions(versions int) []catalog.SupportedVersion {
	var out []catalog.SupportedVersion
	for i := range versions {
		v := catalog.SupportedVersion{Name: fmt.Sprintf("1.%d", i)}
		for p := range 4 {
			v.Phases = append(v.Phases, catalog.SupportPhase{Name: fmt.Sprintf("Phase %d", p), Start: fmt.Sprintf("20%d-01-01", 20+p), End: fmt.Sprintf("20%d-12-31", 20+p)})
			v.Platforms = append(v.Platforms, catalog.SupportedPlatform{Name: catalog.OpenShift, Version: fmt.Sprintf("4.%d", 16+p)})
		}
		out = append(out, v)
	}
	return out
}
