// Costs against sums made by hand.
#include <gtest/gtest.h>

#include "program/kinds/kind.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/product/matmul.h"
#include "program/text/text.h"

namespace snug::program {
namespace {

// The cost of the only operation of a text without its first line.
Cost cost_of(const std::string& text, const BatchBounds& bounds = {}) {
  const Program program = parse_text("program costs\n" + text);
  const OperationView view{program, program.operations.at(0)};
  EXPECT_EQ(shape_error(view), "");
  return cost(view, bounds);
}

ExpectedBounds segments_of(double tokens) { return {.mean_segment_tokens = tokens}; }

TEST(Cost, Matmul) {
  const Cost plain = cost_of(
      "tensor x (100, 30) bf16\ntensor w (70, 30) bf16\n"
      "y (100, 70) bf16 = matmul(x, w) {transpose_b}");
  EXPECT_EQ(plain.flops, 2.0 * 100 * 70 * 30);
  EXPECT_EQ(plain.bytes, 2.0 * (100 * 30 + 70 * 30 + 100 * 70));
  const Cost update = cost_of(
      "tensor dy (100, 70) bf16\ntensor x (100, 30) bf16\ntensor dw (70, 30) f32\n"
      "matmul(dy, x) updates (dw) {transpose_a, accumulate}");
  EXPECT_EQ(update.flops, 2.0 * 100 * 70 * 30);
  EXPECT_EQ(update.bytes, 2.0 * (100 * 70 + 100 * 30) + 2 * 4.0 * 70 * 30) << "read and written";
}

// As two products: the low one writes c and the other reads it, which nothing hides.
TEST(Cost, OfAnAugmentedMatmulFollowsItsProducts) {
  const std::string tensors =
      "tensor x (100, 30) bf16\ntensor w (70, 30) bf16\ntensor low (100, 8) bf16\n"
      "tensor up (70, 8) bf16\n"
      "y (100, 70) bf16 = matmul(x, w, low, up) {transpose_b, augmented, low_transpose_b";
  const Cost one = cost_of(tensors + "}");
  const Cost two = cost_of(tensors + ", products 2}");
  EXPECT_EQ(one.flops, 2.0 * 100 * 70 * (30 + 8));
  EXPECT_EQ(two.flops, one.flops);
  EXPECT_EQ(one.serial_bytes, 0);
  EXPECT_EQ(two.serial_bytes, 2.0 * (100 * 8 + 70 * 8 + 100 * 70));
  EXPECT_EQ(two.bytes, one.bytes + 2 * 2.0 * 100 * 70);
  EXPECT_EQ(one.launches, 1);
  EXPECT_EQ(two.launches, 2);
}

TEST(Cost, OfAJoinedStepHasNoLaunch) {
  const std::string step =
      "tensor g (8) f32\ntensor factor (1) f32\ntensor rate (1) f32\ntensor step (1) i32\n"
      "tensor w (8) f32\ntensor m (8) f32\ntensor v (8) f32\n"
      "adamw(g, factor, rate, step) updates (w, m, v)";
  EXPECT_EQ(cost_of(step).launches, 1);
  EXPECT_EQ(cost_of(step + " joined").launches, 0);
  EXPECT_EQ(cost_of(step + " joined").bytes, cost_of(step).bytes);
}

TEST(Cost, CountsEachTensorOnceAndNoWorkspace) {
  const Cost cost = cost_of(
      "tensor x (10, 4) f32\ntensor scratch (1000) u8 workspace\n"
      "y (10, 4) f32 = add(x, x) workspace scratch");
  EXPECT_EQ(cost.flops, 40);
  EXPECT_EQ(cost.bytes, 4.0 * (40 + 40));
}

// What is updated in place is read and written, on a device as on the host, and with other operands
// that share its bytes too.
TEST(Cost, CountsUpdatesAsReadAndWritten) {
  const std::string tensors = "tensor x (10, 4) f32\ntensor y (10, 4) f32\n";
  const Cost sum = cost_of(tensors + "accumulate(x) updates (y)");
  EXPECT_EQ(sum.bytes, 4.0 * (40 + 2 * 40));
  EXPECT_EQ(cost_of(tensors + "accumulate(x) updates (y) channel host").bytes, sum.bytes);
  const Cost fresh = cost_of("tensor x (10, 4) f32\ny (10, 4) f32 = scale(x) {factor 2}");
  EXPECT_EQ(fresh.bytes, 4.0 * (40 + 40));
}

TEST(Cost, EmbeddingTouchesRowsOfItsTokens) {
  const Cost forward = cost_of(
      "tensor table (1000, 8) bf16\ntensor ids (20) i32\n"
      "y (20, 8) bf16 = embedding(table, ids)");
  EXPECT_EQ(forward.bytes, 2.0 * 20 * 8 + 4.0 * 20 + 2.0 * 20 * 8);
  const Cost small_table = cost_of(
      "tensor table (5, 8) bf16\ntensor ids (20) i32\n"
      "y (20, 8) bf16 = embedding(table, ids)");
  EXPECT_EQ(small_table.bytes, 2.0 * 5 * 8 + 4.0 * 20 + 2.0 * 20 * 8);
  const Cost fresh = cost_of(
      "tensor dy (20, 8) bf16\ntensor ids (20) i32\n"
      "dtable (1000, 8) f32 = embedding_grad(dy, ids)");
  EXPECT_EQ(fresh.bytes, 2.0 * 20 * 8 + 4.0 * 20 + 4.0 * 1000 * 8);
  const Cost added = cost_of(
      "tensor dy (20, 8) bf16\ntensor ids (20) i32\ntensor dtable (1000, 8) f32\n"
      "embedding_grad(dy, ids) updates (dtable) {accumulate}");
  EXPECT_EQ(added.bytes, 2.0 * 20 * 8 + 4.0 * 20 + 2 * 4.0 * 20 * 8) << "read and written";
}

std::string attention(const std::string& attributes) {
  return "tensor q (24, 12) bf16\ntensor k (24, 6) bf16\ntensor v (24, 6) bf16\n"
         "tensor bounds (5, 2) i32\n"
         "o (24, 12) bf16, lse (4, 24) f32 = attention(q, k, v, bounds, bounds) "
         "{heads 4, kv_heads 2, head_dim 3" +
         attributes + "}";
}

// Pairs that are seen, one by one; queries and keys of one segment.
double counted_pairs(int queries, int keys, bool causal, int window) {
  int pairs = 0;
  for (int i = 0; i < queries; ++i)
    for (int j = 0; j < keys; ++j)
      if ((!causal || j <= i + keys - queries) && (window == 0 || j > i + keys - queries - window))
        ++pairs;
  return pairs;
}

TEST(Cost, AttentionCountsPairsOfItsSegments) {
  const double width = 4.0 * 4 * 3;  // two products, two operations each, heads * head_dim
  EXPECT_EQ(cost_of(attention("")).flops, width * 24 * 25 / 2);
  EXPECT_EQ(cost_of(attention(""), segments_of(12)).flops, width * 2 * 12 * 13 / 2);
  EXPECT_EQ(cost_of(attention(""), segments_of(6)).flops, width * 4 * 6 * 7 / 2);
  EXPECT_EQ(cost_of(attention(", causal false"), segments_of(12)).flops, width * 2 * 12 * 12);
  for (const int window : {1, 5, 12, 40}) {
    const std::string attribute = ", window " + std::to_string(window);
    EXPECT_EQ(cost_of(attention(attribute), segments_of(12)).flops,
              width * 2 * counted_pairs(12, 12, true, window));
    EXPECT_EQ(cost_of(attention(attribute + ", causal false"), segments_of(12)).flops,
              width * 2 * counted_pairs(12, 12, false, window));
  }
  EXPECT_EQ(cost_of(attention("")).bytes,
            2.0 * (24 * 12 + 2 * 24 * 6 + 24 * 12) + 4.0 * 5 * 2 + 4.0 * 4 * 24);
}

TEST(Cost, AttentionBackwardIsTwoAndAHalfForward) {
  const Cost cost = cost_of(
      "tensor q (24, 12) bf16\ntensor k (24, 6) bf16\ntensor v (24, 6) bf16\n"
      "tensor o (24, 12) bf16\ntensor lse (4, 24) f32\ntensor bounds (5, 2) i32\n"
      "dq (24, 12) bf16, dk (24, 6) bf16, dv (24, 6) bf16 = "
      "attention_grad(o, q, k, v, o, lse, bounds, bounds) {heads 4, kv_heads 2, head_dim 3}",
      segments_of(12));
  EXPECT_EQ(cost.flops, 2.5 * 4 * 12 * 2 * 12 * 13 / 2);
}

// Three sequences of one new token each against caches of 64.
TEST(Cost, DecodeReadsTheKeysThatAreThere) {
  const std::string decode =
      "tensor q (3, 12) bf16\ntensor k (192, 6) bf16\ntensor v (192, 6) bf16\n"
      "tensor bounds (3, 2) i32\n"
      "o (3, 12) bf16, lse (4, 3) f32 = attention(q, k, v, bounds, bounds) "
      "{heads 4, kv_heads 2, head_dim 3}";
  EXPECT_EQ(cost_of(decode).flops, 4.0 * 12 * 3 * 64);
  const Cost short_cache = cost_of(decode, segments_of(10));
  EXPECT_EQ(short_cache.flops, 4.0 * 12 * 3 * 10);
  EXPECT_EQ(short_cache.bytes, 2.0 * (2 * 3 * 12 + 2 * 30 * 6) + 4.0 * 3 * 2 + 4.0 * 4 * 3);
}

TEST(Cost, LinearCrossEntropyWorksOnTrainedRows) {
  const std::string inputs =
      "tensor h (100, 8) bf16\ntensor w (50, 8) bf16\ntensor t (100) i32\ntensor i (1) f32\n";
  const ExpectedBounds quarter{.trained_fraction = 0.25};
  const Cost plain =
      cost_of(inputs + "l (100) f32, s (1) f32 = linear_cross_entropy(h, w, t, i)", quarter);
  EXPECT_EQ(plain.flops, 25.0 * 50 * (2 * 8 + 4));
  EXPECT_EQ(plain.bytes, 2.0 * (25 * 8 + 50 * 8) + 4.0 * (100 + 1 + 100 + 1));
  const Cost frozen = cost_of(
      inputs + "l (100) f32, s (1) f32, d (100, 8) bf16 = linear_cross_entropy_train(h, w, t, i)",
      quarter);
  EXPECT_EQ(frozen.flops, 25.0 * 50 * (4 * 8 + 10));
  const Cost trained = cost_of(inputs +
                                   "l (100) f32, s (1) f32, d (100, 8) bf16, dw (50, 8) f32 = "
                                   "linear_cross_entropy_train(h, w, t, i) {weight_gradient}",
                               quarter);
  EXPECT_EQ(trained.flops, 25.0 * 50 * (6 * 8 + 10));
  EXPECT_EQ(trained.bytes - frozen.bytes, 4.0 * 50 * 8);
}

// All rows of the chunks that are computed, and the weight once for each.
TEST(Cost, LinearCrossEntropyFollowsItsChunks) {
  const std::string loss =
      "tensor h (300, 8) bf16\ntensor w (50, 8) bf16\ntensor t (300) i32\ntensor i (1) f32\n"
      "l (300) f32, s (1) f32 = linear_cross_entropy(h, w, t, i) {chunk_launches 3";
  const ExpectedBounds half{.trained_fraction = 0.5};
  const double logit = 50 * (2 * 8 + 4);
  const Cost online = cost_of(loss + ", algorithm online chunk_rows 128} launches 2", half);
  EXPECT_EQ(online.flops, 150 * logit);
  EXPECT_EQ(online.launches, 2 + 2 * 3);
  const Cost halved = cost_of(loss + ", algorithm halved_chunks chunk_rows 128} launches 2", half);
  EXPECT_EQ(halved.flops, (128 + 64) * logit);
  EXPECT_EQ(halved.bytes, online.bytes);
  const Cost chunks = cost_of(loss + ", algorithm chunks chunk_rows 128} launches 2", half);
  EXPECT_EQ(chunks.flops, (128 + 128) * logit);
  const Cost all = cost_of(loss + ", algorithm chunks chunk_rows 128} launches 2");
  EXPECT_EQ(all.flops, (128 + 128 + 44) * logit);
  EXPECT_EQ(all.launches, 2 + 3 * 3);
  EXPECT_EQ(all.bytes - chunks.bytes, 2.0 * 8 * 150 + 2.0 * 8 * 50) << "rows, and the weight again";
}

// The weight's gradient is the sum over chunks: all but the first read it and write it again.
TEST(Cost, LinearCrossEntropyAddsUpItsWeightGradient) {
  const std::string inputs =
      "tensor h (300, 8) bf16\ntensor w (50, 8) bf16\ntensor t (300) i32\ntensor i (1) f32\n"
      "l (300) f32, s (1) f32, d (300, 8) bf16";
  const std::string chunks = "algorithm chunks chunk_rows 128";
  const Cost frozen =
      cost_of(inputs + " = linear_cross_entropy_train(h, w, t, i) {" + chunks + "}");
  const Cost trained =
      cost_of(inputs + ", dw (50, 8) f32 = linear_cross_entropy_train(h, w, t, i) {" + chunks +
              ", weight_gradient}");
  EXPECT_EQ(trained.bytes - frozen.bytes, (1 + 2 * 2) * 4.0 * 50 * 8);
}

TEST(Cost, HalvedChunksFillThreeQuarters) {
  const auto sizes = [](int64_t rows) {
    return chunk_sizes(LossAlgorithm::halved_chunks, 512, 1000, rows);
  };
  EXPECT_EQ(sizes(0), std::vector<int64_t>{});
  EXPECT_EQ(sizes(3), std::vector<int64_t>{64});
  EXPECT_EQ(sizes(96), std::vector<int64_t>{128});
  EXPECT_EQ(sizes(95), (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(sizes(900), (std::vector<int64_t>{512, 512}));
  EXPECT_EQ(sizes(700), (std::vector<int64_t>{512, 128, 64}));
}

TEST(Cost, LaunchesAreThoseOfTheOperation) {
  const std::string sum = "tensor x (10, 4) f32\ny (10, 4) f32 = add(x, x)";
  EXPECT_EQ(cost_of(sum).launches, 1);
  EXPECT_EQ(cost_of(sum + " launches 3").launches, 3);
}

TEST(Cost, ElementwiseMovesItsTensors) {
  const Cost norm =
      cost_of("tensor x (10, 8) bf16\ntensor w (8) f32\ny (10, 8) bf16 = rms_norm(x, w)");
  EXPECT_EQ(norm.bytes, 2.0 * 160 + 32);
  EXPECT_EQ(norm.flops, 4 * 80);
  const Cost adam = cost_of(
      "tensor w (10, 8) bf16\ntensor g (10, 8) f32\ntensor m (10, 8) f32\ntensor v (10, 8) f32\n"
      "tensor p (10, 8) f32\ntensor f (1) f32\ntensor r (1) f32\ntensor s (1) i32\n"
      "adamw(g, f, r, s) updates (w, m, v, p) {has_master}");
  EXPECT_EQ(adam.bytes, 80.0 * (4 + 2 * (2 + 3 * 4)) + 12) << "all but the gradient twice";
  const std::string matrix =
      "tensor w (10, 8) f32\ntensor g (10, 8) bf16\ntensor m (10, 8) f32\ntensor r (10) f32\n"
      "tensor c (8) f32\ntensor f (1) f32\ntensor l (1) f32\ntensor s (1) i32\n";
  EXPECT_EQ(cost_of(matrix + "lion(g, f, l) updates (w, m)").bytes, 80.0 * (2 + 2 * (4 + 4)) + 8);
  EXPECT_EQ(cost_of(matrix + "adafactor(g, f, l, s) updates (w, r, c) {factored}").bytes,
            80.0 * (3 * 2 + 2 * 4) + 2 * 4 * (10 + 8) + 12)
      << "the gradient three times";
  const Cost write = cost_of(
      "tensor x (3, 8) bf16\ntensor s (3) i32\ntensor c (500, 8) bf16\n"
      "cache_write(x, s) updates (c)");
  EXPECT_EQ(write.bytes, 2.0 * 2 * 24 + 12);
  const Cost quantized = cost_of(
      "tensor x (3, 8) bf16\ntensor s (3) i32\ntensor c (500, 8) u8\ntensor n (2, 500) f32\n"
      "cache_write(x, s) updates (c, n) {quantized}");
  EXPECT_EQ(quantized.bytes, (2.0 + 1.0) * 24 + 12 + 3 * 2 * 4) << "with a scale for each head";
  const Cost transfer = cost_of("tensor x (3, 8) bf16\ny (3, 8) bf16 pinned_host = transfer(x)");
  EXPECT_EQ(transfer.bytes, 2.0 * 24);
  EXPECT_EQ(transfer.flops, 0);
}

}  // namespace
}  // namespace snug::program
