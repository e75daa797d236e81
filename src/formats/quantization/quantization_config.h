// The object `quantization_config` of config.json: how the weights of the folder are stored, in the
// words of transformers' BitsAndBytesConfig.
#pragma once

#include "base/dtype.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace snug::formats {

// bitsandbytes' NF4, the one way of storing in fewer than 16 bits that snug reads.
struct QuantizationConfig {
  bool double_quant = false;
  base::DType compute_dtype = base::DType::f32;  // what transformers multiplies in
  base::DType storage_dtype = base::DType::u8;   // what the codes are viewed as; f32, bf16, f16, u8
  // Left in 16 bits; nothing: the head alone.
  std::optional<std::vector<std::string>> skip_modules{};
};

// The object of a parsed config.json, or nothing when it has none. `file` names it in errors.
// Throws UserError for another method (8 bits, FP4, GPTQ, AWQ, ...), naming it and what to do
// instead.
std::optional<QuantizationConfig> parse_quantization_config(const nlohmann::json& config,
                                                            const std::string& file);

// The object that transformers writes and reads.
nlohmann::json to_json(const QuantizationConfig& config);

}  // namespace snug::formats
