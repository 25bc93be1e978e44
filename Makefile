# Everything a person or a machine runs. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
PYTHON_IN := $(VENV)/bin/python
CACHE := $(or $(HEADRACE_CACHE),.stack)
UV_VERSION := $(shell sed -n 's/^UV = "\(.*\)"/\1/p' stack/versions.py)
UV := $(CACHE)/uv-$(UV_VERSION)/bin/uv
INSTALLED := $(VENV)/installed
TYPED := contract streamer stack
COMPILE = $(UV) pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --quiet
UPGRADE ?=
# Where everything fails, such as on a full disk, the first errors tell it, in minutes instead of hours.
MAXFAIL ?= 40
# Each has servers of its own, 6 GiB of memory; WORKERS=0: the tests one after the other, in one process.
WORKERS ?= 2

.PHONY: help install demo demo-down test soaks test-large soak-away soak-positions soak-kills soak-lake soak-exactly-once unit lint format lock check-pythons spark-jars spark-s3-jars images bench-streamer bench-latency bench-lake bench-verify bench-snapshot fuzz fuzz-bytes \
	clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 24

install: $(INSTALLED) ## virtual environment from the lock, nothing outside the checkout

$(UV): | requirements.lock
	@python="$$(sh stack/prerequisites.sh)"; mkdir -p $(CACHE); folder=$$(mktemp -d $(CACHE)/.uv-XXXXXX); \
	echo "install: uv $(UV_VERSION)"; \
	sed -n '/^uv==/,/^[^ ]/{/^uv==/p;/^ *--hash/p}' requirements.lock > $$folder/uv.txt; \
	"$$python" -m venv $$folder/new; \
	$$folder/new/bin/python -m pip install --quiet --disable-pip-version-check --retries 3 --no-deps --require-hashes -r $$folder/uv.txt; \
	rm -rf $(CACHE)/uv-$(UV_VERSION); mv $$folder/new $(CACHE)/uv-$(UV_VERSION); rm -rf $$folder

# Bytecode is made here, once: where Python is told to write none, each start would compile all that it imports again.
$(INSTALLED): requirements.lock pyproject.toml $(UV)
	@python="$$(sh stack/prerequisites.sh)"; \
	if ! $(PYTHON_IN) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; \
	then $(UV) venv --quiet --clear --python "$$python" $(VENV); fi; \
	echo "install: $$(grep -c '^[a-z].*==' requirements.lock) Python packages"; \
	for try in 1 2 3; do \
		if $(UV) pip sync --quiet --python $(PYTHON_IN) --require-hashes --compile-bytecode requirements.lock; then break; fi; \
		if [ $$try = 3 ]; then echo "install: uv could not fetch the packages of requirements.lock, see above" >&2; exit 1; fi; \
		sleep $$((5 * try)); done; \
	$(UV) pip install --quiet --python $(PYTHON_IN) --no-deps --no-build-isolation --editable .; \
	touch $@

demo: install ## the whole platform on this machine, shown to work; stays up (DEMO=--help lists its options)
	@exec $(PYTHON_IN) -m stack.demo $(DEMO)

demo-down: ## stop every server of this checkout: what `make demo` left running, and what `python -m stack up` started
	@if [ -x $(PYTHON_IN) ]; then $(PYTHON_IN) -m stack down; else echo "nothing was installed, so nothing runs"; fi

test: install ## lint and types, then all tests on real servers
	@$(MAKE) lint
	@$(PYTHON_IN) -m pytest -n $(WORKERS) --maxfail=$(MAXFAIL) $(PYTEST)

soaks: install ## the long forms of tests whose short forms are in `make test`
	@$(PYTHON_IN) -m pytest -n $(WORKERS) -m soak -o timeout=3600 $(PYTEST)

test-large: install ## one transaction of a million rows, killed in its middle
	@HEADRACE_LARGE_ROWS=1000000 $(PYTHON_IN) -m pytest -s tests/integration/test_large_transactions.py

soak-away: install ## Kafka gone under load for MINUTES (10), the blocked dump dropped meanwhile: both modes go on, nothing is lost
	@HEADRACE_AWAY_SECONDS=$$(( $(or $(MINUTES),10) * 60 )) $(PYTHON_IN) -m pytest -s -o timeout=0 tests/integration/test_away.py

soak-positions: install ## a transaction that ends beyond 4 GiB of its binlog file, on each server (15 GB of disk while it runs)
	@$(PYTHON_IN) -m pytest -s -m soak -o timeout=3600 tests/integration/test_beyond_4_gib.py

soak-kills: install ## the streamer killed KILLS (20) times under load, and compactions with it
	@HEADRACE_KILLS=$(or $(KILLS),20) $(PYTHON_IN) -m pytest -s -o timeout=0 tests/integration/test_kills.py \
	    tests/integration/test_streamer_restarts.py

soak-lake: install ## a lake's days at random, STEPS (100) of them on each server, by SEED or a drawn one: what is not told is equal
	@HEADRACE_STEPS=$(or $(STEPS),100) HEADRACE_SEED=$(SEED) $(PYTHON_IN) -m pytest -s -m soak -o timeout=0 \
	    tests/integration/test_lake_random.py

soak-exactly-once: install ## exactly once with everything on, the streamer killed KILLS (200) times at random moments
	@HEADRACE_KILLS=$(or $(KILLS),200) $(PYTHON_IN) -m pytest -s -o timeout=0 tests/integration/test_exactly_once_everything.py

