# Everything happens in a local virtual environment; a fresh machine needs Python 3.11 and make only.
#
#   make demo    set up, embed a sentence and read it back from its vector: make demo TEXT="a sentence of yours"
#   make demo-train  set up, train the tiny recipe on made-up sentences, and invert three that were held out
#   make demo-web  set up and open the web demo, with the default inverter
#   make test    set up and run the tests
#   make lint    ruff and mypy
#   make bench   the benchmarks of benchmarks/results.md (about 15 minutes, on an otherwise idle machine)

PYTHON ?= python3.11
# Pinned for reproducible figures. Any torch >= 2.6 works: make TORCH=torch==2.9.1 test
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo demo-train demo-web test browser lint format bench clean

# The text reaches the script as it is, whatever quotes and dollars it has.
demo: export DEMO_TEXT = $(value TEXT)
demo: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

demo-train: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/train.sh

demo-web: $(READY)
	$(BIN)/unembed serve --open

test: $(READY) browser
	$(BIN)/pytest

# The web page is tested in a real one. Whoever is not root installs it themselves, or sees those tests skipped.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -qq --no-install-recommends chromium && exit; \
	fi; \
	echo "No Chromium here: the tests of the web page will be skipped."

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# torch first and by itself, so that no other package chooses its build.
$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
