#include "formats/quantization/quant_state.h"

#include "base/error.h"
#include "base/json.h"
#include "formats/adapter/torch_name.h"
#include "formats/quantization/nf4.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

namespace snug::formats {
namespace {

using base::DType;

constexpr std::string_view kFp4StateSuffix = ".quant_state.bitsandbytes__fp4";
constexpr std::string_view kInt8ScaleSuffix = ".SCB";

constexpr std::array kPartSuffixes{kAbsmaxSuffix,    kMapSuffix,   kNestedAbsmaxSuffix,
                                   kNestedMapSuffix, kStateSuffix, kFp4StateSuffix};

// The number as Python prints a float: with the fewest digits that read back the same value, and
// always with a decimal point or exponent.
std::string python_float(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

DType parse_dtype(const base::JsonObject& json) {
  const std::string name = json.text("dtype");
  const std::optional<DType> dtype = dtype_from_torch_name(name);
  if (dtype && base::is_float(*dtype)) return *dtype;
  json.fail("dtype", fmt::format("is \"{}\"; expected bfloat16, float16 or float32", name));
}

std::vector<int64_t> parse_shape(const base::JsonObject& json) {
  const nlohmann::json& value = json.value();
  std::vector<int64_t> shape;
  if (value.contains("shape") && value["shape"].is_array())
    for (const auto& size : value["shape"])
      if (size.is_number_integer()) shape.push_back(size.get<int64_t>());
  constexpr int64_t kMaxElements = int64_t{1} << 48;
  const bool sane = shape.size() == 2 &&
                    std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n > 0; }) &&
                    shape[0] <= kMaxElements / shape[1];
  if (!sane) json.fail("shape", "must be two positive sizes, [out, in]");
  return shape;
}

void require_size(const base::JsonObject& json, std::string_view key, int64_t expected) {
  const int64_t size = json.integer(key);
  if (size == expected) return;
  json.fail(key, fmt::format("is {}; snug reads blocks of {} only. Quantise the 16-bit model again "
                             "with snug quantize, or with bitsandbytes' default",
                             size, expected));
}

[[noreturn]] void fail_fp4(const std::string& where) {
  base::throw_user_error(
      "{}: the weight is stored as FP4, which snug does not read. Quantise the 16-bit model as "
      "NF4, "
      "which loses less: snug quantize model=FOLDER output_dir=FOLDER",
      where);
}

// Reads and checks the parts of one weight.
class PartReader {
 public:
  PartReader(const TensorIndex& index, const std::string& weight)
      : index_(index), weight_(weight) {}

  std::string where(std::string_view suffix) const {
    const IndexedTensor* tensor = index_.find(weight_ + std::string(suffix));
    const std::string file =
        tensor != nullptr ? index_.path_of(*tensor).string() : index_.folder().string();
    return fmt::format("{}: tensor '{}{}'", file, weight_, suffix);
  }

  const IndexedTensor& part(std::string_view suffix) const {
    const IndexedTensor* tensor = index_.find(weight_ + std::string(suffix));
    if (tensor == nullptr)
      base::throw_user_error(
          "{} is missing, without which the quantised weight cannot be read. Is the download "
          "complete?",
          where(suffix));
    constexpr size_t kMaxDimensions = 2;
    if (tensor->info->shape.size() > kMaxDimensions)
      base::throw_user_error(
          "{} has shape {}; the parts of a quantised weight have at most {} "
          "dimensions. Is the file damaged, or of another program?",
          where(suffix), shape_text(tensor->info->shape), kMaxDimensions);
    return *tensor;
  }

  // The part with this suffix, which must have this type and number of elements.
  const IndexedTensor& part(std::string_view suffix, DType dtype, int64_t elements) const {
    const IndexedTensor& tensor = part(suffix);
    if (tensor.info->dtype == dtype && tensor.info->elements() == elements) return tensor;
    base::throw_user_error("{} has {} elements of {}; expected {} of {}", where(suffix),
                           tensor.info->elements(), tensor.info->stored_dtype, elements,
                           safetensors_name_of(dtype));
  }

  // Codes may have any element type (bnb_4bit_quant_storage), so only their bytes are checked.
  const IndexedTensor& codes(int64_t elements) const {
    const IndexedTensor& tensor = part("");
    if (tensor.info->bytes() != nf4_code_bytes(elements))
      base::throw_user_error("{} has {} bytes; expected {}, two codes of 4 bits per byte",
                             where(""), tensor.info->bytes(), nf4_code_bytes(elements));
    return tensor;
  }

  QuantState state() const {
    const IndexedTensor& tensor = part(kStateSuffix);
    constexpr int64_t kMaxBytes = 1 << 16;
    if (tensor.info->bytes() > kMaxBytes)
      base::throw_user_error("{} has {} bytes; expected a few hundred of JSON", where(kStateSuffix),
                             tensor.info->bytes());
    std::string text(static_cast<size_t>(tensor.info->bytes()), '\0');
    index_.read(tensor, text.data());
    return parse_quant_state(text, where(kStateSuffix));
  }

  void check_map() const {
    std::array<float, kNf4Codes.size()> map{};
    index_.read(part(kMapSuffix, DType::f32, std::ssize(map)), map.data());
    if (map != kNf4Codes)
      base::throw_user_error(
          "{} holds other values than those of NF4. Is the file damaged, or of another program?",
          where(kMapSuffix));
  }

