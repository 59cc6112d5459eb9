# make demo     run the main job: authors' sessions and busy files from a change stream, through Spark
# make test     run the test suite
# make soak     kill servers, clients and worker processes hundreds of times, and stress structures for longer; takes hours
# make bench    run the benchmarks
# make docs     build the site into build/site
# make lint     check style; make types checks types, strictly
# make wheels   build and test a release's wheels, for the interpreters in PYTHONS="python3.11 python3.13t"
# make stress   run the native structures under a model checker and sanitizers
# make dev      an editable install in .venv-dev, built in build/dev and rebuilt whenever it is imported
# make shape    lay out the sources as they are installed, as links, for editors and type checkers; compiles nothing
# make compile  rebuild build/dev now, and show the compiler's messages
# make clean    remove everything that the above have made
#
# Each does its own set-up, once: `make test` on a fresh checkout is enough. PYTHON=python3.13 chooses
# another interpreter, with a separate .venv-python3.13; ARGS="..." is passed to the program,
# SETUP="..." to meson when the wheel is built.
PYTHON ?= python3
ARGS ?=
SHAPE ?= build/shape
SETUP ?=

NAME := $(notdir $(PYTHON))
VENV ?= .venv$(if $(filter-out python3,$(NAME)),-$(NAME))
BIN := $(CURDIR)/$(VENV)/bin
# An older release with a wheel is preferred to a newer one without. One installs at a time.
PIP := flock $(VENV)/.pip $(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary

DEV := .venv-dev
DEV_BIN := $(CURDIR)/$(DEV)/bin

SOURCES := meson.build cythonize.py pyproject.toml LICENSE \
	$(shell find actors core mailbox scheduling -type f -not -name '*.pyc')

# Spark needs Java 17 or later; a machine without it gets one from a wheel.
JAVA := $(or $(wildcard $(JAVA_HOME)/bin/java),java)
JAVA_VERSION := $(shell $(JAVA) -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p')
SPARK := spark $(shell test 0$(JAVA_VERSION) -ge 17 || echo spark-jre)
TEST_EXTRAS ?= test docs $(SPARK)

stamps = $(patsubst %,$(VENV)/.extra-%,$(1))
# Steps of the set-up, side by side; those of another make that uses the same environment come before or after.
steps = @mkdir -p build; flock --close build/$(VENV).lock $(MAKE) --no-print-directory --jobs=2 $(1)
set_up = $(call steps,$(VENV)/.wheel $(call stamps,$(1)))

# How many processes run tests. A file's tests stay in one, and share what they make. Files keep their order, which
# begins with those that take long.
WORKERS ?= --numprocesses=2 --dist=loadfile --no-loadscope-reorder

# How long a soak takes: kills of each kind, rounds in Spark, seconds for a stress test.
KILLS ?= 300
ROUNDS ?= 100
STRESS_SECONDS ?= 60

.PHONY: demo test soak bench docs lint types stress wheels dev shape compile clean
.DELETE_ON_ERROR:

demo:
	$(call set_up,$(SPARK))
	$(BIN)/python examples/demo.py $(ARGS)

test:
	$(call set_up,$(TEST_EXTRAS))
	$(BIN)/pytest $(WORKERS) --durations=10 $(ARGS)

soak:
	$(call set_up,$(TEST_EXTRAS))
	CALLBOARD_KILLS=$(KILLS) $(BIN)/pytest tests/remote/staging/test_kills.py tests/remote/staging/test_published_kills.py
	$(BIN)/python -m tests.process_kills --kills $(KILLS)
	$(BIN)/python tests/spark/soak.py --rounds $(ROUNDS) --two-hosts $(ARGS)
	STRESS_SECONDS=$(STRESS_SECONDS) $(MAKE) -C tests/native --jobs=2 tsan

bench:
	$(call set_up,bench peers)
	$(BIN)/python tests/bench/run.py $(ARGS)

# Strict: a warning is an error. The variable silences a note about MkDocs 2, with which this does not build.
docs:
	$(call set_up,docs)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build $(ARGS)

lint:
	$(call steps,$(call stamps,dev))
	$(BIN)/ruff check
	PATH="$(BIN):$$PATH" cython-lint actors core mailbox scheduling tests examples

# As of the oldest Python that is supported; what the stubs say of the modules, as of the one that runs.
types:
	$(call set_up,dev test docs spark bench peers)
	$(BIN)/mypy --python-version 3.11 --package callboard
	$(BIN)/mypy --python-version 3.11 examples tests docs/site cythonize.py
	$(BIN)/pytest tests/test_types.py tests/test_spawn_types.py
	$(BIN)/stubtest --mypy-config-file pyproject.toml --allowlist tests/stubtest-allowed.txt callboard

stress:
	$(MAKE) -C tests/native --jobs=2 --output-sync=target model stress asan

wheels:
	.ci/wheels $(or $(PYTHONS),$(PYTHON))

dev: $(DEV)/.editable

# Folders as links, so that new files are there at once. The version is only known to a build.
shape:
	rm -rf $(SHAPE)
	mkdir -p $(SHAPE)/callboard
	@ln -s $(filter-out %/version.py.in %/__pycache__,$(wildcard $(CURDIR)/actors/*)) $(SHAPE)/callboard
	@ln -s $(CURDIR)/core $(CURDIR)/mailbox $(CURDIR)/scheduling $(SHAPE)/callboard
	cp actors/version.py.in $(SHAPE)/callboard/version.py

compile: $(DEV)/.editable
	PATH="$(DEV_BIN):$$PATH" meson compile -C build/dev

clean:
	rm -rf build dist tests/native/build .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf examples/native/build examples/native/*.egg-info examples/native/*.cpp
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The steps of the set-up. A stamp is as old as the step's last run.

$(VENV)/.tools $(DEV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -c 'import tomllib; build = tomllib.load(open("pyproject.toml", "rb"))["build-system"]; \
		print(*build["requires"], "ninja", "pip>=24", sep="\n")' > $(@D)/requirements.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $(@D)/requirements.txt
	touch $@

# The tools come from the environment, so that its path, and with it the build, stays the same.
# WHEEL=FILE takes one that was built elsewhere.
$(VENV)/.wheel: $(SOURCES) $(VENV)/.tools
ifdef WHEEL
	$(PIP) --force-reinstall --no-deps $(WHEEL)
else
	rm -rf build/$(VENV)-wheel
	PATH="$(BIN):$$PATH" $(BIN)/python -m pip wheel --quiet --disable-pip-version-check \
		--no-build-isolation --no-deps -Cbuild-dir=build/$(VENV) $(SETUP:%=-Csetup-args=%) \
		-w build/$(VENV)-wheel .
	$(PIP) --force-reinstall --no-deps build/$(VENV)-wheel/*.whl
endif
	touch $@

# The requirements of the package and of an extra of it, which need no wheel to be known.
$(VENV)/.extra-%: pyproject.toml | $(VENV)/.tools
	$(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
		print(*project["dependencies"], *project["optional-dependencies"]["$*"], sep="\n")' | \
		grep -v "^callboard" >$@.txt
	$(PIP) -r $@.txt $(if $(filter peers,$*),|| echo "without the peers: they cannot be installed here")
	touch $@

$(DEV)/.editable: pyproject.toml $(DEV)/.tools
	PATH="$(DEV_BIN):$$PATH" $(DEV_BIN)/python -m pip install --quiet \
		--disable-pip-version-check --no-build-isolation -Cbuild-dir=build/dev --editable '.[dev]'
	touch $@
