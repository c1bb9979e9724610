# Everything from a fresh machine: a Rust toolchain, Python 3.11, a C compiler and the package registries.
# State of `make run` lies in .mote/ here, unless MOTE_HOME says otherwise; what is fetched for tests lies in .cache/.

CARGO     ?= cargo
PYTHON    ?= python3
MOTE_HOME ?= $(CURDIR)/.mote
MODEL     ?= smollm2-135m-instruct
TASK      ?=
export MOTE_HOME TASK

TARGET    := $(abspath $(or $(CARGO_TARGET_DIR),target))
MOTE      := $(TARGET)/release/mote
CACHE     := $(CURDIR)/.cache
VENV      := $(CACHE)/venv
MCP_VENV  := $(CACHE)/mcp-venv
MCP_NODE  := $(CACHE)/mcp-node
MCP_FETCH := $(CACHE)/mcp-fetch
MCP_OLD   := $(CACHE)/mcp-old
PEERS_VENV := $(CACHE)/peers-venv
PEERS_4B  := $(CACHE)/qwen3-4b
PIP       := bin/python -m pip install --quiet --disable-pip-version-check
MONTY     := 1.4.0
MONTY_VENV := $(CACHE)/monty-$(MONTY)
CARGO_FUZZ_VERSION := 0.13.2
CARGO_DENY_VERSION := 0.20.2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help build model run demo test test-rust test-python test-mcp test-prompt test-arm test-cpus test-deep fuzz parity quality eval eval-parity anchor bench bench-peers bench-script lint deny clean

help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the release binary
	@$(CARGO) build --release --package mote

model: build ## fetch, export and import the default model, unless there is one
	@test -e "$(MOTE_HOME)/bundles/default" || $(MAKE) --no-print-directory import-model

.PHONY: import-model
import-model: $(VENV)/stamp
	@mkdir -p "$(MOTE_HOME)/cache"
	PYTHONPATH=model-export $(VENV)/bin/python -m mote_export $(MODEL) --replace --cache "$(MOTE_HOME)/cache" --out "$(MOTE_HOME)/cache/export"
	$(MOTE) model import --default "$(MOTE_HOME)/cache/export"
	@rm -rf "$(MOTE_HOME)/cache/export"

run: model ## run a task: make run TASK="What time is it in Tokyo?"
	@test -n "$$TASK" || { echo 'make run needs a task: make run TASK="What time is it in Tokyo?"' >&2; exit 2; }
	@$(MOTE) run -- "$$TASK"

demo: model $(MCP_VENV)/stamp ## run the six tasks of the README through the real model
	@MOTE="$(MOTE)" MCP_VENV="$(MCP_VENV)" bash tests/demo.sh

test: test-rust test-python ## run every quick test

test-rust: $(MCP_VENV)/stamp
	$(CARGO) test --release --workspace
	MOTE_TEST_MCP_VENV="$(MCP_VENV)" $(CARGO) test --release --package mote --test mcp_real

test-python: $(VENV)/stamp
	cd model-export && $(VENV)/bin/python -m pytest

test-mcp: $(MCP_NODE)/stamp $(MCP_VENV)/stamp $(MCP_FETCH)/stamp $(MCP_OLD)/stamp ## run the tests with ten MCP servers from npm and PyPI (Node 20)
	MOTE_TEST_MCP_NODE="$(MCP_NODE)" MOTE_TEST_MCP_VENV="$(MCP_VENV)" MOTE_TEST_MCP_FETCH="$(MCP_FETCH)" MOTE_TEST_MCP_OLD="$(MCP_OLD)" \
		$(CARGO) test --release --package mote --test mcp_node --test mcp_ten

test-prompt: model ## hold the first prompt's budget by the real tokenizer, with 10, 300 and 10,000 tools
	MOTE_TEST_BUNDLES="$(MOTE_HOME)/bundles/$$(cat "$(MOTE_HOME)/bundles/default")" \
		$(CARGO) test --release --package mote --test prompt_real -- --nocapture