unit: install ## the tests that start no server
	@$(PYTHON_IN) -m pytest -n $(WORKERS) -m "not integration" $(PYTEST)

lint: install ## style, format and types
	@status=0; \
	$(PYTHON_IN) -m ruff check . || status=1; \
	$(PYTHON_IN) -m ruff check --preview --select AIR dags plugins || status=1; \
	$(PYTHON_IN) -m ruff format --check . || status=1; \
	$(PYTHON_IN) -m mypy --strict $(TYPED:%=-p %) || status=1; \
	$(PYTHON_IN) -m mypy || status=1; \
	exit $$status

format: install ## let ruff mend style and format
	@$(PYTHON_IN) -m ruff check --fix .
	@$(PYTHON_IN) -m ruff format .

lock: $(UV) ## requirements.lock from pyproject.toml and its subsets from it; UPGRADE=--upgrade takes newer versions
	@$(COMPILE) --all-extras $(UPGRADE) -o requirements.lock
	@$(COMPILE) --extra streamer --extra spark --extra airflow --extra quality -c requirements.lock --no-annotate -o requirements.txt
	@$(COMPILE) --extra streamer -c requirements.lock --no-annotate -o docker/streamer/requirements.txt
	@$(COMPILE) --extra airflow --extra spark --extra quality -c requirements.lock --no-annotate -o docker/airflow/requirements.txt

check-pythons: $(UV) ## the lock resolves on Python 3.11, 3.12 and 3.13
	@for version in 3.11 3.12 3.13; do \
		$(UV) pip compile requirements.lock --python-version $$version --no-annotate --no-header --quiet -o $(CACHE)/check-$$version.txt; \
		if $(UV) venv --quiet --clear --no-python-downloads --python $$version $(CACHE)/check-$$version 2>/dev/null; then \
			$(UV) pip sync --quiet --dry-run --python $(CACHE)/check-$$version/bin/python --require-hashes requirements.lock; \
			echo "Python $$version: resolves, and every package has a file for it"; rm -rf $(CACHE)/check-$$version; \
		else echo "Python $$version: resolves (not installed here, so no file was chosen)"; fi; done

spark-jars: install ## the jars of the Spark jobs, into the cache
	@$(PYTHON_IN) -m stack fetch --spark

spark-s3-jars: install ## the jars that a lake on S3 needs beside them, into the cache
	@$(PYTHON_IN) -m stack fetch --s3

images: install ## container images of the streamer and of Airflow with Spark
	@exec $(PYTHON_IN) -m docker.images $(IMAGES)

bench-streamer: install ## speed from binlog to Kafka, beside Debezium, Maxwell and others (BENCH=--help lists its options)
	@exec $(PYTHON_IN) -m bench.streamer $(BENCH)

bench-latency: install ## how long a change takes from MySQL to Kafka (BENCH=--help lists its options)
	@exec $(PYTHON_IN) -m bench.latency $(BENCH)

bench-lake: install ## compaction: a backlog, how old the lake is under load, a check meanwhile, bytes written (BENCH=backlog, fresh, proof or bytes; --help)
	@exec $(PYTHON_IN) -m bench.lake $(or $(BENCH),backlog)

bench-verify: install ## rows a second that a check proves, by kind of key (BENCH=--help lists its options)
	@exec $(PYTHON_IN) -m bench.verify $(BENCH)

.PHONY: faults
faults: install ## a compaction killed, a maintenance or an erasure broken off, at each of the points between its actions
	@HEADRACE_FAULTS=all $(PYTHON_IN) -m pytest -m "soak or not soak" $(PYTEST) tests/integration/test_lake_kills.py \
	    tests/integration/test_lake_kills_rare.py
	@$(PYTHON_IN) -m pytest -m "soak or not soak" -k killed $(PYTEST) tests/spark/test_maintaining.py \
	    tests/spark/test_retention.py tests/spark/test_erasing.py tests/spark/test_foreign_changes.py

bench-snapshot: install ## speed and memory of a snapshot, beside Spark's JDBC reader alone (BENCH=--help lists its options)
	@exec $(PYTHON_IN) -m bench.snapshot $(BENCH)

fuzz: install ## random rows of random tables, written to each database and read back from its binlog (FUZZ=--help)
	@exec $(PYTHON_IN) -m tests.integration.fuzz $(FUZZ)

fuzz-bytes: install ## broken bytes through the decoder, random transactions on each server (TIMES=40 as many as in the tests)
	@HEADRACE_FUZZ=$(or $(TIMES),40) $(PYTHON_IN) -m pytest $(PYTEST) tests/streamer/protocol/test_fuzz.py \
		tests/integration/test_decoder_transactions.py -k "not test_decoder_transactions or random"

clean: demo-down ## remove the virtual environment and the demo's data; the cache of downloads and other pipelines' lakes stay
	@rm -rf $(VENV) .headrace/lake/flights
	@if [ -d .headrace ]; then find .headrace -mindepth 1 -maxdepth 1 ! -name lake -exec rm -rf {} +; fi
	@rmdir .headrace/lake .headrace 2>/dev/null || if [ -d .headrace/lake ]; then echo "clean: left as they are: $$(echo .headrace/lake/*)"; fi
