// The parts of a quantised weight: read from folders that transformers and bitsandbytes saved
// (tests/goldens/nf4), and broken ones refused.
#include "formats/quantization/quant_state.h"

#include "../base/temporary_folder.h"
#include "formats/quantization/nf4.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace snug::formats {
namespace {

using base::DType;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

constexpr const char* kWeight = "model.layers.0.mlp.down_proj.weight";

std::vector<std::byte> bytes_of(const TensorIndex& index, const IndexedTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.info->bytes()));
  index.read(tensor, bytes.data());
  return bytes;
}

// The weight of the fp32 golden model as bf16.
std::vector<base::BFloat16> source_of(const std::string& model, const std::string& name) {
  const TensorIndex index("tests/goldens/" + model + "/model");
  const IndexedTensor& tensor = index.at(name);
  std::vector<float> values(static_cast<size_t>(tensor.info->elements()));
  index.read(tensor, values.data());
  std::vector<base::BFloat16> rounded;
  for (const float value : values) rounded.push_back(base::to_bfloat16(value));
  return rounded;
}

// Every stored byte is what we make of the same 16-bit weight.
void expect_our_bytes(const TensorIndex& index, const Nf4Parts& stored, const std::string& model,
                      const std::string& name) {
  const auto source = source_of(model, name);
  const int64_t elements = std::ssize(source);
  const int64_t blocks = nf4_blocks(elements);
  std::vector<std::byte> codes(static_cast<size_t>(nf4_code_bytes(elements)));
  std::vector<float> absmax(static_cast<size_t>(blocks));
  quantize_nf4(DType::bf16, source.data(), elements, reinterpret_cast<uint8_t*>(codes.data()),
               absmax.data());
  EXPECT_EQ(codes, bytes_of(index, *stored.codes)) << name;
  std::vector<std::byte> scales(static_cast<size_t>(stored.absmax->info->bytes()));
  if (!stored.state.nested()) {
    std::memcpy(scales.data(), absmax.data(), scales.size());
  } else {
    std::vector<float> nested(static_cast<size_t>(nested_blocks(blocks)));
    EXPECT_EQ(quantize_absmax(absmax.data(), blocks, reinterpret_cast<uint8_t*>(scales.data()),
                              nested.data()),
              *stored.state.nested_offset)
        << name;
    std::vector<float> stored_nested(nested.size());
    index.read(*stored.nested_absmax, stored_nested.data());
    EXPECT_EQ(nested, stored_nested) << name;
    EXPECT_EQ(stored.nested_map, base::signed_dynamic_map());
  }
  EXPECT_EQ(scales, bytes_of(index, *stored.absmax)) << name;
}

TEST(QuantState, FoldersOfTransformersHoldTheBytesWeMake) {
  for (const auto& [folder, model] :
       {std::pair{"double", "grouped_tied"}, {"plain", "rope_linear"}}) {
    const TensorIndex index(std::string("tests/goldens/nf4/") + folder);
    EXPECT_TRUE(holds_quantised(index));
    const TensorIndex source(std::string("tests/goldens/") + model + "/model");
    EXPECT_FALSE(holds_quantised(source));
    int found = 0;
    for (const IndexedTensor& tensor : source.tensors()) {
      const std::string& name = tensor.info->name;
      const auto stored = find_nf4(index, name, tensor.info->shape);
      EXPECT_EQ(stored.has_value(), name.find("proj") != std::string::npos) << name;
      if (!stored) continue;
      EXPECT_EQ(stored->state.nested(), std::string(folder) == "double");
      expect_our_bytes(index, *stored, model, name);
      ++found;
    }
    EXPECT_GT(found, 10);
  }
}

TEST(QuantState, TextAndPartsAreThoseOfBitsandbytes) {
  for (const char* folder : {"tests/goldens/nf4/double", "tests/goldens/nf4/plain"}) {
    const TensorIndex index(folder);
    int states = 0;
    for (const IndexedTensor& tensor : index.tensors()) {
      if (!tensor.info->name.ends_with(kStateSuffix)) continue;
      const auto bytes = bytes_of(index, tensor);
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const QuantState state = parse_quant_state(text, "x");
      EXPECT_EQ(to_json(state), text);
      for (const TensorSpec& part :
           nf4_parts(std::string(*weight_of_part(tensor.info->name)), state)) {
        const TensorInfo& stored = *index.at(part.name).info;
        EXPECT_EQ(stored.dtype, part.dtype) << part.name;
        EXPECT_EQ(stored.shape, part.shape) << part.name;
      }
      ++states;
    }
    EXPECT_GT(states, 10);
  }
}

TEST(QuantState, OffsetsReadAsPythonWritesThem) {
  for (const auto& [value, text] : {std::pair{2.0F, "2.0"},
                                    {0.1F, "0.10000000149011612"},
                                    {1e-5F, "9.999999747378752e-06"},
                                    {-0.5F, "-0.5"}}) {
    const QuantState state{DType::f16, {3, 5}, value};
    EXPECT_TRUE(contains(to_json(state), fmt::format("\"nested_offset\": {}}}", text)));
    EXPECT_EQ(parse_quant_state(to_json(state), "x"), state);
  }
}

