# A new contributor needs only make demo and make test. CI runs `make verify` for every
# change.

GO       ?= go
BIN      := bin
FUZZTIME ?= 10s
FUZZED   := .
CHECKS   ?= 2000
LINT     := $(GO) tool -modfile=tools/go.mod golangci-lint
# Linking goreleaser takes minutes: set GORELEASER to a program that you have.
GORELEASER ?= $$($(GO) tool -n -modfile=tools/release/go.mod goreleaser)

# Tests create and remove tens of thousands of files, which dominates the run time on
# some disks. If there is enough memory, they are created in /dev/shm.
MEMORY = $(shell [ -w /dev/shm ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts && \
  [ $$(df -Pk /dev/shm | awk 'END {print $$4}') -gt 4000000 ] && \
  [ $$(awk '/^MemAvailable/ {print $$2}' /proc/meminfo) -gt 8000000 ] && echo /dev/shm)
# In that case, tests and linkers also collect garbage less often, which saves a third of
# their time.
IN_MEMORY = $(if $(MEMORY),-exec 'env TMPDIR=$(MEMORY) GOTMPDIR=$(MEMORY) GOGC=400 GOMEMLIMIT=3GiB')

# All targets build with the same flags, so that they share compiled packages in Go's build
# cache, also with other clones. Without cgo the program is one static file and needs half
# the memory at the start. Without kustomize's Go plugins, which are never used, the linker
# can remove unused functions.
TAGS := kustomize_disable_go_plugin_support
export CGO_ENABLED = 0
export GOFLAGS := $(GOFLAGS) -trimpath -tags=$(TAGS)

# The packages for mutation testing: the core, and the client of clusters. A surviving
# mutant is a rule without a test.
MUTATED ?= ./lockfile ./catalog/fbc ./resolve ./render ./diff ./internal/cluster

.PHONY: help demo build test race lint fmt fuzz properties mutate bench corpus nights golden tidy docs man image image-ci dist dist-twice look cluster-test leaving-test forge-test without-olmexit check verify

# Each description begins with the users of the target: contributor, CI (.ci/run), night (long
# tests, before a release and after changes in their area), release.
help: ## contributor: Show the targets, by user.
	@for user in contributor CI night release; do echo "$$user:"; sed -n "s/^\([a-z-]*\):.*## $$user: /  \1\t/p" Makefile | expand -t 19; done

build: ## contributor: Build bin/quayside, and bin/quayside-charts, which it starts for Helm charts.
	$(GO) build -ldflags='-s -w' -o $(BIN)/ ./cmd/quayside ./cmd/quayside-charts

demo: build ## contributor: Resolve, render and diff the bundled example, offline, in a copy.
	@examples/quickstart/demo.sh $(BIN)/quayside

# Without debug information, linking a test program takes two thirds of the time. make lint
# runs vet.
FAST = -vet=off -ldflags='-s -w'
test: ## contributor: Run the tests (FULL=1, as in CI: also those that use real operators or referees, check pages, run every command or build programs).
	$(if $(MEMORY),GOGC=400) $(if $(FULL),,QUAYSIDE_CORPUS= QUAYSIDE_CONFORMANCE=) $(GO) test $(IN_MEMORY) $(FAST) $(if $(FULL),,-short) -timeout 20m ./...

# A race needs two goroutines. These packages, or their tests, start some.
RACED ?= $(sort $(dir $(filter-out ./test/%,$(shell grep -rlwE --include='*.go' 'go (func|[a-z.]+\(.*\))|\w+\.Go|t\.Parallel' . 2>/dev/null))))
race: export CGO_ENABLED = 1
race: ## CI: Run the tests of packages that start goroutines with the race detector (RACED=./...: of all), except those that use the corpus, check pages or run every command.
	QUAYSIDE_CORPUS= QUAYSIDE_CONFORMANCE= $(GO) test $(IN_MEMORY) $(FAST) -race -short -timeout 30m $(RACED)

lint: ## contributor: Run the linters of .golangci.yml, report unreachable and unused code, check the wording of changed comments, and compare the structure with tools/house/limits.txt.
	$(LINT) run ./...
	@dead=$$($(GO) tool -modfile=tools/go.mod deadcode -tags=$(TAGS) ./cmd/...) || exit 1; ! echo "$$dead" | grep -v 'test/[a-z_]*\.go:' | grep .
	$(GO) test $(FAST) ./internal/layers -run 'TestUnused|TestWording'
	cd tools && $(GO) run ./house ..

fmt: ## contributor: Format the sources.
	$(LINT) fmt ./...

fuzz: ## night: Run every fuzz target for FUZZTIME (10s; 300x: inputs), or those below FUZZED (./lockfile).
	@set -e; for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' $(FUZZED) | xargs -n1 dirname | sort -u); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$dir/*_test.go); do \
	    $(GO) test $$dir -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x; \
	  done; \
	done

# In make test, the seed is fixed.
properties: ## night: Run every property test with a fresh seed, on CHECKS (2000) inputs.
	@set -e; for dir in $$(grep -rlE --include='*_test.go' '^[[:space:]]+rapid\.Check' . | xargs -n1 dirname | sort -u); do \
	  tests=$$(awk -F'[ (]' '/^func / {name = $$2} /^[ \t]+rapid\.Check/ {print name}' $$dir/*_test.go | sort -u | paste -sd '|'); \
	  $(GO) test $$dir -timeout 12h -run "^($$tests)\$$" -rapid.seed=0 -rapid.checks=$(CHECKS); \
	done

# Without the corpus, because its tests take long and would hide gaps in the others.
mutate: export QUAYSIDE_CORPUS =
mutate: export QUAYSIDE_CONFORMANCE =
mutate: export GOFLAGS := $(GOFLAGS) -vet=off -ldflags=-s
mutate: ## night: Mutate MUTATED (the pure core), and fail if less than 85 % of the mutants are killed (hours; MUTATED=./lockfile: minutes; reports in dist/mutants).
	@mkdir -p dist/mutants; failed=; for dir in $(MUTATED); do \
	  $(GO) tool -modfile=tools/go.mod gremlins unleash --workers 1 --test-cpu 2 --timeout-coefficient 10 --threshold-efficacy 85 \
	    --output dist/mutants/$$(basename $$dir).json $$dir >dist/mutants/$$(basename $$dir).txt || failed=1; \
	  echo "$$dir:"; grep -E 'LIVED|TIMED OUT|^Killed|efficacy|ERROR' dist/mutants/$$(basename $$dir).txt; \
	done; test -z "$$failed"

bench: build ## contributor: Run the benchmarks; those with real operators need QUAYSIDE_CORPUS.
	$(GO) test ./... -run '^$$' -bench . -benchmem

corpus: ## night: Test with all real operators: render every bundle in every install mode, apply overlays, build the tree, and adopt every cluster from OLM and return it (QUAYSIDE_CORPUS; 10 minutes; make test FULL=1 uses a part).
	$(GO) test ./render -run '^(TestArchives|TestBuiltIsRenderedInCorpus|TestReporter|TestNoFieldIsLost|TestUnionOfPiecesInCorpus)$$' -timeout 60m -v -whole
	$(GO) test ./catalog/fbc ./bundle ./resolve -run '^(TestBlock|TestRewriter|TestCorpusIsRead|TestPartOfTheIndex)' -timeout 60m -v -whole
	$(GO) test ./cmd/quayside/internal/compare -run '^TestWhatAClusterGetsOfRealOperators$$' -timeout 60m -v -whole
	$(GO) test ./diff -run '^(TestGoldenHonestUpgrades|TestEveryRealFieldIsReported)$$' -timeout 60m -v -whole
	$(GO) test ./cmd/quayside/internal/cli -run '^(TestCorpus|TestLies|TestMeaning|TestConformanceOfCommand)$$' -timeout 60m -v -whole
	$(GO) test ./cmd/quayside/internal/adopt/inspect -run '^TestDumps$$' -timeout 60m -v -whole

nights: export QUAYSIDE_NIGHTS = $(or $(NIGHTS),365)
nights: export QUAYSIDE_OPERATORS = $(or $(OPERATORS),12)
nights: export QUAYSIDE_SEED = $(or $(SEED),1)
nights: ## night: Replay a year of nightly runs of propose with faults, with three environments of 12 operators, thirty nights of the jobs of CI, and random sequences without a rule, which must fail (NIGHTS, OPERATORS, SEED; QUAYSIDE_CORPUS: real release dates; make test FULL=1 plays some nights).
	$(GO) test $(IN_MEMORY) $(FAST) ./cmd/quayside/internal/cli -run '^TestNights$$|^TestNightlyJobs$$|^TestSequencesFindFaults$$' -count=1 -v -timeout 24h

# The migration from OLM is an optional part of the program. This target removes it from a
# copy: the folder, its line in the table of parts, its rows in the table of layers, its
# warning, schemas and page, and the lines about its commands in other pages. It then
# updates the lists of commands. Only the packages in cmd/quayside depend on the
# part: go list compiles the other tests, which make test runs.
OLMEXIT = cmd/quayside/internal/adopt
without-olmexit: ## CI: Remove the migration from OLM from a copy of the sources, and build and test the rest (-short).
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$$dir"; cd "$$dir"; \
	rm -r $(OLMEXIT) docs/adopt.md schema/adopt*.json schema/import.schema.json; \
	sed -i '/adopt/d' cmd/quayside/internal/parts/parts.go; sed -i '/"olm-stopped"/d' internal/diag/*.go; \
	sed -i -e '\,^\t\t{*"$(OLMEXIT)[/"],d' -e 's,\, "$(OLMEXIT)/[a-z/]*",,g' -e 's,"$(OLMEXIT)/[a-z/]*"\, ,,g' internal/layers/*_test.go; \
	find . -name '*.md' -exec sed -i '/adopt\.md\|quayside adopt\|quayside import/d' {} +; sed -i '\,$(OLMEXIT),d' docs/security.md docs/contributing/*.md; \
	$(GO) build ./...; $(GO) list -test -deps -export ./... >/dev/null; \
	$(GO) test $(FAST) ./cmd/quayside/internal/cli -run '^TestGolden.*Reference' -update >/dev/null; \
	$(GO) test $(IN_MEMORY) $(FAST) -short ./cmd/quayside/... ./internal/layers

# The tests of scripts are not among them: go test ./cmd/quayside/internal/cli -run TestScripts/NAME -update.
golden: ## contributor: Update the golden files: schemas, generated pages, expected trees and texts, examples.
	$(GO) test $(IN_MEMORY) $(FAST) -short -run '^TestGolden' $(sort $(dir $(shell grep -rl --include='*_test.go' testing/goldentest .))) -update

# Links from a page to files outside of docs/ become links to the repository. The index
# defines the navigation.
OUTSIDE = https://github.com/quayside/quayside/blob/main/
docs: ## contributor: Build the pages as a site into dist/site, offline (mkdocs and mkdocs-material, of Debian or PyPI).
	@if ! mkdocs --version >/dev/null 2>&1; then echo 'skipped: there is no mkdocs here (apt install mkdocs mkdocs-material)'; exit 0; fi; set -e; \
	rm -rf dist/docs dist/site; mkdir -p dist; cp -R docs dist/docs; \
	for page in docs/*.md; do sed 's,](\.\./,]($(OUTSIDE),g' $$page >dist/$$page; done; \
	{ cat mkdocs.yml; printf 'docs_dir: docs\nsite_dir: site\nnav:\n- Overview: README.md\n'; \
	  sed -n -e 's/^## \(.*\)/- "\1":/p' -e 's,^- \[\([^]]*\)\](\([a-zA-Z0-9/-]*\.md\)).*,  - "\1": \2,p' docs/README.md; } >dist/mkdocs.yml; \
	mkdocs build --strict --config-file dist/mkdocs.yml >dist/mkdocs.log 2>&1 || { grep -E 'WARNING|ERROR|rror:' dist/mkdocs.log; exit 1; }; \
	echo dist/site/index.html

man: ## release: Write the manual pages into dist/man: man -M dist/man quayside-resolve.
	@rm -rf dist/man; $(GO) run ./cmd/quayside/internal/release man dist/man "$$(git describe --tags --always)" "$$(git log -1 --format=%cI)"

tidy: ## CI: Update go.mod and go.sum from the sources.
	$(GO) mod tidy -e
	cd tools && $(GO) mod verify >/dev/null

image: ## release: Build the reporter's image into dist/ without Docker; PUSH=registry/image:tag pushes it.
	@$(GO) run ./cmd/image $(if $(PUSH),-push $(PUSH)) reporter

image-ci: ## release: Build quayside's image for CI into dist/ on BASE, an image with git: oci:DIR, or a registry image by digest (SNAPSHOT=1: with uncommitted changes; PUSH= as above).
	@$(GO) run ./cmd/image $(if $(BASE),-base $(BASE)) $(if $(SNAPSHOT),-snapshot) $(if $(PUSH),-push $(PUSH)) ci

dist: ## release: Build the files of a release of the tagged commit into dist/release, without publishing (SNAPSHOT=1: of any commit and changes; SIGN_KEY=cosign.key: sign).
	@$(GORELEASER) release --clean --skip=publish $(if $(SIGN_KEY),,--skip=sign) $(if $(SNAPSHOT),--snapshot)

dist-twice: ## release: Build a release of the last commit in two clones with irrelevant differences, and compare (half an hour).
	@tools/release/twice.sh "$(GORELEASER)"

look: export QUAYSIDE_PICTURES = $(abspath $(PICTURES))
look: ## CI: Test pages and pictures in Chromium, if it is installed; PICTURES=dir writes screenshots.
	@command -v $${CHROMIUM:-chromium} >/dev/null || echo "look: Chromium is not installed: pages are not tested"
	cd test/browser && $(GO) test -count=1 ./...

# The servers and the tests that start them are both linked without cgo and without
# paths, so that they share packages in the Go build cache.
cluster-test: export CGO_ENABLED = 0
cluster-test: export GOFLAGS := $(GOFLAGS) -trimpath
cluster-test: export QUAYSIDE_CLUSTER_TEST = always
cluster-test: ## CI: Test with a real control plane, built once into the cache (SHORT=1, as in CI: tests that apply to several tools use only Flux).
	cd test/cluster && $(GO) run ./cmd/build && $(GO) test -count=1 -timeout 60m $(if $(SHORT),-short) ./...

forge-test: export QUAYSIDE_CLUSTER_TEST = always
forge-test: export CGO_ENABLED = 0
forge-test: export GOFLAGS := $(GOFLAGS) -trimpath
forge-test: ## night: Test pull requests and comments with a real Gitea, built once into the cache.
	cd test/cluster && $(GO) run ./cmd/build gitea && $(GO) test -count=1 -timeout 10m ./forge

leaving-test: export QUAYSIDE_LEAVING = all
leaving-test: export QUAYSIDE_CLUSTER_TEST = always
leaving-test: export CGO_ENABLED = 0
leaving-test: export GOFLAGS := $(GOFLAGS) -trimpath
leaving-test: ## night: Adopt every operator of the corpus's clusters from OLM on a real control plane, and return some.
	cd test/cluster && $(GO) run ./cmd/build && $(GO) test -count=1 -timeout 90m -run 'TestLeavingOLM|TestReturningToOLM|TestPredicted' -v .

# go.sum is not compared, because the sums that go mod tidy lists depend on the modules
# available from the proxy. Without a necessary sum, the build fails. The tests compare the
# golden files and the examples.
check: fmt tidy lint race look ## CI: Run the checks of CI, except the tests.
	git diff --exit-code -- . ':!go.sum'

verify: export FULL = 1
verify: test check ## CI: Run all tests and all other checks of CI.
