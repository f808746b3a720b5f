// Package inventory lists the contents of a lock file and its catalogs, as values with JSON
// encodings: packages and channels, the images of clusters and their mirrors, a CycloneDX
// bill of materials, SLSA provenance, dependency trees, and a feed of available upgrades.
package inventory
