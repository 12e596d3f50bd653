# Two commands do everything on a machine with python3 (3.11 or later) and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One process more than cores, because many tests wait for processes, networks and clocks. At most seven: each process has its own Redis database.
AT_ONCE = $(shell $(PYTHON) -c 'import os; print(min(7, 1 + (os.cpu_count() or 1)))')
# The tests start hundreds of processes: without stored bytecode, each of them would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help demo up test test-machine test-sqlite test-browser test-postgresql faults frameworks engines pages check format bench shots calibrate image-check fuzz gpu gpu-ranks clean

help:  ## this list
	@echo "compilewatch"
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit("compilewatch needs Python 3.11 or later for the dashboard; this is " + sys.version.split()[0] + ". Choose another with make PYTHON=python3.12.") if sys.version_info < (3, 11) else None'
	@echo "compilewatch: creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.dashboard: $(VENV)/.python requirements.txt agents/pyproject.toml
	@echo "compilewatch: installing the dashboard's packages (first start only, about a minute)"
	@$(BIN)/python -m pip install --disable-pip-version-check -q --progress-bar on -r requirements.txt
	@$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps -e ./agents
	@touch $@

$(VENV)/.tests: $(VENV)/.dashboard tests/requirements.txt
	@echo "compilewatch: installing the tests' packages (torch is the largest)"
	@$(BIN)/python tests/install_torch.py
	@$(BIN)/python -m pip install --disable-pip-version-check -q -r tests/requirements.txt
	@touch $@

demo: $(VENV)/.dashboard  ## a dashboard with a small simulated fleet whose newest version regresses (SQLite, one process)
	@exec $(BIN)/python manage.py demo

up: $(VENV)/.dashboard  ## a dashboard for real use (SQLite, one process, no simulated data)
	@exec $(BIN)/python manage.py serve

test: $(VENV)/.tests test-machine test-sqlite test-browser test-postgresql  ## every test, on SQLite and on PostgreSQL
	@$(BIN)/python -m tests.machine --after

test-machine: $(VENV)/.tests
	@$(BIN)/python -m tests.machine --before

# PostgreSQL and Redis: running servers if available, else servers of this run.
PYTEST = $(BIN)/python -m tests.services $(BIN)/python -m pytest
# Each part ends with its slowest tests.
SLOWEST = --durations 20 --durations-min 1
# Tests that fail in the parallel run, on a busy machine, run once more alone, after a message; a second failure counts.
RETRY = || { [ $$? -eq 1 ] && echo "compilewatch: running the failed tests once more, alone" && $(PYTEST) --last-failed --last-failed-no-failures none --maxfail 5
PARALLEL = -n $(AT_ONCE) --dist loadfile --no-loadscope-reorder

# The whole line on SQLite: from a job to Slack, the first release's database and reports, and the shutdown. The rest of tests/flow runs once, on PostgreSQL.
EMBEDDED = a_regressed_version_reaches_slack a_database_of_the_first_release_is_migrated \
	a_server_of_the_first_release_takes_what_agents_send_now signals_that_come_together_end_it
ON_POSTGRESQL = $(filter-out $(EMBEDDED:%=tests/flow/test_%.py),$(wildcard tests/flow/test_*.py))
test-sqlite: PATHS = tests --ignore tests/browser $(ON_POSTGRESQL:%=--ignore %)
test-sqlite: $(VENV)/.tests
	$(PYTEST) --cache-clear $(SLOWEST) $(PARALLEL) $(PATHS) $(RETRY) $(PATHS); }

test-browser: PATHS = tests/browser
test-browser: $(VENV)/.tests
	$(PYTEST) --cache-clear $(SLOWEST) -n 2 --dist loadfile $(PATHS) $(RETRY) $(PATHS); }

test-postgresql: PATHS = tests/dashboard tests/flow tests/hostile
test-postgresql: export COMPILEWATCH_TEST_DATABASE = postgresql
test-postgresql: $(VENV)/.tests
	$(PYTEST) --cache-clear $(SLOWEST) $(PARALLEL) $(PATHS) $(RETRY) $(PATHS); }

faults: $(VENV)/.tests  ## the fault list in full length (hours); continues after an interruption
	$(BIN)/python -m tests.services $(BIN)/python -m tests.faults

