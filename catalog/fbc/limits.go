package fbc

// Limits for a catalog. The largest known catalogs have 10,000 bundles, in files of up to 2 GB with
// all manifests embedded.
const (
	maxFiles      = 100_000
	maxTotal      = 8 << 30   // bytes of all files together
	maxObject     = 128 << 20 // bytes of one JSON object
	maxDocument   = 32 << 20  // bytes of one YAML document
	maxObjects    = 1_000_000
	maxEntries    = 100_000 // entries of a channel
	maxProperties = 20_000  // properties of a bundle
	maxImages     = 20_000  // related images of a bundle
	maxValue      = 1 << 20 // bytes of a property value
	maxText       = 64 << 10
	maxName       = 1024
	maxFaults     = 500  // faults before decoding stops
	maxTolerated  = 20   // faults recorded for one lifecycle document
	maxReleases   = 1000 // MAJOR.MINOR versions of a lifecycle document
	maxPhases     = 100  // support phases of one of these versions
	maxPlatforms  = 10   // platforms of one of these versions
	maxVersions   = 200  // versions of one platform
	maxDepth      = 200  // nesting depth of YAML; the JSON decoder has its own limit of 10,000
	maxNodes      = 2_000_000
)
