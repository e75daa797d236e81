#include "formats/quantization/quantization_config.h"

#include "../base/temporary_folder.h"
#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace snug::formats {
namespace {

using base::DType;
using nlohmann::json;
using testing::contains;
using testing::user_error_of;

std::string error_of(const json& quantization) {
  return user_error_of([&] {
    parse_quantization_config({{"quantization_config", quantization}}, "config.json");
  });
}

TEST(QuantizationConfig, ReadsAndWritesWhatTransformersDoes) {
  for (const char* folder : {"double", "plain"}) {
    const std::string path = std::string("tests/goldens/nf4/") + folder + "/config.json";
    const json config = base::read_json_file(path);
    const auto parsed = parse_quantization_config(config, path);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->double_quant, std::string(folder) == "double");
    EXPECT_EQ(parsed->compute_dtype, DType::bf16);
    EXPECT_EQ(parsed->storage_dtype, DType::u8);
    EXPECT_EQ(to_json(*parsed), config["quantization_config"]);
  }
}

TEST(QuantizationConfig, IsAbsentFromModelsIn16Bits) {
  EXPECT_FALSE(parse_quantization_config(json::object(), "x"));
  EXPECT_FALSE(parse_quantization_config({{"quantization_config", nullptr}}, "x"));
}

TEST(QuantizationConfig, ReadsOlderAndOtherForms) {
  const auto parsed =
      parse_quantization_config({{"quantization_config",
                                  {{"load_in_4bit", true},
                                   {"bnb_4bit_quant_type", "nf4"},
                                   {"bnb_4bit_compute_dtype", "torch.float16"},
                                   {"bnb_4bit_quant_storage", "bfloat16"},
                                   {"llm_int8_skip_modules", {"lm_head", "model.layers.0.mlp"}}}}},
                                "x");
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->double_quant);
  EXPECT_EQ(parsed->compute_dtype, DType::f16);
  EXPECT_EQ(parsed->storage_dtype, DType::bf16);
  EXPECT_EQ(parsed->skip_modules.value(),
            (std::vector<std::string>{"lm_head", "model.layers.0.mlp"}));
  EXPECT_EQ(to_json(*parsed)["llm_int8_skip_modules"], (json{"lm_head", "model.layers.0.mlp"}));
}

TEST(QuantizationConfig, RefusesOtherMethodsByName) {
  for (const char* method : {"gptq", "awq", "compressed-tensors"}) {
    const std::string error = error_of({{"quant_method", method}, {"bits", 4}});
    EXPECT_TRUE(contains(error, std::string("is \"") + method + "\"; snug reads"));
    EXPECT_TRUE(contains(error, "config.json"));
    EXPECT_TRUE(contains(error, "snug quantize"));
  }
  for (const char* method : {"mxfp4", "fp8"})
    EXPECT_TRUE(contains(error_of({{"quant_method", method}}), "snug dequantize"));
  EXPECT_TRUE(contains(error_of({{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}),
                       "'quantization_config.load_in_8bit' is true"));
  EXPECT_TRUE(contains(error_of({{"load_in_4bit", true}, {"bnb_4bit_quant_type", "fp4"}}),
                       "is \"fp4\"; snug reads"));
  EXPECT_TRUE(contains(error_of({{"quant_method", "bitsandbytes"}}), "load_in_4bit"));
  EXPECT_TRUE(contains(error_of({{"load_in_4bit", true}, {"bnb_4bit_compute_dtype", "int3"}}),
                       "is \"int3\"; expected"));
  EXPECT_TRUE(contains(error_of(json::array()), "quantization_config"));
}

}  // namespace
}  // namespace snug::formats
