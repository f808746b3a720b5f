#!/usr/bin/env bash
# Resolves, renders and diffs the quickstart in a copy, without a network.
# Usage: demo.sh path/to/quayside
set -euo pipefail

quayside=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/quayside-demo.XXXXXX")
cp -R "$here/." "$work"
cd "$work"
export XDG_CACHE_HOME="$work/.cache"

step() { printf '\n== %s\n' "$*"; }
run() { printf '$ quayside %s\n' "$*"; "$quayside" "$@"; }

step "What is there to install?"
run catalog list --offline

step "What is committed is in step: declarations, lock, rendered tree"
run verify --offline

step "What would an upgrade really change?"
run diff --upgrade --offline --exit-zero

step "Move what may move, by one hop"
cp quayside.lock before.lock
run resolve --offline --upgrade

step "CI would say now that the tree is behind"
run verify --offline || echo "(exit code $?)"

step "Render it"
run render --offline >/dev/null

step "What a pull request would say, as a comment"
run diff --locks before.lock quayside.lock --offline -o markdown --exit-zero

step "Where to look"
cat <<END
$work
  subscriptions/   what was asked for: four operators, in three dialects
  quayside.lock    what was chosen, and why
  rendered/        what Argo CD, Flux or kubectl would apply
Try there: $quayside catalog show vault
The same files, with comments: $here
END
