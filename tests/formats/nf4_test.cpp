// NF4 against bitsandbytes' own bytes (tests/goldens/nf4, made by
// scripts/oracles/make_nf4_goldens.py).
#include "formats/quantization/nf4.h"

#include "formats/folder/safetensors_file.h"
#include "formats/quantization/nf4_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace snug::formats {
namespace {

using base::DType;

const SafetensorsFile& goldens() {
  static const SafetensorsFile file("tests/goldens/nf4/blocks.safetensors");
  return file;
}

std::vector<std::byte> bytes_of(const std::string& name) {
  const TensorInfo& info = goldens().at(name);
  std::vector<std::byte> bytes(static_cast<size_t>(info.bytes()));
  goldens().read(info, bytes.data());
  return bytes;
}

struct Quantised {
  std::vector<uint8_t> codes;
  std::vector<float> absmax;
};

Quantised quantised(DType from, const void* source, int64_t elements) {
  Quantised result;
  result.codes.resize(static_cast<size_t>(nf4_code_bytes(elements)));
  result.absmax.resize(static_cast<size_t>(nf4_blocks(elements)));
  quantize_nf4(from, source, elements, result.codes.data(), result.absmax.data());
  return result;
}

template <typename T>
bool same_bytes(const std::vector<T>& values, const std::vector<std::byte>& bytes) {
  return values.size() * sizeof(T) == bytes.size() &&
         std::memcmp(values.data(), bytes.data(), bytes.size()) == 0;
}

TEST(Nf4, BytesAreThoseOfBitsandbytes) {
  int cases = 0;
  for (const TensorInfo& info : goldens().tensors()) {
    if (!info.name.ends_with(".source")) continue;
    const std::string name = info.name.substr(0, info.name.size() - 7);
    const Quantised ours = quantised(*info.dtype, bytes_of(info.name).data(), info.elements());
    EXPECT_TRUE(same_bytes(ours.codes, bytes_of(name + ".codes"))) << name;
    // A NaN may carry other bits.
    if (name != "not_finite") {
      EXPECT_TRUE(same_bytes(ours.absmax, bytes_of(name + ".absmax"))) << name;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 19);
}

// The definition, an element at a time.
Quantised by_definition(const std::vector<float>& source) {
  Quantised result;
  for (size_t i = 0; i < source.size(); ++i) {
    const size_t begin = i / 64 * 64;
    float absmax = 0;
    for (size_t k = begin; k < begin + 64; ++k) absmax = std::max(absmax, std::fabs(source[k]));
    if (i == begin) result.absmax.push_back(absmax);
    const float scaled = source[i] * (1.0F / absmax);
    uint8_t code = 0;
    while (code < 15 && scaled > kNf4Thresholds[code]) ++code;
    if (i % 2 == 0)
      result.codes.push_back(static_cast<uint8_t>(code << 4));
    else
      result.codes.back() = static_cast<uint8_t>(result.codes.back() | code);
  }
  return result;
}

TEST(Nf4, WholeBlocksFollowTheDefinition) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0F, 0.03F);
  std::vector<float> source(64 * 500);
  for (float& value : source) value = normal(random);
  const Quantised expected = by_definition(source);
  const Quantised ours = quantised(DType::f32, source.data(), std::ssize(source));
  EXPECT_EQ(ours.codes, expected.codes);
  EXPECT_EQ(ours.absmax, expected.absmax);
}

// Every 16-bit number is in the source once, so that every widening is compared as well.
TEST(Nf4, VectorsGiveWhatLoopsGive) {
  if (!runs_avx2()) GTEST_SKIP() << "the processor has no AVX2";
  std::vector<uint16_t> bits(1 << 16);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i * 40503U);
  for (const auto& [from, elements] :
       {std::pair{DType::bf16, 1 << 16}, {DType::f16, 1 << 16}, {DType::f32, 1 << 15}}) {
    const int64_t blocks = elements / 64;
    Quantised loops = quantised(from, bits.data(), elements);
    Quantised vectors = loops;
    quantize_blocks_portably(from, bits.data(), blocks, loops.codes.data(), loops.absmax.data());
    quantize_blocks_avx2(from, bits.data(), blocks, vectors.codes.data(), vectors.absmax.data());
    EXPECT_EQ(vectors.codes, loops.codes) << base::name_of(from);
    for (size_t i = 0; i < loops.absmax.size(); ++i)
      EXPECT_TRUE(vectors.absmax[i] == loops.absmax[i] ||
                  (std::isnan(vectors.absmax[i]) && std::isnan(loops.absmax[i])))
          << base::name_of(from) << " " << i;
  }
}

TEST(Nf4, RangesGiveWhatTheWholeGives) {
  std::vector<float> source(64 * 9 + 21);
  for (size_t i = 0; i < source.size(); ++i) source[i] = std::sin(static_cast<float>(i * i));
  const Quantised whole = quantised(DType::f32, source.data(), std::ssize(source));
  Quantised parts = whole;
  std::fill(parts.codes.begin(), parts.codes.end(), uint8_t{0});
  for (int64_t block = 0; block < 10; block += 3) {
    const int64_t begin = block * 64;
    const int64_t elements = std::min<int64_t>(3 * 64, std::ssize(source) - begin);
    quantize_nf4(DType::f32, source.data() + begin, elements, parts.codes.data() + begin / 2,
                 parts.absmax.data() + block);
  }
  EXPECT_EQ(parts.codes, whole.codes);
  EXPECT_EQ(parts.absmax, whole.absmax);
}

TEST(Nf4, WhatIsNotFiniteShowsInAbsmax) {
  std::vector<float> source(128, 1.0F);
  source[3] = -std::numeric_limits<float>::infinity();
  source[70] = std::numeric_limits<float>::quiet_NaN();
  const Quantised ours = quantised(DType::f32, source.data(), 128);
  EXPECT_TRUE(std::isinf(ours.absmax[0]));
  EXPECT_TRUE(std::isnan(ours.absmax[1]));
}

}  // namespace
}  // namespace snug::formats
