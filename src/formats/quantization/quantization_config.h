// The object `quantization_config` of config.json: how the folder's weights are stored, with the
// keys of transformers' BitsAndBytesConfig.
#pragma once

#include "base/dtype.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace snug::formats {

// bitsandbytes' NF4, the only format with fewer than 16 bits per weight that this object may
// announce.
struct QuantizationConfig {
  bool double_quant = false;
  base::DType compute_dtype = base::DType::f32;  // the type in which transformers multiplies
  // The type as which the codes are viewed: f32, bf16, f16 or u8.
  base::DType storage_dtype = base::DType::u8;
  // Modules that stay in 16 bits; nothing: only the head.
  std::optional<std::vector<std::string>> skip_modules{};
};

// Parses the object of a config.json, or returns nothing if it has none. `file` names it in errors.
// Throws UserError for any other method (8 bits, FP4, GPTQ, AWQ, ...), naming it and what to do
// instead.
std::optional<QuantizationConfig> parse_quantization_config(const nlohmann::json& config,
                                                            const std::string& file);

// The object in the form that transformers writes and reads.
nlohmann::json to_json(const QuantizationConfig& config);

}  // namespace snug::formats
