#include "backends/cpu/loss_bias.h"

#include <algorithm>

#include "backends/cpu/parallel.h"

namespace snug::backends::cpu {
namespace {

// Columns that a thread sums at once.
constexpr int64_t kSummedColumns = 512;

}  // namespace

void add_bias(const Buffer& bias, int64_t first, float* logits, int64_t count,
              const Kernels& kernels) {
  const Rows row = flattened(rows_of(bias));
  kernels.elementwise->add[kF32][row.element][kF32](logits, row.at(0) + first * row.element_bytes(),
                                                    logits, count);
}

BiasGradient::BiasGradient(int64_t vocab, float* scratch, const Kernels& kernels)
    : vocab_(vocab), sums_(scratch), part_(scratch + reduction_stride(vocab)), kernels_(kernels) {
  std::fill_n(sums_, vocab_, 0.0F);
}

void BiasGradient::add(const Rows& dlogits, int64_t first) {
  if (dlogits.rows == 0) return;
  const auto sum_rows = kernels_.elementwise->sum_rows[dlogits.element];
  const auto plus = kernels_.elementwise->add[kF32][kF32][kF32];
  parallel_ranges(dlogits.columns, kSummedColumns, [&](int64_t begin, int64_t end) {
    float* part = part_ + first + begin;
    float* sums = sums_ + first + begin;
    sum_rows(dlogits.at(0) + begin * dlogits.element_bytes(), dlogits.stride, dlogits.rows,
             end - begin, part);
    plus(sums, part, sums, end - begin);
  });
}

void BiasGradient::write(const Buffer& dbias) const {
  const Rows row = flattened(rows_of(dbias));
  kernels_.elementwise->convert[kF32][row.element](sums_, row.at(0), vocab_);
}

}  // namespace snug::backends::cpu
