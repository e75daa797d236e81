# make build | demo | test | test-long: each sets up what it needs. Everything else is CMake presets (CMakePresets.json).
PRESET ?= release
BUILD := build/$(PRESET)

.PHONY: build demo test test-long setup clean

setup:
	@scripts/install_packages
	@scripts/fetch_cudnn_frontend

$(BUILD)/build.ninja: | setup
	cmake --preset $(PRESET)

build: setup $(BUILD)/build.ninja
	cmake --build --preset $(PRESET)

test: build
	ctest --preset $(PRESET)

# What takes hours: the tests with the label long (hostile runs, whose counts go to bench/results/hostile.json; odd shapes), and the
# suite in other environments.
test-long: build
	ctest --test-dir $(BUILD) -L '^long$$' --output-on-failure
	scripts/test_everywhere $(BUILD)

demo: build
	scripts/demo $(BUILD)/snug

clean:
	rm -rf build
