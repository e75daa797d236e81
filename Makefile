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

# What takes too long for every day: tests with the label long, which ctest runs in this configuration alone.
test-long: build
	ctest --preset $(PRESET) -C long -L long

demo: build
	scripts/demo $(BUILD)/snug

clean:
	rm -rf build
