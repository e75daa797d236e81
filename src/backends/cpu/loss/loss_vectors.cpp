#include "backends/cpu/loss/loss_vectors.h"

#include <algorithm>

#include "backends/cpu/parallel.h"

namespace snug::backends::cpu {
namespace {

// The columns that a thread sums at once, and the rows that it scales at once.
constexpr int64_t kSummedColumns = 512;
constexpr int64_t kScaledRows = 8;

}  // namespace

int64_t LossVectors::scratch_floats(const LossShape& shape) {
  const int64_t vectors =
      (shape.gain ? 1 : 0) + (shape.gain_gradient ? 1 : 0) + (shape.bias_gradient ? 2 : 0);
  return vectors * reduction_stride(shape.vocab);
}

LossVectors::LossVectors(const LossShape& shape, const LossOperands<Buffer>& operands,
                         float* scratch, const Kernels& kernels)
    : vocab_(shape.vocab), softcap_(shape.softcap), operands_(operands), kernels_(kernels) {
  const auto next = [&](bool is_needed) {
    if (!is_needed) return static_cast<float*>(nullptr);
    float* const vector = scratch;
    scratch += reduction_stride(vocab_);
    std::fill_n(vector, vocab_, 0.0F);
    return vector;
  };
  gains_ = next(shape.gain);
  dgains_ = next(shape.gain_gradient);
  dbiases_ = next(shape.bias_gradient);
  part_ = next(shape.bias_gradient);
  if (gains_ == nullptr) return;
  const Rows gain = flattened(rows_of(*operands_.gain));
  kernels_.elementwise->convert[gain.element][kF32](gain.at(0), gains_, vocab_);
}

void LossVectors::finish_logits(float* product, float* logits, int64_t first, int64_t count) const {
  if (operands_.bias != nullptr) {
    const Rows bias = flattened(rows_of(*operands_.bias));
    kernels_.elementwise->add[kF32][bias.element][kF32](
        product, bias.at(0) + first * bias.element_bytes(), product, count);
  }
  if (gains_ != nullptr)
    kernels_.column_scale->multiply[kF32][kF32](product, gains_ + first, logits, count);
  if (softcap_ > 0.0F) kernels_.elementwise->softcap[kF32][kF32](logits, logits, count, softcap_);
}

void LossVectors::take(const Rows& dlogits, const Rows& before_gain, int64_t first) {
  if (dlogits.rows == 0) return;
  if (dgains_ != nullptr) sum_gains(dlogits, before_gain, first);
  if (gains_ != nullptr) scale(dlogits, first);
  if (dbiases_ != nullptr) sum_biases(dlogits, first);
}

void LossVectors::sum_gains(const Rows& dlogits, const Rows& before_gain, int64_t first) const {
  const auto add_products = kernels_.column_scale->add_products[dlogits.element][kF32];
  parallel_ranges(dlogits.columns, kSummedColumns, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < dlogits.rows; ++row)
      add_products(dlogits.at(row, begin), before_gain.at(row, begin), dgains_ + first + begin,
                   end - begin);
  });
}

void LossVectors::scale(const Rows& dlogits, int64_t first) const {
  const auto multiply = kernels_.column_scale->multiply[dlogits.element][dlogits.element];
  parallel_ranges(dlogits.rows, kScaledRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      multiply(dlogits.at(row), gains_ + first, dlogits.at(row), dlogits.columns);
  });
}

void LossVectors::sum_biases(const Rows& dlogits, int64_t first) const {
  const auto sum_rows = kernels_.elementwise->sum_rows[dlogits.element];
  const auto plus = kernels_.elementwise->add[kF32][kF32][kF32];
  parallel_ranges(dlogits.columns, kSummedColumns, [&](int64_t begin, int64_t end) {
    float* part = part_ + first + begin;
    float* sums = dbiases_ + first + begin;
    sum_rows(dlogits.at(0, begin), dlogits.stride, dlogits.rows, end - begin, part);
    plus(sums, part, sums, end - begin);
  });
}

void LossVectors::write_gradients() const {
  const auto write = [&](const float* sums, const Buffer* gradient) {
    if (sums == nullptr) return;
    const Rows row = flattened(rows_of(*gradient));
    kernels_.elementwise->convert[kF32][row.element](sums, row.at(0), vocab_);
  };
  write(dgains_, operands_.dgain);
  write(dbiases_, operands_.dbias);
}

}  // namespace snug::backends::cpu
