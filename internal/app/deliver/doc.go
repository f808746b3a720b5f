// Package deliver publishes the rendered tree: as branches and pull requests in Git, one
// for each upgrade, or as an artifact in a registry, with provenance and a bill of
// materials.
package deliver
