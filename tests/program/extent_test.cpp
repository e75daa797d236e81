// How much of their shapes operations do: of values that a batch has, counted one by one, and of
// what a plan expects.
#include "program/work/extent.h"

#include "program/work/work_list.h"

#include <fmt/printf.h>
#include <gtest/gtest.h>

#include <list>
#include <string>
#include <vector>

#include "program/kinds/kind.h"
#include "program/text/text.h"
#include "program/work/rate_key.h"

namespace snug::program {
namespace {

using Numbers = std::vector<int32_t>;

// The only operation of a text, and a batch for it.
class Batch {
 public:
  explicit Batch(const std::string& text) : program_(parse_text("program extents\n" + text)) {
    EXPECT_EQ(shape_error(view()), "");
  }
  Batch(const Batch&) = delete;  // bounds refer to its values
  Batch& operator=(const Batch&) = delete;
  Batch& with(const char* operand, Numbers values) {
    values_.push_back(std::move(values));
    bounds_.set(find_operand(program_.operations[0], OperandName(operand)), values_.back());
    return *this;
  }
  OperationView view() const { return {program_, program_.operations.at(0)}; }
  const BatchBounds& bounds() const { return bounds_; }
  Extent extent() const { return extent_of(view(), bounds_); }
  Extent expected(const ExpectedBounds& bounds) const { return extent_of(view(), bounds); }

