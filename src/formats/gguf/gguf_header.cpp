// Stages: what kind of file it is; the pairs; the tensors' names, shapes and types; then where the
// data begin, and whether all tensors lie within the file, apart from one another.
#include "formats/gguf/gguf_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <unordered_set>

#include "base/error.h"
#include "formats/gguf/byte_reader.h"
#include "formats/gguf/file_signature.h"
#include "formats/gguf/ggml_names.h"
#include "formats/gguf/metadata_view.h"

namespace snug::formats {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;        // as the format says
constexpr uint64_t kMaxTensorNameBytes = 1023;  // the format says 64, and builds of llama.cpp more
constexpr uint32_t kMaxAxes = 4;
constexpr int64_t kSignatureBytes = 512;
// The least bytes of a pair (length of the key, type, a value of one byte), of a tensor (length of
// the name, number of axes, type, place), and of a text in an array (its length).
constexpr int64_t kLeastPairBytes = 13;
constexpr int64_t kLeastTensorBytes = 24;
constexpr int64_t kLeastTextBytes = 8;

// The types of values, by their numbers in files.
enum class ValueType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  text = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

[[noreturn]] void refuse(const base::File& file, const std::string& problem) {
  throw base::UserError(fmt::format("{}: {}", file.path().string(), problem));
}

[[noreturn]] void refuse_damaged(const base::File& file, const std::string& problem) {
  refuse(file, problem + "; the file is damaged, download or copy it again");
}

void require_gguf(const base::File& file) {
  std::string begin(static_cast<size_t>(std::min(file.size(), kSignatureBytes)), '\0');
  file.read_at(0, begin.data(), std::ssize(begin));
  if (!begin.starts_with("GGUF"))
    refuse(file, "this " + described_by_signature(begin, file.size()));
}

void require_version(const base::File& file, uint32_t version) {
  if (version == 2 || version == 3) return;
  if (version == 1)
    refuse(
        file,
        "this is a GGUF file of version 1 (of August 2023), which Snug does not read; convert the "
        "model again, or download a newer file of it");
  if (version % 65536 == 0)
    refuse(file,
           "this GGUF file was written for big-endian machines, which Snug does not read; download "
           "the little-endian file, or turn it with 'gguf-convert-endian FILE little' (of PyPI's "
           "gguf)");
  refuse(file,
         fmt::format("this is a GGUF file of version {}; Snug reads versions 2 and 3. Is there "
                     "a newer Snug, or an older file of the model?",
                     version));
}

class GgufHeaderReader {
 public:
  explicit GgufHeaderReader(const base::File& file) : file_(file), bytes_(file) {}

  GgufHeader read() {
    bytes_.value<uint32_t>("the first bytes");  // "GGUF"
    require_version(file_, bytes_.value<uint32_t>("the version"));
    const auto tensors = bytes_.value<uint64_t>("the number of tensors");
    const auto pairs = bytes_.value<uint64_t>("the number of pairs of metadata");
    bytes_.require(pairs, kLeastPairBytes, "pairs of metadata");
    bytes_.require(tensors, kLeastTensorBytes, "tensors");
    for (uint64_t i = 0; i < pairs; ++i) read_pair();
    refuse_parts();
    for (uint64_t i = 0; i < tensors; ++i) read_tensor();
    place_tensors();
    return std::move(header_);
  }

 private:
  void read_pair() {
    std::string key = bytes_.text("a key of the metadata", kMaxKeyBytes);
    if (header_.metadata.find(key) != nullptr)
      refuse_damaged(file_, fmt::format("the metadata have the key '{}' twice", key));
    const auto type = bytes_.value<uint32_t>("the type of a value");
    MetadataValue value = read_value(key, static_cast<ValueType>(type));
    header_.metadata.set(std::move(key), std::move(value));
  }

