// The reference itself against values worked out by hand and against identities between kinds, so
// that the oracle of all others has one too.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "backends/reference/reference_backend.h"
#include "backends/reference/with_float_type.h"
#include "base/error.h"
#include "comparison.h"
#include "program/kinds/dispatch.h"
#include "program/kinds/kind.h"
#include "reference_fixture.h"

namespace snug::backends::test {
namespace {

using program::DType;
using program::Shape;
using program::TensorId;

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

// Two heads of two: the largest magnitude of each becomes 127. 1.5 steps are rounded to even. Bytes
// are read back without a sign.
TEST_F(Reference, cache_write_in_8_bits_keeps_a_scale_for_each_head) {
  CaseBuilder b = builder();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto x = f64(b, {3, 4}, {-254, 3, 0, 0, nan, 1, 63.5, -1.25, 5, 5, 5, 5});
  const auto slots = b.index({3}, {1, 0, -1});
  const auto cache = b.input({2, 4}, DType::u8, Values(8, 9));
  const auto scales = f64(b, {2, 2}, {7, 7, 7, 7});
  const auto outputs =
      run(b.finish("", program::CacheWrite{.quantized = true}, {x, slots}, {}, {cache, scales}));
  expect_near(outputs[0], {0, 0, 127, 256 - 2, 256 - 127, 2, 0, 0});
  EXPECT_TRUE(std::isnan(outputs[1][0]));
  expect_near({outputs[1][1], outputs[1][2], outputs[1][3]}, {2, 0.5, 0});
}

// What attention makes of these keys and values is what it makes of scale times number.
TEST_F(Reference, attention_to_8_bits_is_that_to_what_they_stand_for) {
  const program::Attention plain{.heads = 2, .kv_heads = 1, .head_dim = 2, .scale = 0.5F};
  program::Attention quantized = plain;
  quantized.quantized = true;
  CaseBuilder full = builder();
  const Values queries{0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.8};
  const auto operands = [&](CaseBuilder& b, TensorId k, TensorId v) {
    const auto bounds = b.index({1, 2}, {0, 2});
    return std::vector<TensorId>{f64(b, {2, 4}, queries), k, v, bounds, bounds};
  };
  const auto outputs = [&](CaseBuilder& b) {
    return std::vector<TensorId>{b.output_activation({2, 4}), b.output_measure({2, 2})};
  };
  const auto expected = run(full.finish(
      "", plain,
      operands(full, f64(full, {2, 2}, {-1.27, 0.5, 3, 2}), f64(full, {2, 2}, {1, -1, 0, 6.35})),
      outputs(full)));
  CaseBuilder coded = builder();
  auto reads = operands(coded, coded.input({2, 2}, DType::u8, {256 - 127, 50, 30, 20}),
                        coded.input({2, 2}, DType::u8, {10, 256 - 10, 0, 127}));
  reads.push_back(f64(coded, {1, 2}, {0.01, 0.1}));
  reads.push_back(f64(coded, {1, 2}, {0.1, 0.05}));
  const auto found = run(coded.finish("", quantized, reads, outputs(coded)));
  for (size_t i = 0; i < 2; ++i) expect_near(found[i], expected[i]);
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
  // Gradients of what else a head has come after that of the weight.
  for (size_t at = operation.writes.size() - 1;
       at > 0 && !program::shape_error(plain.view()).empty(); --at)
    std::swap(operation.writes[at], operation.writes[at - 1]);
  ASSERT_EQ(program::shape_error(plain.view()), "");
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
      const bool is_accumulating = program::dispatch<bool>(attributes, [](auto& concrete) {
        if constexpr (requires { concrete.accumulate; })
          return std::exchange(concrete.accumulate, false);
        else
          return false;
      });
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
    auto grad = with.operation().attributes.get<program::RmsNormGrad>();
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
    if (!program::has_expansion(kind)) return;
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
    const auto& form = operation.attributes.get<program::LinearCrossEntropyTrain>();
    operation.attributes = program::LinearCrossEntropy{.scale = form.scale,
                                                       .softcap = form.softcap,
                                                       .bias = form.bias,
                                                       .gain = form.gain,
                                                       .smoothing = form.smoothing};
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

// A view of columns reaches from its first byte to its last, past as many bytes as it has.
TEST_F(Reference, buffers_overlap_with_the_gaps_of_views) {
  std::array<float, 24> memory{};
  auto* const data = reinterpret_cast<std::byte*>(memory.data());
  const Buffer columns{data, DType::f32, Shape{4, 2}, {6, 1}};  // of (4, 6)
  const Buffer last_row{data + 18 * sizeof(float), DType::f32, Shape{2}, {1}};
  const Buffer after{data + 20 * sizeof(float), DType::f32, Shape{4}, {1}};
  EXPECT_EQ(columns.bytes(), 8 * 4);
  EXPECT_EQ(columns.spanned_bytes(), 20 * 4);
  EXPECT_TRUE(overlap(columns, last_row));
  EXPECT_TRUE(overlap(last_row, columns));
  EXPECT_FALSE(overlap(columns, after));
  EXPECT_FALSE(overlap(after, columns));
}

TEST_F(Reference, unknown_backend_is_an_error_that_names_the_others) {
  try {
    open_backend("tpu", {});
    FAIL() << "opened a backend that does not exist";
  } catch (const base::UserError& error) {
    const std::string text = error.what();
    const std::string_view names = std::string_view(text).substr(text.find("there are"));
    for (const char* name : {"cpu", "cuda", "reference"})
      EXPECT_NE(names.find(name), std::string_view::npos) << text;
  }
}

}  // namespace
}  // namespace snug::backends::test
