// The values of NF4 weights, bit for bit: dequantize_nf4 on what bitsandbytes stored
// (tests/goldens/nf4), against what it decoded where the goldens hold that. Of other weights the
// values are those of docs/nf4.md's definition, which is held against the same goldens first.
// SNUG_ISA selects the path of the cpu backend.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "formats/folder/safetensors_file.h"
#include "formats/quantization/quant_state.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends {
namespace {

using base::DType;
using program::Shape;
using Bytes = std::vector<std::byte>;

// The operands of a weight; those of the nested form are empty in the plain one.
struct Stored {
  int64_t elements = 0;
  std::vector<uint8_t> codes;
  std::vector<float> absmax;
  std::vector<uint8_t> nested_codes{};
  std::vector<float> nested_absmax{};
  std::vector<float> map{};
  std::vector<float> offset{};

  bool nested() const { return absmax.empty(); }
};

template <typename T>
Buffer buffer_of(std::vector<T>& values, DType dtype, const Shape& shape) {
  return {reinterpret_cast<std::byte*>(values.data()), dtype, shape, program::dense_strides(shape)};
}

template <typename T>
Buffer vector_of(std::vector<T>& values, DType dtype) {
  return buffer_of(values, dtype, Shape{std::ssize(values)});
}

// What the operation makes of it.
Bytes dequantized(Backend& backend, Stored stored, DType to) {
  std::vector<Buffer> reads{buffer_of(stored.codes, DType::u8, Shape{std::ssize(stored.codes), 1})};
  if (stored.nested()) {
    reads.push_back(vector_of(stored.nested_codes, DType::u8));
    for (auto* part : {&stored.nested_absmax, &stored.map, &stored.offset})
      reads.push_back(vector_of(*part, DType::f32));
  } else {
    reads.push_back(vector_of(stored.absmax, DType::f32));
  }
  Bytes values(static_cast<size_t>(stored.elements * base::size_of(to)), std::byte{0xff});
  const std::vector<Buffer> writes{buffer_of(values, to, Shape{1, stored.elements})};
  const program::Attributes attributes = program::DequantizeNf4{.nested = stored.nested()};
  Invocation invocation;
  invocation.attributes = &attributes;
  invocation.reads = reads;
  invocation.writes = writes;
  backend.run(invocation);
  return values;
}

std::vector<float> scales_of(const Stored& stored) {
  if (!stored.nested()) return stored.absmax;
  std::vector<float> scales;
  for (size_t i = 0; i < stored.nested_codes.size(); ++i) {
    const float product =
        stored.map[stored.nested_codes[i]] * stored.nested_absmax[i / formats::kNestedBlockSize];
    scales.push_back(product + stored.offset[0]);
  }
  return scales;
}

// What docs/nf4.md says that they are.
Bytes defined(const Stored& stored, DType to) {
  const std::vector<float> scales = scales_of(stored);
  const auto size = static_cast<size_t>(base::size_of(to));
  Bytes values(static_cast<size_t>(stored.elements) * size);
  for (size_t i = 0; i < static_cast<size_t>(stored.elements); ++i) {
    const uint8_t pair = stored.codes[i / 2];
    const size_t code = i % 2 == 0 ? pair >> 4U : pair & 15U;
    const float value = formats::kNf4Codes[code] * scales[i / formats::kNf4BlockSize];
    const base::BFloat16 rounded = base::to_bfloat16(value);
    std::memcpy(&values[i * size], to == DType::f32 ? static_cast<const void*>(&value) : &rounded,
                size);
  }
  return values;
}

template <typename T>
std::vector<T> golden(const char* file_name, const std::string& name) {
  const formats::SafetensorsFile file(std::string("tests/goldens/nf4/") + file_name);
  const formats::TensorInfo& info = file.at(name);
  std::vector<T> values(static_cast<size_t>(info.bytes()) / sizeof(T));
  file.read(info, values.data());
  return values;
}

constexpr const char* kBlocks = "blocks.safetensors";
constexpr const char* kDecoded[] = {"float32", "bfloat16", "partial_17"};
constexpr const char* kAbsmax = "absmax.safetensors";
constexpr const char* kNested[] = {"few", "one", "equal", "many", "wide"};

Stored golden_blocks(const std::string& name, int64_t elements) {
  return {elements, golden<uint8_t>(kBlocks, name + ".codes"),
          golden<float>(kBlocks, name + ".absmax")};
}

Bytes golden_values(const std::string& name, DType type) {
  return golden<std::byte>(kBlocks,
                           name + (type == DType::f32 ? ".values.float32" : ".values.bfloat16"));
}

int64_t elements_of(const std::string& name) {
  return std::ssize(golden<float>(kBlocks, name + ".values.float32"));
}

// A weight of ones, so that its values are its scales.
Stored golden_scales(const std::string& name) {
  Stored stored;
  stored.nested_codes = golden<uint8_t>(kAbsmax, name + ".codes");
  stored.nested_absmax = golden<float>(kAbsmax, name + ".nested_absmax");
  stored.map = golden<float>(kAbsmax, "map");
  stored.offset = golden<float>(kAbsmax, name + ".offset");
  stored.elements = std::ssize(stored.nested_codes) * formats::kNf4BlockSize;
  stored.codes.assign(static_cast<size_t>(stored.elements) / 2, 0xff);
  return stored;
}

Stored with_plain_scales(Stored stored, std::vector<float> scales) {
  stored.absmax = std::move(scales);
  return stored;
}

// The weight of a folder, where it is quantised.
std::optional<Stored> read_weight(const formats::TensorIndex& index,
                                  const formats::TensorInfo& weight) {
  const auto parts = formats::find_nf4(index, weight.name, weight.shape);
  if (!parts) return std::nullopt;
  const auto read = [&](const formats::IndexedTensor& tensor, auto& values) {
    values.resize(static_cast<size_t>(tensor.info->bytes()) / sizeof(values[0]));
    index.read(tensor, values.data());
  };
  Stored stored;
  stored.elements = weight.elements();
  read(*parts->codes, stored.codes);
  if (!parts->state.nested()) {
    read(*parts->absmax, stored.absmax);
    return stored;
  }
  read(*parts->absmax, stored.nested_codes);
  read(*parts->nested_absmax, stored.nested_absmax);
  stored.map.assign(parts->nested_map.begin(), parts->nested_map.end());
  stored.offset = {*parts->state.nested_offset};
  return stored;
}

TEST(Nf4Definition, IsThatOfBitsandbytes) {
  for (const std::string name : kDecoded)
    for (const DType type : {DType::f32, DType::bf16})
      EXPECT_EQ(defined(golden_blocks(name, elements_of(name)), type), golden_values(name, type))
          << name;
  for (const std::string name : kNested)
    EXPECT_EQ(scales_of(golden_scales(name)), golden<float>(kAbsmax, name + ".values")) << name;
}

class Nf4Values : public ::testing::TestWithParam<std::tuple<std::string, DType>> {
 protected:
  Nf4Values()
      : type_(std::get<1>(GetParam())),
        backend_(open_backend(std::get<0>(GetParam()), {.threads = 2})) {}

