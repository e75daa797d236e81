// Attention of one head, in blocks of queries against the keys they see (Dao et al. 2022): scores
// live in scratch, statistics and sums in fp32.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

inline constexpr int64_t kLargestHeadDim = 256;

// Rows of one head inside a (tokens, heads * head_dim) tensor: `stride` elements apart.
struct HeadRows {
  const void* data;
  int64_t stride;
};

struct AttendQuery {
  const void* q;
  HeadRows k, v;
  int64_t begin, end;  // the keys it sees, not empty
  int64_t head_dim;
  float scale;
  void* o;
  float* lse;
};

struct AttendQueryGrad {
  const void *d_o, *q, *o;
  HeadRows k, v;
  int64_t begin, end;
  int64_t head_dim;
  float scale;
  float lse;
  void* dq;
  float *dk, *dv;  // (keys, head_dim) sums of the segment's keys from `k` and `v` on
};

struct AttentionKernels {
  void (*attend_query[kElements])(const AttendQuery& query);
  void (*attend_query_grad[kElements])(const AttendQueryGrad& query);
};

}  // namespace snug::backends::cpu
