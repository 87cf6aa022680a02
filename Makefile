# Everything runs in .venv, made on first use; the stamps in it follow pyproject.toml and constraints.txt.
PYTHON ?= python3
# One OpenMP thread each (tests/conftest.py): two workers share two cores instead of fighting for them.
WORKERS ?= 2
MINUTES ?= 20

PY := .venv/bin/python
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
CODE := $(wildcard mezzotint benchmarks examples)
SOURCES := $(CODE) tests

CLIENTS := $(basename $(notdir $(wildcard tests/e2e/clients/*.txt)))

.PHONY: help demo test check bench concurrency report experiment ablations soak load e2e docs clean
help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

demo: .venv/package ## write text with the bundled model, block by block
	$(PY) examples/demo.py

test: check ## lint, format, types and every test
	$(PY) -m pytest -q --numprocesses $(WORKERS) --dist loadfile

check: .venv/tests ## lint, format and types only
	$(PY) -m ruff check $(SOURCES)
	$(PY) -m ruff format --check $(SOURCES)
	$(PY) -m mypy $(CODE)

bench: .venv/tests ## measure this machine, beside transformers
	$(PY) -m benchmarks.foundation

concurrency: .venv/tests ## measure many requests at once: decoders beside each other, and beside transformers
	$(PY) -m benchmarks.concurrency --compile
	$(PY) -m benchmarks.concurrency --compile --versus-transformers lab

report: .venv/tests ## score the bundled model, and write what it gives of what is asked into docs/lab.md
	$(PY) -m benchmarks.lab --threads 2 --against-transformers --write docs/lab.md

experiment: .venv/tests ## ask whether routing is worth it here, for fifteen minutes, and write the answer into docs/routing.md
	$(PY) -m benchmarks.routing --write docs/routing.md

ablations: .venv/tests ## vary the training recipe for about 160 minutes, and write what it is worth into docs/lab.md
	$(PY) -m benchmarks.ablations --write docs/lab.md

soak: .venv/tests ## serve mixed requests for MINUTES (20) and check every answer
	$(PY) -m benchmarks.soak --minutes $(MINUTES)

load: .venv/tests ## serve four times the requests that can be answered, some of them rude, then kill the server
	$(PY) -m benchmarks.overhead
	$(PY) -m benchmarks.load

e2e: .venv/tests $(CLIENTS:%=.venv-e2e/%/made) .venv-e2e/playground/made ## ask a server as real clients do
	MEZZOTINT_E2E=1 $(PY) -m pytest -q tests/e2e

docs: .venv/package ## write docs/cli.md from the commands, and the fields of docs/serving.md
	$(PY) -m mezzotint.cli.document > docs/cli.md
	$(PY) -m mezzotint.server.document docs/serving.md

clean: ## remove .venv and every cache
	rm -rf .venv .venv-e2e .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Mezzotint needs Python 3.11 or later, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1):" \
			"name another, as in 'make test PYTHON=python3.12'." >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	@touch $@

.venv/package: .venv/made pyproject.toml constraints.txt
	@echo "Installing into .venv: a minute, or several where torch is still to be downloaded."
	$(INSTALL) --editable .
	@touch $@

.venv/tests: .venv/package
	$(INSTALL) --editable '.[test]'
	@touch $@

# uv installs them in seconds, where pip takes minutes.
.venv-e2e/uv: .venv/made
	$(PYTHON) -m venv .venv-e2e/tools
	.venv-e2e/tools/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	@touch $@

.venv-e2e/%/made: tests/e2e/clients/%.txt .venv-e2e/uv
	$(PYTHON) -m venv --clear .venv-e2e/$*
	.venv-e2e/tools/bin/uv pip install --quiet --python .venv-e2e/$*/bin/python --requirements $<
	@if [ -d plugins/$* ]; then .venv-e2e/tools/bin/uv pip install --quiet --python .venv-e2e/$*/bin/python --no-deps ./plugins/$*; fi
	@touch $@

# Without npm, or without a network for it, the playground's test says so and is skipped.
.venv-e2e/playground/made: .venv/made
	@mkdir -p .venv-e2e/playground
	@timeout 180 npm install --silent --no-fund --no-audit --prefix .venv-e2e/playground playwright-core@1.65.1 \
		|| echo "playwright-core cannot be had here: the playground's test will be skipped."
	@touch $@
