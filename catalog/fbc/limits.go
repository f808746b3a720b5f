package fbc

// The limits for a catalog. The largest known catalogs have 10,000 bundles, in files of up to 2
// GB with all manifests embedded.
const (
	maxFiles      = 100_000
	maxTotal      = 8 << 30   // bytes of all files
	maxObject     = 128 << 20 // bytes of one JSON object
	maxDocument   = 32 << 20  // bytes of one YAML document
	maxObjects    = 1_000_000
	maxEntries    = 100_000 // of a channel
	maxProperties = 20_000  // of a bundle
	maxImages     = 20_000  // of a bundle
	maxValue      = 1 << 20 // bytes of a property
	maxText       = 64 << 10
	maxName       = 1024
	maxFaults     = 500  // faults in a report
	maxTolerated  = 20   // tolerated faults of a document
	maxReleases   = 1000 // of a lifecycle document
	maxPhases     = 100  // of a release
	maxPlatforms  = 10   // of a release
	maxVersions   = 200  // of a platform
	maxDepth      = 200  // levels of YAML; the JSON decoder has a limit of 10,000
	maxNodes      = 2_000_000
)
