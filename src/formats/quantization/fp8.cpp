#include "formats/quantization/fp8.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "formats/folder/safetensors_file.h"

namespace snug::formats {
namespace {

constexpr std::string_view kType = "F8_E4M3";
constexpr std::string_view kScales = "_scale_inv";
constexpr std::string_view kInputScale = ".activation_scale";

bool is_fp8(const IndexedTensor* tensor) {
  return tensor != nullptr && tensor->info->stored_dtype == kType;
}

std::array<float, 256> make_values() {
  std::array<float, 256> values{};
  for (size_t code = 0; code < values.size(); ++code) {
    const auto exponent = static_cast<int>(code >> 3U & 15U);
    const auto mantissa = static_cast<float>(code & 7U);
    const float size =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8.0F + mantissa, exponent - 10);
    const bool is_nan = (code & 127U) == 127U;
    const float value = is_nan ? std::numeric_limits<float>::quiet_NaN() : size;
    values[code] = code < 128 ? value : -value;
  }
  return values;
}

}  // namespace

std::optional<Fp8Parts> find_fp8(const TensorIndex& index, std::string_view name) {
  const IndexedTensor* codes = index.find(name);
  if (!is_fp8(codes)) return std::nullopt;
  Fp8Parts parts{.codes = codes, .scales = &index.at(fmt::format("{}{}", name, kScales))};
  const TensorInfo& scales = *parts.scales->info;
  if (scales.elements() != 1 && scales.shape.size() == 2) {
    parts.scale_rows = scales.shape[0];
    parts.scale_columns = scales.shape[1];
  }
  const std::vector<int64_t>& shape = codes->info->shape;
  const bool fits = shape.size() == 2 && scales.dtype && base::is_float(*scales.dtype) &&
                    parts.scale_rows * parts.scale_columns == scales.elements() &&
                    scales.elements() > 0 && shape[0] % parts.scale_rows == 0 &&
                    shape[1] % parts.scale_columns == 0;
  if (!fits)
    base::throw_user_error(
        "{}: tensor '{}' is {} of {}; expected floats, one or as many as divide the rows and the "
        "columns of '{}', which is {}",
        index.path_of(*parts.scales).string(), scales.name, shape_text(scales.shape),
        scales.stored_dtype, name, shape_text(shape));
  return parts;
}

std::optional<std::string> fp8_linear_of(const TensorIndex& index, std::string_view name) {
  std::string linear;
  if (name.ends_with(kScales))
    linear = name.substr(0, name.size() - kScales.size());
  else if (name.ends_with(kInputScale))
    linear = fmt::format("{}.weight", name.substr(0, name.size() - kInputScale.size()));
  if (linear.empty() || !is_fp8(index.find(linear))) return std::nullopt;
  return linear;
}

float fp8_value(uint8_t code) {
  static const std::array<float, 256> values = make_values();
  return values[code];
}

void decode_fp8(const Fp8Run& run, base::BFloat16* values) {
  for (int64_t i = 0; i < run.count; ++i)
    values[i] = base::to_bfloat16(fp8_value(run.codes[i]) * run.scale);
}

}  // namespace snug::formats
