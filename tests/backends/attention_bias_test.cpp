// The bias of attention by relative position: which row of its table a distance has, and what the
// reference makes of it.
#include <gtest/gtest.h>

#include <cmath>

#include "program/kinds/attention/attention.h"
#include "reference_fixture.h"

namespace snug::backends::test {
namespace {

using program::bucket_of;

// The smallest distance of each bucket of one direction, as T5Attention of transformers 5.24 has
// them.
struct BucketTable {
  int64_t buckets, max_distance;
  bool causal;
  std::vector<int64_t> begins;
};

const std::vector<BucketTable> kTables{
    {32, 128, false, {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91}},
    {32, 128, true, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                     16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113}},
    {8, 20, false, {0, 1, 2, 7}},
    {8, 20, true, {0, 1, 2, 3, 4, 6, 9, 14}},
    {6, 30, true, {0, 1, 2, 3, 7, 14}},
    {12, 7, false, {0, 1, 2, 3, 4, 6}},
    {40, 100, false, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 16, 20, 26, 32, 40, 51, 64, 80}},
    {16, 64, true, {0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 18, 23, 30, 39, 50}}};

// The last bucket that begins at the distance or before it.
int64_t bucket_in(const BucketTable& table, int64_t distance) {
  int64_t bucket = -1;
  for (const int64_t begin : table.begins) bucket += begin <= distance ? 1 : 0;
  return bucket;
}

TEST(AttentionBias, has_the_rows_of_transformers) {
  for (const BucketTable& table : kTables)
    for (int64_t relative = -300; relative <= 300; ++relative) {
      int64_t expected = bucket_in(table, std::abs(relative));
      if (relative > 0) expected = table.causal ? 0 : expected + table.buckets / 2;
      EXPECT_EQ(bucket_of(relative, table.causal, table.buckets, table.max_distance), expected)
          << table.buckets << " buckets to " << table.max_distance << ", " << relative;
    }
}

TEST(AttentionBias, is_constant_beyond_the_largest_distance) {
  for (const BucketTable& table : kTables)
    for (const int64_t relative : {-table.max_distance, -100'000L, 100'000L, table.max_distance}) {
      int64_t expected = table.buckets / (table.causal ? 1 : 2) - 1;
      if (relative > 0) expected = table.causal ? 0 : table.buckets - 1;
      EXPECT_EQ(bucket_of(relative, table.causal, table.buckets, table.max_distance), expected);
    }
}

// Scores are the bias alone, so that the weights of two keys tell their buckets.
TEST_F(Reference, attention_adds_the_bias_of_a_distance) {
  CaseBuilder b = builder();
  const auto q = f64(b, {2, 2}, {0, 0, 0, 0});
  const auto k = f64(b, {3, 1}, {0, 0, 0});
  const auto v = f64(b, {3, 1}, {1, 0, 0});
  const auto q_bounds = b.index({1, 2}, {0, 2});
  const auto k_bounds = b.index({1, 2}, {1, 3});
  const auto bias = f64(b, {4, 2}, {0.5, 0, 0.25, 0, -1, 0, 2, 0});
  const auto o = b.output_activation({2, 2});
  const auto lse = b.output_activation({2, 2});
  const program::Attention attention{.heads = 2,
                                     .kv_heads = 1,
                                     .head_dim = 1,
                                     .causal = false,
                                     .relative_bias = true,
                                     .max_distance = 4};
  const auto values = run(b.finish("", attention, {q, k, v, q_bounds, k_bounds, bias}, {o, lse}));
  // Keys 1 and 2 are 0 and 1 after the first query (rows 0 and 3), 1 before the second and at it
  // (rows 1 and 0).
  const double first = std::log(std::exp(0.5) + std::exp(2));
  const double second = std::log(std::exp(0.25) + std::exp(0.5));
  expect_near(values[1], {first, second, std::log(2), std::log(2)});
  expect_near(values[0], {0, 0, 0, 0});
}

// Of more keys than queries a causal one has the last query on the last key.
TEST_F(Reference, causal_attention_counts_the_distance_from_the_diagonal) {
  CaseBuilder b = builder();
  const auto q = f64(b, {1, 1}, {0});
  const auto k = f64(b, {3, 1}, {0, 0, 0});
  const auto v = f64(b, {3, 1}, {0, 0, 1});
  const auto q_bounds = b.index({1, 2}, {0, 1});
  const auto k_bounds = b.index({1, 2}, {0, 3});
  const auto bias = f64(b, {4, 1}, {1, 2, 3, 4});
  const auto o = b.output_activation({1, 1});
  const auto lse = b.output_activation({1, 1});
  const program::Attention attention{
      .heads = 1, .kv_heads = 1, .head_dim = 1, .relative_bias = true, .max_distance = 3};
  const double total = std::exp(1) + std::exp(2) + std::exp(3);
  expect_near(run(b.finish("", attention, {q, k, v, q_bounds, k_bounds, bias}, {o, lse}))[0],
              {std::exp(1) / total});
}

}  // namespace
}  // namespace snug::backends::test
