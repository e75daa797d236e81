// The tables through which cuDNN finds segments, and the work around them that it leaves undone
// (segment_attention.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

// Of the segments with more than `above` tokens and at most `longest`, of which there are at most
// `entries`.
struct SegmentTablesRun {
  const int32_t* bounds = nullptr;  // (segments, 2), ascending; unused ones are empty
  int64_t segments = 0;
  int64_t above = 0;
  int64_t longest = 0;
  int64_t entries = 0;
  int64_t max_tokens = 0;  // of a segment; a batch with a longer one ends in an error
  int64_t tokens = 0;
  int32_t tables = 0;
  int64_t strides[kSegmentTables]{};  // elements per token, for each table
  int32_t* lengths = nullptr;         // (entries)
  int64_t* begins = nullptr;          // (tables, segment_table_entries)
};
void write_segment_tables(const SegmentTablesRun& run, cudaStream_t stream);

// Transposes: to (heads, tokens) = from (tokens, heads), or the other way round.
struct LseRun {
  const float* from = nullptr;
  float* to = nullptr;
  int64_t tokens = 0;
  int64_t heads = 0;
  bool to_heads = false;
};
void turn_lse(const LseRun& run, cudaStream_t stream);

// Writes zeros to the rows of tokens outside all segments.
struct OutsideRun {
  const int32_t* bounds = nullptr;
  int64_t segments = 0;
  int64_t tokens = 0;
  DeviceRows rows[3];  // (tokens, columns); data is null if there are none
  int64_t columns[3]{};
  float* lse = nullptr;  // (heads, tokens); may be null
  int64_t heads = 0;
};
void clear_outside(const OutsideRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
