// Computes which keys a query sees and which queries see a key, from the bounds of the segments,
// which the device reads.
#pragma once

#include "backends/cuda/attention/kernels/attention.h"
#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {

__device__ inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
__device__ inline int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }

__device__ inline TokenRange range(int64_t begin, int64_t end) {
  if (begin >= end) return {};
  return {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
}

struct SegmentRange {
  int64_t q_begin, q_end, k_begin, k_end;

  // The key on a query's diagonal, such that the last query's is the last key.
  __device__ int64_t diagonal(int64_t query) const { return k_end - q_end + query; }
};

__device__ inline SegmentRange segment_at(const RangesRun& run, int64_t s) {
  const KeyPages& pages = run.shape.pages;
  if (pages.table != nullptr) {
    const int64_t keys = largest(0, int64_t{run.k_bounds[2 * s + 1]} - run.k_bounds[2 * s]);
    return {run.q_bounds[2 * s], run.q_bounds[2 * s + 1], s * pages.places,
            s * pages.places + keys};
  }
  return {run.q_bounds[2 * s], run.q_bounds[2 * s + 1], run.k_bounds[2 * s],
          run.k_bounds[2 * s + 1]};
}

__device__ inline TokenRange keys_of(const RangesRun& run, int64_t query) {
  const AttentionForm& form = run.shape.form;
  for (int64_t s = 0; s < run.segments; ++s) {
    const SegmentRange segment = segment_at(run, s);
    if (query < segment.q_begin || query >= segment.q_end) continue;
    const int64_t diagonal = segment.diagonal(query);
    const int64_t end = form.causal ? least(segment.k_end, diagonal + 1) : segment.k_end;
    const int64_t begin =
        form.window > 0 ? largest(segment.k_begin, diagonal - form.window + 1) : segment.k_begin;
    return range(begin, end);
  }
  return {};
}

// The key at distance 0 from a query: for causal attention the key on its diagonal; otherwise
// positions of both count from the beginning of their segment.
__device__ inline int32_t diagonal_of(const RangesRun& run, int64_t query) {
  for (int64_t s = 0; s < run.segments; ++s) {
    const SegmentRange segment = segment_at(run, s);
    if (query < segment.q_begin || query >= segment.q_end) continue;
    return static_cast<int32_t>(run.shape.form.causal ? segment.diagonal(query)
                                                      : segment.k_begin + query - segment.q_begin);
  }
  return 0;
}

// Where the keys of one segment lie.
class KeyRows {
 public:
  // Of the segment that has this key.
  __device__ KeyRows(const RangesRun& run, int64_t key) {
    const KeyPages& pages = run.shape.pages;
    if (pages.table == nullptr) return;
    const int64_t segment = key / pages.places;
    table_ = pages.table + segment * pages.pages;
    page_tokens_ = static_cast<uint32_t>(pages.page_tokens);
    shift_ = run.k_bounds[2 * segment] - segment * pages.places;
  }
  __device__ int64_t row(int64_t key) const {
    if (table_ == nullptr) return key;
    const auto place = static_cast<uint32_t>(key + shift_);
    const uint32_t page = place / page_tokens_;
    return int64_t{table_[page]} * page_tokens_ + (place - page * page_tokens_);
  }

 private:
  const int32_t* table_ = nullptr;
  uint32_t page_tokens_ = 1;
  int64_t shift_ = 0;  // from a key's number to its place in the table
};

// The queries whose diagonal is at or after the key, and less than a window after it.
__device__ inline TokenRange queries_of(const RangesRun& run, int64_t key) {
  const AttentionForm& form = run.shape.form;
  const bool paged = run.shape.pages.table != nullptr;
  const int64_t first = paged ? key / run.shape.pages.places : 0;
  const int64_t end = paged ? first + 1 : run.segments;
  for (int64_t s = first; s < end; ++s) {
    const SegmentRange segment = segment_at(run, s);
    if (key < segment.k_begin || key >= segment.k_end) continue;
    const int64_t on_diagonal = key - segment.k_end + segment.q_end;
    const int64_t begin = form.causal ? largest(segment.q_begin, on_diagonal) : segment.q_begin;
    const int64_t last =
        form.window > 0 ? least(segment.q_end, on_diagonal + form.window) : segment.q_end;
    return range(begin, last);
  }
  return {};
}

}  // namespace snug::backends::cuda
