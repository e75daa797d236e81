// The reference itself against values worked out by hand and against identities between kinds, so
// that the oracle of all others has one too.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "backends/reference/reference_backend.h"
#include "backends/reference/with_float_type.h"
#include "base/error.h"
#include "comparison.h"
#include "operation_check.h"
#include "program/kind.h"

namespace snug::backends::test {
namespace {

using program::DType;
using program::Shape;
using program::TensorId;

constexpr Types kF64{"f64", DType::f64, DType::f64, DType::f64, true};

class Reference : public testing::Test {
 protected:
  // Values of the operation's outputs, in the order of writes and then updates.
  std::vector<Values> run(const OperationCase& operation_case) {
    const RunResult result = oracle_of(operation_case);
    EXPECT_TRUE(result.violations.empty());
    std::vector<Values> values;
    for (const TensorId id : operation_case.operation().writes)
      values.push_back(result.values.at(id));
    for (const TensorId id : operation_case.operation().updates)
      values.push_back(result.values.at(id));
    return values;
  }

  void expect_near(const Values& found, const Values& expected, double tolerance = 1e-12) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], tolerance) << "element " << i;
  }

  CaseBuilder builder() { return {kF64, random_}; }
  TensorId f64(CaseBuilder& builder, const Shape& shape, Values values) {
    return builder.input(shape, DType::f64, std::move(values));
  }

  Random random_{test_seed()};
};

