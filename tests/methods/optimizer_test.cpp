// The table of optimizers: what each keeps, what its operations touch, and what it says of itself.
#include "methods/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/recipe/optimizer_keys.h"
#include "methods/update.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "program/kinds/optimizer/muon.h"
#include "program/verify/verify.h"

namespace snug::methods {
namespace {

using program::DType;
using program::OptimizerState;
using program::Role;
using program::Tensor;

std::vector<OptimizerKind> all_optimizers() {
  std::vector<OptimizerKind> kinds;
  for (const auto& word : words_of(OptimizerKind{})) kinds.push_back(word.value);
  return kinds;
}

Tensor weight_of(std::string name, const program::Shape& shape, DType dtype) {
  Tensor weight;
  weight.name = std::move(name);
  weight.shape = shape;
  weight.dtype = dtype;
  weight.role = Role::weight;
  weight.lifetime = program::Lifetime::run;
  return weight;
}

// A matrix of a layer and a vector that are large enough for every form, and a small one.
std::vector<Tensor> weights(DType dtype) {
  std::vector<Tensor> all{weight_of("matrix", {70, 90}, dtype), weight_of("vector", {5000}, dtype),
                          weight_of("small", {7}, dtype)};
  all[0].layer = 0;
  return all;
}

class Optimizers : public ::testing::TestWithParam<OptimizerKind> {
 protected:
  static std::vector<DType> types() {
    if (optimizer_of(GetParam()).needs_bf16) return {DType::bf16};
    return {DType::f32, DType::bf16};
  }
};

TEST_P(Optimizers, HaveARowInBothTables) {
  EXPECT_EQ(optimizer_of(GetParam()).kind, GetParam());
  const formats::OptimizerKeys& keys = formats::optimizer_keys_of(GetParam());
  EXPECT_FALSE(keys.help.empty());
  EXPECT_FALSE(keys.keys.empty());
}

TEST_P(Optimizers, StepWhatTheyKeepAndNothingElse) {
  const std::vector<int32_t> sites{0, 1, 2};
  for (const DType dtype : types()) {
    const std::vector<Tensor> trainables = weights(dtype);
    const UpdateOptions options{.optimizer = GetParam(), .weight_decay = 0.1};
    const program::Program update = methods::update(trainables, sites, options);
    EXPECT_EQ(program::verify(update), std::vector<std::string>{});
    for (const Tensor& trainable : trainables) {
      std::vector<std::string> kept{trainable.name};
      for (const OptimizerState& state : optimizer_of(GetParam()).states(trainable))
        kept.push_back(state.tensor.name);
      std::vector<std::string> touched;
      for (const program::Operation& operation : update.operations) {
        if (program::traits_of(operation).category != program::Category::optimizer ||
            update.tensor(operation.updates[0]).name != trainable.name)
          continue;
        for (const program::TensorId id : operation.updates)
          touched.push_back(update.tensor(id).name);
      }
      EXPECT_EQ(touched, kept);
    }
    EXPECT_EQ(update.find(program::kStepName) != program::kNone,
              optimizer_of(GetParam()).counts_steps);
  }
}

// What is not f32 has a master, unless the optimizer keeps all in bf16; ranks may share out what
// belongs to a number of neighbours.
TEST_P(Optimizers, SayOfWhatTheirStateIs) {
  const Optimizer& optimizer = optimizer_of(GetParam());
  bool has_parts = true;
  for (const DType dtype : types())
    for (const Tensor& trainable : weights(dtype))
      for (const OptimizerState& state : optimizer.states(trainable)) {
        SCOPED_TRACE(state.tensor.name);
        EXPECT_EQ(state.tensor.lifetime, program::Lifetime::run);
        EXPECT_TRUE(state.tensor.role == Role::moment || state.tensor.role == Role::master);
        has_parts = has_parts && state.shared_by > 0;
        if (state.tensor.role == Role::master) {
          EXPECT_NE(dtype, DType::f32);
          EXPECT_EQ(state.tensor.shape, trainable.shape);
        }
        if (state.shared_by > 0) {
          const int64_t neighbours = state.shared_by;
          EXPECT_EQ(state.tensor.shape.elements(),
                    (trainable.shape.elements() + neighbours - 1) / neighbours);
        }
      }
  EXPECT_EQ(has_parts, optimizer.steps_parts);
  for (const OptimizerKind leaner : optimizer.leaner) EXPECT_NE(leaner, GetParam());
}

TEST(OptimizerStates, AreOfThePublishedSizes) {
  const auto bytes_of = [](OptimizerKind kind, DType dtype, int32_t layer = 0) {
    Tensor weight = weight_of("w", {70, 90}, dtype);
    weight.layer = layer;
    int64_t bytes = 0;
    for (const OptimizerState& state : optimizer_of(kind).states(weight))
      bytes += state.tensor.bytes();
    return bytes;
  };
  EXPECT_EQ(bytes_of(OptimizerKind::adamw, DType::f32), 6300 * 8);
  EXPECT_EQ(bytes_of(OptimizerKind::adamw_8bit, DType::bf16), 6300 * 2 + 2 * 4 * 25);
  EXPECT_EQ(bytes_of(OptimizerKind::lion, DType::f32), 6300 * 4);
  EXPECT_EQ(bytes_of(OptimizerKind::lion, DType::bf16), 6300 * 8);
  EXPECT_EQ(bytes_of(OptimizerKind::adafactor, DType::f32), (70 + 90) * 4);
  EXPECT_EQ(bytes_of(OptimizerKind::adafactor, DType::bf16), (70 + 90 + 6300) * 4);
  EXPECT_EQ(bytes_of(OptimizerKind::muon, DType::f32), 6300 * 4);
  EXPECT_EQ(bytes_of(OptimizerKind::muon, DType::bf16), 6300 * 8);
  EXPECT_EQ(bytes_of(OptimizerKind::muon, DType::f32, -1), 6300 * 8) << "an embedding: AdamW's";
}

// Of matrices of layers, adapters' and stacks of experts' too; by what the learning rate is scaled.
TEST(MuonRows, AreMatricesOfLayers) {
  struct Trained {
    program::Shape shape;
    int32_t layer;
    program::Kind kind;
  };
  for (const auto& [shape, layer, kind] :
       {Trained{{70, 90}, 0, program::Kind::muon}, Trained{{4, 90}, 3, program::Kind::muon},
        Trained{{8, 70, 90}, 1, program::Kind::muon}, Trained{{90}, 0, program::Kind::adamw},
        Trained{{70, 90}, -1, program::Kind::adamw}}) {
    std::vector<Tensor> trained{weight_of("w", shape, DType::bf16)};
    trained[0].layer = layer;
    const program::Program update =
        methods::update(trained, std::vector<int32_t>{0}, {.optimizer = OptimizerKind::muon});
    EXPECT_EQ(update.operations.back().kind(), kind) << program::to_string(shape);
  }
}

TEST(MuonRows, ScaleTheLearningRateByTheShape) {
  const auto scale_of = [](formats::AdjustLearningRate by, const program::Shape& shape) {
    std::vector<Tensor> trained{weight_of("w", shape, DType::bf16)};
    trained[0].layer = 0;
    UpdateOptions options{.optimizer = OptimizerKind::muon};
    options.muon.adjust_learning_rate = by;
    const program::Program update = methods::update(trained, std::vector<int32_t>{0}, options);
    return update.operations.back().attributes.get<program::Muon>().rate_scale;
  };
  using enum formats::AdjustLearningRate;
  EXPECT_FLOAT_EQ(scale_of(original, {64, 16}), 2.0F);
  EXPECT_FLOAT_EQ(scale_of(original, {16, 64}), 1.0F);
  EXPECT_FLOAT_EQ(scale_of(original, {3, 64, 16}), 2.0F);
  EXPECT_FLOAT_EQ(scale_of(match_rms_adamw, {16, 64}), 1.6F);
  EXPECT_FLOAT_EQ(scale_of(spectral_unclamped, {16, 64}), 0.5F);
}

INSTANTIATE_TEST_SUITE_P(, Optimizers, ::testing::ValuesIn(all_optimizers()),
                         [](const auto& test) { return std::string(base::word_of(test.param)); });

}  // namespace
}  // namespace snug::methods
