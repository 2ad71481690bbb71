# For who works on Hidane; users need ./hidane alone. `make help` lists the targets.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
BENCHES := routing engine router_cost demo vtoken

.PHONY: help deps build test ci lint asan tsan fuzz-smoke tidy format bench cuda conformance

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | \
	  awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'
	@for b in $(BENCHES); do printf '  make bench-%s\n' $$b; done

deps: ## installs what is missing: Debian packages, the small model
	@tools/deps.sh build test ci
	@tools/fetch_model.sh

build: ## build/release/hidane
	@tools/build.sh release hidane

test: ## release build; every test that needs no GPU; closes with `N passed, N failed, N skipped`
	@tools/fetch_model.sh
	@tools/build.sh release
	@tools/run_tests.py build/release

ci: lint asan tsan fuzz-smoke tidy ## what .ci/run does after ./hidane test

lint: ## layering, format, docs, generated files
	@tools/deps.sh ci
	@tools/layering.py
	@tools/check_format.sh
	@tools/check_docs.py

format: ## clang-format on every source file
	@tools/check_format.sh --fix

asan: ## unit tests of the pure rooms under ASan + UBSan
	@tools/deps.sh build test
	@tools/sanitize.sh asan

tsan: ## unit tests of what has threads under TSan (clang)
	@tools/deps.sh build test ci
	@tools/sanitize.sh tsan

fuzz-smoke: ## each fuzz target: its corpus, then 20 s (FUZZ_SECONDS=n)
	@tools/deps.sh build ci
	@tools/fuzz_smoke.sh $(FUZZ_SECONDS)

tidy: ## clang-tidy on the files changed since BASE (default: the last 10 commits)
	@tools/deps.sh build test ci
	@tools/tidy.sh $(BASE)

bench: $(BENCHES:%=bench-%) ## every benchmark; table to the terminal, JSON to build/bench/; QUICK=1

bench-%:
	@tools/deps.sh build test bench
	@mkdir -p build/bench
	@bench/$*/run.sh

cuda: ## compiles the CUDA mover (fetches nvcc if there is none) and runs its tests, which want a GPU
	@tools/deps.sh build test
	@nvcc=$$(tools/fetch_nvcc.sh) && cmake --preset release -B build/cuda -DHIDANE_TESTS=ON \
	  -DHIDANE_NVCC=$$nvcc >/dev/null
	@ninja -C build/cuda cuda_test >build/cuda/build.log || { tail -n 40 build/cuda/build.log >&2; exit 1; }
	@build/cuda/src/cuda/cuda_test --gtest_brief=1

conformance: ## real engines and peers (gigabytes; not part of test)
	@echo "hidane: no conformance suite yet: it comes with the gateway's deeper issues" >&2; exit 3
