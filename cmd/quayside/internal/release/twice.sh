#!/usr/bin/env bash
# Builds a release of the last commit in two clones with irrelevant differences (directory,
# umask, time zone, language, Go's flags and its cache), and compares every file. Prints the
# files with their sums and sizes. Usage: cmd/quayside/internal/release/twice.sh
set -euo pipefail

top=$(git rev-parse --show-toplevel)
commit=$(git rev-parse HEAD) # the same for both, even if a commit is made meanwhile
work=$(mktemp -d "${TMPDIR:-/tmp}/quayside-twice.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# build UMASK DIRECTORY [NAME=VALUE ...]
build() {
  (
    umask "$1"
    git clone --quiet "$top" "$work/$2"
    cd "$work/$2"
    git checkout --quiet --detach "$commit"
    shift 2
    env "$@" go run ./cmd/quayside/internal/release -o release
  )
}

build 022 one TZ=UTC LC_ALL=C GOFLAGS= >"$work/first"
build 077 "another place/two" TZ=Asia/Kathmandu LC_ALL=C.UTF-8 GOFLAGS=-buildvcs=false GOCACHE="$work/cache" >"$work/second"

cmp "$work/first" "$work/second"
diff -r "$work/one/release" "$work/another place/two/release"
cat "$work/first"
echo "twice the same: $(wc -l <"$work/first") files"
