// Stages: a SAX handler turns the JSON into a list of tensors without building a document (headers
// may have 100 MB); each tensor is checked on its own; then all tensors together must cover the
// data without gaps.
#include "formats/folder/safetensors_header.h"

#include "base/error.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

namespace snug::formats {
namespace {

using nlohmann::json;

struct StoredType {
  std::string_view name;
  int64_t bits;
  std::optional<base::DType> dtype;
};

constexpr std::array<StoredType, 22> kStoredTypes{{{"F64", 64, base::DType::f64},
                                                   {"F32", 32, base::DType::f32},
                                                   {"BF16", 16, base::DType::bf16},
                                                   {"F16", 16, base::DType::f16},
                                                   {"I64", 64, base::DType::i64},
                                                   {"I32", 32, base::DType::i32},
                                                   {"U8", 8, base::DType::u8},
                                                   {"I8", 8, {}},
                                                   {"I16", 16, {}},
                                                   {"U16", 16, {}},
                                                   {"U32", 32, {}},
                                                   {"U64", 64, {}},
                                                   {"BOOL", 8, {}},
                                                   {"C64", 64, {}},
                                                   {"F8_E4M3", 8, {}},
                                                   {"F8_E5M2", 8, {}},
                                                   {"F8_E8M0", 8, {}},
                                                   {"F8_E4M3FNUZ", 8, {}},
                                                   {"F8_E5M2FNUZ", 8, {}},
                                                   {"F6_E2M3", 6, {}},
                                                   {"F6_E3M2", 6, {}},
                                                   {"F4", 4, {}}}};

const StoredType* find_stored_type(std::string_view name) {
  const auto* found = std::find_if(kStoredTypes.begin(), kStoredTypes.end(),
                                   [&](const StoredType& type) { return type.name == name; });
  return found == kStoredTypes.end() ? nullptr : found;
}

// Accepts only the structure that a header may have:
//   { name: { "dtype": text, "shape": [n...], "data_offsets": [begin, end] }..., "__metadata__":
//   {...} }
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}