  MetadataValue read_value(const std::string& key, ValueType type) {
    switch (type) {
      case ValueType::u8:
        return uint32_t{number<uint8_t>()};
      case ValueType::i8:
        return int32_t{number<int8_t>()};
      case ValueType::u16:
        return uint32_t{number<uint16_t>()};
      case ValueType::i16:
        return int32_t{number<int16_t>()};
      case ValueType::u32:
        return number<uint32_t>();
      case ValueType::i32:
        return number<int32_t>();
      case ValueType::f32:
        return number<float>();
      case ValueType::boolean:
        return number<uint8_t>() != 0;
      case ValueType::text:
        return text();
      case ValueType::array:
        return read_array(key);
      case ValueType::u64:
        return number<uint64_t>();
      case ValueType::i64:
        return number<int64_t>();
      case ValueType::f64:
        return number<double>();
    }
    refuse_damaged(file_, fmt::format("the value of '{}' in the metadata is of type {}, which GGUF "
                                      "does not have",
                                      key, static_cast<uint32_t>(type)));
  }

  MetadataValue read_array(const std::string& key) {
    const auto type = static_cast<ValueType>(bytes_.value<uint32_t>("the type of an array"));
    switch (type) {
      case ValueType::u8:
        return array<uint32_t, uint8_t>();
      case ValueType::i8:
        return array<int32_t, int8_t>();
      case ValueType::u16:
        return array<uint32_t, uint16_t>();
      case ValueType::i16:
        return array<int32_t, int16_t>();
      case ValueType::u32:
        return array<uint32_t, uint32_t>();
      case ValueType::i32:
        return array<int32_t, int32_t>();
      case ValueType::f32:
        return array<float, float>();
      case ValueType::boolean:
        return array<bool, uint8_t>();
      case ValueType::text:
        return texts();
      case ValueType::u64:
        return array<uint64_t, uint64_t>();
      case ValueType::i64:
        return array<int64_t, int64_t>();
      case ValueType::f64:
        return array<double, double>();
      case ValueType::array:
        refuse(file_, fmt::format("the value of '{}' in the metadata is an array of arrays, which "
                                  "neither llama.cpp nor Snug reads",
                                  key));
    }
    refuse_damaged(file_,
                   fmt::format("the array '{}' in the metadata has elements of type {}, which "
                               "GGUF does not have",
                               key, static_cast<uint32_t>(type)));
  }

  template <typename T>
  T number() {
    return bytes_.value<T>("a value of the metadata");
  }
  std::string text() {
    return bytes_.text("a text of the metadata", std::numeric_limits<int64_t>::max());
  }

  template <typename Held, typename Stored>
  std::vector<Held> array() {
    const auto count = bytes_.value<uint64_t>("the length of an array");
    bytes_.require(count, sizeof(Stored), "elements of an array");
    std::vector<Held> list;
    list.reserve(count);
    for (uint64_t i = 0; i < count; ++i)
      if constexpr (std::is_same_v<Held, bool>)
        list.push_back(number<Stored>() != 0);
      else
        list.push_back(number<Stored>());
    return list;
  }

  std::vector<std::string> texts() {
    const auto count = bytes_.value<uint64_t>("the length of an array");
    bytes_.require(count, kLeastTextBytes, "texts of an array");
    std::vector<std::string> list;
    list.reserve(count);
    for (uint64_t i = 0; i < count; ++i) list.push_back(text());
    return list;
  }

  void read_tensor() {
    GgufTensorInfo tensor;
    tensor.name = bytes_.text("the name of a tensor", kMaxTensorNameBytes);
    if (!names_.insert(tensor.name).second)
      refuse_damaged(file_, fmt::format("there are two tensors '{}'", tensor.name));
    read_shape(tensor);
    const auto type = bytes_.value<uint32_t>("the type of a tensor");
    tensor.type = static_cast<GgmlType>(type);
    if (block_size(tensor.type).bytes == 0) refuse_type(tensor.name, type);
    const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (const int64_t block = block_size(tensor.type).elements; row % block != 0)
      refuse_damaged(
          file_, fmt::format("tensor '{}' is {} in rows of {} values, which are no whole blocks "
                             "of {}",
                             tensor.name, ggml_type_name(type), row, block));
    const auto place = bytes_.value<uint64_t>("the place of a tensor");
    if (place > static_cast<uint64_t>(bytes_.size()))
      refuse_damaged(file_, fmt::format("tensor '{}' begins at byte {} of the data, outside of the "
                                        "file of {}",
                                        tensor.name, place, bytes_.size()));
    tensor.begin = static_cast<int64_t>(place);
    header_.tensors.push_back(std::move(tensor));
  }

