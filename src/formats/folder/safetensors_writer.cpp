#include "formats/folder/safetensors_writer.h"

#include "base/error.h"
#include "base/temporary_file.h"

#include <algorithm>
#include <optional>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

TensorInfo unplaced(const TensorSpec& tensor) {
  if (!tensor.other_dtype.empty())
    return {tensor.name, tensor.other_dtype, std::nullopt, tensor.shape, 0, tensor.bytes()};
  return {
      tensor.name,   std::string(safetensors_name_of(tensor.dtype)), tensor.dtype, tensor.shape, 0,
      tensor.bytes()};
}

}  // namespace

SafetensorsHeader lay_out(const std::vector<TensorSpec>& tensors,
                          const SafetensorsMetadata& metadata,
                          const std::vector<TensorSpec>& late) {
  SafetensorsHeader header;
  header.metadata = metadata;
  for (const TensorSpec& tensor : tensors) header.tensors.push_back(unplaced(tensor));
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorInfo& a, const TensorInfo& b) {
                     return stored_bits(a.stored_dtype) > stored_bits(b.stored_dtype);
                   });
  for (const TensorSpec& tensor : late) {
    SNUG_CHECK(tensor.dtype == base::DType::u8 && tensor.shape.size() == 1,
               "{} cannot be a late tensor", tensor.name);
    header.tensors.push_back(unplaced(tensor));
  }
  for (TensorInfo& tensor : header.tensors) {
    tensor.begin = header.data_bytes;
    tensor.end += tensor.begin;
    header.data_bytes = tensor.end;
  }
  return header;
}

int64_t TensorSpec::bytes() const {
  int64_t bits = other_dtype.empty() ? base::size_of(dtype) * 8 : stored_bits(other_dtype);
  for (const int64_t size : shape) bits *= size;
  return bits / 8;
}

SafetensorsWriter::SafetensorsWriter(const fs::path& path, const std::vector<TensorSpec>& tensors,
                                     const SafetensorsMetadata& metadata,
                                     const std::vector<TensorSpec>& late)
    : path_(path),
      header_(lay_out(tensors, metadata, late)),
      file_(base::File::create(base::temporary_for(path))),
      progress_(tensors.size(), 0),
      first_late_(tensors.size()) {
  for (size_t i = 0; i < header_.tensors.size(); ++i) {
    const bool is_new = by_name_.emplace(header_.tensors[i].name, i).second;
    SNUG_CHECK(is_new, "tensor {} is declared twice", header_.tensors[i].name);
  }
  const std::string header_text = make_safetensors_header(header_);
  data_start_ = static_cast<int64_t>(header_text.size());
  try {
    file_.reserve(file_bytes());
    file_.write_at(0, header_text.data(), data_start_);
  } catch (...) {
    discard();
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!finished_) discard();
}

int64_t SafetensorsWriter::write(std::string_view name, const void* source, int64_t bytes) {
  const auto found = by_name_.find(name);
  SNUG_CHECK(found != by_name_.end() && found->second < first_late_, "tensor {} was not declared",
             name);
  const TensorInfo& tensor = header_.tensors[found->second];
  int64_t& progress = progress_[found->second];
  SNUG_CHECK(bytes >= 0 && progress + bytes <= tensor.bytes(),
             "{} bytes for tensor {}, which has {}", progress + bytes, name, tensor.bytes());
  file_.write_at(data_start_ + tensor.begin + progress, source, bytes);
  progress += bytes;
  written_bytes_ += bytes;
  return bytes;
}

void SafetensorsWriter::write_late(std::string_view name, std::string_view bytes) {
  const auto found = by_name_.find(name);
  SNUG_CHECK(found != by_name_.end() && found->second >= first_late_, "{} is no late tensor", name);
  const int64_t most = header_.tensors[found->second].bytes();
  SNUG_CHECK(std::ssize(bytes) <= most, "{} bytes for tensor {}, which has {} at most",
             bytes.size(), name, most);
  const bool is_new = late_.emplace(found->second, bytes).second;
  SNUG_CHECK(is_new, "tensor {} is written twice", name);
  written_bytes_ += most;
}

// Moves late tensors together once their sizes are known. The header keeps its size, so that
// nothing else moves.
void SafetensorsWriter::append_late() {
  for (const auto& [index, bytes] : late_) {
    TensorInfo& tensor = header_.tensors[index];
    tensor.begin = index == 0 ? 0 : header_.tensors[index - 1].end;
    tensor.end = tensor.begin + std::ssize(bytes);
    tensor.shape = {std::ssize(bytes)};
    file_.write_at(data_start_ + tensor.begin, bytes.data(), std::ssize(bytes));
    header_.data_bytes = tensor.end;
  }
  const std::string text = make_safetensors_header(header_, data_start_);
  SNUG_CHECK_EQ(std::ssize(text), data_start_);
  file_.write_at(0, text.data(), data_start_);
  file_.truncate(file_bytes());
}

void SafetensorsWriter::finish() {
  SNUG_CHECK(complete(), "{} of {} bytes were written to {}", written_bytes_, header_.data_bytes,
             path_.string());
  if (!late_.empty()) append_late();
  file_.sync();
  file_.close();
  base::rename_durably(file_.path(), path_);
  finished_ = true;
}

void SafetensorsWriter::discard() {
  std::error_code ignored;
  fs::remove(file_.path(), ignored);
}

}  // namespace snug::formats
