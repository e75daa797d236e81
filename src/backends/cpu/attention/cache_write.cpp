#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/note_extent.h"
#include "base/error.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cpu {
namespace {

using program::CacheWrite;

// Calls f(t, slots[t]) on all threads, for each row that has a place in the cache.
template <typename F>
void for_each_written(const Rows& x, const Invocation& invocation, F&& f) {
  const int32_t* slots = integers_of(invocation[CacheWrite::kSlots]);
  const int64_t capacity = invocation[CacheWrite::kCache].shape[0];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      SNUG_CHECK(slots[t] < capacity, "slot {} of {}", slots[t], capacity);
      if (slots[t] >= 0) f(t, int64_t{slots[t]});
    }
  });
}

void write_codes(const Rows& x, const Invocation& invocation, const CpuContext& context) {
  const Buffer& cache = invocation[CacheWrite::kCache];
  const Buffer& scales = invocation[CacheWrite::kScales];
  SNUG_CHECK(cache.strides[1] == 1 || cache.shape[1] <= 1, "a cache whose elements lie apart");
  const int64_t heads = scales.shape[0];
  const int64_t width = x.columns / heads;
  const auto encode = context.kernels.key_codes->encode[x.element];
  for_each_written(x, invocation, [&](int64_t t, int64_t slot) {
    int8_t* const row = cache.as<int8_t>() + slot * cache.strides[0];
    for (int64_t head = 0; head < heads; ++head)
      scales.as<float>()[head * scales.strides[0] + slot * scales.strides[1]] =
          encode(x.at(t, head * width), width, row + head * width);
  });
}

void run(const CacheWrite& write, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[CacheWrite::kX]);
  note_rows(invocation, CacheWrite::kSlots);
  if (write.quantized) return write_codes(x, invocation, context);
  const Rows cache = rows_of(invocation[CacheWrite::kCache]);
  const auto convert = context.kernels.elementwise->convert[x.element][cache.element];
  for_each_written(x, invocation,
                   [&](int64_t t, int64_t slot) { convert(x.at(t), cache.at(slot), x.columns); });
}

}  // namespace

SNUG_CPU_KIND(CacheWrite);

}  // namespace snug::backends::cpu
