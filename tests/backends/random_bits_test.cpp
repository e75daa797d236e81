// Dropout and stochastic rounding as every backend must draw them: the scheme of random_bits.h to
// the bit, with the right rate and no bias.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "backends/formulas/random_bits.h"
#include "comparison.h"
#include "program/kinds/dispatch.h"
#include "program/kinds/elementwise/noise.h"
#include "program/kinds/kind.h"

namespace snug::backends::test {
namespace {

using program::DType;
using program::Shape;

constexpr Types kBf16{"bf16", DType::bf16, DType::bf16, DType::bf16, true};
constexpr Types kF32{"f32", DType::f32, DType::f32, DType::f32, true};

class RandomBits : public ::testing::TestWithParam<std::string> {
 protected:
  RandomBits() : backend_(open_backend(GetParam(), {.threads = 2})) {}

  Values run(const OperationCase& operation_case) {
    EXPECT_TRUE(backend_->runs(operation_case.view()));
    const RunResult result = guarded_run(*backend_, operation_case.program, operation_case.inputs);
    EXPECT_TRUE(result.violations.empty());
    const auto& operation = operation_case.operation();
    return result.values.at(operation.writes.empty() ? operation.updates[0] : operation.writes[0]);
  }

  // x = 1 everywhere: y shows the mask.
  Values mask(const program::Dropout& dropout, int64_t tokens, int64_t columns, double step,
              double first_row) {
    CaseBuilder builder(kF32, random_);
    const auto count = static_cast<size_t>(tokens * columns);
    const auto x = builder.input({tokens, columns}, DType::f32, Values(count, 1.0));
    const auto random = builder.index({2}, {step, first_row});
    const auto y = builder.output_activation({tokens, columns});
    return run(builder.finish("dropout", dropout, {x, random}, {y}));
  }

  // y += x with y of one value and x of another, rounded stochastically.
  Values accumulate(int64_t count, double y_value, double x_value, const RandomSource& source) {
    CaseBuilder builder(kBf16, random_);
    const auto size = static_cast<size_t>(count);
    const auto x = builder.input({count}, DType::f32, Values(size, x_value));
    const auto random = builder.index({2}, {double(source.step), double(source.first_row)});
    const auto y = builder.input({count}, DType::bf16, Values(size, y_value));
    return run(builder.finish("accumulate", program::Accumulate{true, source.seed, source.site},
                              {x, random}, {}, {y}));
  }

  Random random_{test_seed()};
  std::unique_ptr<Backend> backend_;
};

TEST_P(RandomBits, dropout_draws_the_scheme) {
  const program::Dropout dropout{
      .probability = 0.3F, .row_length = 5, .seed = -123456789012345, .site = 9};
  const Values found = mask(dropout, 23, 150, 7, 100);
  const base::PhiloxKey key = dropout_key({dropout.seed, dropout.site, 7});
  const auto threshold = dropout_threshold(dropout.probability);
  for (uint32_t t = 0; t < 23; ++t)
    for (int64_t j = 0; j < 150; ++j) {
      const bool keep = dropout_word(key, 100 + t / 5, t % 5, j) >= threshold;
      const double expected = keep ? dropout_scale(dropout.probability) : 0.0;
      ASSERT_EQ(found[t * 150 + static_cast<size_t>(j)], expected) << t << ", " << j;
    }
}

TEST_P(RandomBits, dropout_keeps_the_right_share) {
  for (const float probability : {0.05F, 0.1F, 0.5F, 0.9F}) {
    const Values found =
        mask({.probability = probability, .row_length = 64, .seed = 3}, 512, 640, 1, 0);
    double kept = 0;
    for (const double value : found) kept += value != 0 ? 1 : 0;
    const auto count = static_cast<double>(found.size());
    const double deviation = std::sqrt(count * probability * (1 - probability));
    EXPECT_NEAR(kept, count * (1 - probability), 3 * deviation) << probability;
  }
}

// One micro-batch of 4 rows equals four of 1 row.
TEST_P(RandomBits, dropout_does_not_depend_on_the_batch_size) {
  const program::Dropout dropout{.probability = 0.5F, .row_length = 6, .seed = 1, .site = 2};
  const Values together = mask(dropout, 24, 33, 5, 8);
  for (int row = 0; row < 4; ++row) {
    const Values alone = mask(dropout, 6, 33, 5, 8 + row);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * 6 * 33));
  }
}

TEST_P(RandomBits, dropout_differs_between_steps_sites_seeds_and_rows) {
  const program::Dropout dropout{.probability = 0.5F, .row_length = 4, .seed = 1, .site = 2};
  program::Dropout other_site = dropout;
  other_site.site = 3;
  program::Dropout other_seed = dropout;
  other_seed.seed = int64_t{1} << 40;
  const Values original = mask(dropout, 4, 200, 5, 8);
  EXPECT_EQ(original, mask(dropout, 4, 200, 5, 8));
  EXPECT_NE(original, mask(dropout, 4, 200, 6, 8));
  EXPECT_NE(original, mask(dropout, 4, 200, 5, 9));
  EXPECT_NE(original, mask(other_site, 4, 200, 5, 8));
  EXPECT_NE(original, mask(other_seed, 4, 200, 5, 8));
}

