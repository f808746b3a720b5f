package fbc

// What one catalog may hold. The largest catalogs known have 10,000 bundles, in
// files of up to 2 GB with all their manifests embedded.
const (
	maxFiles      = 100_000
	maxTotal      = 8 << 30   // bytes of all files
	maxObject     = 128 << 20 // bytes of one JSON object
	maxDocument   = 32 << 20  // bytes of one YAML document
	maxObjects    = 1_000_000
	maxEmpty      = 10_000  // YAML documents of one file that turn out to be empty once they are parsed
	maxEntries    = 100_000 // of one channel
	maxProperties = 20_000  // of one bundle
	maxImages     = 20_000  // of one bundle
	maxValue      = 1 << 20 // bytes of one property that is kept
	maxText       = 64 << 10
	maxName       = 1024
	maxFaults     = 500  // reported; what follows is only said to exist
	maxAside      = 20   // faults of one document that leave the catalog as it is
	maxReleases   = 1000 // of one lifecycle document
	maxPhases     = 100  // of one of these
	maxPlatforms  = 10   // likewise
	maxVersions   = 200  // of one of these
	maxDepth      = 200  // of YAML; JSON has the decoder's own limit of 10,000
	maxNodes      = 2_000_000
)