  void read_nested(Nf4Parts& stored) const {
    const int64_t blocks = nf4_blocks(stored.state.elements());
    stored.nested_absmax = &part(kNestedAbsmaxSuffix, DType::f32, nested_blocks(blocks));
    index_.read(part(kNestedMapSuffix, DType::f32, std::ssize(stored.nested_map)),
                stored.nested_map.data());
  }

 private:
  const TensorIndex& index_;
  const std::string& weight_;
};

bool has(const TensorIndex& index, const std::string& name, std::string_view suffix) {
  return index.find(name + std::string(suffix)) != nullptr;
}

}  // namespace

int64_t QuantState::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

std::string to_json(const QuantState& state) {
  std::string text =
      fmt::format(R"({{"quant_type": "nf4", "blocksize": {}, "dtype": "{}", "shape": [{}, {}])",
                  kNf4BlockSize, torch_name(state.dtype), state.shape.at(0), state.shape.at(1));
  if (state.nested())
    text +=
        fmt::format(R"(, "nested_blocksize": {}, "nested_dtype": "float32", "nested_offset": {})",
                    kNestedBlockSize, python_float(static_cast<double>(*state.nested_offset)));
  return text + "}";
}

QuantState parse_quant_state(std::string_view text, const std::string& where) {
  const nlohmann::json document = base::parse_json(text, where);
  const base::JsonObject json(document, where);
  const std::string type = json.text("quant_type");
  if (type == "fp4") fail_fp4(where);
  if (type != "nf4") json.fail("quant_type", fmt::format("is \"{}\"; expected nf4", type));
  require_size(json, "blocksize", kNf4BlockSize);
  QuantState state;
  state.dtype = parse_dtype(json);
  state.shape = parse_shape(json);
  if (!json.has("nested_blocksize") && !json.has("nested_offset")) return state;
  require_size(json, "nested_blocksize", kNestedBlockSize);
  if (const std::string dtype = json.text("nested_dtype"); dtype != "float32")
    json.fail("nested_dtype", fmt::format("is \"{}\"; expected float32", dtype));
  const double offset = json.number("nested_offset");
  if (!std::isfinite(static_cast<float>(offset)))
    json.fail("nested_offset", "is not a finite number of 32 bits");
  state.nested_offset = static_cast<float>(offset);
  return state;
}

std::optional<QuantState> find_quant_state(const TensorIndex& index, const std::string& name) {
  if (!has(index, name, kStateSuffix)) return std::nullopt;
  return PartReader(index, name).state();
}

std::optional<Nf4Parts> find_nf4(const TensorIndex& index, const std::string& name,
                                 const std::vector<int64_t>& shape) {
  const PartReader parts(index, name);
  if (has(index, name, kFp4StateSuffix)) fail_fp4(parts.where(kFp4StateSuffix));
  const bool has_parts = std::any_of(kPartSuffixes.begin(), kPartSuffixes.end(),
                                     [&](auto suffix) { return has(index, name, suffix); });
  if (!has_parts) return std::nullopt;
  Nf4Parts stored;
  stored.state = parts.state();
  if (stored.state.shape != shape)
    base::throw_user_error("{} is of a weight of shape {}; expected {}, as config.json says",
                           parts.where(kStateSuffix), shape_text(stored.state.shape),
                           shape_text(shape));
  const int64_t elements = stored.state.elements();
  stored.codes = &parts.codes(elements);
  stored.absmax = &parts.part(kAbsmaxSuffix, stored.state.nested() ? DType::u8 : DType::f32,
                              nf4_blocks(elements));
  parts.check_map();
  if (stored.state.nested()) parts.read_nested(stored);
  return stored;
}

std::optional<std::string_view> weight_of_part(std::string_view name) {
  for (const std::string_view suffix : kPartSuffixes)
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return std::nullopt;
}

bool holds_quantised(const TensorIndex& index) {
  return std::any_of(index.tensors().begin(), index.tensors().end(),
                     [](const IndexedTensor& tensor) {
                       const std::string& name = tensor.info->name;
                       return weight_of_part(name).has_value() || name.ends_with(kInt8ScaleSuffix);
                     });
}

std::vector<TensorSpec> nf4_parts(const std::string& name, const QuantState& state) {
  const int64_t elements = state.elements();
  const int64_t blocks = nf4_blocks(elements);
  const auto part = [&](std::string_view suffix, DType dtype, std::vector<int64_t> shape) {
    return TensorSpec{name + std::string(suffix), dtype, std::move(shape)};
  };
  std::vector<TensorSpec> parts{
      part("", DType::u8, {nf4_code_bytes(elements), 1}),
      part(kAbsmaxSuffix, state.nested() ? DType::u8 : DType::f32, {blocks}),
      part(kMapSuffix, DType::f32, {std::ssize(kNf4Codes)})};
  if (state.nested()) {
    parts.push_back(part(kNestedAbsmaxSuffix, DType::f32, {nested_blocks(blocks)}));
    parts.push_back(part(kNestedMapSuffix, DType::f32, {std::ssize(base::DynamicMap())}));
  }
  parts.push_back(part(kStateSuffix, DType::u8, {std::ssize(to_json(state))}));
  return parts;
}

}  // namespace snug::formats