TEST_P(RandomBits, noise_draws_the_scheme_and_is_as_large_as_the_segment_is_short) {
  const program::AddNoise noise{
      .alpha = 5.0F, .row_length = 10, .seed = -123456789012345, .site = 1};
  // Two rows: a segment of 4 tokens and one of 3, and a segment of all 10.
  CaseBuilder builder(kF32, random_);
  const int64_t columns = 1500;
  const auto x = builder.input({20, columns}, DType::f32, Values(20 * columns, 0.0));
  const auto bounds = builder.index({4, 2}, {0, 4, 4, 7, 7, 7, 10, 20});
  const auto random = builder.index({2}, {7, 100});
  const auto y = builder.output_activation({20, columns});
  const Values found = run(builder.finish("noise", noise, {x, bounds, random}, {y}));
  const base::PhiloxKey key = noise_key({noise.seed, noise.site, 7});
  const auto length_at = [](size_t t) { return t < 4 ? 4.0 : t < 7 ? 3.0 : t < 10 ? 0.0 : 10.0; };
  for (size_t t = 0; t < 20; ++t) {
    const double most = length_at(t) == 0 ? 0 : 5 / std::sqrt(length_at(t) * double(columns));
    double sum = 0;
    double squares = 0;
    for (int64_t j = 0; j < columns; ++j) {
      const auto row = static_cast<uint32_t>(100 + t / 10);
      const double unit = noise_unit(dropout_word(key, row, static_cast<uint32_t>(t % 10), j));
      const double value = found[t * columns + static_cast<size_t>(j)];
      ASSERT_NEAR(value, most * unit, 1e-6 * most) << t << ", " << j;
      ASSERT_LE(std::abs(value), most * 1.000001);
      sum += value;
      squares += value * value;
    }
    // Uniform on [-most, most]: the mean is 0, that of squares most^2 / 3.
    EXPECT_NEAR(sum / double(columns), 0, 0.08 * most) << t;
    EXPECT_NEAR(squares / double(columns), most * most / 3, 0.08 * most * most) << t;
  }
}

TEST_P(RandomBits, rounding_draws_the_scheme) {
  const RandomSource source{.seed = 99, .site = 1 << 20, .step = 12, .first_row = 3};
  const double x = 0x1.5p-9;
  const Values found = accumulate(1000, 1.0, x, source);
  const base::PhiloxKey key = stream_key(source, RandomPurpose::rounding);
  for (int64_t i = 0; i < 1000; ++i) {
    const auto expected =
        round_stochastically(static_cast<float>(1.0 + x), rounding_bits(key, 0, i));
    ASSERT_EQ(found[static_cast<size_t>(i)], base::to_float(expected)) << i;
  }
}

// Of values between two bf16 neighbours, in every binade and sign.
TEST_P(RandomBits, rounding_has_mean_error_zero) {
  constexpr int64_t kCount = 200000;
  int32_t site = 0;
  for (const double y : {1.0, -1.0, 3.0, -0x1p-30, 0x1.1p60})
    for (const double part : {0.03125, 0.25, 0.5, 0.9}) {
      const double spacing = std::ldexp(1.0, std::ilogb(y) - 7);
      const double x = std::copysign(part * spacing, y);
      const double exact = static_cast<float>(y) + static_cast<float>(x);
      double mean = 0;
      for (const double value : accumulate(kCount, y, x, {.seed = 5, .site = ++site}))
        mean += (value - exact) / spacing / kCount;
      const double deviation = std::sqrt(part * (1 - part) / kCount);
      EXPECT_LE(std::abs(mean), 3 * deviation) << y << " + " << part << " of its spacing";
    }
}

TEST_P(RandomBits, rounding_leaves_what_is_exact_and_what_is_not_finite) {
  for (const double value : accumulate(1000, 1.5, 0.25, {.seed = 5})) ASSERT_EQ(value, 1.75);
  for (const double value : accumulate(1000, 1.5, HUGE_VAL, {.seed = 5}))
    ASSERT_EQ(value, HUGE_VAL);
  for (const double value : accumulate(1000, 1.5, NAN, {.seed = 5})) ASSERT_TRUE(std::isnan(value));
}

