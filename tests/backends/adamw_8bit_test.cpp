// AdamW with 8-bit moments against bitsandbytes: every byte of its state after each of 20 steps
// (scripts/oracles/adamw_8bit.py), and what its GPU kernels do that its PyTorch form does not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "base/dynamic_map.h"
#include "formats/folder/safetensors_file.h"
#include "hashed_values.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::backends::test {
namespace {

using base::DType;
using program::Shape;

template <typename T>
void add_to_digest(uint32_t& digest, const std::vector<T>& bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  for (size_t i = 0; i < bytes.size() * sizeof(T); ++i) digest = (digest ^ data[i]) * 0x01000193U;
}

template <typename T>
Buffer buffer_of(std::vector<T>& values, DType dtype) {
  Buffer buffer;
  buffer.data = reinterpret_cast<std::byte*>(values.data());
  buffer.dtype = dtype;
  buffer.shape = Shape{static_cast<int64_t>(values.size())};
  buffer.strides = {1};
  return buffer;
}

// One fp32 weight and its state; step() is one run of the operation.
class Trained {
 public:
  Trained(const char* backend, std::vector<float> start, float weight_decay)
      : weight(std::move(start)), backend_(open_backend(backend, {.threads = 2})) {
    const size_t count = weight.size();
    const auto blocks = static_cast<size_t>(program::state_blocks(static_cast<int64_t>(count)));
    for (size_t k = 0; k < 2; ++k) {
      codes[k].assign(count, 0);
      scales[k].assign(blocks, 0.0F);
    }
    attributes_ = program::AdamW8bit{
        .beta1 = 0.9F, .beta2 = 0.995F, .epsilon = 1e-8F, .weight_decay = weight_decay};
  }

  void step(std::vector<float> gradient, int32_t number, float factor = 1.0F) {
    std::vector<float> factors{factor};
    std::vector<float> rate{1e-3F};
    std::vector<int32_t> numbers{number};
    const std::vector<Buffer> reads{buffer_of(gradient, DType::f32), buffer_of(factors, DType::f32),
                                    buffer_of(rate, DType::f32), buffer_of(numbers, DType::i32)};
    const std::vector<Buffer> updates{buffer_of(weight, DType::f32), buffer_of(codes[0], DType::u8),
                                      buffer_of(codes[1], DType::u8),
                                      buffer_of(scales[0], DType::f32),
                                      buffer_of(scales[1], DType::f32)};
    Invocation invocation;
    invocation.attributes = &attributes_;
    invocation.reads = reads;
    invocation.updates = updates;
    backend_->run(invocation);
  }

  std::vector<float> weight;
  std::vector<uint8_t> codes[2];
  std::vector<float> scales[2];

