// Package inventory describes the contents of a lock file and its catalogs as values with JSON
// encodings: packages and channels, images and their mirrors, a CycloneDX bill of materials, SLSA
// provenance, dependency trees, and a feed of available upgrades.
package inventory
