# Every target sets up what it needs. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8

export PYTHONPATH := operator:profiler_sidecar:hack
export PYTHONUNBUFFERED := 1

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up ----------------------------------------------------------------------------------------------------------

# The demo and the cluster need little; tests and linters need everything, PyTorch included.
$(VENV)/.runtime: operator/requirements.lock hack/requirements.lock hack/setup-venv
	@hack/setup-venv "$(PYTHON)" "$(VENV)" "$(UV_VERSION)" operator/requirements.lock hack/requirements.lock
	@touch $@

$(VENV)/.dev: requirements.lock hack/setup-venv
	@hack/setup-venv "$(PYTHON)" "$(VENV)" "$(UV_VERSION)" requirements.lock
	@touch $@ $(VENV)/.runtime

.PHONY: lock
lock: ## pin all dependencies anew, with hashes
	@hack/lock "$(PYTHON)" "$(UV_VERSION)"

# --- checks ----------------------------------------------------------------------------------------------------------

.PHONY: lint
lint: $(VENV)/.dev ## ruff, mypy --strict, the layer contracts, the generated CRDs
	@$(BIN)/python -m tools.suite lint

.PHONY: unit
unit: $(VENV)/.dev ## fast tests only: no cluster
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m tools.suite unit templates

.PHONY: page
page: $(VENV)/.dev ## the tests of the page in a Chromium, installed where there is none, and how fast the page is
	@command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/unit/cli/ui
	@PYTHONPATH=$(PYTHONPATH):. $(BIN)/python -m benchmarks.page

.PHONY: screenshots
screenshots: $(VENV)/.dev ## pictures of the page and the dashboards for `make docs`, of the cluster that `make demo` has left
	@command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null
	@PYTHONPATH=$(PYTHONPATH):. $(BIN)/python -m tools.screenshots

.PHONY: fit
fit: $(VENV)/.dev ## fit the models of chips and sizes from the published throughput in RIGHTPOOL_SHARED; the same data, the same file
	@$(BIN)/python -m tools.fit

.PHONY: fuzz
fuzz: $(VENV)/.dev ## a million broken inputs for each thing that tenants can reach
	@$(BIN)/python -m tests.fuzz

.PHONY: kueue
kueue: $(VENV)/.dev ## jobs in a queue of Kueue, built where it is not, on a cluster of its own; needs root
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m devcluster build kueue
	@$(BIN)/python -m devcluster build trainer
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/integration/kueue

.PHONY: gateway
gateway: $(VENV)/.dev ## moves of servers by weights of an HTTPRoute, behind Contour and Envoy, built where they are not; needs root
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m devcluster build contour
	@$(BIN)/python -m devcluster up --name test
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/integration/runtime/test_routes.py

.PHONY: kinds
kinds: $(VENV)/.dev ## workloads of all kinds, by JobSet, Kubeflow Trainer and LeaderWorkerSet, built where they are not, on a cluster of its own; needs root
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m devcluster build jobset
	@$(BIN)/python -m devcluster build trainer
	@$(BIN)/python -m devcluster build lws
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/integration/kinds

FAULTS ?= 200
SEED ?=

.PHONY: chaos
chaos: $(VENV)/.dev ## random faults over a fleet on a cluster of its own, under an invariant checker; needs root
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m tests.chaos --faults $(FAULTS) $(if $(SEED),--seed $(SEED))

.PHONY: test
test: $(VENV)/.dev ## everything, side by side: linters, unit, integration and end-to-end tests, faults; needs root
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m tools.suite

# --- the cluster -----------------------------------------------------------------------------------------------------

.PHONY: demo
demo: $(VENV)/.runtime ## seven stories on a real Kubernetes on this machine; needs root; V=1 shows the objects
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m demo $(if $(V),-v)

.PHONY: up
up: $(VENV)/.runtime ## only the demo's cluster
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m devcluster up

.PHONY: down
down: $(VENV)/.runtime ## end the demo's cluster, and leave nothing behind
	@$(BIN)/python -m devcluster down

.PHONY: env
env: $(VENV)/.runtime
	@$(BIN)/python -m devcluster env
	@echo 'export PATH=$(CURDIR)/$(BIN):$$PATH'

.PHONY: images
images: $(VENV)/.runtime ## the images as tar files in build/images, without Docker
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m devcluster.recipes build/images

# --- documentation and measurements ----------------------------------------------------------------------------------

.PHONY: generate
generate: $(VENV)/.dev ## CRDs, dashboards and the tables of the documents, made anew from the code
	@$(BIN)/python -m rightpool.api.crd crds
	@$(BIN)/python -m tools.dashboards
	@$(BIN)/python -m tools.chartdocs

.PHONY: docs
docs: $(VENV)/.dev ## the documentation as a site in build/site, links checked
	@$(BIN)/properdocs build --strict -f mkdocs.yml

.PHONY: bench
bench: $(VENV)/.dev ## what the operator costs at 100, 1,000 and 10,000 jobs; an hour, and root
	@$(BIN)/python -m devcluster deps
	@$(BIN)/python -m benchmarks.cycle 100 1000 10000
	@$(BIN)/python -m benchmarks.prometheus_reader 100 1000 10000
	@$(BIN)/python -m benchmarks.scale --jobs 100 1000 10000
