// What torch calls element types: the words of config.json and of quantised weights.
#pragma once

#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace snug::formats {

// "bfloat16", "float16", "float32" or "uint8", the types that weights are stored and multiplied in;
// any other fails a CHECK.
std::string_view torch_name(base::DType type);
std::optional<base::DType> dtype_from_torch_name(std::string_view name);

}  // namespace snug::formats