TEST_F(Reference, matmul_of_a_known_product) {
  CaseBuilder b = builder();
  const auto x = f64(b, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto w = f64(b, {2, 3}, {7, 8, 9, 10, 11, 12});
  const auto addend = f64(b, {2, 2}, {1, 2, 3, 4});
  const auto y = b.output_activation({2, 2});
  const auto outputs =
      run(b.finish("", program::Matmul{.transpose_b = true, .alpha = 2.0F, .addend = true},
                   {x, w, addend}, {y}));
  expect_near(outputs[0], {101, 138, 247, 338});
}

TEST_F(Reference, matmul_adds_the_low_rank_product_that_augments_it) {
  CaseBuilder b = builder();
  const auto x = f64(b, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto w = f64(b, {2, 3}, {7, 8, 9, 10, 11, 12});
  const auto addend = f64(b, {2, 2}, {1, 2, 3, 4});
  const auto low_a = f64(b, {2, 1}, {2, -1});
  const auto low_b = f64(b, {2, 1}, {3, 5});
  const auto y = b.output_activation({2, 2});
  const program::Matmul augmented{.transpose_b = true,
                                  .alpha = 2.0F,
                                  .addend = true,
                                  .augmented = true,
                                  .low_transpose_b = true,
                                  .low_alpha = 0.5F};
  expect_near(run(b.finish("", augmented, {x, w, addend, low_a, low_b}, {y}))[0],
              {101 + 3, 138 + 5, 247 - 1.5, 338 - 2.5});
}

TEST_F(Reference, rms_norm_of_a_known_row) {
  CaseBuilder b = builder();
  const auto x = f64(b, {1, 2}, {3, 4});
  const auto w = f64(b, {2}, {1, -2});
  const auto y = b.output_activation({1, 2});
  const double root = std::sqrt(12.5);
  expect_near(run(b.finish("", program::RmsNorm{0.0F}, {x, w}, {y}))[0], {3 / root, -8 / root});
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

TEST_F(Reference, embedding_grad_adds_up_repeated_ids) {
  CaseBuilder b = builder();
  const auto dy = f64(b, {3, 2}, {1, 2, 10, 20, 100, 200});
  const auto ids = b.index({3}, {2, 0, 2});
  const auto dtable = f64(b, {3, 2}, {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  expect_near(run(b.finish("", program::EmbeddingGrad{true}, {dy, ids}, {}, {dtable}))[0],
              {10.5, 20.5, 0.5, 0.5, 101.5, 202.5});
}

TEST_F(Reference, cache_write_leaves_other_rows_alone) {
  CaseBuilder b = builder();
  const auto x = f64(b, {3, 1}, {7, 8, 9});
  const auto slots = b.index({3}, {2, -1, 0});
  const auto cache = f64(b, {4, 1}, {1, 2, 3, 4});
  expect_near(run(b.finish("", program::CacheWrite{}, {x, slots}, {}, {cache}))[0], {9, 2, 7, 4});
}

TEST_F(Reference, norm_and_clip_factor) {
  CaseBuilder norms = builder();
  const auto a = f64(norms, {2}, {3, 0});
  const auto b = f64(norms, {1}, {4});
  const auto norm = norms.output_activation({1});
  expect_near(run(norms.finish("", program::GlobalNorm{}, {a, b}, {norm}))[0], {5});
  CaseBuilder clips = builder();
  const auto five = f64(clips, {1}, {5});
  const auto factor = clips.output_activation({1});
  expect_near(run(clips.finish("", program::ClipFactor{2.0F}, {five}, {factor}))[0],
              {2.0 / (5.0 + 1e-6)});
}

// Two steps of torch.optim.AdamW(lr=0.1, betas=(0.5, 0.75), eps=0, weight_decay=0.5) worked out.
TEST_F(Reference, adamw_decays_and_then_steps) {
  CaseBuilder b = builder();
  const auto gradient = f64(b, {1}, {-4});
  const auto factor = f64(b, {1}, {0.5});
  const auto rate = f64(b, {1}, {0.1});
  const auto step = b.index({1}, {2});
  const auto weight = f64(b, {1}, {2});
  const auto first = f64(b, {1}, {1});
  const auto second = f64(b, {1}, {1});
  const program::AdamW adamw{.beta1 = 0.5F, .beta2 = 0.75F, .epsilon = 0.0F, .weight_decay = 0.5F};
  const auto outputs =
      run(b.finish("", adamw, {gradient, factor, rate, step}, {}, {weight, first, second}));
  const double m = 0.5 * 1 + 0.5 * -2;
  const double v = 0.75 * 1 + 0.25 * 4;
  expect_near(outputs[0], {2 * (1 - 0.05) - 0.1 * (m / 0.75) / std::sqrt(v / (1 - 0.5625))});
  expect_near(outputs[1], {m});
  expect_near(outputs[2], {v});
}

TEST_F(Reference, a_norm_that_is_not_finite_leaves_the_weights_alone) {
  for (const OperationCase& operation_case : cases_of(program::Kind::adamw, kAllTypes[2])) {
    const auto& operation = operation_case.operation();
    if (!std::isnan(operation_case.inputs.at(id_of(operation, program::AdamW::kFactor))[0]))
      continue;
    const RunResult result = oracle_of(operation_case);
    for (const TensorId id : operation.updates)
      EXPECT_EQ(result.values.at(id), operation_case.inputs.at(id));
  }
}

// The operation with its accumulating form: the plain result plus what was there.
void expect_adds(const OperationCase& accumulating, program::Attributes plain_attributes) {
  const RunResult accumulated = oracle_of(accumulating);
  OperationCase plain = accumulating;
  program::Operation& operation = plain.program.operations[0];
  operation.attributes = std::move(plain_attributes);
  const TensorId target = operation.updates[0];
  operation.writes.push_back(target);
  operation.updates.clear();
  Values expected = oracle_of(plain).values.at(target);
  const Values& before = accumulating.inputs.at(target);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
  EXPECT_LE(relative_error(accumulated.values.at(target), expected), 1e-14) << accumulating.name;
}

TEST_F(Reference, accumulating_forms_add_to_what_was_there) {
  constexpr int64_t kLargestUpdate = 3000;
  int checked = 0;
  const auto each = [&](program::Kind kind) {
    for (const OperationCase& operation_case : cases_of(kind, kAllTypes[0])) {
      const auto& updates = operation_case.operation().updates;
      if (updates.empty() ||
          operation_case.program.tensor(updates[0]).shape.elements() > kLargestUpdate)
        continue;
      program::Attributes attributes = operation_case.operation().attributes;
      const bool is_accumulating = std::visit(
          [](auto& concrete) {
            if constexpr (requires { concrete.accumulate; })
              return std::exchange(concrete.accumulate, false);
            else
              return false;
          },
          attributes);
      if (!is_accumulating) continue;
      expect_adds(operation_case, attributes);
      ++checked;
    }
  };
  for (const program::Kind kind : all_kinds()) each(kind);
  EXPECT_GT(checked, 50);
}

TEST_F(Reference, rms_norm_grad_adds_its_addend) {
  for (const OperationCase& with : cases_of(program::Kind::rms_norm_grad, kAllTypes[0])) {
    auto grad = std::get<program::RmsNormGrad>(with.operation().attributes);
    if (!grad.addend) continue;
    OperationCase without = with;
    grad.addend = false;
    without.program.operations[0].attributes = grad;
    without.program.operations[0].reads.pop_back();
    const TensorId dx = with.operation().writes[0];
    Values expected = oracle_of(without).values.at(dx);
    const Values& addend = with.inputs.at(with.operation().reads[3]);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += addend[i];
    EXPECT_LE(relative_error(oracle_of(with).values.at(dx), expected), 1e-14) << with.name;
  }
}

// A fused kind means its expansion.
TEST_F(Reference, fused_kinds_are_their_expansions) {
  int checked = 0;
  const auto each = [&](program::Kind kind) {
    if (!program::traits_of(kind).is_fused) return;
    for (const OperationCase& operation_case : cases_of(kind, kAllTypes[0])) {
      OperationCase expanded = operation_case;
      program::Program empty = operation_case.program;
      empty.operations.clear();
      program::Builder builder(std::move(empty));
      program::expand(operation_case.view(), builder);
      expanded.program = builder.take();
      const RunResult fused = oracle_of(operation_case);
      const RunResult apart = oracle_of(expanded);
      for (const auto& [id, values] : fused.values)
        EXPECT_LE(relative_error(values, apart.values.at(id)), 1e-14) << operation_case.name;
      ++checked;
    }
  };
  for (const program::Kind kind : all_kinds()) each(kind);
  EXPECT_GT(checked, 20);
}

// The training form gives the losses of the plain one, whatever the chunks.
TEST_F(Reference, training_form_has_the_losses_of_the_plain_form) {
  for (const OperationCase& train :
       cases_of(program::Kind::linear_cross_entropy_train, kAllTypes[0])) {
    OperationCase plain = train;
    program::Operation& operation = plain.program.operations[0];
    operation.attributes = program::LinearCrossEntropy{};
    operation.writes.resize(2);
    operation.updates.clear();
    const RunResult expected = oracle_of(plain);
    const RunResult found = oracle_of(train);
    for (const TensorId id : operation.writes)
      EXPECT_EQ(found.values.at(id), expected.values.at(id)) << train.name;
  }
}

TEST_F(Reference, with_float_type_leaves_integers_and_workspaces_alone) {
  program::Program program;
  program.tensors.resize(3);
  program.tensors[0].dtype = DType::bf16;
  program.tensors[1].dtype = DType::i32;
  program.tensors[2].dtype = DType::f32;
  program.tensors[2].role = program::Role::workspace;
  const program::Program converted = reference::with_float_type(program, DType::f64);
  EXPECT_EQ(converted.tensors[0].dtype, DType::f64);
  EXPECT_EQ(converted.tensors[1].dtype, DType::i32);
  EXPECT_EQ(converted.tensors[2].dtype, DType::f32);
}

TEST_F(Reference, unknown_backend_is_an_error_that_names_the_others) {
  try {
    open_backend("tpu", {});
    FAIL() << "opened a backend that does not exist";
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'cpu', 'cuda' and 'reference'"), std::string::npos);
  }
}

}  // namespace
}  // namespace snug::backends::test
