#include "backends/cuda/attention/check_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"

namespace snug::backends::cuda {
namespace {

using base::DType;

uint16_t narrow(double value, DType dtype) {
  const auto single = static_cast<float>(value);
  return dtype == DType::f16 ? base::to_float16(single).bits : base::to_bfloat16(single).bits;
}

double value_at(std::span<const std::byte> bytes, int64_t index, DType dtype) {
  const std::byte* from = bytes.data() + index * base::size_of(dtype);
  if (dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return dtype == DType::f16 ? base::to_float(base::Float16{bits})
                             : base::to_float(base::BFloat16{bits});
}

struct Sums {
  double norm = 0;
  double difference = 0;
};

class Comparison {
 public:
  Comparison(const Buffer& layout, std::span<const std::byte> own,
             std::span<const std::byte> library)
      : layout_(layout), own_(own), library_(library), is_lse_(layout.dtype == DType::f32) {}

  int64_t tokens() const { return is_lse_ ? layout_.shape.columns() : layout_.shape.rows(); }
  double numbers(int64_t of_tokens) const { return static_cast<double>(columns() * of_tokens); }
  bool is_lse() const { return is_lse_; }

  Sums sums(int64_t begin, int64_t end) const {
    Sums sums;
    const int64_t stride = layout_.strides.front();
    for (int64_t token = begin; token < end; ++token)
      for (int64_t i = 0; i < columns(); ++i) {
        const int64_t index = is_lse_ ? i * stride + token : token * stride + i;
        const double own = value_at(own_, index, layout_.dtype);
        const double difference = value_at(library_, index, layout_.dtype) - own;
        sums.norm += own * own;
        sums.difference += difference * difference;
      }
    return sums;
  }

 private:
  int64_t columns() const { return is_lse_ ? layout_.shape.rows() : layout_.shape.columns(); }

  const Buffer& layout_;
  std::span<const std::byte> own_;
  std::span<const std::byte> library_;
  bool is_lse_;
};

}  // namespace

std::vector<uint16_t> random_matrix(const Buffer& matrix, double deviation, uint32_t stream) {
  const int64_t stride = matrix.strides.front();
  std::vector<uint16_t> values(static_cast<size_t>(matrix.spanned_bytes() / 2), 0);
  for (int64_t row = 0; row < matrix.shape.rows(); ++row)
    for (int64_t column = 0; column < matrix.shape.columns(); ++column) {
      const int64_t index = row * stride + column;
      const auto [a, b, c, d] =
          base::philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), stream},
                       {0x5eedU, 0xc4ecU});
      // A sum of three uniform numbers has the variance 1/4.
      const double sum = base::uniform(a) + base::uniform(b) + base::uniform(c) - 1.5;
      values[static_cast<size_t>(index)] = narrow(2 * deviation * sum, matrix.dtype);
    }
  return values;
}

double largest_difference(const Buffer& layout, std::span<const std::byte> own,
                          std::span<const std::byte> library, std::span<const int32_t> bounds) {
  const Comparison comparison(layout, own, library);
  std::vector<Sums> segments(bounds.size() / 2);
  Sums all;
  double numbers = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    segments[s] = comparison.sums(bounds[2 * s], bounds[2 * s + 1]);
    all.norm += segments[s].norm;
    numbers += comparison.numbers(bounds[2 * s + 1] - bounds[2 * s]);
  }
  const double least = comparison.is_lse() ? 1.0 : 0.1 * std::sqrt(all.norm / numbers);
  double largest = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    const double size = comparison.numbers(bounds[2 * s + 1] - bounds[2 * s]);
    if (size == 0) continue;
    const double norm = std::max(std::sqrt(segments[s].norm), least * std::sqrt(size));
    const double share = std::sqrt(segments[s].difference) / norm;
    if (std::isnan(share)) return share;
    largest = std::max(largest, share);
  }
  return largest;
}

}  // namespace snug::backends::cuda
