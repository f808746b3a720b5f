# make demo and make test are all that a newcomer needs; `make verify` is what
# CI runs before a change goes in.

GO       ?= go
BIN      := bin
FUZZTIME ?= 10s
FUZZED   := .
CHECKS   ?= 2000
LINT     := $(GO) tool -modfile=tools/go.mod golangci-lint

# Tests make and remove files by the ten thousand, at which some disks take longer
# than all the rest does: they are made in memory where there is enough of it.
MEMORY = $(shell [ -w /dev/shm ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts && \
  [ $$(df -Pk /dev/shm | awk 'END {print $$4}') -gt 4000000 ] && \
  [ $$(awk '/^MemAvailable/ {print $$2}' /proc/meminfo) -gt 8000000 ] && echo /dev/shm)
# Where there is, they and what links them need not look for garbage as often as a program
# does that shares a machine: over a third of their time went there.
IN_MEMORY = $(if $(MEMORY),-exec 'env TMPDIR=$(MEMORY) GOTMPDIR=$(MEMORY) GOGC=400 GOMEMLIMIT=3GiB')

# Test packages that keep golden files: those that define -update.
GOLDEN = $(sort $(dir $(shell grep -rl --include='*_test.go' 'flag.Bool."update"' . 2>/dev/null)))

# The core and the reader of clusters, which mutation testing is for: a mutant that
# lives is a rule that no test pins.
MUTATED ?= ./lockfile ./catalog/fbc ./resolve ./render ./diff ./internal/cluster

.PHONY: help demo build test race lint fmt fuzz fuzz-targets fuzz-little properties mutate bench corpus golden tidy examples docs man image image-ci dist dist-twice look cluster-test leaving-test forge-test without-olmexit verify clean

help: ## Show what can be made.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

# Without C the program is one static file that starts with half the memory.
# Without kustomize's Go plugins, which are never used, the linker may drop what
# nobody calls.
build: ## Build bin/quayside.
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -tags kustomize_disable_go_plugin_support -o $(BIN)/quayside ./cmd/quayside

demo: build ## Resolve, render and diff the bundled example, offline, in a copy.
	@examples/quickstart/demo.sh $(BIN)/quayside

# Without tables for debuggers a test program is linked in two thirds of the time, and
# without kustomize's Go plugins again in two thirds; there are seventy. Linters vet.
FAST = -vet=off -ldflags='-s -w' -tags kustomize_disable_go_plugin_support
test: ## Run the tests.
	$(if $(MEMORY),GOGC=400) $(GO) test $(IN_MEMORY) $(FAST) -timeout 20m ./...

race: ## Run the tests with the race detector, without those over the corpus, of pages and of every command.
	QUAYSIDE_CORPUS= QUAYSIDE_CONFORMANCE= $(GO) test $(IN_MEMORY) -race -short -timeout 30m ./...

lint: ## Run the linters of .golangci.yml, name unreachable code, and check the wording of changed comments.
	$(LINT) run ./...
	$(GO) test ./internal/layers -run 'TestUnused|TestWording'

fmt: ## Format the sources.
	$(LINT) fmt ./...

fuzz: properties fuzz-targets ## Run every fuzz target for FUZZTIME (10s) each, and the property tests on fresh seeds.

fuzz-targets:
	@set -e; for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' $(FUZZED) | xargs -n1 dirname | sort -u); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$dir/*_test.go); do \
	    $(GO) test $$dir -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x; \
	  done; \
	done

# The tests themselves fix the seed.
properties: ## Run every property test with a fresh seed, on CHECKS (2000) inputs.
	@set -e; for dir in $$(grep -rlE --include='*_test.go' '^[[:space:]]+rapid\.Check' . | xargs -n1 dirname | sort -u); do \
	  tests=$$(awk -F'[ (]' '/^func / {name = $$2} /^[ \t]+rapid\.Check/ {print name}' $$dir/*_test.go | sort -u | paste -sd '|'); \
	  $(GO) test $$dir -run "^($$tests)\$$" -rapid.seed=0 -rapid.checks=$(CHECKS); \
	done

# What strangers' bytes meet first, in packages that link fast. The seeds of all
# targets run with the tests. By count and not by time, for on a busy machine a
# deadline that comes too early looks like a finding.
fuzz-little: FUZZED = ./catalog/fbc ./catalog/cache ./catalog/image ./catalog/sqlite ./internal ./lockfile
fuzz-little: FUZZTIME = 300x
fuzz-little: fuzz-targets ## Run the fuzz targets of catalogs and files for 300 inputs each (a minute, once built).

# Without the corpus, whose tests take long and would hide what ours do not say.
mutate: export QUAYSIDE_CORPUS =
mutate: export QUAYSIDE_CONFORMANCE =
mutate: export GOFLAGS := $(GOFLAGS) -short -vet=off
mutate: ## Mutate MUTATED (the pure core) and fail where less than 85 % of the mutants are killed (an hour and a half; reports in dist/mutants).
	@mkdir -p dist/mutants; failed=; for dir in $(MUTATED); do \
	  $(GO) tool -modfile=tools/go.mod gremlins unleash --workers 1 --test-cpu 2 --timeout-coefficient 10 --threshold-efficacy 85 \
	    --output dist/mutants/$$(basename $$dir).json $$dir >dist/mutants/$$(basename $$dir).txt || failed=1; \
	  echo "$$dir:"; grep -E 'LIVED|TIMED OUT|^Killed|efficacy|ERROR' dist/mutants/$$(basename $$dir).txt; \
	done; test -z "$$failed"

bench: build ## Run the benchmarks; those over real operators need QUAYSIDE_CORPUS.
	$(GO) test ./... -run '^$$' -bench . -benchmem

corpus: ## Render every bundle of the corpus' archives in every install mode, draw overlays over every bundle, build the tree of all, and lead every cluster out of OLM and back (QUAYSIDE_CORPUS; 10 minutes; the tests take a part).
	$(GO) test ./render -run '^(TestArchives|TestBuiltIsRenderedInCorpus|TestReporter|TestNoFieldIsLost|TestUnionOfPiecesInCorpus)$$' -timeout 60m -v -whole
	$(GO) test ./catalog/fbc ./resolve -run '^(TestBlock|TestRewriter|TestPartOfTheIndex)' -timeout 60m -v -whole
	$(GO) test ./internal/app/compare -run '^TestWhatAClusterGetsOfRealOperators$$' -timeout 60m -v -whole
	$(GO) test ./diff -run '^(TestHonestUpgrades|TestEveryRealFieldIsTold)$$' -timeout 60m -v -whole
	$(GO) test ./cmd/quayside/cli -run '^TestCorpus$$' -timeout 60m -v -whole
	$(GO) test ./olmexit/inspect -run '^TestDumps$$' -timeout 60m -v -whole

# What leads out of OLM is a part that the program is whole without. A copy loses the
# folder and what names it: its line in the table of parts, its rows in the table of
# layers, its warning, schemas and page, and the lines of other pages that speak of its commands;
# the lists of commands and messages are written anew.
OLMEXIT = olmexit
without-olmexit: ## Delete what leads out of OLM from a copy of the sources, and build and test the rest (-short).
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$$dir"; cd "$$dir"; \
	rm -r $(OLMEXIT) docs/adopt.md schema/adopt*.json schema/import.schema.json; \
	sed -i '/olmexit/d' cmd/quayside/parts/parts.go; sed -i '/"olm-stopped"/d' internal/base/diag/*.go; \
	sed -i -e '/^\t\t{*"$(OLMEXIT)[/"]/d' -e 's,\, "$(OLMEXIT)/[a-z/]*",,g' -e 's,"$(OLMEXIT)/[a-z/]*"\, ,,g' internal/layers/*_test.go; \
	find . -name '*.md' -exec sed -i '/adopt\.md\|quayside adopt\|quayside import/d' {} +; \
	$(GO) build ./...; $(GO) vet ./...; \
	$(GO) test ./cmd/quayside/cli -run 'Test(Command|Field|Schema|Warning)Reference' -update >/dev/null; \
	$(GO) test ./internal/layers -run TestMessages -update >/dev/null; \
	$(GO) test $(IN_MEMORY) $(FAST) -short ./cmd/quayside/... ./internal/layers ./internal/app/workspace ./internal/app/edit

# The tests that compare with golden files, and no others: those that name the
# flag, or the function that does. make verify leaves out what make test compares.
golden: ## Write the golden files anew.
	@set -e; for dir in $(GOLDEN); do \
	  tests=$$(awk -F'[ (]' '/^func / {name = $$2} /\*update|\*Update|golden\(/ && name ~ /^Test/ {print name}' $$dir*_test.go | sort -u | paste -sd '|'); \
	  $(GO) test -short $$dir -run "^($$tests)\$$" -skip '$(NOT_GOLDEN)' -update; \
	done

examples: ## Write the examples' catalogs, locks and trees anew.
	$(GO) test ./examples/... -update

# Where a page leads out of docs/, the site leads to the repository. What it says in
# the index is the navigation.
OUTSIDE = https://github.com/quayside/quayside/blob/main/
docs: ## Build the pages as a site into dist/site, offline (mkdocs and mkdocs-material, of Debian or PyPI).
	@if ! mkdocs --version >/dev/null 2>&1; then echo 'skipped: there is no mkdocs here (apt install mkdocs mkdocs-material)'; exit 0; fi; set -e; \
	rm -rf dist/docs dist/site; mkdir -p dist; cp -R docs dist/docs; \
	for page in docs/*.md; do sed 's,](\.\./,]($(OUTSIDE),g' $$page >dist/$$page; done; \
	{ cat mkdocs.yml; printf 'docs_dir: docs\nsite_dir: site\nnav:\n- Overview: README.md\n'; \
	  sed -n -e 's/^## \(.*\)/- "\1":/p' -e 's,^- \[\([^]]*\)\](\([a-zA-Z0-9/-]*\.md\)).*,  - "\1": \2,p' docs/README.md; } >dist/mkdocs.yml; \
	mkdocs build --strict --config-file dist/mkdocs.yml >dist/mkdocs.log 2>&1 || { grep -E 'WARNING|ERROR|rror:' dist/mkdocs.log; exit 1; }; \
	echo dist/site/index.html

man: ## Write the manual pages into dist/man: man -M dist/man quayside-resolve.
	@rm -rf dist/man; $(GO) run -buildvcs=true ./cmd/release -man dist/man

tidy: ## Bring go.mod and go.sum in step with the sources.
	$(GO) mod tidy -e
	cd tools && $(GO) mod verify >/dev/null

image: ## Build the reporter's image into dist/ without Docker; PUSH=registry/image:tag pushes it.
	@$(GO) run ./cmd/image $(if $(PUSH),-push $(PUSH)) reporter

image-ci: ## Build quayside's own image for CI into dist/ on BASE, an image with git: oci:DIR, or one of a registry by digest (SNAPSHOT=1, PUSH= as above).
	@$(GO) run ./cmd/image $(if $(BASE),-base $(BASE)) $(if $(SNAPSHOT),-snapshot) $(if $(PUSH),-push $(PUSH)) ci

# Ours, and not goreleaser: that lists 370 modules and wants a newer Go, for what is three hundred
# lines here, and what it publishes with is the forge's own command.
dist: ## Build what a release consists of into dist/release, publishing nothing (SNAPSHOT=1: with changes, too; SIGN_KEY=cosign.key signs it).
	@$(GO) run ./cmd/release $(if $(SNAPSHOT),-snapshot) $(if $(SIGN_KEY),-sign $(SIGN_KEY))

dist-twice: ## Build a release of the last commit twice, in clones that differ in all that must not matter, and compare (half an hour).
	@cmd/release/twice.sh

look: export QUAYSIDE_PICTURES = $(abspath $(PICTURES))
look: ## Look at pages and pictures in Chromium, where it is installed; PICTURES=dir writes what they look like.
	@command -v $${CHROMIUM:-chromium} >/dev/null || echo "look: no Chromium is installed: pages are not looked at"
	cd test/browser && $(GO) test -count=1 ./...

# The servers are linked without C and without paths, and so are the tests that
# start them: the Go build cache holds what they share once.
cluster-test: export CGO_ENABLED = 0
cluster-test: export GOFLAGS := $(GOFLAGS) -trimpath
cluster-test: export QUAYSIDE_CLUSTER_TEST = always
cluster-test: ## Test against a real control plane, built once into the cache (SHORT=1, as CI does: what several tools do, by Flux alone).
	cd test/cluster && $(GO) run ./cmd/build && $(GO) test -count=1 -timeout 60m $(if $(SHORT),-short) ./...

forge-test: export QUAYSIDE_CLUSTER_TEST = always
forge-test: export CGO_ENABLED = 0
forge-test: export GOFLAGS := $(GOFLAGS) -trimpath
forge-test: ## Test pull requests and comments against Gitea, built once into the cache.
	cd test/cluster && $(GO) run ./cmd/build gitea && $(GO) test -count=1 -timeout 10m ./forge

leaving-test: export QUAYSIDE_LEAVING = all
leaving-test: export QUAYSIDE_CLUSTER_TEST = always
leaving-test: export CGO_ENABLED = 0
leaving-test: export GOFLAGS := $(GOFLAGS) -trimpath
leaving-test: ## Have every operator of the corpus's clusters leave OLM on a real control plane, and some return.
	cd test/cluster && $(GO) run ./cmd/build && $(GO) test -count=1 -timeout 90m -run 'TestLeavingOLM|TestReturningToOLM|TestPredicted' -v .

# Which sums go mod tidy lists depends on which modules a proxy serves that day;
# where one is missing that is needed, nothing builds.
verify: NOT_GOLDEN = ^TestScripts$$
verify: fmt tidy golden examples lint race look ## Everything that must hold before a change goes in.
	git diff --exit-code -- . ':!go.sum'

clean: ## Remove what was built.
	rm -rf $(BIN) dist
