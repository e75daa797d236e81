// Stages: the header becomes one text; the file takes its whole size on the disk; data follow at
// the end of what is written, and each tensor is padded where it is full.
#include "formats/gguf/gguf_writer.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <variant>

#include "base/error.h"
#include "base/temporary_file.h"

namespace snug::formats {
namespace {

constexpr int64_t kAlignment = 32;
constexpr uint32_t kVersion = 3;
constexpr uint32_t kArrayType = 9;

int64_t padded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T>
void append_number(std::string& text, T number) {
  std::array<char, sizeof(T)> bytes{};
  std::memcpy(bytes.data(), &number, sizeof(T));
  text.append(bytes.data(), bytes.size());
}

void append_text(std::string& text, const std::string& value) {
  append_number(text, uint64_t{value.size()});
  text += value;
}

// The number of a value's type in the file.
template <typename T>
constexpr uint32_t type_number() {
  if constexpr (std::is_same_v<T, uint8_t>) return 0;
  if constexpr (std::is_same_v<T, uint32_t>) return 4;
  if constexpr (std::is_same_v<T, int32_t>) return 5;
  if constexpr (std::is_same_v<T, float>) return 6;
  if constexpr (std::is_same_v<T, bool>) return 7;
  if constexpr (std::is_same_v<T, std::string>) return 8;
  if constexpr (std::is_same_v<T, uint64_t>) return 10;
  if constexpr (std::is_same_v<T, int64_t>) return 11;
  if constexpr (std::is_same_v<T, double>) return 12;
  return kArrayType;
}

template <typename T>
void append_element(std::string& text, const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    append_text(text, value);
  else
    append_number(text, value);
}

template <typename T>
void append_value(std::string& text, const T& value) {
  append_number(text, type_number<T>());
  if constexpr (type_number<T>() != kArrayType) {
    append_element(text, value);
  } else {
    using Element = typename T::value_type;
    append_number(text, type_number<Element>());
    append_number(text, uint64_t{value.size()});
    for (const auto& element : value) append_element<Element>(text, element);
  }
}

// Everything before the data, padded to where they begin.
std::string header_text(const Metadata& metadata, const std::vector<GgufTensorSpec>& tensors) {
  std::string text = "GGUF";
  append_number(text, kVersion);
  append_number(text, uint64_t{tensors.size()});
  append_number(text, uint64_t{metadata.pairs().size()});
  for (const auto& [key, value] : metadata.pairs()) {
    append_text(text, key);
    std::visit([&](const auto& held) { append_value(text, held); }, value);
  }
  int64_t place = 0;
  for (const GgufTensorSpec& tensor : tensors) {
    append_text(text, tensor.name);
    append_number(text, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      append_number(text, static_cast<uint64_t>(*size));
    append_number(text, static_cast<uint32_t>(tensor.type));
    append_number(text, static_cast<uint64_t>(place));
    place += padded(tensor.bytes());
  }
  text.resize(static_cast<size_t>(padded(std::ssize(text))), '\0');
  return text;
}

int64_t data_bytes(const std::vector<GgufTensorSpec>& tensors) {
  int64_t bytes = 0;
  for (const GgufTensorSpec& tensor : tensors) bytes += padded(tensor.bytes());
  return bytes;
}

void check_rows(const std::vector<GgufTensorSpec>& tensors) {
  for (const GgufTensorSpec& tensor : tensors) {
    const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    const int64_t block = block_size(tensor.type).elements;
    SNUG_CHECK(row % block == 0, "rows of {} in {}, which is in blocks of {}", row, tensor.name,
               block);
  }
}

}  // namespace

int64_t GgufTensorSpec::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

int64_t gguf_file_bytes(const Metadata& metadata, const std::vector<GgufTensorSpec>& tensors) {
  return std::ssize(header_text(metadata, tensors)) + data_bytes(tensors);
}

GgufWriter::GgufWriter(const std::filesystem::path& path, const Metadata& metadata,
                       std::vector<GgufTensorSpec> tensors)
    : path_(path),
      tensors_(std::move(tensors)),
      file_(base::File::create(base::temporary_for(path))) {
  check_rows(tensors_);
  const std::string header = header_text(metadata, tensors_);
  try {
    file_.reserve(std::ssize(header) + data_bytes(tensors_));
    file_.write_at(0, header.data(), std::ssize(header));
  } catch (...) {
    discard();
    throw;
  }
  position_ = std::ssize(header);
  next_tensor();
}

GgufWriter::~GgufWriter() {
  if (!finished_) discard();
}

void GgufWriter::next_tensor() {
  while (current_ < tensors_.size() && written_ == tensors_[current_].bytes()) {
    constexpr std::array<char, kAlignment> kZeros{};
    const int64_t padding = padded(written_) - written_;
    if (padding > 0) file_.write_at(position_, kZeros.data(), padding);
    position_ += padding;
    written_ = 0;
    ++current_;
  }
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    SNUG_CHECK(current_ < tensors_.size(), "{} bytes after the last tensor of {}", bytes.size(),
               path_.string());
    const int64_t now = std::min(std::ssize(bytes), tensors_[current_].bytes() - written_);
    file_.write_at(position_, bytes.data(), now);
    position_ += now;
    written_ += now;
    bytes = bytes.subspan(static_cast<size_t>(now));
    next_tensor();
  }
}

void GgufWriter::finish() {
  SNUG_CHECK(current_ == tensors_.size(), "tensor {} of {} is not full", tensors_[current_].name,
             path_.string());
  file_.sync();
  file_.close();
  base::rename_durably(file_.path(), path_);
  finished_ = true;
}

void GgufWriter::discard() {
  std::error_code ignored;
  std::filesystem::remove(file_.path(), ignored);
}

}  // namespace snug::formats
