# Every target works on a fresh machine that has Python (3.11 or newer) and make:
# the first one that needs it creates .venv and installs pkc there.

PYTHON ?= python3
EXTRAS ?= dev
BIN := .venv/bin
comma := ,
BASE := .venv/.base
DEV := .venv/.with-$(subst $(comma),-,$(EXTRAS))

PARALLEL := -n 2 --dist worksteal
QUICK := $(wildcard tests/passes/*.mlir) tests/passes/test_passes.py tests/passes/test_opt.py tests/dialect tests/errors \
  tests/frontend/test_parse.py tests/frontend/test_elaborate.py tests/frontend/test_python.py tests/sim/test_programs.py \
  tests/sim/test_roles.py tests/examples/test_roles.py::test_communicators_on_sms_of_their_own \
  tests/check/test_findings.py tests/codegen/test_cuda.py tests/runtime/test_launch.py tests/test_api.py

# Settings of the caller's shell that would send Python or pip to some other environment.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_NO_BUILD_ISOLATION

# What Python makes of a source is kept, whatever the caller's shell says: tests start many processes.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/.pycache

.PHONY: demo check test test-all test-long test-gpu lint types golden bench-report site wheel clean

demo: $(BASE)
	$(BIN)/pkc run examples/gemm_rs.pk --ranks 8 --set M=1024,N=512,K=512
	@mkdir -p build
	$(BIN)/pkc explain examples/gemm_rs.pk --ranks 2 --set M=4096,N=4096,K=2048 --html build/gemm_rs.html

# Between edits, in less than half a minute: style, the types of what has changed, a test of every kind that is fast.
check: lint $(DEV)
	@changed="$$(git diff --name-only --diff-filter=d HEAD -- 'pkc/*.py'; git ls-files -o --exclude-standard -- 'pkc/*.py')"; \
	  test -z "$$changed" || $(BIN)/basedpyright -p pyproject.toml $$changed
	$(BIN)/python -m pytest -q $(PARALLEL) $(QUICK)

# docs/testing.md says which cases are left to test-all, and which to test-long.
test: $(DEV)
	$(BIN)/python -m pytest $(PARALLEL) -m "not gpu and not long and not slow"

test-all: $(DEV)
	$(BIN)/python -m pytest $(PARALLEL)

test-long: $(DEV)
	PKC_FUZZ=20000 $(BIN)/python -m pytest $(PARALLEL) -m "not gpu"

# Needs GPUs; each test is a process of its own, and a hang a failure.
test-gpu: $(DEV)
	$(BIN)/python -m pytest -m gpu tests/gpu

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache

types: $(DEV)
	$(BIN)/basedpyright -p pyproject.toml

# Rewrites the expected texts and generated pages; read the difference before you keep it.
golden: $(DEV)
	$(BIN)/python -m tools.errors_page
	$(BIN)/python -m pytest $(PARALLEL) --update-golden
	$(BIN)/python -m tools.machine_page
	$(BIN)/python -m tools.operations_page
	$(BIN)/python -m tools.constructs
	$(BIN)/python -m tools.textmate
	$(BIN)/python -m tools.gallery

# Puts the tables of bench/results into the README and draws them.
bench-report:
	@$(MAKE) --no-print-directory EXTRAS=dev,bench .venv/.with-dev-bench
	$(BIN)/python -m pkc.bench.report $(wildcard bench/results/*.json) --readme README.md --plot bench/results.png
	$(BIN)/python -m tools.gallery

# The pages of docs/ as a site, in build/site.
site:
	@$(MAKE) --no-print-directory EXTRAS=docs .venv/.with-docs
	$(BIN)/mkdocs build --strict --quiet

# The sdist, the wheel made of it, and the demo in an environment that has this wheel alone.
wheel: $(DEV)
	$(BIN)/python -m pytest -q -m long tests/test_wheel.py

clean:
	rm -rf .venv .pytest_cache .ruff_cache pkc/*/.ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pkc needs Python 3.11 or newer: make PYTHON=...")'
	@$(PYTHON) -m venv .venv

$(BASE): pyproject.toml | .venv/bin/python
	@echo "installing pkc into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(DEV): pyproject.toml | .venv/bin/python
	@echo "installing pkc with [$(EXTRAS)] into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch $@ $(BASE)
