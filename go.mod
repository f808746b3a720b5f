module github.com/quayside/quayside

go 1.26.0

require github.com/blang/semver/v4 v4.0.0

require github.com/google/go-cmp v0.7.0

require (
	go.yaml.in/yaml/v3 v3.0.4
	sigs.k8s.io/yaml v1.6.0
)

require go.yaml.in/yaml/v2 v2.4.4

require (
	golang.org/x/sys v0.47.0
	pgregory.net/rapid v1.3.0
)
