package fbc

// Limits of one catalog. The largest known catalogs have 10,000 bundles, in
// files of up to 2 GB with all manifests embedded.
const (
	maxFiles      = 100_000
	maxTotal      = 8 << 30   // bytes of all files
	maxObject     = 128 << 20 // bytes of one JSON object
	maxDocument   = 32 << 20  // bytes of one YAML document
	maxObjects    = 1_000_000
	maxEntries    = 100_000 // of one channel
	maxProperties = 20_000  // of one bundle
	maxImages     = 20_000  // of one bundle
	maxValue      = 1 << 20 // bytes of one property
	maxText       = 64 << 10
	maxName       = 1024
	maxFaults     = 500  // reported; further ones are summarized
	maxAside      = 20   // faults of one document that do not invalidate the catalog
	maxReleases   = 1000 // of one lifecycle document
	maxPhases     = 100  // of one release
	maxPlatforms  = 10   // of one release
	maxVersions   = 200  // of one platform
	maxDepth      = 200  // of YAML; the JSON decoder has its own limit of 10,000
	maxNodes      = 2_000_000
)
