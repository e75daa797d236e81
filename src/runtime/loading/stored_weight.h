// A weight of the base model as the executor stores it: one tensor of values, or NF4 codes with
// their scales.
#pragma once

#include <string>

#include "backends/invocation.h"
#include "runtime/execution/executor.h"
#include "runtime/storage/host_window.h"

namespace snug::runtime {

// The parts of a weight stored as NF4, which program/kinds/product/nf4.h describes. The last three
// have no data when it is not double quantised.
struct StoredWeight {
  backends::Buffer codes;
  backends::Buffer absmax;
  backends::Buffer nested_absmax;
  backends::Buffer nested_map;
  backends::Buffer nested_offset;
  base::DType compute = base::DType::bf16;  // the compute type of the job
  bool is_part = false;                     // the buffers hold one rank's part of the weight
  // Host memory that receives the absmax values of a part, so that they can be gathered from all
  // ranks. If set, they go nowhere else, and the buffers of scales have no data.
  float* gathered = nullptr;
  bool nested() const { return nested_map.data != nullptr; }
  // Whether its absmax values go only to host memory.
  bool leaves_absmax() const { return nested() || gathered != nullptr; }
};

// Whether the executor stores this weight as NF4.
bool is_stored_as_nf4(const Executor& executor, const std::string& weight);
// Requires is_stored_as_nf4.
StoredWeight stored_weight(const Executor& executor, const std::string& weight);

// The type to which a weight is rounded before it is quantised. `snug quantize` and quantising
// while loading use the same rule, so that both give the same base: 16-bit types stay as they are;
// values in 32 or 64 bits are rounded to the compute type (bf16 or f32), as transformers does when
// it loads in that type.
base::DType quantised_from(base::DType in_file, base::DType compute);

// How many of a weight's elements the buffers hold: all, or one rank's part.
int64_t held_elements(const StoredWeight& weight, int64_t elements);

// Writes the scales of a double quantised weight, with the map and offset for decoding them,
// through the window. `absmax` (in host memory) has one value for each of the whole weight's
// `blocks` blocks, of which the buffers may hold a part. Does nothing for a weight that is not
// double quantised, whose absmax values are in place already. Returns the bytes that were written.
int64_t store_scales(const float* absmax, int64_t blocks, const StoredWeight& weight,
                     HostWindow& window);

}  // namespace snug::runtime
