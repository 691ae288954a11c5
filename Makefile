# Two commands are all the set-up there is: `make loop` opens the chat, `make test` runs every check.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.all
RUNNABLE := $(VENV)/.run
WEIGHTS := $(VENV)/nca-weights
# Where `make loop` opens the chat.
DIR ?= .
MCP_SERVERS := $(VENV)/mcp-servers
# How many files are tested at a time.
WORKERS ?= 9
# The tests start Python a thousand times; where nothing is kept, each of these compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: loop test lint style types tests weights servers format fuzz mutants soak endings bench bench-quick install release lock clean

loop: $(RUNNABLE)
	@[ "$(DIR)" != . ] || echo "This chat works in nca's own folder. To work in yours: make loop DIR=PATH"
	@NCA_EMBEDDED="$${NCA_EMBEDDED:-recommended}" $(BIN)/python -IS scripts/foreground.py "$(DIR)" $(BIN)/nca loop

# The types take one core as long as it takes to collect the tests and to run some. Who fails is named at the end.
test: style
	@$(MAKE) --no-print-directory -j3 types tests || { $(MAKE) --no-print-directory types; exit 1; }

lint: style types

style: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(INSTALLED)
	$(BIN)/mypy
	$(BIN)/lint-imports

# Much of a test's time is waiting for a terminal, a disk or a program: several at a time keep two cores busy.
# A make that a test starts is none of this one's.
tests: weights servers
	env -u MAKEFLAGS -u MAKELEVEL NCA_TEST_WEIGHTS=$(CURDIR)/$(WEIGHTS) NCA_TEST_MCP_SERVERS=$(CURDIR)/$(MCP_SERVERS) \
	  $(BIN)/pytest --workers $(WORKERS)

weights: $(INSTALLED)
	@$(BIN)/python scripts/test_weights.py $(WEIGHTS)

servers: $(INSTALLED)
	@$(BIN)/python scripts/test_mcp_servers.py $(MCP_SERVERS)

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: $(INSTALLED)
	NCA_FUZZ_EXAMPLES=100000 $(BIN)/pytest --workers 2 tests/context -k "invariants or machine or grid" --timeout 0
	NCA_FUZZ_EXAMPLES=2000 $(BIN)/pytest --workers 2 -m hypothesis --timeout 0

# Plants small faults in a copy and counts those that the tests catch. MUTANTS="--planted 60 --seed 1 --only context".
mutants: $(INSTALLED)
	$(BIN)/python scripts/mutants.py $(MUTANTS)

soak: $(INSTALLED)
	NCA_SOAK_KILLS=$${NCA_SOAK_KILLS:-2000} NCA_DAMAGES=$${NCA_DAMAGES:-1000} \
	  $(BIN)/pytest tests/soak tests/sessions/postgres/test_killed.py tests/sessions/test_random_damage.py

# Signals, keys and closed terminals at some 1,300 moments of a chat, and a chat in 800 places: an hour.
endings: $(INSTALLED)
	NCA_ENDINGS=1 NCA_MATRIX=1 $(BIN)/pytest -s tests/terminal/test_endings.py tests/terminal/test_matrix.py

# Everything, beside other projects in environments of their own under .bench/. NCA_TRANSCRIPTS names a folder of real
# sessions; without one only generated ones are measured. BENCH takes more: BENCH="--model openai/gpt-4.1-mini".
bench: $(INSTALLED)
	NCA_EMBEDDED="$${NCA_EMBEDDED:-recommended}" $(BIN)/python -m benchmarks $(BENCH)

# nca's own figures in some four minutes of one core; ends with 1 where one is worse than
# docs/benchmarks.json by more than 2%. A case that the machine was too busy for is no loss: it ends with 2 then.
bench-quick: $(INSTALLED)
	$(BIN)/python -m benchmarks --quick $(BENCH)

# Puts nca on the PATH and says where. EXTRA=local adds the embedded model's runtime.
install:
	@NCA_EXTRA="$(EXTRA)" PYTHON="$(PYTHON)" scripts/install.sh

# The wheel and the source distribution under dist/, each tried alone. PYTHONS="python3.11 python3.13" tries more.
release: $(INSTALLED)
	$(BIN)/python scripts/release.py $(PYTHONS)

COMPILE := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header \
  --no-emit-index-url --no-annotate
# Everything, and of the same versions what nca runs with.
lock:
	$(COMPILE) --extra local --group dev --upgrade --output-file requirements.lock
	sed -n 's/^\([a-z0-9][^ ]*==[^ ]*\).*/\1/p' requirements.lock > requirements-run.lock.in
	$(COMPILE) --group build --constraints requirements-run.lock.in --output-file requirements-run.lock
	rm requirements-run.lock.in

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# Everything by hash from the lock files. What runs nca is ready first; the checks need more.
$(RUNNABLE): requirements-run.lock pyproject.toml
	@$(PYTHON) scripts/set_up.py $(VENV) run

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) scripts/set_up.py $(VENV) all
