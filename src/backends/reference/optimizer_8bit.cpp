#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "base/dynamic_map.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::backends::reference {
namespace {

using program::AdamW8bit;

// The values of one step that all elements share.
template <typename T>
struct Step8bit {
  T factor, beta1, beta2, step_size, epsilon, keep;
};

template <typename T>
Step8bit<T> step_of(const AdamW8bit& adamw, const Invocation& invocation) {
  const auto count = static_cast<double>(Integers(invocation[AdamW8bit::kStep])[0]);
  const auto rate = static_cast<double>(Floats<T>(invocation[AdamW8bit::kLearningRate])[0]);
  const double first = 1.0 - std::pow(static_cast<double>(adamw.beta1), count);
  const double second = std::sqrt(1.0 - std::pow(static_cast<double>(adamw.beta2), count));
  return {.factor = Floats<T>(invocation[AdamW8bit::kFactor])[0],
          .beta1 = static_cast<T>(adamw.beta1),
          .beta2 = static_cast<T>(adamw.beta2),
          .step_size = static_cast<T>(rate * second / first),
          .epsilon = static_cast<T>(second * static_cast<double>(adamw.epsilon)),
          .keep = static_cast<T>(1.0 - rate * static_cast<double>(adamw.weight_decay))};
}

// One moment of one block: its codes and its scale.
template <typename T>
class StoredMoment {
 public:
  StoredMoment(const Buffer& codes, const Buffer& scales, bool is_signed, int64_t block)
      : codes_(codes.as<uint8_t>()),
        scales_(scales),
        map_(is_signed ? base::signed_dynamic_map() : base::unsigned_dynamic_map()),
        is_signed_(is_signed),
        block_(block) {}

  T decode(int64_t i) const { return static_cast<T>(map_[codes_[i]]) * scales_[block_]; }

  // `values` are the values of the elements from `begin` on.
  void encode(int64_t begin, std::span<const T> values) const {
    T largest = 0;
    for (const T value : values) largest = std::max(largest, std::abs(value));
    scales_.set(block_, largest);
    for (const T value : values) codes_[begin++] = code_of(value, largest);
  }

 private:
  // In a block of zeros the quotient is NaN, whose code is 0 before its sign is adjusted, as in
  // bitsandbytes.
  uint8_t code_of(T value, T largest) const {
    const uint8_t code = base::encode_dynamic(map_, static_cast<float>(value / largest));
    if (!is_signed_ || std::signbit(map_[code]) == std::signbit(value)) return code;
    return static_cast<uint8_t>(value > 0 ? code + 1 : code - 1);
  }

  uint8_t* codes_;
  Floats<T> scales_;
  const base::DynamicMap& map_;
  bool is_signed_;
  int64_t block_;
};

template <typename T>
void run(const AdamW8bit& adamw, const Invocation& invocation) {
  const Step8bit<T> step = step_of<T>(adamw, invocation);
  const Floats<T> gradient(invocation[AdamW8bit::kGradient]);
  const Floats<T> weight(invocation[AdamW8bit::kWeight]);
  const Buffer& first_codes = invocation[AdamW8bit::kFirstMoment];
  const Buffer& first_scales = invocation[AdamW8bit::kFirstScale];
  const Buffer& second_codes = invocation[AdamW8bit::kSecondMoment];
  const Buffer& second_scales = invocation[AdamW8bit::kSecondScale];
  if (std::isnan(step.factor)) return;
  const int32_t count = Integers(invocation[AdamW8bit::kStep])[0];
  const base::PhiloxKey key =
      stream_key({adamw.seed, adamw.site, count, 0}, RandomPurpose::rounding);
  std::array<T, program::kStateBlock> first{};
  std::array<T, program::kStateBlock> second{};
  for (int64_t block = 0; block < program::state_blocks(weight.count()); ++block) {
    const StoredMoment<T> m(first_codes, first_scales, true, block);
    const StoredMoment<T> v(second_codes, second_scales, false, block);
    const int64_t begin = block * program::kStateBlock;
    const int64_t n = std::min(program::kStateBlock, weight.count() - begin);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = begin + k;
      T& m_new = first[static_cast<size_t>(k)] = 0;
      T& v_new = second[static_cast<size_t>(k)] = 0;
      if (!std::isfinite(gradient[i])) continue;
      const T g = gradient[i] * step.factor;
      m_new = std::fma(g, T{1} - step.beta1, m.decode(i) * step.beta1);
      v_new = std::fma((T{1} - step.beta2) * g, g, v.decode(i) * step.beta2);
      const T stepped =
          std::fma(-step.step_size, m_new / (std::sqrt(v_new) + step.epsilon), weight[i]);
      weight.set_rounded(i, stepped * step.keep,
                         rounding_bits(key, 0, invocation[AdamW8bit::kWeight].first + i));
    }
    m.encode(begin, std::span(first).first(static_cast<size_t>(n)));
    v.encode(begin, std::span(second).first(static_cast<size_t>(n)));
  }
}

}  // namespace

SNUG_REFERENCE_KIND(AdamW8bit);

}  // namespace snug::backends::reference