TEST(QuantState, TellsPartsFromOtherTensors) {
  EXPECT_EQ(weight_of_part("a.weight.absmax"), "a.weight");
  EXPECT_EQ(weight_of_part("a.weight.nested_absmax"), "a.weight");
  EXPECT_EQ(weight_of_part("a.weight.quant_state.bitsandbytes__nf4"), "a.weight");
  EXPECT_EQ(weight_of_part("a.weight"), std::nullopt);
  EXPECT_EQ(weight_of_part("a.weight.quant_state.other"), std::nullopt);
}

std::string state_error(const std::string& from, const std::string& to) {
  std::string text = to_json({DType::bf16, {4, 6}, 0.25F});
  text.replace(text.find(from), from.size(), to);
  return user_error_of([&] { parse_quant_state(text, "f: t"); });
}

TEST(QuantState, RefusesWhatItCannotRead) {
  EXPECT_TRUE(contains(state_error("\"nf4\"", "\"fp4\""), "stored as FP4, which snug does not"));
  EXPECT_TRUE(contains(state_error("\"nf4\"", "\"int4\""), "expected nf4"));
  EXPECT_TRUE(contains(state_error(": 64", ": 128"), "is 128; snug reads blocks of 64 only"));
  EXPECT_TRUE(contains(state_error(": 256", ": 512"), "blocks of 256 only"));
  EXPECT_TRUE(contains(state_error("bfloat16", "int8"), "expected bfloat16"));
  EXPECT_TRUE(contains(state_error("[4, 6]", "[4]"), "two positive sizes"));
  EXPECT_TRUE(contains(state_error("[4, 6]", "[4, -6]"), "two positive sizes"));
  EXPECT_TRUE(contains(state_error("[4, 6]", "[4, 9223372036854775807]"), "two positive sizes"));
  EXPECT_TRUE(contains(state_error("0.25", "1e300"), "finite"));
  EXPECT_TRUE(contains(state_error("float32", "float16"), "expected float32"));
  EXPECT_TRUE(contains(state_error("{", ""), "f: t:1:"));
}

// A file with the parts of one weight of 4 x 48 elements, one of them changed or left out.
std::string file_error(std::string_view suffix, const TensorSpec* instead) {
  const TemporaryFolder folder;
  const QuantState state{DType::bf16, {4, 48}, 0.25F};
  std::vector<TensorSpec> parts;
  for (const TensorSpec& part : nf4_parts("w", state))
    if (part.name != fmt::format("w{}", suffix)) parts.push_back(part);
  if (instead != nullptr) parts.push_back(*instead);
  SafetensorsWriter writer(folder / "model.safetensors", parts);
  for (const TensorSpec& part : parts) {
    std::vector<std::byte> bytes(static_cast<size_t>(part.bytes()));
    const std::string text = to_json(state);
    if (part.name.ends_with(kStateSuffix)) std::memcpy(bytes.data(), text.data(), bytes.size());
    if (part.name.ends_with(".quant_map") && part.bytes() == sizeof(kNf4Codes))
      std::memcpy(bytes.data(), kNf4Codes.data(), bytes.size());
    writer.write(part.name, bytes.data(), part.bytes());
  }
  writer.finish();
  return user_error_of([&] { find_nf4(TensorIndex(folder.path()), "w", {4, 48}); });
}

TEST(QuantState, RefusesIncompleteParts) {
  EXPECT_EQ(file_error("none", nullptr), "(no error)");
  const TensorSpec viewed{"w", DType::bf16, {48, 1}};
  EXPECT_EQ(file_error("", &viewed), "(no error)") << "the type of the codes does not matter";
  for (const auto suffix : {kAbsmaxSuffix, kMapSuffix, kNestedAbsmaxSuffix, kNestedMapSuffix,
                            kStateSuffix, std::string_view("")})
    EXPECT_TRUE(contains(file_error(suffix, nullptr), "is missing")) << suffix;
  const TensorSpec few{"w", DType::u8, {95, 1}};
  EXPECT_TRUE(contains(file_error("", &few), "has 95 bytes; expected 96"));
  const TensorSpec deep{"w.absmax", DType::u8, {1, 1, 1, 1, 3}};
  EXPECT_TRUE(contains(file_error(".absmax", &deep), "shape [1, 1, 1, 1, 3]"));
  const TensorSpec deep_codes{"w", DType::u8, {1, 1, 1, 96, 1}};
  EXPECT_TRUE(contains(file_error("", &deep_codes), "at most 2 dimensions"));
  const TensorSpec wide{"w.absmax", DType::f32, {3}};
  EXPECT_TRUE(contains(file_error(".absmax", &wide), "3 elements of F32; expected 3 of U8"));
}

TEST(QuantState, RefusesAnotherShapeAndOtherCodes) {
  const TensorIndex index("tests/goldens/nf4/double");
  EXPECT_TRUE(contains(user_error_of([&] {
                         find_nf4(index, kWeight, {52, 36});
                       }),
                       "of shape [36, 52]; expected [52, 36]"));
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "model.safetensors",
                           {{"w.quant_state.bitsandbytes__fp4", DType::u8, {2}}});
  writer.write("w.quant_state.bitsandbytes__fp4", "{}", 2);
  writer.finish();
  EXPECT_TRUE(contains(user_error_of([&] {
                         find_nf4(TensorIndex(folder.path()), "w", {1, 1});
                       }),
                       "FP4"));
}

}  // namespace
}  // namespace snug::formats
