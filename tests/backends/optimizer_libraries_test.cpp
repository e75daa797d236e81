// Twenty steps of Lion and Adafactor on a matrix and a vector against bitsandbytes and transformers
// (scripts/oracles/peer_optimizers.py), and what a step leaves alone.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "formats/folder/safetensors_file.h"
#include "hashed_values.h"
#include "program/ir/operation.h"
#include "program/kinds/optimizer/adafactor.h"
#include "program/kinds/optimizer/lion.h"

namespace snug::backends::test {
namespace {

using base::DType;
using program::Shape;

std::vector<float> golden(const std::string& name) {
  static const formats::SafetensorsFile file("tests/goldens/optimizers/golden.safetensors");
  const auto& info = file.at(name);
  std::vector<float> read(static_cast<size_t>(info.bytes()) / sizeof(float));
  file.read(info, read.data());
  return read;
}

Buffer buffer_of(std::vector<float>& numbers, const Shape& shape) {
  Buffer buffer;
  buffer.data = reinterpret_cast<std::byte*>(numbers.data());
  buffer.dtype = DType::f32;
  buffer.shape = shape;
  buffer.strides = program::dense_strides(shape);
  return buffer;
}

struct State {
  std::string golden;  // its name there, after that of the tensor
  Shape shape;
};

// An fp32 weight and what an optimizer keeps of it.
class Trained {
 public:
  Trained(const std::string& backend, program::Attributes attributes, Shape shape, uint32_t salt,
          const std::vector<State>& states)
      : weight(hashed_values(shape.elements(), salt)),
        shape_(shape),
        states_(states),
        salt_(salt),
        attributes_(std::move(attributes)),
        backend_(open_backend(backend, {.threads = 2})) {
    for (const State& state : states)
      kept.emplace_back(static_cast<size_t>(state.shape.elements()), 0.0F);
  }

  void step(int32_t number, float factor = 1.0F) {
    std::vector<float> gradient =
        hashed_values(shape_.elements(), 100 * salt_ + static_cast<uint32_t>(number));
    std::vector<float> factors{factor};
    std::vector<float> rate{1e-2F};
    std::vector<Buffer> reads{buffer_of(gradient, shape_), buffer_of(factors, {1}),
                              buffer_of(rate, {1})};
    Buffer count = buffer_of(factors, {1});
    count.data = reinterpret_cast<std::byte*>(&number);
    count.dtype = DType::i32;
    if (attributes_.is<program::Adafactor>()) reads.push_back(count);
    std::vector<Buffer> updates{buffer_of(weight, shape_)};
    for (size_t i = 0; i < kept.size(); ++i)
      updates.push_back(buffer_of(kept[i], states_[i].shape));
    std::vector<std::byte> scratch(1 << 16);
    Invocation invocation;
    invocation.attributes = &attributes_;
    invocation.reads = reads;
    invocation.updates = updates;
    invocation.workspace.data = scratch.data();
    invocation.workspace.dtype = DType::u8;
    invocation.workspace.shape = {static_cast<int64_t>(scratch.size())};
    invocation.workspace.strides = {1};
    backend_->run(invocation);
  }

  void expect(const std::string& name) const {
    expect_near(weight, golden(name));
    for (size_t i = 0; i < kept.size(); ++i)
      expect_near(kept[i], golden(name + "." + states_[i].golden));
  }

  std::vector<float> weight;
  std::vector<std::vector<float>> kept;

 private:
  static void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    double difference = 0;
    double norm = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      difference += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
      norm += std::pow(static_cast<double>(expected[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference / norm), 1e-6);
  }

  const Shape shape_;
  const std::vector<State> states_;
  const uint32_t salt_;
  const program::Attributes attributes_;
  std::unique_ptr<Backend> backend_;
};

const Shape kMatrix{5, 7};
const Shape kVector{6};

program::Lion lion(float weight_decay) { return {.beta2 = 0.99F, .weight_decay = weight_decay}; }

class OptimizerPeers : public ::testing::TestWithParam<const char*> {};

TEST_P(OptimizerPeers, LionIsBitsandbytes) {
  Trained matrix(GetParam(), lion(0.1F), kMatrix, 1, {{"state1", kMatrix}});
  Trained vector(GetParam(), lion(0.0F), kVector, 2, {{"state1", kVector}});
  for (int32_t step = 1; step <= 20; ++step) {
    matrix.step(step);
    vector.step(step);
  }
  matrix.expect("lion.matrix");
  vector.expect("lion.vector");
}

TEST_P(OptimizerPeers, AdafactorIsThatOfTransformers) {
  Trained matrix(GetParam(), program::Adafactor{.weight_decay = 0.1F, .factored = true}, kMatrix, 1,
                 {{"exp_avg_sq_row", {5}}, {"exp_avg_sq_col", {7}}});
  Trained vector(GetParam(), program::Adafactor{}, kVector, 2, {{"exp_avg_sq", kVector}});
  for (int32_t step = 1; step <= 20; ++step) {
    matrix.step(step);
    vector.step(step);
  }
  matrix.expect("adafactor.matrix");
  vector.expect("adafactor.vector");
}

TEST_P(OptimizerPeers, AFactorThatIsNoNumberChangesNothing) {
  Trained by_lion(GetParam(), lion(0.1F), kMatrix, 1, {{"", kMatrix}});
  Trained by_adafactor(GetParam(), program::Adafactor{.weight_decay = 0.1F, .factored = true},
                       kMatrix, 1, {{"", {5}}, {"", {7}}});
  for (Trained* trained : {&by_lion, &by_adafactor}) {
    trained->step(1);
    const auto weight = trained->weight;
    const auto kept = trained->kept;
    trained->step(2, NAN);
    EXPECT_EQ(trained->weight, weight);
    EXPECT_EQ(trained->kept, kept);
    trained->step(2);
    EXPECT_NE(trained->weight, weight);
    EXPECT_NE(trained->kept, kept);
  }
}

INSTANTIATE_TEST_SUITE_P(, OptimizerPeers, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace snug::backends::test
