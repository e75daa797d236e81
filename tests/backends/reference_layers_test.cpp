// Norms, rotations, activations, attention and losses of the reference against values worked out by
// hand.
#include <cmath>

#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/norm/layer_norm.h"
#include "program/kinds/norm/rms_norm.h"
#include "reference_fixture.h"

namespace snug::backends::test {
namespace {

TEST_F(Reference, rms_norm_of_a_known_row) {
  CaseBuilder b = builder();
  const auto x = f64(b, {1, 2}, {3, 4});
  const auto w = f64(b, {2}, {1, -2});
  const auto y = b.output_activation({1, 2});
  const double root = std::sqrt(12.5);
  expect_near(run(b.finish("", program::RmsNorm{0.0F}, {x, w}, {y}))[0], {3 / root, -8 / root});
}

TEST_F(Reference, rms_norm_adds_its_offset_to_the_weight) {
  CaseBuilder b = builder();
  const auto x = f64(b, {1, 2}, {3, 4});
  const auto w = f64(b, {2}, {0, -3});
  const auto y = b.output_activation({1, 2});
  const double root = std::sqrt(12.5);
  expect_near(run(b.finish("", program::RmsNorm{0.0F, 1.0F}, {x, w}, {y}))[0],
              {3 / root, -8 / root});
}

TEST_F(Reference, layer_norm_takes_mean_and_variance_away) {
  CaseBuilder b = builder();
  const auto x = f64(b, {1, 4}, {1, 2, 3, 6});  // mean 3, variance 3.5
  const auto w = f64(b, {4}, {1, 2, 5, -2});
  const auto bias = f64(b, {4}, {0, 1, 7, 0.5});
  const auto y = b.output_activation({1, 4});
  expect_near(
      run(b.finish("", program::LayerNorm{.epsilon = 0.5F, .bias = true}, {x, w, bias}, {y}))[0],
      {-1, 0, 7, -2.5});
}

TEST_F(Reference, rope_passes_on_what_lies_beyond_its_width) {
  CaseBuilder b = builder();
  const auto x = f64(b, {1, 4}, {1, 2, 3, 4});
  const auto table = f64(b, {1, 2}, {0, 1});  // a quarter turn
  const auto y = b.output_activation({1, 4});
  expect_near(run(b.finish("", program::Rope{.head_dim = 4, .rotary_dim = 2}, {x, table}, {y}))[0],
              {-2, 1, 3, 4});
}

TEST_F(Reference, interleaved_rope_turns_neighbours) {
  CaseBuilder b = builder();
  const auto x = f64(b, {1, 4}, {1, 2, 3, 4});
  // A quarter turn of the second pair alone.
  const auto table = f64(b, {1, 4}, {1, 0, 0, 1});
  const auto y = b.output_activation({1, 4});
  expect_near(
      run(b.finish("", program::Rope{.head_dim = 4, .interleaved = true}, {x, table}, {y}))[0],
      {1, 2, -4, 3});
}

TEST_F(Reference, rope_turns_each_pair_by_its_angle) {
  CaseBuilder b = builder();
  // A quarter turn of the pair (1, 3) of the head, none of (2, 4).
  const auto x = f64(b, {1, 4}, {1, 2, 3, 4});
  const auto table = f64(b, {1, 4}, {0, 1, 1, 0});
  const auto y = b.output_activation({1, 4});
  expect_near(run(b.finish("", program::Rope{4}, {x, table}, {y}))[0], {-3, 2, 1, 4});
}

TEST_F(Reference, rotary_table_holds_cosines_then_sines) {
  CaseBuilder b = builder();
  const auto positions = b.index({2}, {0, 3});
  const auto frequency = f64(b, {2}, {1.0, 0.5});
  const auto table = b.output_activation({2, 4});
  expect_near(run(b.finish("", program::RotaryTable{2.0F}, {positions, frequency}, {table}))[0],
              {2, 2, 0, 0, 2 * std::cos(3), 2 * std::cos(1.5), 2 * std::sin(3), 2 * std::sin(1.5)});
}

// With a period of 4: position 3 is in the first, 9 in the third.
TEST_F(Reference, a_growing_rotary_table_grows_after_each_period) {
  CaseBuilder b = builder();
  const auto positions = b.index({2}, {3, 9});
  const auto frequency = f64(b, {1}, {1.0});
  const auto table = b.output_measure({2, 2});
  const double grown = 2 * (1 + 0.5 * std::log(3));
  expect_near(
      run(b.finish("", program::RotaryTable{2.0F, 0.5F, 4}, {positions, frequency}, {table}))[0],
      {2 * std::cos(3), 2 * std::sin(3), grown * std::cos(9), grown * std::sin(9)});
}

TEST_F(Reference, silu_mul_of_known_numbers) {
  CaseBuilder b = builder();
  const auto gate = f64(b, {1, 3}, {0, std::log(3.0), -1000});
  const auto up = f64(b, {1, 3}, {5, 2, 1});
  const auto y = b.output_activation({1, 3});
  expect_near(run(b.finish("", program::SiluMul{}, {gate, up}, {y}))[0],
              {0, std::log(3.0) * 0.75 * 2, 0});
}

TEST_F(Reference, attention_over_equal_keys_is_the_mean_of_visible_values) {
  CaseBuilder b = builder();
  const auto q = f64(b, {4, 1}, {1, 2, 3, 4});
  const auto k = f64(b, {4, 1}, {0, 0, 0, 0});
  const auto v = f64(b, {4, 1}, {1, 3, 8, 100});
  // Tokens 0 to 2 are one segment; token 3 belongs to none.
  const auto bounds = b.index({2, 2}, {0, 3, 0, 0});
  const auto o = b.output_activation({4, 1});
  const auto lse = b.output_activation({1, 4});
  const auto outputs =
      run(b.finish("", program::Attention{1, 1, 1, 1.0F}, {q, k, v, bounds, bounds}, {o, lse}));
  expect_near(outputs[0], {1, 2, 4, 0});
  expect_near(outputs[1], {0, std::log(2.0), std::log(3.0), 0});
}

TEST_F(Reference, attention_window_counts_the_query_itself) {
  CaseBuilder b = builder();
  const auto q = f64(b, {3, 1}, {1, 1, 1});
  const auto k = f64(b, {3, 1}, {0, 0, 0});
  const auto v = f64(b, {3, 1}, {1, 3, 8});
  const auto bounds = b.index({1, 2}, {0, 3});
  const auto o = b.output_activation({3, 1});
  const auto lse = b.output_activation({1, 3});
  const program::Attention attention{
      .heads = 1, .kv_heads = 1, .head_dim = 1, .causal = true, .window = 2};
  expect_near(run(b.finish("", attention, {q, k, v, bounds, bounds}, {o, lse}))[0], {1, 2, 5.5});
}

TEST_F(Reference, attention_caps_scores) {
  CaseBuilder b = builder();
  const auto q = f64(b, {2, 1}, {1, 1});
  const auto k = f64(b, {2, 1}, {0, 2 * std::atanh(0.5)});
  const auto v = f64(b, {2, 1}, {0, 1});
  const auto bounds = b.index({1, 2}, {0, 2});
  const auto o = b.output_activation({2, 1});
  const auto lse = b.output_activation({1, 2});
  const program::Attention attention{.heads = 1, .kv_heads = 1, .head_dim = 1, .softcap = 2.0F};
  const double e = std::exp(1.0);  // the second score is 2 tanh(atanh(0.5)) = 1
  expect_near(run(b.finish("", attention, {q, k, v, bounds, bounds}, {o, lse}))[0],
              {0, e / (1 + e)});
}

TEST_F(Reference, alibi_takes_a_slope_of_each_head_off_what_is_far) {
  EXPECT_EQ(program::alibi_exponent(8, 0), 1);
  EXPECT_EQ(program::alibi_exponent(8, 7), 8);
  // Not a power of two: slopes of two heads, then one between them.
  EXPECT_EQ(program::alibi_exponent(3, 1), 8);
  EXPECT_EQ(program::alibi_exponent(3, 2), 2);
  CaseBuilder b = builder();
  const auto q = f64(b, {2, 2}, {1, 1, 1, 1});
  const auto k = f64(b, {2, 1}, {0, 0});
  const auto v = f64(b, {2, 1}, {0, 1});
  const auto bounds = b.index({1, 2}, {0, 2});
  const auto o = b.output_activation({2, 2});
  const auto lse = b.output_activation({2, 2});
  const program::Attention attention{.heads = 2, .kv_heads = 1, .head_dim = 1, .alibi_scale = 1.0F};
  const double far = std::exp(-1.0 / 16);
  const double further = std::exp(-1.0 / 256);
  expect_near(run(b.finish("", attention, {q, k, v, bounds, bounds}, {o, lse}))[0],
              {0, 0, 1 / (1 + far), 1 / (1 + further)});
}

TEST_F(Reference, linear_cross_entropy_scales_logits_and_caps_them) {
  CaseBuilder b = builder();
  const auto hidden = f64(b, {1, 1}, {1});
  const auto weight = f64(b, {2, 1}, {0, 4 * std::atanh(0.5)});
  const auto targets = b.index({1}, {0});
  const auto inverse_tokens = f64(b, {1}, {1});
  const auto losses = b.output_activation({1});
  const auto loss = b.output_activation({1});
  const program::LinearCrossEntropy attributes{.scale = 0.5F, .softcap = 2.0F};
  expect_near(
      run(b.finish("", attributes, {hidden, weight, targets, inverse_tokens}, {losses, loss}))[0],
      {std::log(1 + std::exp(1.0))});
}

TEST_F(Reference, linear_cross_entropy_adds_a_bias_before_the_cap) {
  CaseBuilder b = builder();
  const auto hidden = f64(b, {1, 1}, {1});
  const auto weight = f64(b, {2, 1}, {0, 1});
  const auto targets = b.index({1}, {0});
  const auto inverse_tokens = f64(b, {1}, {1});
  const auto bias = f64(b, {2}, {0, 2 * std::atanh(0.5) - 1});
  const auto losses = b.output_activation({1});
  const auto loss = b.output_activation({1});
  const program::LinearCrossEntropy attributes{.softcap = 2.0F, .bias = true};
  expect_near(run(b.finish("", attributes, {hidden, weight, targets, inverse_tokens, bias},
                           {losses, loss}))[0],
              {std::log(1 + std::exp(1.0))});
}

TEST_F(Reference, cross_entropy_of_equal_logits_is_the_log_of_their_number) {
  CaseBuilder b = builder();
  const auto logits = f64(b, {2, 5}, Values(10, 3.0));
  const auto targets = b.index({2}, {4, -100});
  const auto inverse_tokens = f64(b, {1}, {0.25});
  const auto losses = b.output_activation({2});
  const auto loss = b.output_activation({1});
  const auto outputs =
      run(b.finish("", program::CrossEntropy{}, {logits, targets, inverse_tokens}, {losses, loss}));
  expect_near(outputs[0], {std::log(5.0), 0});
  expect_near(outputs[1], {std::log(5.0) / 4});
}

}  // namespace
}  // namespace snug::backends::test
