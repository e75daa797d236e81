# make build | demo | test | test-long: each sets up what it needs. Everything else is CMake presets (CMakePresets.json).
PRESET ?= release
BUILD := build/$(PRESET)

# The demo's build in a fresh clone leaves the CUDA backend out where no card could run it. This file marks such a build;
# "make build" then adds the backend to it.
HAS_CARD := $(wildcard /dev/nvidia0 /dev/dxg)
WITHOUT_CUDA := $(BUILD)/without_cuda

.PHONY: build demo test test-long packages setup clean

packages:
	@scripts/install_packages

setup: packages
	@scripts/fetch_cudnn_frontend

$(BUILD)/build.ninja: | setup
	cmake --preset $(PRESET) $(FAST_BUILD)

$(WITHOUT_CUDA): | packages
	cmake --preset $(PRESET) -DSNUG_CUDA=OFF $(FAST_BUILD)
	@touch $@

build: setup $(BUILD)/build.ninja
	@if [ -e $(WITHOUT_CUDA) ]; then cmake --preset $(PRESET) -USNUG_CUDA && rm $(WITHOUT_CUDA); fi
	cmake --build --preset $(PRESET)

# A fresh clone is built as fast as a first build goes (cmake/snug.cmake); a tree that is there already is built as it is set up.
test: FAST_BUILD := $(if $(filter release,$(PRESET)),-DSNUG_FAST_BUILD=ON)
test: build
	ctest --preset $(PRESET)

# What takes hours: the tests with the label long (hostile runs, whose counts go to bench/results/hostile.json; odd shapes), and the
# suite in other environments.
test-long: build
	ctest --test-dir $(BUILD) -L '^long$$' --output-on-failure
	scripts/test_everywhere $(BUILD)

# What is there already is used as it is; nothing but the binary is built, as fast as it goes too.
demo: FAST_BUILD := -DSNUG_FAST_BUILD=ON
demo: packages $(if $(wildcard $(BUILD)/build.ninja),,$(if $(HAS_CARD),setup $(BUILD)/build.ninja,$(WITHOUT_CUDA)))
	cmake --build --preset $(PRESET) --target snug
	scripts/demo $(BUILD)/snug

clean:
	rm -rf build
