// Rows of two million tokens on the CUDA backend (cuda_long_rows.h): elements of their tensors lie
// up to 2^34.8 apart.
#include <gtest/gtest.h>

#include "backends/cuda/product/kernels/thin_product.h"
#include "backends/cuda/product/matrices.h"
#include "cuda_long_rows.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/gelu_mul.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/norm/layer_norm.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/embedding.h"
#include "refusals.h"

namespace snug::backends::test {
namespace {

using program::DType;
using DeviceRows = LongRow::DeviceRows;

// Widths of Llama 3.1 8B.
constexpr int64_t kHidden = 4096;
constexpr int64_t kGated = 14336;

// Blocks at either end that make so many elements of tensors seen as one row.
constexpr unsigned kFlatEnds = 32;
static_assert(kFlatEnds * 256 * 8 >= kEndTokens * kGated);

TEST(LongRows, of_elements) {
  LongRow row(kFlatEnds);
  const auto tensor = [&](DType dtype) { return row.by_token(kGated, dtype); };
  const DeviceRows a = tensor(DType::bf16);
  const DeviceRows b = tensor(DType::bf16);
  const DeviceRows c = tensor(DType::f32);
  const DeviceRows bias = row.shared({kGated}, DType::bf16);
  for (const DeviceRows operand : {a, b, c, bias}) row.fill_normal(operand);
  const auto check = [&](const program::Attributes& attributes,
                         const std::vector<DeviceRows>& reads,
                         const std::vector<DeviceRows>& writes) {
    row.run(attributes, reads, writes);
    for (const DeviceRows operand : writes) row.expect_same(operand);
  };
  check(program::Add{}, {a, b}, {tensor(DType::bf16)});
  check(program::Cast{}, {c}, {tensor(DType::bf16)});
  check(program::AddBias{}, {a, bias}, {tensor(DType::bf16)});
  check(program::Scale{1.5F}, {a}, {tensor(DType::bf16)});
  check(program::SiluMul{}, {a, b}, {tensor(DType::bf16)});
  check(program::GeluMul{}, {a, b}, {tensor(DType::bf16)});
  // So rarely that it drops nothing here: which elements it drops depends on the token.
  check(program::Dropout{.probability = 1e-9F, .row_length = kLongTokens},
        {a, row.shared({2}, DType::i32)}, {tensor(DType::bf16)});
  check(program::SiluMulGrad{}, {a, b, c}, {tensor(DType::bf16), tensor(DType::bf16)});
}

TEST(LongRows, of_norms_and_rotations) {
  LongRow row(16);
  const auto tensor = [&] { return row.by_token(kHidden, DType::bf16); };
  const DeviceRows x = tensor();
  const DeviceRows dy = tensor();
  const DeviceRows y = tensor();
  const DeviceRows weight = row.shared({kHidden}, DType::bf16);
  for (const DeviceRows operand : {x, dy, weight}) row.fill_normal(operand);
  row.run(program::RmsNorm{}, {x, weight}, {y});
  row.expect_same(y);
  row.run(program::RmsNormGrad{.addend = true}, {dy, x, weight, dy}, {y});
  row.expect_same(y);
  row.run(program::LayerNorm{.bias = true}, {x, weight, weight}, {y});
  row.expect_same(y);
  row.run(program::LayerNormGrad{.addend = true}, {dy, x, weight, dy}, {y});
  row.expect_same(y);

  constexpr int64_t kHeadDim = 128;
  const DeviceRows positions = row.value_by_token(DType::i32);
  const DeviceRows frequency = row.shared({kHeadDim / 2}, DType::f32);
  const DeviceRows table = row.by_token(kHeadDim, DType::f32);
  row.fill_integers(positions, 0, kLongTokens - 1);
  row.fill_normal(frequency);
  row.run(program::RotaryTable{}, {positions, frequency}, {table});
  row.expect_same(table);
  row.run(program::Rope{.head_dim = kHeadDim}, {x, table}, {y});
  row.expect_same(y);
  row.run(program::Rope{.head_dim = 2 * kHeadDim, .rotary_dim = kHeadDim}, {x, table}, {y});
  row.expect_same(y);
}

// Narrow columns of wide rows, so that a block has not much to add up. What the long row's blocks
// between the ends leave out are zeros.
constexpr int64_t kNarrow = 64;

TEST(LongRows, of_sums_over_tokens) {
  LongRow row(2);
  const auto tensor = [&] { return row.by_token(kNarrow, DType::bf16, kHidden); };
  const DeviceRows x = tensor();
  const DeviceRows dy = tensor();
  const DeviceRows sums = row.shared({kNarrow}, DType::f32);
  row.fill_integers(x, 1, 9);  // exact in any order
  row.run(program::SumRows{}, {x}, {sums});
  row.expect_same(sums);

  const DeviceRows weight = row.shared({kNarrow}, DType::bf16);
  const DeviceRows dx = tensor();
  row.fill_normal(dy);
  row.fill_normal(weight);
  row.run(program::RmsNormGrad{.weight_gradient = true}, {dy, x, weight}, {dx, sums});
  row.expect_same(dx);

  const DeviceRows ids = row.value_by_token(DType::i32);  // 0 at the ends
  const DeviceRows table = row.shared({2, kNarrow}, DType::f32);
  row.fill_between(ids, 1);
  row.run(program::EmbeddingGrad{}, {dy, ids}, {table});
  row.expect_same(table);
}

// An adapter's products: x A^T, and the gradient of A, whose sum runs over the tokens.
TEST(LongRows, of_thin_products) {
  constexpr int64_t kThin = 16;
  LongRow row(2);
  const DeviceRows x = row.by_token(kNarrow, DType::bf16, kHidden);
  const DeviceRows a = row.shared({kThin, kNarrow}, DType::bf16);
  const DeviceRows low = row.by_token(kThin, DType::bf16, kHidden);
  const DeviceRows gradient = row.shared({kNarrow, kThin}, DType::f32);
  row.fill_integers(x, 1, 3);
  row.fill_integers(a, 1, 3);
  row.run_kernels([&](const auto& buffer_of) {
    const auto operand = [&](DeviceRows of) { return cuda::matrix_of(buffer_of(of)).operand; };
    cuda::multiply_thin({.wide = buffer_of(x).shape[0],
                         .depth = kNarrow,
                         .thin = kThin,
                         .large = operand(x),
                         .small = operand(a),
                         .addend = {},
                         .result = operand(low)},
                        nullptr);
  });
  row.expect_same(low);

  // As many parts as steps of 64 tokens, in eights.
  constexpr int64_t kParts = kLongTokens / (8 * 64) + 1;
  const DeviceRows parts = row.shared({kParts * kNarrow * kThin}, DType::f32);
  row.run_kernels([&](const auto& buffer_of) {
    const auto operand = [&](DeviceRows of) { return cuda::matrix_of(buffer_of(of)).operand; };
    const int64_t tokens = buffer_of(x).shape[0];
    cuda::multiply_thin({.wide = kNarrow,
                         .depth = tokens,
                         .thin = kThin,
                         .large = operand(x),
                         .small = operand(low),
                         .across = true,
                         .small_by_depth = true,
                         .addend = {},
                         .result = operand(gradient),
                         .parts = tokens == kLongTokens ? kParts : 1,
                         .partial_sums = buffer_of(parts).template as<float>()},
                        nullptr);
  });
  row.expect_same(gradient);
}

TEST(LongRows, of_an_embedding) {
  LongRow row(16);
  constexpr int64_t kVocabulary = 50;
  const DeviceRows ids = row.value_by_token(DType::i32);
  const DeviceRows table = row.shared({kVocabulary, kHidden}, DType::bf16);
  const DeviceRows y = row.by_token(kHidden, DType::bf16);
  row.fill_integers(ids, 0, kVocabulary - 1);
  row.fill_normal(table);
  row.run(program::Embedding{}, {table, ids}, {y});
  row.expect_same(y);
}

TEST(LongRows, of_logits) {
  LongRow row(4);
  constexpr int64_t kVocabulary = 4104;
  const DeviceRows logits = row.by_token(kVocabulary, DType::f32);
  const DeviceRows targets = row.value_by_token(DType::i32);
  const DeviceRows inverse_tokens = row.shared({1}, DType::f32);
  const DeviceRows losses = row.value_by_token(DType::f32);
  const DeviceRows dlogits = row.by_token(kVocabulary, DType::bf16);
  row.fill_normal(logits);
  row.fill_integers(targets, 0, kVocabulary - 1);
  row.fill_normal(inverse_tokens);
  row.run(program::CrossEntropy{}, {logits, targets, inverse_tokens},
          {losses, row.shared({1}, DType::f32)});
  row.expect_same(losses);
  row.run(program::CrossEntropyGrad{}, {logits, targets, inverse_tokens}, {dlogits});
  row.expect_same(dlogits);
}

TEST(LongRows, of_the_loss_in_chunks) {
  LongRow row(16);
  constexpr int64_t kVocabulary = 40;
  const DeviceRows hidden = row.by_token(kHidden, DType::bf16);
  const DeviceRows weight = row.shared({kVocabulary, kHidden}, DType::bf16);
  const DeviceRows targets = row.value_by_token(DType::i32);
  const DeviceRows inverse_tokens = row.shared({1}, DType::f32);
  const DeviceRows losses = row.value_by_token(DType::f32);
  const DeviceRows loss = row.shared({1}, DType::f32);
  const DeviceRows dhidden = row.by_token(kHidden, DType::bf16);
  for (const DeviceRows operand : {hidden, weight, inverse_tokens}) row.fill_normal(operand);
  row.fill_integers(targets, 0, kVocabulary - 1);
  row.fill_between(targets, -1);
  const std::vector<DeviceRows> reads{hidden, weight, targets, inverse_tokens};
  // As many rows with loss as the long row has at its ends.
  const std::vector<int32_t> targets_with_loss(kFewTokens, 0);
  row.run(program::LinearCrossEntropyTrain{.chunks = {.rows = kEndTokens}}, reads,
          {losses, loss, dhidden}, targets_with_loss);
  for (const DeviceRows operand : {losses, dhidden}) row.expect_same(operand);
}

// By own kernels and through cuDNN's tables. q, k and v are columns of wide rows, and each end of
// the row is a document.
class LongAttention : public ::testing::TestWithParam<std::tuple<bool, DType>> {
 protected:
  void SetUp() override { cuda_emulator::refuses_attention = std::get<bool>(GetParam()); }
  void TearDown() override { cuda_emulator::refuses_attention = false; }
};

TEST_P(LongAttention, of_wide_rows) {
  LongRow row(2);
  constexpr int64_t kHeads = 2;
  constexpr int64_t kKeyHeads = 1;
  constexpr int64_t kHeadDim = 64;
  const DType dtype = std::get<DType>(GetParam());
  const auto tensor = [&](int64_t heads) { return row.by_token(heads * kHeadDim, dtype, kHidden); };
  const DeviceRows q = tensor(kHeads);
  const DeviceRows k = tensor(kKeyHeads);
  const DeviceRows v = tensor(kKeyHeads);
  const DeviceRows d_o = tensor(kHeads);
  const DeviceRows o = tensor(kHeads);
  const DeviceRows lse = row.by_head(kHeads, DType::f32);
  const DeviceRows bounds = row.shared({2, 2}, DType::i32);
  for (const DeviceRows operand : {q, k, v, d_o}) row.fill_normal(operand);
  constexpr auto kEnd = static_cast<int32_t>(kEndTokens);
  constexpr auto kFew = static_cast<int32_t>(kFewTokens);
  constexpr auto kLong = static_cast<int32_t>(kLongTokens);
  row.set(bounds, {0, kEnd, kEnd, kFew}, {0, kEnd, kLong - kEnd, kLong});
  row.run(program::Attention{.heads = kHeads,
                             .kv_heads = kKeyHeads,
                             .head_dim = kHeadDim,
                             .segment_tokens = kEndTokens,
                             .deterministic = false},
          {q, k, v, bounds, bounds}, {o, lse});
  for (const DeviceRows operand : {o, lse}) row.expect_same(operand);
  const std::vector<DeviceRows> gradients{tensor(kHeads), tensor(kKeyHeads), tensor(kKeyHeads)};
  row.run(program::AttentionGrad{.heads = kHeads,
                                 .kv_heads = kKeyHeads,
                                 .head_dim = kHeadDim,
                                 .segment_tokens = kEndTokens,
                                 .deterministic = false},
          {d_o, q, k, v, o, lse, bounds, bounds}, gradients);
  for (const DeviceRows operand : gradients) row.expect_same(operand);
}

INSTANTIATE_TEST_SUITE_P(By, LongAttention,
                         ::testing::Values(std::tuple(false, DType::bf16),
                                           std::tuple(true, DType::bf16),
                                           std::tuple(true, DType::f32)));

}  // namespace
}  // namespace snug::backends::test