// Updates far below the spacing of bf16 add up to what they are worth, where rounding to nearest
// would lose every one.
TEST_P(RandomBits, small_updates_are_not_lost) {
  constexpr int64_t kCount = 4096;
  constexpr int kSteps = 64;
  const double update = 0x1p-12;
  CaseBuilder builder(kBf16, random_);
  const auto x = builder.input({kCount}, DType::f32, Values(kCount, update));
  const auto random = builder.index({2}, {0, 0});
  const auto y = builder.input({kCount}, DType::bf16, Values(kCount, 1.0));
  OperationCase operation_case =
      builder.finish("accumulate", program::Accumulate{true, 8, 8}, {x, random}, {}, {y});
  for (int step = 0; step < kSteps; ++step) {
    operation_case.inputs[random] = {double(step), 0};
    operation_case.inputs[y] = run(operation_case);
  }
  double mean = 0;
  for (const double value : operation_case.inputs[y]) mean += value / kCount;
  // A step rounds with deviation sqrt(p (1 - p)) of a spacing of 2^-7, p = 2^-5.
  const double deviation = 0x1p-7 * std::sqrt(0x1p-5 * (1 - 0x1p-5) * kSteps / kCount);
  EXPECT_NEAR(mean, 1.0 + kSteps * update, 3 * deviation);
}

// Products, sums and steps that round stochastically take the same bits in every backend: of two
// values that differ by what fp32 leaves open, nearly all round to the same neighbour.
TEST_P(RandomBits, stochastic_kinds_round_as_the_reference_does) {
  const auto reference = open_backend("reference", {});
  for (const program::Kind kind :
       {program::Kind::accumulate, program::Kind::matmul, program::Kind::adamw}) {
    int64_t elements = 0;
    int64_t differing = 0;
    for (const OperationCase& operation_case : cases_of(kind, kAllTypes[2])) {
      const auto& attributes = operation_case.operation().attributes;
      const bool is_stochastic = program::dispatch<bool>(attributes, [](const auto& concrete) {
        if constexpr (requires { concrete.stochastic; })
          return concrete.stochastic;
        else
          return false;
      });
      if (!is_stochastic || !backend_->runs(operation_case.view())) continue;
      const RunResult found = guarded_run(*backend_, operation_case.program, operation_case.inputs);
      const RunResult expected =
          guarded_run(*reference, operation_case.program, operation_case.inputs);
      for (const program::TensorId id : operation_case.operation().updates)
        for (size_t i = 0; i < expected.values.at(id).size(); ++i) {
          ++elements;
          differing += found.values.at(id)[i] != expected.values.at(id)[i] ? 1 : 0;
        }
    }
    EXPECT_LE(differing, elements / 100) << program::name_of(kind) << " of " << elements;
    EXPECT_TRUE(elements > 1000 || (kind == program::Kind::matmul && !cpu_must_multiply_bf16()));
  }
}

INSTANTIATE_TEST_SUITE_P(, RandomBits, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return test.param; });

// The scheme's own words, so that a change of it is seen: checkpoints depend on them.
TEST(RandomScheme, is_pinned) {
  const base::PhiloxKey key = dropout_key({.seed = 1, .site = 2, .step = 3});
  EXPECT_EQ(dropout_word(key, 4, 5, 6), 0xd6e8f34eU);
  EXPECT_EQ(dropout_word(key, 4, 5, 100), 0xddfe9ea1U);
  const base::PhiloxKey rounding =
      stream_key({.seed = -1, .site = 2, .step = 3, .first_row = 4}, RandomPurpose::rounding);
  EXPECT_EQ(rounding_bits(rounding, 0, 17), 0x38e0U);
  EXPECT_EQ(rounding_bits(rounding, 2, (int64_t{1} << 37) + 100), 0x2fe8U);
  EXPECT_EQ(dropout_threshold(0.5F), 0x80000000U);
  EXPECT_EQ(dropout_threshold(0.0F), 0U);
  // Known answers of Philox4x32-10 from Salmon et al.'s distribution.
  EXPECT_EQ(base::philox({0, 0, 0, 0}, {0, 0}),
            (base::PhiloxCounter{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  EXPECT_EQ(base::philox({0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU},
                         {0xffffffffU, 0xffffffffU}),
            (base::PhiloxCounter{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
}

TEST(RandomScheme, deals_every_word_once) {
  const base::PhiloxKey key = stream_key({.seed = 1}, RandomPurpose::rounding);
  // 128 elements are the halves of 64 words of 16 calls.
  std::vector<uint32_t> dealt;
  for (int64_t e = 0; e < kRoundingBlock; ++e) dealt.push_back(rounding_bits(key, 2, e));
  std::vector<uint32_t> halves;
  for (uint32_t call = 0; call < 16; ++call)
    for (const uint32_t word : base::philox({call, 0, 2, 0}, key)) {
      halves.push_back(word & 0xffffU);
      halves.push_back(word >> 16);
    }
  std::sort(dealt.begin(), dealt.end());
  std::sort(halves.begin(), halves.end());
  EXPECT_EQ(dealt, halves);
}

}  // namespace
}  // namespace snug::backends::test
