# Everything happens in a local virtual environment; a fresh machine needs Python 3.11 and make only.
#
#   make demo    set up, and the tour: a sentence, its words, and the sentence read back: make demo TEXT="a sentence of yours"
#   make demo-train  set up, train the tiny recipe on made-up sentences, and invert three that were held out
#   make demo-web  set up and open the web demo, with the default inverter
#   make test    set up and run the tests
#   make test-installs  install the wheel into empty environments, one for each documented set of extras, and use it
#   make mutants change the core a little, many times, and report which changes no test notices (hours)
#   make lint    ruff, mypy, and the order of imports
#   make docs    the documentation as a site, in site/
#   make bench   the benchmarks of benchmarks/results.md (about 15 minutes, on an otherwise idle machine)

PYTHON ?= python3.11
# Pinned for reproducible figures. Any torch >= 2.6 works: make TORCH=torch==2.9.1 test
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo demo-train demo-web test test-installs mutants browser servers lint format docs bench clean

# The text reaches the command as it is, whatever quotes and dollars it has.
demo: export DEMO_TEXT = $(value TEXT)
demo: $(READY)
	@$(BIN)/unembed demo $${DEMO_TEXT:+-- "$$DEMO_TEXT"}

demo-train: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/train.sh

demo-web: $(READY)
	$(BIN)/unembed serve --open

# Two processes with one thread each are faster than one process with two. A file's tests stay in one process.
test: $(READY) browser servers
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

# Some sets only: make test-installs SETS="TestNone or TestEncodersServe"
SETS ?= Test
test-installs: $(READY)
	TORCH=$(TORCH) $(BIN)/pytest tests/installs -m installs -k "$(SETS)"

# Goes on where it stopped. Of some modules only: make mutants MUTANTS="unembed.model.noise*"
mutants: $(READY)
	$(BIN)/pip install --quiet --upgrade --target build/mutmut mutmut==3.8.0 'pytest<9'  # it breaks with pytest 9
	OMP_NUM_THREADS=1 PYTHONPATH=$(CURDIR)/build/mutmut $(BIN)/python -m mutmut run --max-children 2 $(MUTANTS)
	PYTHONPATH=$(CURDIR)/build/mutmut $(BIN)/python -m mutmut results

# The web page is tested in a real one. Whoever is not root installs it themselves, or sees those tests skipped.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -qq --no-install-recommends chromium && exit; \
	fi; \
	echo "No Chromium here: the tests of the web page will be skipped."

# The connector for Redis is tested against a real one, too.
servers:
	@command -v redis-server >/dev/null && exit; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -qq --no-install-recommends redis-server && exit; \
	fi; \
	echo "No Redis here: Valkey takes its place in the tests."

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/mkdocs build --strict

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# torch first and by itself, so that no other package chooses its build.
$(READY): pyproject.toml packages/multilingual/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --editable '.[dev]' --editable packages/multilingual
	@# These are compiled when they are installed; only tests need them.
	@$(BIN)/pip install --quiet 'hnswlib>=0.8' 'annoy>=1.17' || echo "No C++ compiler here: some tests of connectors will be skipped."
	touch $(READY)

clean:
	rm -rf $(VENV) build dist site mutants .import_linter_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
