// The expansion of fused kinds, text in, text out.
#include <gtest/gtest.h>

#include "program/ir/builder.h"
#include "program/kinds/kind.h"
#include "program/text/text.h"
#include "program/verify/verify.h"

namespace snug::program {
namespace {

constexpr const char* kInputs =
    "program loss\n"
    "tensor h (8, 4) bf16 batch step\n"
    "tensor w (16, 4) bf16 weight run\n"
    "tensor t (8) i32 batch step\n"
    "tensor i (1) f32 scalar step\n";

// The program with every operation replaced by its expansion.
std::string expanded(const std::string& text) {
  const Program program = parse_text(text);
  EXPECT_EQ(verify(program), std::vector<std::string>{});
  Program table = program;
  table.operations.clear();
  Builder builder(std::move(table));
  for (const Operation& operation : program.operations) expand({program, operation}, builder);
  const Program result = builder.take();
  EXPECT_EQ(verify(result), std::vector<std::string>{});
  return to_text(result, {.ids = false});
}

TEST(Expand, LinearCrossEntropyIsAProductAndALoss) {
  EXPECT_EQ(
      expanded(
          std::string(kInputs) +
          "l (8) f32, s (1) f32 = linear_cross_entropy(h, w, t, i) {algorithm chunk_rows 4}\n"),
      std::string(kInputs) +
          "l.logits (8, 16) f32 logits = matmul(a=h, b=w) {transpose_b}\n"
          "l (8) f32, s (1) f32 = cross_entropy(logits=l.logits, targets=t, inverse_tokens=i)\n");
}

TEST(Expand, ALossThatSaysWhatItHitsStillDoes) {
  const std::string text = expanded(
      std::string(kInputs) +
      "l (8) f32, s (1) f32, z (8, 1) f32 = linear_cross_entropy(h, w, t, i) {smoothing 0.5, "
      "hits}\n");
  EXPECT_NE(text.find("l (8) f32, s (1) f32, z (8, 1) f32 = cross_entropy(logits=l.logits, "
                      "targets=t, inverse_tokens=i) {smoothing 0.5, hits}\n"),
            std::string::npos)
      << text;
}

TEST(Expand, TrainingFormMakesBothGradients) {
  EXPECT_EQ(expanded(std::string(kInputs) +
                     "l (8) f32, s (1) f32, dh (8, 4) bf16, dw (16, 4) f32 gradient = "
                     "linear_cross_entropy_train(h, w, t, i) {weight_gradient} backward\n"),
            std::string(kInputs) +
                "l.logits (8, 16) f32 logits = matmul(a=h, b=w) {transpose_b} backward\n"
                "l (8) f32, s (1) f32 = cross_entropy(logits=l.logits, targets=t, "
                "inverse_tokens=i) backward\n"
                "l.dlogits (8, 16) bf16 logits = cross_entropy_grad(logits=l.logits, targets=t, "
                "inverse_tokens=i) backward\n"
                "dh (8, 4) bf16 = matmul(a=l.dlogits, b=w) backward\n"
                "dw (16, 4) f32 gradient = matmul(a=l.dlogits, b=h) {transpose_a} backward\n");
}

TEST(Expand, TrainingFormAddsToAGradient) {
  const std::string text = expanded(
      std::string(kInputs) +
      "tensor dw (16, 4) f32 gradient step\n"
      "l (8) f32, s (1) f32, dh (8, 4) bf16 = linear_cross_entropy_train(h, w, t, i) updates (dw) "
      "{weight_gradient, accumulate}\n");
  EXPECT_NE(text.find("matmul(a=l.dlogits, b=h) updates (c=dw) {transpose_a, accumulate}\n"),
            std::string::npos)
      << text;
}

TEST(Expand, ABiasIsAddedAndItsGradientIsTheSumOfRows) {
  const std::string text =
      expanded(std::string(kInputs) +
               "tensor b (16) bf16 weight run\n"
               "l (8) f32, s (1) f32, dh (8, 4) bf16, db (16) f32 gradient = "
               "linear_cross_entropy_train(h, w, t, i, b) {bias, bias_gradient}\n");
  for (const char* operation : {"l.product (8, 16) f32 logits = matmul(a=h, b=w) {transpose_b}\n"
                                "l.logits (8, 16) f32 logits = add_bias(x=l.product, bias=b)\n",
                                "db (16) f32 gradient = sum_rows(x=l.dlogits)\n"})
    EXPECT_NE(text.find(operation), std::string::npos) << text;
}

TEST(Expand, AGainMultipliesLogitsAndTheirGradients) {
  const std::string text =
      expanded(std::string(kInputs) +
               "tensor b (16) bf16 weight run\n"
               "tensor g (16) f32 adapter run\n"
               "l (8) f32, s (1) f32, dh (8, 4) bf16, db (16) f32 gradient, dg (16) f32 gradient = "
               "linear_cross_entropy_train(h, w, t, i, b, g) {bias, bias_gradient, gain, "
               "gain_gradient}\n");
  for (const char* operation :
       {"l.before_gain (8, 16) f32 logits = add_bias(x=l.product, bias=b)\n"
        "l.logits (8, 16) f32 logits = scale_columns(x=l.before_gain, gain=g)\n",
        "dg (16) f32 gradient = column_gain_grad(dy=l.dlogits, x=l.before_gain)\n"
        "l.dproduct (8, 16) bf16 logits = scale_columns(x=l.dlogits, gain=g)\n",
        "db (16) f32 gradient = sum_rows(x=l.dproduct)\n"})
    EXPECT_NE(text.find(operation), std::string::npos) << text;
}

TEST(Expand, FrozenWeightGetsNoGradient) {
  const std::string text =
      expanded(std::string(kInputs) +
               "l (8) f32, s (1) f32, dh (8, 4) bf16 = linear_cross_entropy_train(h, w, t, i)\n");
  EXPECT_EQ(text.find("transpose_a"), std::string::npos) << text;
}

TEST(Expand, BasicKindStaysAsItIs) {
  const std::string text =
      "program p\n"
      "tensor x (8, 4) bf16 batch step\n"
      "y (8, 4) bf16 = add(a=x, b=x) workspace scratch (64) u8 recompute layer 3\n";
  EXPECT_EQ(expanded(text), text);
}

}  // namespace
}  // namespace snug::program
