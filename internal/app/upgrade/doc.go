// Package upgrade decides which operators may be upgraded: promote takes the versions
// that the upstream environment has, gated on observed health, and CheckPlatform finds
// the operators that do not support another version of Kubernetes.
package upgrade