test-arm: ## run the kernels' tests as ARM programs under qemu
	@CARGO="$(CARGO)" bash tests/arm.sh

test-cpus: ## run the kernels' tests as on older x86-64 CPUs under qemu
	@CARGO="$(CARGO)" bash tests/cpus.sh

.PHONY: reference
reference: ## write docs/language-reference.md from its tables
	MOTE_UPDATE_REFERENCE=1 $(CARGO) test --release --quiet --package mote-script --lib reference

test-deep: ## run ten thousand programs through CPython too, and sample two hundred thousand of the grammar
	MOTE_PROGRAMS=10000 $(CARGO) test --release --package mote-script --test differential
	MOTE_SAMPLES=200000 $(CARGO) test --release --package mote-script --test grammar

FUZZ_SECONDS ?= 600
FUZZ := RUSTC_BOOTSTRAP=1 PATH="$(CACHE)/cargo/bin:$$PATH" $(CARGO) fuzz run --fuzz-dir

fuzz: $(CACHE)/cargo/bin/cargo-fuzz ## fuzz the action language and what the model runtime reads, FUZZ_SECONDS a target
	@for target in script/source script/state script/schema model/manifest model/graph model/weights model/snapshot model/adapter; do \
		package=$${target%/*} name=$${target#*/} && mkdir -p "$(CACHE)/fuzz/$$name" agent/$$package/fuzz/seeds/$$name && \
		$(FUZZ) agent/$$package/fuzz $$name "$(CACHE)/fuzz/$$name" agent/$$package/fuzz/seeds/$$name -- -max_total_time=$(FUZZ_SECONDS) -max_len=8000 || exit 1; \
	done

parity: model $(VENV)/stamp ## compare the real model with an independent forward pass
	PYTHONPATH=model-export $(VENV)/bin/python -m mote_export.parity --mote "$(MOTE)"

LLAMA_VENV := $(CACHE)/llama-venv

quality: $(VENV)/stamp $(if $(LLAMA_PYTHON),,$(LLAMA_VENV)/stamp) ## compare our quantizer with llama.cpp's (builds that first)
	@OPENBLAS_NUM_THREADS=2 PYTHONPATH=model-export $(VENV)/bin/python -m mote_export.quality --cache "$(MOTE_HOME)/cache" \
		--llama-python "$(or $(LLAMA_PYTHON),$(LLAMA_VENV)/bin/python)"

eval: model ## measure how well tools are found, on the toolspaces in data/
	@$(MOTE) eval retrieval data/toolspaces

ANCHOR := PYTHONPATH=trainer/anchor:model-export $(VENV)/bin/python -m mote_anchor

eval-parity: model $(VENV)/stamp ## compare those numbers with an independent implementation
	$(ANCHOR).evaluate trainer/anchor/smollm2-135m-instruct.anchor "$(MOTE_HOME)/bundles/$$(cat "$(MOTE_HOME)/bundles/default")" --mote "$(MOTE)"

anchor: model $(VENV)/stamp ## train the anchor again (fetches PyTorch)
	@$(VENV)/$(PIP) --requirement trainer/anchor/requirements.txt
	$(ANCHOR).train "$(MOTE_HOME)/bundles/$$(cat "$(MOTE_HOME)/bundles/default")" trainer/anchor/smollm2-135m-instruct.anchor

bench: model ## measure load, prefill and decode of the default model
	@$(MOTE) bench

bench-peers: model $(PEERS_VENV)/stamp $(PEERS_4B)/stamp ## compare with llama.cpp, ik_llama.cpp (IK_LLAMA_DIR), mistral.rs, onnxruntime-genai
	@MOTE="$(MOTE)" VENV="$(PEERS_VENV)" LARGE="$(PEERS_4B)" CACHE="$(CACHE)" bash tests/peers/run.sh