frameworks: $(VENV)/.tests  ## the long forms of the tests with serving and training frameworks (minutes)
	COMPILEWATCH_TEST_FRAMEWORKS=full COMPILEWATCH_TEST_DATABASE=postgresql $(PYTEST) $(SLOWEST) -m frameworks_only tests/agent tests/flow

engines: $(VENV)/.tests  ## the long forms of the tests with torch's compilers (minutes)
	COMPILEWATCH_TEST_ENGINES=full $(PYTEST) $(SLOWEST) $(PARALLEL) -m engines_only tests/agent tests/dashboard/ui tests/dashboard/regressions

pages: export COMPILEWATCH_TEST_DATABASE = postgresql
pages: $(VENV)/.tests  ## every test of pages and accounts on PostgreSQL, where `make test` runs one for each query (minutes)
	COMPILEWATCH_TEST_PAGES=full COMPILEWATCH_TEST_DATABASE=sqlite $(PYTEST) $(PARALLEL) -m pages_only tests/dashboard/accounts
	COMPILEWATCH_TEST_PAGES=full $(PYTEST) $(SLOWEST) $(PARALLEL) tests/dashboard/access tests/dashboard/accounts tests/dashboard/serving tests/dashboard/ui

check: $(VENV)/.tests  ## lint, format, types, imports, sizes, language, templates: exactly what CI checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy dashboard agents/compilewatch manage.py
	$(BIN)/lint-imports --config .importlinter
	$(BIN)/djlint --lint dashboard/ui
	$(BIN)/python -m tests.lint agents dashboard docker tests manage.py README.md
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/architecture/test_files_and_functions_stay_short.py tests/architecture/test_templates_styles_and_scripts_have_short_lines.py tests/architecture/test_the_agent_has_no_import_cycle.py

format: $(VENV)/.tests  ## rewrites Python and templates in the project's format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(VENV)/.tests  ## speed and memory, compared with peers; prints one table (one benchmark: `python -m tests.bench NAME`)
	$(BIN)/python -m tests.services $(BIN)/python -m tests.bench

shots: $(VENV)/.tests  ## retakes the guide's screenshots from a running demo: make shots PASSWORD=...
	$(BIN)/python -m tests.browser.shots --password $(PASSWORD)

calibrate: $(VENV)/.tests  ## error rates and detection of the judge on simulated fleets, compared with peers (hours; resumable)
	$(BIN)/python -m tests.bench.calibrate

image-check: $(VENV)/.tests  ## the image's recipe in a clean Debian tree, its roles with a report, and `make demo` from a clone (root, minutes)
	$(BIN)/python -m tests.services $(BIN)/python -m tests.image

fuzz: $(VENV)/.tests  ## a hundred thousand odd calls of the agent, then a million corrupted reports for each stack and 2,000 generated requests (about an hour)
	COMPILEWATCH_TEST_FUZZ=100000 $(BIN)/python -m pytest tests/agent/instrument/test_no_argument_reaches_the_job_as_an_exception.py --timeout=7200
	COMPILEWATCH_TEST_MUTANTS=1000000 COMPILEWATCH_TEST_DATABASE=postgresql $(PYTEST) -s tests/hostile/test_mutated_reports_are_refused_or_fold.py
	COMPILEWATCH_TEST_MUTANTS=1000000 $(BIN)/python -m pytest -s tests/hostile/test_mutated_reports_are_refused_or_fold.py
	COMPILEWATCH_TEST_EXAMPLES=2000 $(BIN)/python -m pytest tests/hostile/test_the_schema_describes_the_endpoint.py --timeout=7200

gpu-ranks:  ## the tests that need several GPUs of one machine
	PYTHONPATH=agents $(PYTHON) -m pytest -c tests/gpu/pytest.ini --rootdir tests/gpu -m ranks tests/gpu

gpu:  ## the tests that need CUDA, on a machine with CUDA and its own torch
	PYTHONPATH=agents $(PYTHON) -m pytest -c tests/gpu/pytest.ini --rootdir tests/gpu tests/gpu

clean:  ## removes everything that the other commands created
	rm -rf $(VENV) .var agents/*.egg-info agents/build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
