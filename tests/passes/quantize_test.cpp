// quantize and what lower makes of it, text in and text out.
#include "passes/lowering/quantize.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../base/captured_stream.h"
#include "passes/lowering/lower.h"
#include "program/kinds/product/nf4.h"
#include "test_target.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

using program::Kind;
using program::Program;
using testing::dies;

// A linear forward and its input's gradient; `head` belongs to no layer, `n` is no matrix.
constexpr std::string_view kLinear = R"(program micro
tensor x (8, 128) bf16 activation step
tensor d.y (8, 4) bf16 activation step
tensor w (4, 128) bf16 weight run layer 0
tensor head (6, 128) bf16 weight run
tensor n (128) bf16 weight run layer 0
y (8, 4) bf16 = matmul(x, w) {transpose_b} layer 0
z (8, 6) bf16 = matmul(x, head) {transpose_b}
d.x (8, 128) bf16 = matmul(d.y, w) backward layer 0
)";

TEST(Quantize, MakesAWeightsValuesAtEachUse) {
  const Program result = quantize(parse(kLinear), {.nested = false, .kept = {}});
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const std::string text = print(result);
  EXPECT_NE(text.find("tensor w (256, 1) u8 weight run"), std::string::npos) << text;
  EXPECT_NE(text.find("tensor w.absmax (8) f32 quant_state run"), std::string::npos) << text;
  EXPECT_NE(text.find("y (8, 4) bf16 = matmul_nf4(x=x, codes=w, absmax=w.absmax)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("w.values.1 (4, 128) bf16 = dequantize_nf4(codes=w, absmax=w.absmax)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("d.x (8, 128) bf16 = matmul(a=d.y, b=w.values.1)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("matmul(a=x, b=head)"), std::string::npos) << text;
}

// Matrices of experts are read as they are stored, forward and backward; others have values.
TEST(Quantize, LeavesTheMatricesOfExpertsInTheirProducts) {
  constexpr std::string_view kExperts = R"(program micro
tensor x (8, 128) bf16 activation step
tensor d.y (8, 4) bf16 activation step
tensor bounds (3, 2) i32 activation step
tensor w (3, 4, 128) bf16 weight run layer 0
tensor v (3, 4, 128) bf16 weight run layer 1
y (8, 4) bf16 = grouped_matmul(x, w, bounds) {transpose_b} layer 0
z (8, 4) bf16 = grouped_matmul(x, v, bounds) {transpose_b} layer 1
d.x (8, 128) bf16 = grouped_matmul(d.y, w, bounds) backward layer 0
)";
  const Program result = quantize(parse(kExperts), {.nested = true, .kept = {}, .experts = {"w"}});
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const std::string text = print(result);
  EXPECT_NE(text.find("tensor w (768, 1) u8 weight run"), std::string::npos) << text;
  constexpr std::string_view kStored =
      "codes=w, absmax=w.absmax, nested_absmax=w.nested_absmax, nested_map=w.nested_quant_map, "
      "nested_offset=w.nested_offset, bounds=bounds) {";
  EXPECT_NE(text.find(fmt::format(
                "y (8, 4) bf16 = grouped_matmul(a=x, {}transpose_b, stored, nested", kStored)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("z (8, 4) bf16 = grouped_matmul(a=x, b=v, bounds=bounds) {transpose_b"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find(fmt::format("d.x (8, 128) bf16 = grouped_matmul(a=d.y, {}stored, nested", kStored)),
      std::string::npos)
      << text;
}

TEST(Quantize, StoresScalesInEightBitsWhenNested) {
  const Program result = quantize(parse(kLinear), {.nested = true, .kept = {}});
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const std::string text = print(result);
  EXPECT_NE(text.find("tensor w.absmax (8) u8 quant_state run"), std::string::npos) << text;
  EXPECT_NE(text.find("tensor w.nested_absmax (1) f32 quant_state run"), std::string::npos) << text;
  EXPECT_NE(text.find("dequantize_nf4(codes=w, absmax=w.absmax, nested_absmax=w.nested_absmax, "
                      "nested_map=w.nested_quant_map, "
                      "nested_offset=w.nested_offset) {nested}"),
            std::string::npos)
      << text;
}

// A weight (in, out), which bitsandbytes stores as its transpose.
TEST(Quantize, StoresTheTransposeOfAWeightThatIsReadPlain) {
  const Program result = quantize(parse(R"(program micro
tensor x (8, 128) bf16 activation step
tensor d.y (8, 4) bf16 activation step
tensor w (128, 4) bf16 weight run layer 0
y (8, 4) bf16 = matmul(x, w) layer 0
d.x (8, 128) bf16 = matmul(d.y, w) {transpose_b} backward layer 0
)"),
                                  {.nested = false, .kept = {}});
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const std::string text = print(result);
  EXPECT_NE(text.find("y (8, 4) bf16 = matmul_nf4(x=x, codes=w, absmax=w.absmax)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("w.values.1 (4, 128) bf16 = dequantize_nf4(codes=w, absmax=w.absmax)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("d.x (8, 128) bf16 = matmul(a=d.y, b=w.values.1)"), std::string::npos)
      << text;
}

TEST(Quantize, LeavesKeptWeightsAlone) {
  EXPECT_EQ(quantize(parse(kLinear), {.nested = true, .kept = {"w"}}), parse(kLinear));
}

TEST(Quantize, StoresTheHeadWhereItIsNamed) {
  const Program program = parse(R"(program micro
tensor x (8, 128) bf16 activation step
tensor targets (8) i32 batch step
tensor inverse_tokens (1) f32 scalar step
tensor head (6, 128) bf16 weight run
losses (8) f32, loss (1) f32 = linear_cross_entropy(x, head, targets, inverse_tokens)
)");
  const std::string text = print(quantize(program, {.nested = false, .kept = {}, .head = "head"}));
  EXPECT_NE(text.find("tensor head (384, 1) u8 weight run"), std::string::npos) << text;
  EXPECT_NE(
      text.find("head.values.1 (6, 128) bf16 = dequantize_nf4(codes=head, absmax=head.absmax"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("weight=head.values.1"), std::string::npos) << text;
}

TEST(Quantize, RefusesAWeightThatSomethingElseReads) {
  const Program program = parse(std::string(kLinear) + "sum (4, 128) bf16 = add(w, w) layer 0\n");
  EXPECT_TRUE(dies([&] { quantize(program, {.nested = false, .kept = {}}); }, "stored as NF4"));
}

TestTarget everything() {
  return TestTarget([](const program::OperationView&) { return true; });
}

// The input's gradient of two linears, of which one has few columns, as keys and values have with
// few heads: its weight is no factor of low rank, since a weight in codes has its values made for a
// product. Products are the same whether they are joined before quantize or after, as they are with
// and without updates inside the backward pass.
TEST(Quantize, AWeightIsNoFactorOfLowRank) {
  const Program gradient = parse(R"(program micro
tensor d.q (8, 256) bf16 activation step
tensor d.k (8, 64) bf16 activation step
tensor q (256, 512) bf16 weight run layer 0
tensor k (64, 512) bf16 weight run layer 0
of_q (8, 512) bf16 = matmul(d.q, q) backward layer 0
of_k (8, 512) bf16 = matmul(d.k, k) backward layer 0
d.x (8, 512) bf16 = add(of_q, of_k) backward layer 0
)");
  const QuantizeOptions options{.nested = false, .kept = {}};
  const Program after = lower(quantize(gradient, options), everything());
  const Program before =
      lower(quantize(join_products(gradient, everything()), options), everything());
  EXPECT_EQ(program::verify(before), std::vector<std::string>{});
  EXPECT_EQ(print(before), print(after));
  EXPECT_EQ(print(after).find("augmented"), std::string::npos) << print(after);
}

// Runs products of codes for up to a number of rows.
TestTarget few_rows(int64_t rows) {
  return TestTarget([rows](const program::OperationView& view) {
    return view.operation.kind() != Kind::matmul_nf4 ||
           view[program::MatmulNf4::kX].shape.rows() <= rows;
  });
}

TEST(Quantize, BecomesTwoOperationsWhereTheTargetHasNoSuchProduct) {
  const Program quantized = quantize(parse(kLinear), {.nested = false, .kept = {}});
  const std::string kept = print(lower(quantized, few_rows(8)));
  EXPECT_NE(kept.find("matmul_nf4(x=x, codes=w, absmax=w.absmax)"), std::string::npos) << kept;
  const Program expanded = lower(quantized, few_rows(7));
  EXPECT_EQ(program::verify(expanded), std::vector<std::string>{});
  const std::string text = print(expanded);
  EXPECT_EQ(text.find("matmul_nf4"), std::string::npos) << text;
  EXPECT_NE(text.find("= dequantize_nf4(codes=w, absmax=w.absmax) layer 0\ny (8, 4) bf16 = "
                      "matmul(a=x, b=w.values."),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace snug::passes
