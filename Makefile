# Needs python3 (3.11 or newer, with venv), git and make. Everything else goes into $(VENV).

VENV ?= .venv
INSTALLED := $(VENV)/.installed

.PHONY: help demo test test-model test-systemd matrix soak check clean

help: ## Say what can be made here
	@awk -F ': .*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(INSTALLED) ## Show memoryd at work on a session of its own, in a home of its own
	@$(VENV)/bin/memoryd demo

test: $(INSTALLED) ## Run every test
	@$(VENV)/bin/pytest

test-systemd: $(INSTALLED) ## Try the service under a real systemd, in namespaces; needs root on Linux
	@MEMORYD_TEST_SYSTEMD=1 $(VENV)/bin/pytest -n 0 -rs tests/daemon/test_real_service.py

test-model: $(VENV)/.model ## Run the test against a small real model (the first time it is built: half an hour)
	@$(VENV)/bin/pytest -n 0 -s -m model tests/model

matrix: $(INSTALLED) ## Stop every kind of job at every point, each time it gets there
	@MEMORYD_MATRIX=all $(VENV)/bin/pytest tests/crash/test_matrix.py

soak: $(INSTALLED) ## Kill, pause and starve it for MINUTES (10); SEED repeats the blows of another run
	@cd tests/crash && "$(abspath $(VENV))/bin/python" -m soak "$(or $(MINUTES),10)" $(SEED)

check: $(INSTALLED) ## Check format, lint, types and the architecture
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/pytest -q -n 0 tests/test_architecture.py

clean: ## Remove what was made here
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The first Python that is new enough, and one clear line where there is none. An environment whose
# Python is gone (an upgrade of the system's) is made anew.
define MAKE_ENVIRONMENT
command -v git > /dev/null || { echo "git is needed: install it" >&2; exit 1; }; \
"$(VENV)/bin/python" -c pass 2> /dev/null && exit 0; \
for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || continue; \
	"$$python" -c 'import ensurepip, venv' 2> /dev/null || { \
		echo "$$python cannot make environments: install its venv package (python3-venv)" >&2; exit 1; }; \
	exec "$$python" -m venv --clear "$(VENV)"; \
done; \
echo "Python 3.11 or newer is needed: install it, or name it with make PYTHON=/path/to/python3" >&2; \
exit 1
endef

# Built for any processor of its kind: what a virtual machine says of its own is not always so.
$(VENV)/.model: $(INSTALLED)
	@CMAKE_ARGS="-DGGML_NATIVE=OFF" "$(VENV)/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev,model]'
	@touch $@

$(INSTALLED): pyproject.toml bin/memoryd-hook
	@$(MAKE_ENVIRONMENT)
	@"$(VENV)/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
