// `snug bench memory`: how fast this machine reads memory, which bounds how fast it generates one
// token after another.
#pragma once

#include <cstdint>

#include "formats/recipe/recipe.h"

namespace snug::bench {

// Bytes per second: the fastest of `sweeps` sweeps of all `threads` over a buffer of `bytes`, each
// thread over its own part. The buffer should be several times the last-level cache.
double read_bandwidth(int64_t bytes, int threads, int sweeps);

// The verb: a buffer of 4 GiB, or of half of device_memory (else of what is free) where that is
// less. Prints a line, or JSON with bytes_per_second, buffer_bytes and threads. Returns 0. Throws
// UserError.
int memory(const formats::Recipe& recipe, bool json);

}  // namespace snug::bench
