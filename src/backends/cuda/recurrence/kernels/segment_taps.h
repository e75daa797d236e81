// Where in its segment each token is.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace snug::backends::cuda {

struct SegmentTapsRun {
  const int32_t* bounds = nullptr;  // (segments, 2)
  int64_t segments = 0;
  int64_t tokens = 0;
  int64_t width = 1;
  // (tokens): how many of the token itself and those before it in its segment there are, at most
  // width; 0 for a token in no segment.
  int32_t* taps = nullptr;
};
void count_segment_taps(const SegmentTapsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
