// Package deliver publishes the rendered tree. It creates a Git branch and a pull request for
// each upgrade, or pushes the tree as an artifact to a registry, with provenance and a bill of
// materials.
package deliver
