// torch's names of element types, which config.json and quantised weights use.
#pragma once

#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace snug::formats {

// "bfloat16", "float16", "float32" or "uint8": the types in which weights are stored and
// multiplied; any other type fails a CHECK.
std::string_view torch_name(base::DType type);
std::optional<base::DType> dtype_from_torch_name(std::string_view name);

}  // namespace snug::formats