  const std::string& file() const { return file_; }
  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (place_ == Place::start) return enter(Place::top);
    if (place_ == Place::top && is_metadata_) return enter(Place::metadata);
    if (place_ == Place::top) {
      tensor_ = {};
      tensor_.name = key_;
      seen_ = {};
      return enter(Place::tensor);
    }
    fail_value("an object");
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      require_fields();
      header_.tensors.push_back(std::move(tensor_));
    }
    return enter(place_ == Place::top ? Place::end : Place::top);
  }

  bool key(string_t& name) override {
    if (place_ == Place::top) {
      key_ = name;
      is_metadata_ = name == "__metadata__";
      if (!names_.insert(name).second) fail(fmt::format("names the tensor '{}' twice", name));
    } else if (place_ == Place::metadata) {
      field_ = name;
      if (header_.metadata.contains(name))
        fail(fmt::format("gives the metadata key '{}' twice", name));
    } else {
      field_ = name;
      const int index = field_index(name);
      if (index < 0)
        fail(fmt::format("has the unknown key '{}' in tensor '{}'; expected {}, {} and {}", name,
                         tensor_.name, kDtype, kShape, kOffsets));
      if (std::exchange(seen_[static_cast<size_t>(index)], true))
        fail(fmt::format("gives '{}' twice in tensor '{}'", name, tensor_.name));
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || field_ == kDtype) fail_value("a list");
    numbers_.clear();
    return enter(Place::list);
  }

  bool end_array() override {
    if (field_ == kShape) {
      tensor_.shape = numbers_;
    } else {
      if (numbers_.size() != 2)
        fail(fmt::format(
            "gives {} data_offsets for tensor '{}'; expected two, where its data begins "
            "and ends",
            numbers_.size(), tensor_.name));
      tensor_.begin = numbers_[0];
      tensor_.end = numbers_[1];
    }
    return enter(Place::tensor);
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::list) fail_value("a number");
    if (value > static_cast<uint64_t>(INT64_MAX)) fail_value(fmt::format("the number {}", value));
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      header_.metadata[field_] = value;
    } else if (place_ == Place::tensor && field_ == kDtype) {
      tensor_.stored_dtype = value;
    } else {
      fail_value("text");
    }
    return true;
  }

  bool null() override { fail_value("null"); }
  bool boolean(bool value) override { fail_value(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    fail_value(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& digits) override {
    fail_value("the number " + digits);
  }
  bool binary(binary_t&) override { fail_value("binary data"); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail(fmt::format("is not valid JSON at byte {} of the file", position + 7));
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw base::UserError(fmt::format(
        "{}: the safetensors header {}; the file is damaged or was not written by a safetensors "
        "library, download or convert it again",
        file_, problem));
  }

 private:
  enum class Place : uint8_t { start, top, metadata, tensor, list, end };

  // The fields of a tensor, each of which must occur once.
  static constexpr std::string_view kDtype = "dtype";
  static constexpr std::string_view kShape = "shape";
  static constexpr std::string_view kOffsets = "data_offsets";
  static constexpr std::array kFields{kDtype, kShape, kOffsets};

  static int field_index(std::string_view name) {
    const auto found = std::find(kFields.begin(), kFields.end(), name);
    return found == kFields.end() ? -1 : static_cast<int>(found - kFields.begin());
  }

  bool enter(Place place) {
    place_ = place;
    return true;
  }

  void require_fields() const {
    for (size_t i = 0; i < kFields.size(); ++i)
      if (!seen_[i]) fail(fmt::format("gives no '{}' for tensor '{}'", kFields[i], tensor_.name));
  }

  [[noreturn]] void fail_value(const std::string& found) const {
    switch (place_) {
      case Place::metadata:
        fail(fmt::format("holds {} in __metadata__ at '{}'; expected text", found, field_));
      case Place::tensor:
        fail(fmt::format("holds {} for '{}' of tensor '{}'; expected {}", found, field_,
                         tensor_.name, field_ == kDtype ? "text" : "a list of sizes"));
      case Place::list:
        fail(fmt::format("holds {} in '{}' of tensor '{}'; expected sizes from 0 on", found, field_,
                         tensor_.name));
      case Place::top:
        fail(fmt::format("holds {} for '{}'; expected an object", found, key_));
      default:
        fail(fmt::format("is {}; expected a JSON object", found));
    }
  }

  const std::string& file_;
  SafetensorsHeader header_;
  std::unordered_set<std::string> names_;
  Place place_ = Place::start;
  bool is_metadata_ = false;
  std::string key_;    // at the top level: the tensor's name
  std::string field_;  // inside a tensor or the metadata
  TensorInfo tensor_;
  std::array<bool, 3> seen_{};
  std::vector<int64_t> numbers_;
};

// Checks that element type and shape give the number of bytes between the offsets.
void check_tensor(TensorInfo& tensor, const HeaderReader& reader) {
  const StoredType* type = find_stored_type(tensor.stored_dtype);
  if (type == nullptr)
    reader.fail(
        fmt::format("gives tensor '{}' the unknown dtype '{}'; expected F32, BF16, F16 or "
                    "another one of the format",
                    tensor.name, tensor.stored_dtype));
  tensor.dtype = type->dtype;
  int64_t bits = type->bits;
  for (const int64_t size : tensor.shape)
    if (__builtin_mul_overflow(bits, size, &bits))
      reader.fail(fmt::format("gives tensor '{}' the shape {}, which is too large", tensor.name,
                              shape_text(tensor.shape)));
  if (bits % 8 != 0)
    reader.fail(fmt::format("gives tensor '{}' a {} shape {} that does not fill whole bytes",
                            tensor.name, tensor.stored_dtype, shape_text(tensor.shape)));
  if (tensor.begin > tensor.end)
    reader.fail(fmt::format("lets tensor '{}' end at byte {} before it begins at byte {}",
                            tensor.name, tensor.end, tensor.begin));
  if (tensor.bytes() != bits / 8)
    reader.fail(
        fmt::format("gives tensor '{}' {} bytes (data_offsets {} to {}), but {} of shape {} "
                    "takes {}",
                    tensor.name, tensor.bytes(), tensor.begin, tensor.end, tensor.stored_dtype,
                    shape_text(tensor.shape), bits / 8));
}

// Checks that the tensors, sorted by offset, follow each other from byte 0 to the end of the file.
void check_layout(SafetensorsHeader& header, int64_t data_bytes, const HeaderReader& reader) {
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorInfo& a, const TensorInfo& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  int64_t end = 0;
  const TensorInfo* previous = nullptr;
  for (const TensorInfo& tensor : header.tensors) {
    if (tensor.begin < end)
      reader.fail(
          fmt::format("lets tensors '{}' and '{}' overlap: the second begins at byte {} of the "
                      "data, the first ends at byte {}",
                      previous->name, tensor.name, tensor.begin, end));
    if (tensor.begin > end)
      reader.fail(
          fmt::format("leaves a hole of {} bytes before tensor '{}': it begins at byte {} of "
                      "the data, expected {}",
                      tensor.begin - end, tensor.name, tensor.begin, end));
    if (tensor.end > data_bytes)
      throw base::UserError(fmt::format(
          "{}: tensor '{}' ends at byte {} of the data, but the file holds only {}; the file is "
          "truncated, download or copy it again",
          reader.file(), tensor.name, tensor.end, data_bytes));
    end = tensor.end;
    previous = &tensor;
  }
  if (end != data_bytes)
    reader.fail(fmt::format("describes {} bytes of data, but the file holds {}", end, data_bytes));
  header.data_bytes = data_bytes;
}

}  // namespace

int64_t TensorInfo::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t data_bytes,
                                           const std::string& file) {
  HeaderReader reader(file);
  if (text.empty() || text.front() != '{') reader.fail("does not begin with '{'");
  json::sax_parse(text.begin(), text.end(), &reader);
  SafetensorsHeader header = reader.take();
  for (TensorInfo& tensor : header.tensors) check_tensor(tensor, reader);
  check_layout(header, data_bytes, reader);
  return header;
}

std::string make_safetensors_header(const SafetensorsHeader& header, int64_t least_bytes) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) object["__metadata__"] = header.metadata;
  std::string text = object.dump();
  // The rest is written by hand, since an ordered object searches all its keys at each insertion.
  text.pop_back();
  for (const TensorInfo& tensor : header.tensors) {
    if (text.size() > 1) text += ',';
    text += fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                        json(tensor.name).dump(), tensor.stored_dtype, json(tensor.shape).dump(),
                        tensor.begin, tensor.end);
  }
  text += '}';
  constexpr int64_t kLengthBytes = 8;
  while (text.size() % 8 != 0 || std::ssize(text) + kLengthBytes < least_bytes) text += ' ';

  std::string result;
  for (int byte = 0; byte < 8; ++byte)
    result += static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * byte) & 0xffU);
  return result + text;
}

std::string_view safetensors_name_of(base::DType dtype) {
  for (const StoredType& type : kStoredTypes)
    if (type.dtype == dtype) return type.name;
  SNUG_CHECK(false, "no safetensors name for dtype {}", static_cast<int>(dtype));
  return "";
}

int64_t stored_bits(std::string_view stored_dtype) {
  const StoredType* type = find_stored_type(stored_dtype);
  SNUG_CHECK(type != nullptr, "safetensors has no dtype {}", stored_dtype);
  return type->bits;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace snug::formats