 private:
  Program program_;
  std::list<Numbers> values_;
  BatchBounds bounds_;
};

Batch loss() {
  return Batch(
      "tensor h (8, 4) f32\ntensor w (5, 4) f32\ntensor t (8) i32\ntensor i (1) f32\n"
      "l (8) f32, s (1) f32 = linear_cross_entropy(h, w, t, i)");
}

// Of 24 tokens in 4 segments at most.
Batch attention(const std::string& attributes = "") {
  return Batch(
      "tensor q (24, 12) bf16\ntensor k (24, 6) bf16\ntensor v (24, 6) bf16\n"
      "tensor b (4, 2) i32\n"
      "o (24, 12) bf16, lse (4, 24) f32 = attention(q, k, v, b, b) "
      "{heads 4, kv_heads 2, head_dim 3" +
      attributes + "}");
}

// Of 6 tokens in 3 sequences, over caches of 64.
Batch decoding() {
  return Batch(
      "tensor q (6, 12) bf16\ntensor k (192, 6) bf16\ntensor v (192, 6) bf16\n"
      "tensor qb (3, 2) i32\ntensor kb (3, 2) i32\n"
      "o (6, 12) bf16, lse (4, 6) f32 = attention(q, k, v, qb, kb) "
      "{heads 4, kv_heads 2, head_dim 3}");
}

TEST(Extent, OfALossIsItsRowsWithLoss) {
  EXPECT_EQ(loss().with("targets", {4, -1, 0, -100, 3, -1, -1, 2}).extent(), Extent{.rows = 4});
  EXPECT_EQ(loss().expected({.trained_fraction = 0.25}), Extent{.rows = 2});
  EXPECT_EQ(capacity_of(loss().view()), Extent{.rows = 8});
}

TEST(Extent, OfACacheIsTheRowsWritten) {
  Batch write(
      "tensor x (5, 8) bf16\ntensor s (5) i32\ntensor c (500, 8) bf16\n"
      "cache_write(x, s) updates (c)");
  EXPECT_EQ(capacity_of(write.view()), Extent{.rows = 5});
  EXPECT_EQ(write.with("slots", {-1, 0, 7, -1, 499}).extent(), Extent{.rows = 3});
  EXPECT_EQ(cost(write.view(), write.bounds()).bytes, 2.0 * 2 * 3 * 8 + 4 * 5);
}

TEST(Extent, OfAKindThatDoesWhatItsShapesSayIsNothing) {
  Batch add("tensor a (10) f32\ny (10) f32 = add(a, a)");
  EXPECT_EQ(capacity_of(add.view()), Extent());
  EXPECT_FALSE(traits_of(add.view().operation).has_extent());
}

// Pairs and keys that are seen, one by one.
Extent counted(const Numbers& q_bounds, const Numbers& k_bounds, bool causal, int window) {
  Extent extent;
  for (size_t s = 0; s < q_bounds.size(); s += 2) {
    const int queries = q_bounds[s + 1] - q_bounds[s];
    const int keys = k_bounds[s + 1] - k_bounds[s];
    extent.rows += queries;
    extent.mean_segment_tokens += queries * keys;
    for (int j = 0; j < keys; ++j) {
      int seen = 0;
      for (int i = 0; i < queries; ++i)
        if ((!causal || j <= i + keys - queries) &&
            (window == 0 || j > i + keys - queries - window))
          ++seen;
      extent.pairs += seen;
      extent.keys += seen > 0 ? 1 : 0;
    }
  }
  extent.mean_segment_tokens /= extent.rows;
  return extent;
}

TEST(Extent, OfAttentionCountsWhatEachSegmentSees) {
  const Numbers unequal{1, 4, 4, 17, 0, 0, 18, 19};
  for (const int window : {0, 1, 5, 12, 40})
    for (const bool causal : {true, false}) {
      const std::string attributes =
          ", window " + std::to_string(window) + (causal ? "" : ", causal false");
      const Extent extent =
          attention(attributes).with("q_bounds", unequal).with("k_bounds", unequal).extent();
      EXPECT_EQ(extent, counted(unequal, unequal, causal, window)) << attributes;
      const Extent most = capacity_of(attention(attributes).view());
      EXPECT_LT(extent.pairs, most.pairs) << attributes;
      EXPECT_LT(extent.rows, most.rows) << attributes;
    }
}

// Queries of one stream over keys of another, in 3 segments at most.
Batch crossing() {
  return Batch(
      "tensor q (30, 12) bf16\ntensor k (50, 6) bf16\ntensor v (50, 6) bf16\n"
      "tensor qb (3, 2) i32\ntensor kb (3, 2) i32\n"
      "o (30, 12) bf16, lse (4, 30) f32 = attention(q, k, v, qb, kb) "
      "{heads 4, kv_heads 2, head_dim 3, causal false}");
}

TEST(Extent, OfTwoStreamsIsEachQueryOverTheKeysOfItsSegment) {
  const Numbers queries{0, 4, 4, 5, 0, 0};
  const Numbers keys{0, 20, 20, 50, 0, 0};
  Batch batch = crossing();
  batch.with("q_bounds", queries).with("k_bounds", keys);
  EXPECT_EQ(batch.extent(), counted(queries, keys, false, 0));
  // A batch may be one segment of all.
  EXPECT_EQ(capacity_of(batch.view()),
            (Extent{.rows = 30, .keys = 50, .pairs = 1500, .mean_segment_tokens = 50}));
  // And its rate is not that of reading a cache.
  EXPECT_FALSE(rate_key(batch.view(), batch.bounds()).form.cached);
  EXPECT_TRUE(rate_key(decoding().view(), {}).form.cached);
}

TEST(Extent, OfDecodingIsTheLengthOfTheCache) {
  const Numbers queries{0, 1, 0, 0, 1, 4};
  const Numbers keys{0, 40, 0, 0, 128, 140};
  Batch batch = decoding();
  batch.with("q_bounds", queries).with("k_bounds", keys);
  EXPECT_EQ(batch.extent(), counted(queries, keys, true, 0));
  EXPECT_EQ(batch.extent().pairs, 40 + 10 + 11 + 12);
  EXPECT_EQ(batch.extent().keys, 52);
  // And what it costs.
  const Cost all = cost(decoding().view(), {});
  const Cost of_batch = cost(batch.view(), batch.bounds());
  EXPECT_EQ(of_batch.flops, 4.0 * 12 * 73);
  EXPECT_EQ(all.bytes - of_batch.bytes, 2.0 * 2 * 6 * (192 - 52));
}

// Keys in pages: a sequence has as many as its row of the table has places, whatever the pool has.
TEST(Extent, OfPagesIsWhatTablesHold) {
  constexpr const char* kText =
      "tensor q (%d, 12) bf16\ntensor k (64, 6) bf16\ntensor v (64, 6) bf16\n"
      "tensor qb (3, 2) i32\ntensor kb (3, 2) i32\ntensor pages (3, 5) i32\n"
      "o (%d, 12) bf16, lse (4, %d) f32 = attention(q, k, v, qb, kb, pages) "
      "{heads 4, kv_heads 2, head_dim 3, paged, page_tokens 8%s}";
  Batch decode(fmt::sprintf(kText, 3, 3, 3, ""));
  EXPECT_EQ(capacity_of(decode.view()),
            (Extent{.rows = 3, .keys = 120, .pairs = 120, .mean_segment_tokens = 40}));
  EXPECT_EQ(decode.expected(full_rows(12)).keys, 36);
  const Numbers queries{0, 1, 0, 0, 1, 3};
  const Numbers keys{8, 40, 0, 0, 0, 7};
  decode.with("q_bounds", queries).with("k_bounds", keys);
  EXPECT_EQ(decode.extent(), counted(queries, keys, true, 0));
  EXPECT_EQ(cost(decode.view(), {}).bytes - cost(decode.view(), decode.bounds()).bytes,
            2.0 * 2 * 6 * (64 - 39))
      << "of a pool of 64 rows";
  // As many queries as the pool has rows are no training, and those of another stream no crossing.
  for (const char* more : {"", ", causal false"}) {
    const Batch prefill(fmt::sprintf(kText, 64, 64, 64, more));
    EXPECT_TRUE(rate_key(prefill.view(), {}).form.cached) << more;
    EXPECT_EQ(capacity_of(prefill.view()).keys, 120) << more;
  }
}

// What a plan expects of a batch says nothing of bounds that last: whatever the segments of the
// stream, all queries see all keys.
TEST(Extent, OfBoundsThatLastIsAllRows) {
  constexpr const char* kText =
      "tensor q (%d, 12) bf16\ntensor k (%d, 6) bf16\ntensor v (%d, 6) bf16\n"
      "tensor qb (1, 2) i32 scalar run\ntensor kb (1, 2) i32 scalar run\n"
      "o (%d, 12) bf16, lse (4, %d) f32 = attention(q, k, v, qb, kb) "
      "{heads 4, kv_heads 2, head_dim 3, causal false, kernel few_queries 8}";
  for (const int rows : {1, 7, 8, 9, 30})
    for (const int keys : {1, 8, 9}) {
      const Batch prompt(fmt::sprintf(kText, rows, keys, keys, rows, rows));
      Batch values(fmt::sprintf(kText, rows, keys, keys, rows, rows));
      values.with("q_bounds", {0, rows}).with("k_bounds", {0, keys});
      const auto all = values.extent();
      EXPECT_EQ(prompt.expected(full_rows(4)), all) << rows << " rows, " << keys << " keys";
      EXPECT_EQ(prompt.extent(), all);
      EXPECT_EQ(all.pairs, rows * keys);
      const std::vector<int64_t> pieces{rows <= 8 ? rows : 0};
      EXPECT_EQ(work_of(prompt.view(), full_rows(4)).pieces, pieces);
      EXPECT_EQ(work_of(values.view(), values.bounds()).pieces, pieces);
    }
}

// A tensor of a batch says which stream it belongs to; its name does not matter.
TEST(Extent, OfAStreamIsWhatIsExpectedOfThatStream) {
  const auto with_keys_of = [](const std::string& name, const std::string& stream) {
    return Batch(
        "tensor q (30, 12) bf16\ntensor k (48, 6) bf16\ntensor v (48, 6) bf16\n"
        "tensor qb (3, 2) i32 batch step\ntensor " +
        name + " (3, 2) i32 batch step" + stream +
        "\no (30, 12) bf16, lse (4, 30) f32 = attention(q, k, v, qb, " + name +
        ") {heads 4, kv_heads 2, head_dim 3, causal false}");
  };
  const ExpectedBounds expected{.mean_segment_tokens = {24, 16}};
  for (const std::string name : {"bounds", "encoder.key_bounds", "prompt_key_bounds"}) {
    EXPECT_EQ(with_keys_of(name, "").expected(expected).mean_segment_tokens, 24) << name;
    EXPECT_EQ(with_keys_of(name, " encoder").expected(expected).mean_segment_tokens, 16) << name;
  }
  // Nothing is expected of an encoder: as many as shapes allow.
  EXPECT_EQ(with_keys_of("b", " encoder").expected({.mean_segment_tokens = 24}).keys, 48);
}

// The clock takes a batch and what is expected of one alike.
TEST(Extent, OfEqualSegmentsIsWhatIsExpectedOfThem) {
  for (const std::string attributes : {"", ", window 3", ", causal false"}) {
    Batch batch = attention(attributes);
    const Numbers equal{0, 6, 6, 12, 12, 18, 18, 24};
    batch.with("q_bounds", equal).with("k_bounds", equal);
    EXPECT_EQ(batch.extent(), batch.expected(full_rows(6)));
    const Cost of_batch = cost(batch.view(), batch.bounds());
    const Cost expected = cost(batch.view(), full_rows(6));
    EXPECT_EQ(of_batch.flops, expected.flops);
    EXPECT_EQ(of_batch.bytes, expected.bytes);
  }
}

TEST(Extent, OfCapacityKnowsTheLongestSegment) {
  EXPECT_EQ(capacity_of(attention().view()).pairs, 24 * 25 / 2);
  EXPECT_EQ(capacity_of(attention(", segment_tokens 8").view()).pairs, 3 * 8 * 9 / 2);
  EXPECT_EQ(attention(", segment_tokens 8").expected(full_rows(12)).pairs, 2 * 12 * 13 / 2);
}

// Of two rows: long documents count by their square.
TEST(MeanBounds, AreThoseOfFullRowsWithTheSameWork) {
  MeanBounds means;
  EXPECT_EQ(means.expected().mean_segment_tokens, 0);
  const Numbers one{0, 4, 4, 7};
  const Numbers other{0, 8, 8, 8};
  means.add_row(Numbers{1, 2, 3, -1, 5, 6, -1, -1}, MeanBounds::StreamRow{8, one});
  means.add_row(Numbers{-1, 2, 3, 4, 5, 6, 7, -1}, MeanBounds::StreamRow{8, other});
  EXPECT_EQ(means.expected().mean_segment_tokens, (16.0 + 9 + 64) / 16);
  EXPECT_EQ(means.expected().trained_fraction, 11.0 / 16);
}

TEST(MeanBounds, HaveAMeanForEachStream) {
  MeanBounds means;
  const Numbers decoder{0, 4, 4, 7};
  const Numbers encoder{0, 2, 2, 12};
  means.add_row(Numbers{1, 2, 3, -1, 5, 6, -1, -1}, {{8, decoder}, {12, encoder}});
  const ExpectedBounds expected = means.expected();
  EXPECT_EQ(expected.mean_segment_tokens, (base::PerStream<double>(25.0 / 8, 104.0 / 12)));
  EXPECT_EQ(expected.trained_fraction, 5.0 / 8);
}

}  // namespace
}  // namespace snug::program
