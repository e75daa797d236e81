// `snug bench memory`: how fast this machine reads memory, which bounds the rate at which it
// generates tokens one after another.
#pragma once

#include <cstdint>

#include "formats/recipe/recipe.h"

namespace snug::bench {

// Bytes per second of the fastest of `sweeps` sweeps over a buffer of `bytes`, by `threads` threads
// that each read a part of their own. The buffer should be several times the last-level cache.
double read_bandwidth(int64_t bytes, int threads, int sweeps);

// The command: reads a buffer of 4 GiB, or of half of device_memory (or, where that is not set, of
// the free memory) if that is less. Prints a line, or JSON with bytes_per_second, buffer_bytes and
// threads. Returns 0. Throws UserError.
int memory(const formats::Recipe& recipe, bool json);

}  // namespace snug::bench