bench-script: $(MONTY_VENV)/stamp ## compare the action language's machine with pydantic-monty and rhai
	@$(CARGO) build --release --quiet --manifest-path agent/script/bench/Cargo.toml --target-dir "$(TARGET)"
	@$(MONTY_VENV)/bin/python agent/script/bench/compare.py $(TARGET)/release/mote-script-bench

lint: ## check format, and lints as errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets -- --deny warnings

deny: $(CACHE)/cargo/bin/cargo-deny ## check licences, advisories, bans and sources of what we depend on
	PATH="$(CACHE)/cargo/bin:$$PATH" $(CARGO) deny --all-features check

clean: ## remove what was built and fetched; state in .mote/ stays
	$(CARGO) clean
	rm -rf "$(CACHE)"

$(VENV)/stamp: model-export/requirements.lock
	@echo "making a Python environment in $(VENV)"
	@$(PYTHON) -m venv "$(VENV)"
	@$(VENV)/$(PIP) --require-hashes --requirement model-export/requirements.lock
	@touch $@

$(LLAMA_VENV)/stamp: model-export/quality/requirements.txt
	@echo "building llama.cpp into $(LLAMA_VENV), some minutes"
	@$(PYTHON) -m venv "$(LLAMA_VENV)"
	@$(LLAMA_VENV)/$(PIP) --requirement model-export/quality/requirements.txt
	@touch $@

$(MCP_VENV)/stamp: tests/mcp-requirements.txt
	@echo "fetching MCP servers into $(MCP_VENV)"
	@$(PYTHON) -m venv "$(MCP_VENV)"
	@$(MCP_VENV)/$(PIP) --requirement tests/mcp-requirements.txt
	@touch $@

$(MCP_FETCH)/stamp: tests/mcp-fetch-requirements.txt
	@$(PYTHON) -m venv "$(MCP_FETCH)"
	@$(MCP_FETCH)/$(PIP) --requirement tests/mcp-fetch-requirements.txt
	@touch $@

$(MCP_OLD)/stamp: tests/mcp-old-requirements.txt
	@$(PYTHON) -m venv "$(MCP_OLD)"
	@$(MCP_OLD)/$(PIP) --requirement tests/mcp-old-requirements.txt
	@touch $@

$(PEERS_VENV)/stamp: tests/peers/requirements.txt
	@echo "building llama.cpp for this CPU, which takes minutes, and fetching the other peers into $(PEERS_VENV)"
	@$(PYTHON) -m venv "$(PEERS_VENV)"
	@CMAKE_ARGS="-DGGML_NATIVE=ON" $(PEERS_VENV)/$(PIP) --no-binary llama-cpp-python --requirement tests/peers/requirements.txt
	@touch $@

$(PEERS_4B)/stamp: $(VENV)/stamp
	@echo "writing the 4B shape with random weights, 7 GB, into $(PEERS_4B)"
	PYTHONPATH=model-export $(VENV)/bin/python -m mote_export --synthetic qwen3-4b --replace --out "$(PEERS_4B)/bundle" --twins "$(PEERS_4B)"
	@touch $@

$(MCP_NODE)/stamp: tests/mcp-node/package.json
	@mkdir -p "$(MCP_NODE)"
	@cp tests/mcp-node/package.json "$(MCP_NODE)/"
	@cd "$(MCP_NODE)" && npm install --silent --no-audit --no-fund
	@touch $@

$(MONTY_VENV)/stamp:
	@$(PYTHON) -m venv "$(MONTY_VENV)"
	@$(MONTY_VENV)/$(PIP) pydantic-monty==$(MONTY)
	@touch $@

$(CACHE)/cargo/bin/cargo-fuzz:
	$(CARGO) install cargo-fuzz --locked --version $(CARGO_FUZZ_VERSION) --root "$(CACHE)/cargo"

$(CACHE)/cargo/bin/cargo-deny:
	$(CARGO) install cargo-deny --locked --version $(CARGO_DENY_VERSION) --root "$(CACHE)/cargo"