  // The product of the sizes is bounded so that no size in bytes can overflow.
  void read_shape(GgufTensorInfo& tensor) {
    const auto axes = bytes_.value<uint32_t>("the number of a tensor's axes");
    if (axes > kMaxAxes)
      refuse_damaged(file_, fmt::format("tensor '{}' has {} axes; GGUF has up to {}", tensor.name,
                                        axes, kMaxAxes));
    constexpr uint64_t kMostElements = uint64_t{1} << 56;
    uint64_t elements = 1;
    for (uint32_t axis = 0; axis < axes; ++axis) {
      const auto size = bytes_.value<uint64_t>("the shape of a tensor");
      if (size > kMostElements || (size > 0 && elements > kMostElements / size))
        refuse_damaged(file_,
                       fmt::format("tensor '{}' has an axis of {} values, more than any file "
                                   "holds",
                                   tensor.name, size));
      elements *= std::max<uint64_t>(size, 1);
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
  }

  [[noreturn]] void refuse_type(const std::string& name, uint32_t type) const {
    refuse(file_, fmt::format(
                      "tensor '{}' is {}, which Snug does not read; it reads F32, F16, BF16, Q4_0, "
                      "Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K and MXFP4. Download a file of one of "
                      "these, or make one with llama.cpp's 'llama-quantize --allow-requantize FILE "
                      "OUT q8_0'",
                      name, ggml_type_name(type)));
  }

  // Of a model that is split into several files, each holds a part of the tensors.
  void refuse_parts() const {
    const MetadataView view(header_.metadata, file_.path().string());
    const int64_t parts = view.integer_or("split.count", 1);
    if (parts <= 1) return;
    const int64_t part = view.integer_or("split.no", 0);
    std::string first = file_.path().string();
    if (const size_t number = first.find(fmt::format("-{:05}-of-", part + 1));
        number != std::string::npos)
      first.replace(number + 1, 5, "00001");
    refuse(file_, fmt::format("this is part {} of a model in {} files; join them with llama.cpp's "
                              "'llama-gguf-split --merge {} model.gguf', and give model.gguf",
                              part + 1, parts, first));
  }

  int64_t alignment() const {
    constexpr const char* kKey = "general.alignment";
    const MetadataView view(header_.metadata, file_.path().string());
    const int64_t alignment = view.integer_or(kKey, 32);
    if (alignment < 1 || alignment > (int64_t{1} << 30) ||
        !std::has_single_bit(static_cast<uint64_t>(alignment)))
      view.fail(kKey,
                fmt::format("is {}, not a power of two; the file is damaged, download or copy "
                            "it again",
                            alignment));
    return alignment;
  }

  // Turns the places of tensors, counted from the beginning of the data, into those in the file.
  void place_tensors() {
    const int64_t step = alignment();
    const int64_t data = (bytes_.position() + step - 1) / step * step;
    std::vector<const GgufTensorInfo*> by_place;
    for (GgufTensorInfo& tensor : header_.tensors) {
      if (tensor.begin % step != 0)
        refuse_damaged(file_,
                       fmt::format("tensor '{}' begins at byte {} of the data, no multiple of "
                                   "the alignment of {}",
                                   tensor.name, tensor.begin, step));
      tensor.begin += data;
      if (tensor.bytes() > 0 && tensor.bytes() > bytes_.size() - tensor.begin)
        refuse(file_, fmt::format("tensor '{}' reaches to byte {}, but the file has {}; it was cut "
                                  "off, download or copy it again",
                                  tensor.name, tensor.begin + tensor.bytes(), bytes_.size()));
      by_place.push_back(&tensor);
    }
    std::ranges::stable_sort(by_place, {}, [](const GgufTensorInfo* info) { return info->begin; });
    const GgufTensorInfo* before = nullptr;
    for (const GgufTensorInfo* tensor : by_place) {
      if (tensor->bytes() == 0) continue;
      if (before != nullptr && before->begin + before->bytes() > tensor->begin)
        refuse_damaged(file_, fmt::format("the data of tensors '{}' and '{}' overlap", before->name,
                                          tensor->name));
      before = tensor;
    }
  }

  const base::File& file_;
  ByteReader bytes_;
  GgufHeader header_;
  std::unordered_set<std::string> names_;
};

}  // namespace

int64_t GgufTensorInfo::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

GgufHeader read_gguf_header(const base::File& file) {
  require_gguf(file);
  return GgufHeaderReader(file).read();
}

}  // namespace snug::formats
