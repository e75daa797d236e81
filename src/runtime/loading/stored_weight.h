// A weight of the base model as the executor stores it: one tensor of values, or NF4 codes and
// their scales.
#pragma once

#include <string>

#include "backends/invocation.h"
#include "runtime/execution/executor.h"
#include "runtime/storage/host_window.h"

namespace snug::runtime {

// The parts of a weight stored as NF4; what they are is written in program/kinds/product/nf4.h. The
// last three have no data when it is not double quantised.
struct StoredWeight {
  backends::Buffer codes;
  backends::Buffer absmax;
  backends::Buffer nested_absmax;
  backends::Buffer nested_map;
  backends::Buffer nested_offset;
  base::DType compute = base::DType::bf16;  // of the job
  bool is_part = false;                     // of what is sharded: the buffers are a rank's
  // Memory of the host where the absmax of a part are left to be gathered from all ranks; then they
  // go nowhere else. None of the buffers of scales has data then.
  float* gathered = nullptr;
  bool nested() const { return nested_map.data != nullptr; }
  // Whether its absmax go to memory of the host alone.
  bool leaves_absmax() const { return nested() || gathered != nullptr; }
};

// Whether the executor stores this weight as NF4.
bool is_stored_as_nf4(const Executor& executor, const std::string& weight);
// Requires is_stored_as_nf4.
StoredWeight stored_weight(const Executor& executor, const std::string& weight);

// What a weight is rounded to before it is quantised, so that one base comes of `snug quantize` and
// of quantising while reading: 16-bit types stay as they are, what a file holds in 32 or 64 bits
// becomes the compute type (bf16 or f32), as transformers does that loads in it.
base::DType quantised_from(base::DType in_file, base::DType compute);

// How many of a weight's elements the buffers hold: all, or a rank's part.
int64_t held_elements(const StoredWeight& weight, int64_t elements);

// Writes the scales of a double quantised weight, and the map and offset they are read with,
// through the window. `absmax` (in memory of the host) has those of the whole weight, of so many
// blocks, of which the buffers may be a part. A weight that is not double quantised has its absmax
// in place already. Gives the bytes that were written.
int64_t store_scales(const float* absmax, int64_t blocks, const StoredWeight& weight,
                     HostWindow& window);

}  // namespace snug::runtime
