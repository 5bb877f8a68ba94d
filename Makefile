# Winnow: `make` lists what there is. Works with plain make and sh; needs Python 3.11 or newer and nothing else.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The version that wrote uv.lock. Put into .uv/ where no uv is on PATH; UV=/path/to/uv takes another.
UV_VERSION := 0.13.9
VENV       := .venv
PY         := $(VENV)/bin/python
STAMP      := $(VENV)/.synced
HOSTS      := .venv-hosts
# OpenHands' SDK needs Python 3.12 or newer; where there is none, its test says that it is skipped.
OPENHANDS  := .venv-openhands
NEWER       = $(shell for python in python3.12 python3.13 python3.14 python3 "$$HOME"/.pyenv/versions/3.1[2-4].*/bin/python3; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && command -v "$$python" && break; done)
# What checks the hook programs and makes JavaScript of them; where npm is missing their tests are skipped.
NODE_TOOLS := typescript@5.9.3 @types/node@20.19.25
ARGS       ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(STAMP) ## From nothing to a pruned summary: a run of three real boundaries, explained
	@$(VENV)/bin/winnow demo $(ARGS)

.PHONY: up
up: $(STAMP) ## Start broker, PostgreSQL and all services on this machine; Ctrl-C stops them
	@$(VENV)/bin/winnow up $(ARGS)

# Three at once on two cores: they wait for brokers and databases a good part of the time.
# The fault suite kills and fills things, so it has the machine to itself. Exit status 5 is pytest's "nothing was selected".
.PHONY: test
test: $(STAMP) ## Run the tests, faults scaled down (12 minutes at most)
	@$(PY) -m pytest -n 3 --dist loadfile -m "not long and not serial" $(ARGS)
	@$(PY) -m pytest -m "serial and not long" $(ARGS) || { status=$$?; [ $$status -eq 5 ] || exit $$status; }

.PHONY: test-long
test-long: $(STAMP) ## Run the long tests: the faults in full
	@$(PY) -m pytest -m long $(ARGS)

# The host libraries hold other versions back than the services have, so they live in an environment of their own.
.PHONY: test-hosts
test-hosts: $(HOSTS)/.synced ## Run the host adapters against the real host libraries
	@WINNOW_TEST_NODE_MODULES=$(HOSTS)/node/node_modules $(HOSTS)/bin/python -m pytest --confcutdir=tests/hosts -W default tests/hosts $(ARGS)
	@newer="$(NEWER)"; if [ -n "$$newer" ]; then $(MAKE) $(OPENHANDS)/.synced PYTHON="$$newer" && \
	    $(OPENHANDS)/bin/python -m pytest --confcutdir=tests/hosts -W default tests/hosts/test_openhands.py $(ARGS); \
	fi

.PHONY: bench
bench: $(STAMP) ## Measure against the baselines; prints a table and writes var/bench.json
	@mkdir -p var
	@$(PY) -m tests.benchmarks $(ARGS)

.PHONY: assure
assure: $(STAMP) ## Simulate the drift monitor; writes docs/assurance-tables.md and its plots (a quarter of an hour)
	@$(PY) -m tests.benchmarks.assure $(ARGS)

.PHONY: lint
lint: $(STAMP) ## Check style, types and the arrows between packages
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

.PHONY: scan
scan: $(STAMP) ## Look for secrets in the repository, and at what came with the dependencies
	@UV="$(UV)" $(PY) -m tests.contract.scan

.PHONY: format
format: $(STAMP) ## Put the code into shape
	@$(VENV)/bin/ruff check --fix-only .
	@$(VENV)/bin/ruff format .

.PHONY: setup
setup: $(STAMP) ## Install what the other targets need into .venv

.PHONY: clean
clean: ## Delete what the targets made in this folder; databases and caches in your home stay
	@rm -rf $(VENV) $(HOSTS) $(OPENHANDS) .uv var dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One environment with every extra and tool, exactly as locked. `--frozen`: the lock file is never rewritten on the way.
$(STAMP): pyproject.toml uv.lock .ci/bootstrap
	@UV="$(UV)" UV_VERSION=$(UV_VERSION) sh .ci/bootstrap $(VENV)
	@touch $@

$(HOSTS)/.synced: pyproject.toml uv.lock .ci/bootstrap
	@UV="$(UV)" UV_VERSION=$(UV_VERSION) sh .ci/bootstrap $(HOSTS) --no-default-groups --group hosts
	@if command -v npm >/dev/null; then npm install --prefix $(HOSTS)/node --no-save --silent $(NODE_TOOLS); fi
	@touch $@

$(OPENHANDS)/.synced: pyproject.toml uv.lock .ci/bootstrap
	@UV="$(UV)" UV_VERSION=$(UV_VERSION) PYTHON="$(PYTHON)" sh .ci/bootstrap $(OPENHANDS) --no-default-groups --group openhands
	@touch $@
