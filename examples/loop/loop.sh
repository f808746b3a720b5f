#!/bin/sh
# Takes one release from the catalog to production, step by step, like a user or a
# pipeline.
#
#   loop.sh DIRECTORY REGISTRY KEY     such as loop.sh work registry.example.com/fleet cosign.key
#
# It creates a repository in DIRECTORY, which must not exist, with three environments of
# one cluster each, and pushes to REGISTRY. The password of KEY is in
# COSIGN_PASSWORD. The kubeconfig has the contexts dev-1, stage-1 and prod-1, and Flux on
# dev-1 applies all three artifacts (README.md).
set -eu
work=$1 registry=$2 key=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
here=$(cd "$(dirname "$0")" && pwd)
operator=memcached-operator
releases=$here/../quickstart/catalog-src/$operator
mkdir "$work" && cd "$work"

step() { printf '\n== %s\n' "$*"; }

# release VERSION adds a version to the catalog.
release() {
  mkdir -p "catalog/$operator" && cp -R "$releases/$1" "catalog/$operator/"
  quayside push catalog "$registry/catalog:latest"
}

# merge BRANCH merges a branch, as a user merges a pull request with successful checks.
merge() {
  git merge -q --ff-only "$1" && git push -q origin main && git branch -q -d "$1"
}

# deliver ENVIRONMENT pushes and signs the committed tree. Flux applies only signed
# artifacts.
deliver() {
  artifact=$(quayside -C "envs/$1" push "oci://$registry/$1:main" --sign "$key")
  quayside -C "envs/$1" verify --strict "$artifact"
}

# observe ENVIRONMENT waits until its cluster matches its lock, and records the observation.
observe() {
  quayside -C "envs/$1" status --context "$1-1" --wait --timeout 5m -o json >"observed/$1.json"
}

# promote FROM TO proposes the versions observed healthy in FROM. It ends the script if an
# operator is held back.
promote() {
  quayside propose --promote "$1" "$2" "$operator-system/$operator" --observed observed \
    --branch "promote-$2" --push origin --pr-body "bodies/$2.md"
  cat "bodies/$2.md"
  merge "promote-$2"
}

step "Three environments, one declaration, a catalog with one version"
git init -q -b main . && git init -q --bare origin.git && git remote add origin origin.git
printf '%s\n' /origin.git/ /catalog/ /observed/ /bodies/ >.gitignore
mkdir observed bodies envs && cp -R "$here/operators" .
release 0.0.1
for env in dev stage prod; do
  mkdir "envs/$env"
  sed "s|registry.example.com/fleet|$registry|" "$here/envs/$env/quayside.yaml" >"envs/$env/quayside.yaml"
  quayside -C "envs/$env" resolve --render >/dev/null
done
git add -A && git commit -q -m "Three environments" && git push -q origin main
for env in dev stage prod; do deliver "$env"; done
for env in dev stage prod; do observe "$env"; done

step "A new release is in the catalog: a pull request for dev"
release 0.0.2
quayside -C envs/dev propose --one-branch --branch upgrade --push origin --pr-body "$PWD/bodies/dev.md"
cat bodies/dev.md
merge upgrade

step "Nobody has seen it in dev yet: stage does not get it"
if quayside promote dev stage "$operator-system/$operator" --observed observed --check; then exit 1; fi

step "Flux applies it to dev, and it is well there: a pull request for stage"
deliver dev
observe dev
promote dev stage

step "The same in stage: a pull request for prod"
deliver stage
observe stage
promote stage prod

step "And in prod"
deliver prod
observe prod
git log --format=%s
