#include "plan/spec/adapter_widths.h"

#include <system_error>

#include "formats/adapter/peft_adapter.h"
#include "formats/adapter/renamed_modules.h"
#include "formats/folder/safetensors_file.h"

namespace snug::plan {
namespace {

constexpr int64_t kPeftWidth = 4;

}  // namespace

int64_t AdapterWidths::of(std::string_view tensor) const {
  for (const std::string& name : formats::names_of(tensor))
    if (const int64_t width = of_file(formats::adapter_key(name)); width != kPeftWidth)
      return width;
  return kPeftWidth;
}

int64_t AdapterWidths::of_file(std::string_view name) const {
  const auto other = others.find(name);
  return other == others.end() ? kPeftWidth : other->second;
}

AdapterWidths adapter_widths(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / formats::kAdapterWeightsName;
  AdapterWidths widths;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return widths;
  const formats::SafetensorsFile file = formats::open_adapter_file(folder);
  for (const formats::TensorInfo& tensor : file.tensors()) {
    if (!tensor.dtype) continue;
    const int64_t width = base::size_of(*tensor.dtype);
    if (width == kPeftWidth) continue;
    widths.others.emplace(tensor.name, width);
    if (const auto weight = formats::base_table(tensor.name))
      widths.others.emplace(formats::adapter_key(*weight), width);
  }
  return widths;
}

}  // namespace snug::plan
