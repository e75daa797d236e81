#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/random_bits.h"
#include "backends/operation_checks.h"
#include "base/dynamic_map.h"
#include "base/error.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::backends::cpu {
namespace {

using program::AdamW8bit;

constexpr uint32_t kIntervals = 65536;

// The tables for one map, 66 KiB, of which the kernels access only the few entries that small
// numbers need.
class CodecTables {
 public:
  explicit CodecTables(const base::DynamicMap& map) : map_(map) {
    const std::array<float, 255> thresholds = base::dynamic_thresholds(map);
    std::copy(thresholds.begin(), thresholds.end(), threshold_.begin());
    threshold_.back() = std::numeric_limits<float>::infinity();
    for (uint32_t upper = 0; upper < kIntervals; ++upper) {
      const auto nearest_zero = std::bit_cast<float>(upper << 16);
      const auto farthest = std::bit_cast<float>(upper << 16 | 0xffffU);
      const bool negative = upper >= 0x8000U;
      first_[upper] = base::encode_dynamic(map, negative ? farthest : nearest_zero);
      const int last = base::encode_dynamic(map, negative ? nearest_zero : farthest);
      SNUG_CHECK(last <= first_[upper] + 1 || std::isnan(farthest),
                 "the interval from {} on holds two thresholds", nearest_zero);
    }
  }
  DynamicCodec codec() const { return {map_.data(), threshold_.data(), first_.data()}; }

 private:
  const base::DynamicMap& map_;
  std::array<float, 256> threshold_{};
  std::array<uint8_t, kIntervals + 3> first_{};  // padded: bytes are read four at a time
};

DynamicCodec signed_codec() {
  static const CodecTables tables(base::signed_dynamic_map());
  return tables.codec();
}

DynamicCodec unsigned_codec() {
  static const CodecTables tables(base::unsigned_dynamic_map());
  return tables.codec();
}

AdamW8bitStep step_of(const AdamW8bit& adamw, const Invocation& invocation) {
  const int32_t count = *integers_of(invocation[AdamW8bit::kStep]);
  const AdamWRates rates{.learning_rate = *invocation[AdamW8bit::kLearningRate].as<const float>(),
                         .weight_decay = adamw.weight_decay,
                         .beta1 = adamw.beta1,
                         .beta2 = adamw.beta2,
                         .epsilon = adamw.epsilon,
                         .step = count};
  const base::PhiloxKey key =
      stream_key({adamw.seed, adamw.site, count, 0}, RandomPurpose::rounding);
  return {.factor = *invocation[AdamW8bit::kFactor].as<const float>(),
          .beta1 = adamw.beta1,
          .beta2 = adamw.beta2,
          .of_step = adamw_8bit_factors(rates, std::sqrt(adamw_correction(adamw.beta2, count))),
          .key = {key[0], key[1]},
          .codec = {signed_codec(), unsigned_codec()}};
}

bool supports(const AdamW8bit&, const program::OperationView& view, const CpuContext&) {
  const program::Tensor& first_scale = view[AdamW8bit::kFirstScale];
  const program::Tensor& second_scale = view[AdamW8bit::kSecondScale];
  return are_floats<AdamW8bit>(view, {AdamW8bit::kGradient, AdamW8bit::kWeight}) &&
         view[AdamW8bit::kGradient].dtype != base::DType::f16 &&
         view[AdamW8bit::kWeight].dtype != base::DType::f16 &&
         first_scale.dtype == base::DType::f32 && second_scale.dtype == base::DType::f32 &&
         !view[AdamW8bit::kFirstMoment].is_view() && !view[AdamW8bit::kSecondMoment].is_view() &&
         !first_scale.is_view() && !second_scale.is_view();
}

void run(const AdamW8bit& adamw, const Invocation& invocation, CpuContext& context) {
  const AdamW8bitStep step = step_of(adamw, invocation);
  const Rows gradient = one_row_of(invocation[AdamW8bit::kGradient]);
  const Rows weight = one_row_of(invocation[AdamW8bit::kWeight]);
  auto* first_codes = invocation[AdamW8bit::kFirstMoment].as<uint8_t>();
  auto* second_codes = invocation[AdamW8bit::kSecondMoment].as<uint8_t>();
  auto* first_scales = invocation[AdamW8bit::kFirstScale].as<float>();
  auto* second_scales = invocation[AdamW8bit::kSecondScale].as<float>();
  if (std::isnan(step.factor)) return;
  const auto advance = context.kernels.optimizer_8bit->adamw_8bit[gradient.element][weight.element];
  static_assert(kElementsPerTask % program::kStateBlock == 0);
  parallel_ranges(weight.columns, kElementsPerTask, [&](int64_t begin, int64_t end) {
    const int64_t block = begin / program::kStateBlock;
    advance(step, {.gradient = gradient.at(0, begin),
                   .weight = weight.at(0, begin),
                   .codes = {first_codes + begin, second_codes + begin},
                   .scales = {first_scales + block, second_scales + block},
                   .first = invocation[AdamW8bit::kWeight].first + begin,
                   .n = end - begin});
  });
}

}  // namespace

SNUG_CPU_KIND(AdamW8bit, .supports = supports);

}  // namespace snug::backends::cpu
