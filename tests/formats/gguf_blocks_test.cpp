// Blocks of GGUF files against ggml's bytes and values (tests/goldens/gguf_blocks, made by
// scripts/oracles/check_gguf_blocks --goldens): rows with one edge each, and many drawn ones.
#include "formats/gguf/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../base/captured_stream.h"
#include "base/checksum.h"
#include "base/random.h"
#include "formats/folder/safetensors_file.h"

namespace snug::formats {
namespace {

using Bytes = std::vector<std::byte>;
using Values = std::vector<float>;

constexpr size_t kRow = 256;
constexpr uint32_t kDrawnRows = 1024;

template <typename T>
std::vector<T> golden(const std::string& name) {
  static const SafetensorsFile file("tests/goldens/gguf_blocks/golden.safetensors");
  const TensorInfo& info = file.at(name);
  std::vector<T> values(static_cast<size_t>(info.bytes()) / sizeof(T));
  file.read(info, values.data());
  return values;
}

std::vector<GgmlType> quantisable_types() {
  std::vector<GgmlType> types;
  for (const auto& word : base::kWordsOf<GgmlType>)
    if (can_quantise(word.value) && word.value != GgmlType::f32) types.push_back(word.value);
  return types;
}

Values drawn_values() {
  Values values(kDrawnRows * kRow);
  for (uint32_t i = 0; i < values.size(); ++i) {
    const base::PhiloxCounter words = base::philox({i, 0, 0, 0}, {45, 0});
    const float above = base::uniform(words[0]) + base::uniform(words[1]);
    const float below = base::uniform(words[2]) + base::uniform(words[3]);
    values[i] = (above - below) * 0.02F;
  }
  return values;
}

// Each row of edges, and last all drawn ones.
std::vector<Values> golden_parts() {
  const auto edges = golden<float>("edges");
  std::vector<Values> parts;
  for (auto row = edges.begin(); row != edges.end(); row += kRow)
    parts.emplace_back(row, row + kRow);
  parts.push_back(drawn_values());
  return parts;
}

Bytes quantised(GgmlType type, const Values& values) {
  Bytes blocks(static_cast<size_t>(stored_bytes(type, std::ssize(values))));
  quantise_blocks(type, values, blocks);
  return blocks;
}

Values dequantised(GgmlType type, std::span<const std::byte> blocks) {
  const BlockSize size = block_size(type);
  Values values(blocks.size() / static_cast<size_t>(size.bytes) *
                static_cast<size_t>(size.elements));
  dequantise_blocks(type, blocks, values);
  return values;
}

// Halves that are infinite give NaN, whose bits are the processor's.
uint64_t checksum_of(Values values) {
  for (float& value : values)
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  return base::checksum(values.data(), std::ssize(values) * 4);
}

TEST(GgufBlocks, BytesAndValuesAreThoseOfGgml) {
  const std::vector<Values> parts = golden_parts();
  for (const GgmlType type : quantisable_types()) {
    const std::string name(base::word_of(type));
    const auto block_sums = golden<uint64_t>(name + ".block_sums");
    const auto value_sums = golden<uint64_t>(name + ".value_sums");
    ASSERT_EQ(block_sums.size(), parts.size());
    ASSERT_EQ(value_sums.size(), parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      const Bytes blocks = quantised(type, parts[i]);
      EXPECT_EQ(base::checksum(blocks.data(), std::ssize(blocks)), block_sums[i])
          << name << ", bytes of part " << i;
      EXPECT_EQ(checksum_of(dequantised(type, blocks)), value_sums[i])
          << name << ", values of part " << i;
    }
  }
}

TEST(GgufBlocks, ValuesOfQ2KAreThoseOfGgml) {
  const auto blocks = golden<std::byte>("q2_k.blocks");
  const auto sums = golden<uint64_t>("q2_k.value_sums");
  const auto bytes = static_cast<size_t>(block_size(GgmlType::q2_k).bytes);
  ASSERT_EQ(blocks.size(), sums.size() * bytes);
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::span<const std::byte> row = std::span(blocks).subspan(i * bytes, bytes);
    EXPECT_EQ(checksum_of(dequantised(GgmlType::q2_k, row)), sums[i]) << i;
  }
}

TEST(GgufBlocks, EveryTypeButTwoIsWritten) {
  EXPECT_EQ(quantisable_types().size(), 12U);
  EXPECT_TRUE(can_quantise(GgmlType::f32));
  EXPECT_FALSE(can_quantise(GgmlType::q2_k));
  EXPECT_FALSE(can_quantise(GgmlType::i32));
  const Values values{1.5F, -0.0F, 1e-45F, 3e38F};
  EXPECT_EQ(dequantised(GgmlType::f32, quantised(GgmlType::f32, values)), values);
}

// A buffer may begin anywhere, and blocks of 17, 18 or 210 bytes do.
TEST(GgufBlocks, BlocksNeedNoAlignmentAndKnowNoNeighbours) {
  const Values values = drawn_values();
  constexpr size_t kCount = 4 * kRow;
  for (const GgmlType type : quantisable_types()) {
    const Bytes whole = quantised(type, Values(values.begin(), values.begin() + kCount));
    Bytes shifted(whole.size() + 1);
    const size_t quarter = whole.size() / 4;
    for (size_t i = 0; i < 4; ++i)
      quantise_blocks(type, std::span(values).subspan(i * kRow, kRow),
                      std::span(shifted).subspan(1 + i * quarter, quarter));
    EXPECT_EQ(Bytes(shifted.begin() + 1, shifted.end()), whole) << base::word_of(type);
    EXPECT_EQ(dequantised(type, std::span(shifted).subspan(1)), dequantised(type, whole))
        << base::word_of(type);
  }
}

TEST(GgufBlocksDeath, SizesMustFit) {
  const Values values(300);
  Bytes blocks(34 * 9);
  const auto row = std::span(values).first(256);
  EXPECT_TRUE(testing::dies([&] { quantise_blocks(GgmlType::q8_0, values, blocks); },
                            "300 values of q8_0 are no whole blocks of 32"));
  EXPECT_TRUE(testing::dies([&] { quantise_blocks(GgmlType::q8_0, row, blocks); },
                            "256 values of q8_0 have 272 bytes, not 306"));
  EXPECT_TRUE(
      testing::dies([&] { quantise_blocks(GgmlType::q2_k, row, std::span(blocks).first(84)); },
                    "nothing is quantised to q2_k"));
}

}  // namespace
}  // namespace snug::formats
