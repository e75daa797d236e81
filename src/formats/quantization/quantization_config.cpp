#include "formats/quantization/quantization_config.h"

#include "base/error.h"
#include "base/json.h"
#include "formats/adapter/torch_name.h"
#include "formats/quantization/fp8.h"

#include <nlohmann/json.hpp>

namespace snug::formats {
namespace {

using base::DType;

constexpr std::string_view kKey = "quantization_config";
constexpr std::string_view kMethod = "bitsandbytes";
constexpr std::string_view kAdvice =
    "snug reads bitsandbytes' NF4 alone. Use the model's folder in 16 bits; snug quantize makes an "
    "NF4 folder of it";
constexpr std::string_view kMxfp4Method = "mxfp4";
constexpr std::string_view kStoredFp8Advice =
    "snug trains linears in 16 bits, or quantises them to NF4 while it reads them. 'snug "
    "dequantize "
    "model=FOLDER output_dir=FOLDER' makes a folder in bf16 of it; give that";
constexpr std::string_view kMxfp4Advice =
    "snug trains experts in 16 bits. 'snug dequantize model=FOLDER output_dir=FOLDER' makes a "
    "folder in bf16 of it; give that";

DType dtype_or(const base::JsonObject& json, std::string_view key, DType fallback) {
  std::string name = json.text_or(key, std::string(torch_name(fallback)));
  if (name.starts_with("torch.")) name = name.substr(6);
  if (const std::optional<DType> dtype = dtype_from_torch_name(name)) return *dtype;
  json.fail(key, fmt::format("is \"{}\"; expected bfloat16, float16, float32 or uint8", name));
}

// Older folders have no quant_method, only the switches load_in_4bit and load_in_8bit.
void check_method(const base::JsonObject& json) {
  const std::string method = json.text_or("quant_method", std::string(kMethod));
  if (method == kMxfp4Method)
    json.fail("quant_method", fmt::format("is \"{}\"; {}", method, kMxfp4Advice));
  if (method == kFp8Method)
    json.fail("quant_method", fmt::format("is \"{}\"; {}", method, kStoredFp8Advice));
  if (method != kMethod) json.fail("quant_method", fmt::format("is \"{}\"; {}", method, kAdvice));
  if (json.boolean_or("load_in_8bit", false) || json.boolean_or("_load_in_8bit", false))
    json.fail("load_in_8bit", fmt::format("is true; {}", kAdvice));
  const bool in_4bit = json.boolean_or("load_in_4bit", json.boolean_or("_load_in_4bit", false));
  if (!in_4bit) json.fail("load_in_4bit", fmt::format("is not true; {}", kAdvice));
  const std::string type = json.text_or("bnb_4bit_quant_type", "nf4");
  if (type != "nf4") json.fail("bnb_4bit_quant_type", fmt::format("is \"{}\"; {}", type, kAdvice));
}

}  // namespace

std::optional<QuantizationConfig> parse_quantization_config(const nlohmann::json& config,
                                                            const std::string& file) {
  const base::JsonObject whole(config, file);
  if (!whole.has(kKey)) return std::nullopt;
  const base::JsonObject json = whole.object(kKey);
  check_method(json);
  QuantizationConfig result;
  result.double_quant = json.boolean_or("bnb_4bit_use_double_quant", false);
  result.compute_dtype = dtype_or(json, "bnb_4bit_compute_dtype", DType::f32);
  result.storage_dtype = dtype_or(json, "bnb_4bit_quant_storage", DType::u8);
  if (json.has("llm_int8_skip_modules")) result.skip_modules = json.texts("llm_int8_skip_modules");
  return result;
}

nlohmann::json to_json(const QuantizationConfig& config) {
  nlohmann::json json{{"quant_method", kMethod},
                      {"load_in_4bit", true},
                      {"load_in_8bit", false},
                      {"_load_in_4bit", true},
                      {"_load_in_8bit", false},
                      {"bnb_4bit_quant_type", "nf4"},
                      {"bnb_4bit_use_double_quant", config.double_quant},
                      {"bnb_4bit_compute_dtype", torch_name(config.compute_dtype)},
                      {"bnb_4bit_quant_storage", torch_name(config.storage_dtype)},
                      {"llm_int8_enable_fp32_cpu_offload", false},
                      {"llm_int8_has_fp16_weight", false},
                      {"llm_int8_threshold", 6.0},
                      {"llm_int8_skip_modules", nullptr}};
  if (config.skip_modules) json["llm_int8_skip_modules"] = *config.skip_modules;
  return json;
}

}  // namespace snug::formats
