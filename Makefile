# Every target sets up what it needs. `make demo` and `make test` are all that a newcomer types.
# Another interpreter: make PYTHON=python3.12 demo

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
PEERS  := .venv-peers

# An interpreter that was asked for, and is not the one that made the environment, makes it again.
ifneq ($(origin PYTHON),file)
ifneq ($(wildcard $(READY)),)
ifneq ($(shell $(PYTHON) -V),$(shell $(BIN)/python -V))
$(shell rm -rf $(VENV))
endif
endif
endif

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint docs wheel lessons record peers traps-latest matrix clean

help:
	@echo "make demo          one device against four replicas, on real digits (about a minute)"
	@echo "make test          every test"
	@echo "make venv          only the environment, in $(VENV)"
	@echo "make lint docs     what CI checks besides the tests"
	@echo "make lessons       is every exercise fair? stubs, references and known mistakes"
	@echo "make record        make stubs, fingerprints, outputs and numbers of the lessons anew"
	@echo "make peers         what 'tfdistedu bench allreduce' compares with: gloo (torch) and OpenMPI, in $(PEERS)"
	@echo "make traps-latest  the trap tests on the newest tensorflow and keras"
	@echo "make matrix        run each cell of the table 'what works where' again"

venv: $(READY)

# The stamp is newer than what it was made from, so a second call installs nothing.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "This needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is %d.%d. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" % v)'
	@echo "Setting up $(VENV): about 0.7 GB to download, 2.5 GB on disk. This happens once."
	test -x $(BIN)/python || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[test,docs]'
	@touch $(READY)

demo: $(READY)
	@mkdir -p out
	@$(BIN)/tfdistedu demo --svg out/demo.svg

test: $(READY)
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pydoclint --quiet tfdistedu
	$(BIN)/python -m pytest -q tests/unit/test_import_arrows.py

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: $(READY)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

lessons: $(READY)
	$(BIN)/python -m tfdistedu.course.gate lessons

record: $(READY)
	$(BIN)/python -m tfdistedu.course.record --timed

# Never in the project's own environment: torch and TensorFlow do not belong into one. OpenMPI is the system's.
peers: $(PEERS)/.installed
	@command -v mpirun > /dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    echo "Installing OpenMPI: about 40 MB to download."; \
	    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends $(OPENMPI); \
	  else \
	    echo "OpenMPI is not here, and the benchmark goes on without it. Debian has it: sudo apt-get install $(OPENMPI)"; \
	  fi; }
	@echo "Ready: tfdistedu bench allreduce"

OPENMPI := openmpi-bin libopenmpi-dev
$(PEERS)/.installed: requirements-peers.txt
	@echo "Setting up $(PEERS): about 0.3 GB to download and 1 GB on disk; where pip takes a torch with CUDA, several GB."
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --disable-pip-version-check --requirement requirements-peers.txt
	@touch $@

# Compares versions first, and installs nothing when the newest are here already (FORCE=1: all the same).
traps-latest: $(READY)
	@$(BIN)/python -m tests.traps.latest $(if $(FORCE),--force)

matrix: $(READY)
	$(BIN)/tfdistedu bench matrix --write docs/what-works-where.md

clean:
	rm -rf .venv .venv-latest $(PEERS) site build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
