// Package upgrade decides which operators may be upgraded. Promote upgrades operators to the versions of an
// upstream environment that were observed healthy there. CheckPlatform finds the operators that do not support
// another version of Kubernetes or OpenShift.
package upgrade
