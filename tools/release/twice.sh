#!/usr/bin/env bash
# Builds a snapshot of the last commit in two clones with irrelevant differences (directory,
# umask, time zone, language, Go's flags and its cache), and compares the files of the release.
# Prints the files with their sums. Usage: tools/release/twice.sh GORELEASER
set -euo pipefail

top=$(git rev-parse --show-toplevel)
commit=$(git rev-parse HEAD) # the same for both, even if a commit is made meanwhile
work=$(mktemp -d "${TMPDIR:-/tmp}/quayside-twice.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# build UMASK DIRECTORY [NAME=VALUE ...] [COMMAND ...] prints the sums of the files.
build() {
  (
    umask "$1"
    git clone --quiet "$top" "$work/$2"
    cd "$work/$2"
    git checkout --quiet --detach "$commit"
    shift 2
    env "$@" release --snapshot --clean --skip=sign >&2
    cd dist/release
    sha256sum --quiet --check SHA256SUMS
    cat SHA256SUMS
    sha256sum SHA256SUMS homebrew/* krew/*
  )
}

build 022 one TZ=UTC LC_ALL=C GOFLAGS= "$@" >"$work/first"
build 077 "another place/two" TZ=Asia/Kathmandu LC_ALL=C.UTF-8 GOFLAGS=-buildvcs=false GOCACHE="$work/cache" "$@" >"$work/second"

diff "$work/first" "$work/second"
cat "$work/first"
echo "twice the same: $(wc -l <"$work/first") files"
