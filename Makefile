# Each target is one line that calls the go tool or a file in scripts/.
.DEFAULT_GOAL := help
.PHONY: help build install dist demo test check deadcode generate extensions agreement mutate worldwide fuzz soak interop traffic bench new-rule clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r t d; do printf '%-10s %s\n' "$$t" "$$d"; done

build: ## build bin/xdspub
	. scripts/flags && go build -o bin/xdspub ./cmd/xdspub

install: ## build a static program, and put it into PREFIX/bin (default /usr/local)
	. scripts/flags && go build -ldflags "-s -w -X 'main.docsURL=$(DOCS_URL)'" -o $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/xdspub ./cmd/xdspub

dist: ## build what is released, into dist/: static programs for each system or SYSTEMS, checksums, SBOMs, licences
	@DOCS_URL='$(DOCS_URL)' scripts/dist $(SYSTEMS)

demo: ## see it work: watch and a real Envoy on examples/quickstart
	@scripts/demo

test: ## run everything: checks and all tests, with a real Envoy
	@scripts/test

check: ## what to run before a commit: formatting, vet, types on three systems, staticcheck, fast tests
	@. scripts/flags && scripts/check && go test -vet off -short ./... && cd tools/schemas && go test -vet off ./...

deadcode: ## look for functions that the program does not reach
	@scripts/deadcode

generate: ## write generated files again: type imports, docs/rules, docs/reference
	. scripts/flags && go generate ./...

extensions: ## ask the real Envoy for its extensions, and try every message type at every extension point
	@scripts/extensions

agreement: ## compare validate with the real Envoy's verdicts, case by case (docs/evidence/agreement.md)
	@scripts/agreement

mutate: ## make random faults for T (default 10m), judged by validate and by a real Envoy; S is the seed
	@scripts/mutate $(or $(T),10m) $(S)

worldwide: ## judge all configurations below DIR with validate and a real Envoy, print what disagrees; OPTIONS are scripts/worldwide's
	@scripts/worldwide $(OPTIONS) $(DIR)

fuzz: ## fuzz every target for T each (default 30s)
	@scripts/fuzz $(or $(T),30s)

histories: ## play N (default 20000) random histories of an output directory, with a model of what an Envoy holds
	@scripts/histories $(N)

soak: ## edit trees at random for T each (default 10m), with Envoys at work, or a PART of it (scripts/soak lists them)
	@scripts/soak $(or $(T),10m) $(PART)

interop: ## have gRPC clients of Python, Node, Java and Rust follow xdspub serve (docs/interop.md)
	@scripts/interop

traffic: ## publish N times (default 200) under traffic, and by plain renames for the contrast (docs/evidence/reliability.md)
	@scripts/traffic $(N)

bench: ## measure, or a PART of it, side by side with Envoy (docs/evidence/performance.md)
	@scripts/bench $(PART)

new-rule: ## make the files of a new validation rule: make new-rule CODE=some-code FAMILY=cluster
	@scripts/new-rule $(CODE) $(FAMILY)

clean: ## remove what was built and downloaded
	rm -rf bin dist .cache
