# Two commands are all the set-up there is: `make loop` opens the chat, `make test` runs every check.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WEIGHTS := $(VENV)/nca-weights
QUIET := --quiet --disable-pip-version-check --no-input

.PHONY: loop test lint format fuzz soak bench lock clean

loop: $(INSTALLED)
	@NCA_EMBEDDED="$${NCA_EMBEDDED:-recommended}" $(BIN)/nca loop

test: lint
	@$(BIN)/python scripts/test_weights.py $(WEIGHTS)
	NCA_TEST_WEIGHTS=$(CURDIR)/$(WEIGHTS) $(BIN)/pytest -n 2 --dist loadfile

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: $(INSTALLED)
	NCA_FUZZ_EXAMPLES=100000 $(BIN)/pytest -n 2 tests/context -k "invariants or machine or grid" --timeout 0

soak: $(INSTALLED)
	NCA_SOAK_KILLS=$${NCA_SOAK_KILLS:-2000} $(BIN)/pytest tests/soak

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

lock:
	uv pip compile pyproject.toml --extra local --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade --output-file requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# Everything by hash from the lock file, then nca itself without looking anything up.
$(INSTALLED): requirements.lock pyproject.toml
	@echo "Setting up $(VENV) (about 400 MB, once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install $(QUIET) --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install $(QUIET) --no-deps --no-build-isolation --editable .
	@touch $(INSTALLED)