  Bytes values(const Stored& stored) { return dequantized(*backend_, stored, type_); }
  // EXPECT_EQ would print every byte.
  void expect_defined(const Stored& stored, const std::string& name) {
    EXPECT_TRUE(values(stored) == defined(stored, type_)) << name;
  }

  const DType type_;
  const std::unique_ptr<Backend> backend_;
};

TEST_P(Nf4Values, AreThoseOfBitsandbytes) {
  for (const std::string name : kDecoded)
    EXPECT_EQ(values(golden_blocks(name, elements_of(name))), golden_values(name, type_)) << name;
}

TEST_P(Nf4Values, NestedScalesAreThoseOfBitsandbytes) {
  for (const std::string name : kNested) {
    const Stored ones = golden_scales(name);
    const Stored plain = with_plain_scales(ones, golden<float>(kAbsmax, name + ".values"));
    EXPECT_TRUE(values(ones) == defined(plain, type_)) << name;
  }
}

TEST_P(Nf4Values, OfEveryLinearOfAFolder) {
  for (const auto& [folder, model] :
       {std::pair{"double", "grouped_tied"}, {"plain", "rope_linear"}}) {
    const formats::TensorIndex index(std::string("tests/goldens/nf4/") + folder);
    const formats::TensorIndex source(std::string("tests/goldens/") + model + "/model");
    int linears = 0;
    for (const formats::IndexedTensor& tensor : source.tensors()) {
      const auto stored = read_weight(index, *tensor.info);
      if (!stored) continue;
      EXPECT_EQ(stored->nested(), std::string(folder) == "double");
      expect_defined(*stored, tensor.info->name);
      ++linears;
    }
    EXPECT_GT(linears, 10);
  }
}

// Several tasks of a thread, and an end within a block.
TEST_P(Nf4Values, OfALargeWeight) {
  std::mt19937 random(11);
  Stored nested = golden_scales("many");
  nested.elements -= 47;
  nested.codes.resize(static_cast<size_t>(formats::nf4_code_bytes(nested.elements)));
  for (uint8_t& pair : nested.codes) pair = static_cast<uint8_t>(random());
  expect_defined(nested, "nested");
  expect_defined(with_plain_scales(nested, scales_of(nested)), "plain");
}

INSTANTIATE_TEST_SUITE_P(, Nf4Values,
                         ::testing::Combine(::testing::Values("reference", "cpu"),
                                            ::testing::Values(DType::f32, DType::bf16)),
                         [](const auto& test) {
                           return fmt::format("{}_{}", std::get<0>(test.param),
                                              base::name_of(std::get<1>(test.param)));
                         });

}  // namespace
}  // namespace snug::backends
