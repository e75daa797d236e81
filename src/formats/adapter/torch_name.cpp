#include "formats/adapter/torch_name.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace snug::formats {
namespace {

using base::DType;

constexpr std::array<std::pair<DType, std::string_view>, 4> kNames{{{DType::u8, "uint8"},
                                                                    {DType::bf16, "bfloat16"},
                                                                    {DType::f16, "float16"},
                                                                    {DType::f32, "float32"}}};

}  // namespace

std::string_view torch_name(DType type) {
  for (const auto& [known, name] : kNames)
    if (known == type) return name;
  SNUG_CHECK(false, "torch has no name here for {}", base::name_of(type));
  return {};
}

std::optional<DType> dtype_from_torch_name(std::string_view name) {
  for (const auto& [type, known] : kNames)
    if (known == name) return type;
  return std::nullopt;
}

}  // namespace snug::formats