 private:
  std::unique_ptr<Backend> backend_;
  program::Attributes attributes_;
};

class AdamW8bits : public ::testing::TestWithParam<const char*> {};

template <typename T>
std::vector<T> golden(const std::string& name) {
  static const formats::SafetensorsFile file("tests/goldens/adamw_8bit/golden.safetensors");
  const auto& info = file.at(name);
  std::vector<T> read(static_cast<size_t>(info.bytes()) / sizeof(T));
  file.read(info, read.data());
  return read;
}

TEST_P(AdamW8bits, StateEqualsBitsandbytesAfterEveryStep) {
  struct Case {
    const char* name;
    int64_t count;
    float weight_decay;
  };
  uint32_t salt = 0;
  for (const Case& c :
       {Case{"whole", 4096, 0.0F}, Case{"short", 5600, 0.1F}, Case{"decayed", 4112, 0.01F}}) {
    SCOPED_TRACE(c.name);
    const std::string prefix = std::string(c.name) + ".";
    salt += 100;
    const auto digests = golden<int32_t>(prefix + "digests");
    Trained trained(GetParam(), hashed_values(c.count, salt), c.weight_decay);
    for (int32_t step = 1; step <= 20; ++step) {
      trained.step(hashed_values(c.count, salt + static_cast<uint32_t>(step)), step);
      uint32_t digest = 0x811C9DC5U;
      for (const auto& codes : trained.codes) add_to_digest(digest, codes);
      for (const auto& scales : trained.scales) add_to_digest(digest, scales);
      EXPECT_EQ(static_cast<int32_t>(digest), digests[static_cast<size_t>(step - 1)]) << step;
    }
    EXPECT_EQ(trained.codes[0], golden<uint8_t>(prefix + "codes1"));
    EXPECT_EQ(trained.codes[1], golden<uint8_t>(prefix + "codes2"));
    EXPECT_EQ(trained.scales[0], golden<float>(prefix + "scales1"));
    EXPECT_EQ(trained.scales[1], golden<float>(prefix + "scales2"));
    // bitsandbytes decays before the update in PyTorch and after it on a GPU: a difference of
    // learning_rate * weight_decay of each update, which is at most about 5 learning_rate.
    const float tolerance = 20 * (0x1p-24F + 5e-3F * 1e-3F * c.weight_decay);
    const auto weight = golden<float>(prefix + "weight");
    for (size_t i = 0; i < weight.size(); ++i)
      ASSERT_NEAR(trained.weight[i], weight[i], tolerance) << i;
  }
}

// The rest is bitsandbytes' GPU kernel, worked out by hand.
TEST_P(AdamW8bits, ACodeKeepsTheSignOfItsMoment) {
  Trained trained(GetParam(), std::vector<float>(256, 1.0F), 0.0F);
  std::vector<float> gradient(256, 0.0F);
  gradient[0] = 1.0F;
  gradient[1] = -1e-8F;  // far below half of the map's first step of 5.5e-7
  gradient[2] = 1e-8F;
  gradient[3] = -1.0F;  // the map ends at -0.993
  trained.step(gradient, 1);
  EXPECT_EQ(trained.codes[0][0], 255);
  EXPECT_EQ(trained.codes[0][1], 126) << "not 127, which is zero";
  EXPECT_EQ(trained.codes[0][2], 127) << "zero has the sign of what is positive";
  EXPECT_EQ(trained.codes[0][3], 0);
  EXPECT_EQ(trained.codes[0][4], 127);
  EXPECT_EQ(trained.codes[1][0], 255);
  EXPECT_EQ(trained.codes[1][4], 0);
}

TEST_P(AdamW8bits, ABlockOfZerosHasScaleZeroAndMovesNothing) {
  Trained trained(GetParam(), std::vector<float>(300, 1.0F), 0.0F);
  trained.step(std::vector<float>(300, 0.0F), 1);
  EXPECT_EQ(trained.codes[0], std::vector<uint8_t>(300, 255)) << "as its GPU kernel leaves them";
  EXPECT_EQ(trained.codes[1], std::vector<uint8_t>(300, 0));
  EXPECT_EQ(trained.scales[0], std::vector<float>(2, 0.0F));
  EXPECT_EQ(trained.weight, std::vector<float>(300, 1.0F));
  trained.step(std::vector<float>(300, 0.5F), 2);
  EXPECT_LT(trained.weight[299], 1.0F);
}

TEST_P(AdamW8bits, WhatIsNotFiniteKeepsItsWeightAndLosesItsMoments) {
  Trained trained(GetParam(), std::vector<float>(256, 1.0F), 0.1F);
  trained.step(std::vector<float>(256, 0.5F), 1);
  const float before = trained.weight[7];
  std::vector<float> gradient(256, 0.5F);
  gradient[7] = NAN;
  gradient[9] = -HUGE_VALF;
  trained.step(gradient, 2);
  EXPECT_EQ(trained.weight[7], before);
  EXPECT_EQ(trained.weight[9], before);
  EXPECT_LT(trained.weight[8], before);
  EXPECT_EQ(trained.codes[0][7], 127);
  EXPECT_EQ(trained.codes[1][9], 0);
  EXPECT_TRUE(std::isfinite(trained.scales[0][0]));
}

TEST_P(AdamW8bits, AFactorThatIsNoNumberChangesNothing) {
  Trained trained(GetParam(), std::vector<float>(256, 1.0F), 0.1F);
  trained.step(std::vector<float>(256, 0.5F), 1);
  const Trained& now = trained;
  const auto weight = now.weight;
  const auto codes = now.codes[0];
  trained.step(std::vector<float>(256, 0.5F), 2, NAN);
  EXPECT_EQ(trained.weight, weight);
  EXPECT_EQ(trained.codes[0], codes);
}

INSTANTIATE_TEST_SUITE_P(, AdamW8bits, ::testing::Values("reference", "cpu"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace snug::backends::test
