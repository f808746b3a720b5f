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

step "List the packages of the catalog"
run catalog list --offline

step "Verify that declarations, lock and rendered tree belong together"
run verify --offline

step "Show the changes of an upgrade"
run diff --upgrade --offline --exit-zero

step "Upgrade by one hop"
cp quayside.lock before.lock
run resolve --offline --upgrade

step "In CI, the tree is out of date now"
run verify --offline || echo "(exit code $?)"

step "Render it"
run render --offline >/dev/null

step "Comment of a pull request"
run diff --locks before.lock quayside.lock --offline -o markdown --exit-zero

step "Where to look"
cat <<END
$work
  subscriptions/   the declarations: four operators, as OLM v0, OLM v1 and quayside declare them
  quayside.lock    the chosen versions, with the reasons
  rendered/        the manifests that Argo CD, Flux or kubectl apply
Try there: $quayside catalog show vault
The same files, with comments: $here
END
