module github.com/quayside/quayside

go 1.26.0

require github.com/blang/semver/v4 v4.0.0

require github.com/google/go-cmp v0.7.0 // indirect
