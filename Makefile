# make build | demo | test: each sets up what it needs. Everything else is CMake presets (CMakePresets.json).
PRESET ?= release
BUILD := build/$(PRESET)

.PHONY: build demo test setup clean

setup:
	@scripts/install_packages
	@scripts/fetch_cudnn_frontend

$(BUILD)/build.ninja: | setup
	cmake --preset $(PRESET)

build: setup $(BUILD)/build.ninja
	cmake --build --preset $(PRESET)

test: build
	ctest --preset $(PRESET)

demo: build
	scripts/demo $(BUILD)/snug

clean:
	rm -rf build
