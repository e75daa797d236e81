#include "formats/folder/safetensors_file.h"

#include "base/error.h"
#include "base/nearest.h"

#include <array>

namespace snug::formats {
namespace {

constexpr int64_t kLengthBytes = 8;

// Reads the length field, and checks it against the file's size before anything is allocated.
int64_t read_header_bytes(const base::File& file) {
  const std::string name = file.path().string();
  const int64_t file_bytes = file.size();
  if (file_bytes < kLengthBytes)
    base::throw_user_error(
        "{}: the file has {} bytes, too few for a safetensors header; it is empty or truncated, "
        "download or copy it again",
        name, file_bytes);
  std::array<unsigned char, kLengthBytes> raw{};
  file.read_at(0, raw.data(), kLengthBytes);
  uint64_t length = 0;
  for (int byte = 0; byte < kLengthBytes; ++byte)
    length |= uint64_t{raw[static_cast<size_t>(byte)]} << (8 * byte);
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes))
    base::throw_user_error(
        "{}: the header claims {} bytes, more than the {} that the format allows; this is not a "
        "safetensors file (a Git LFS pointer or a renamed pickle?) or it is damaged",
        name, length, kMaxSafetensorsHeaderBytes);
  if (length > static_cast<uint64_t>(file_bytes - kLengthBytes))
    base::throw_user_error(
        "{}: the header claims {} bytes, but the file has only {} after the length; it is "
        "truncated "
        "or damaged, download or copy it again",
        name, length, file_bytes - kLengthBytes);
  return static_cast<int64_t>(length);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(base::File::open_for_reading(path)) {
  const int64_t header_bytes = read_header_bytes(file_);
  std::string text(static_cast<size_t>(header_bytes), '\0');
  file_.read_at(kLengthBytes, text.data(), header_bytes);
  data_start_ = kLengthBytes + header_bytes;
  header_ = parse_safetensors_header(text, file_.size() - data_start_, path.string());
  index_names();
}

void SafetensorsFile::index_names() {
  by_name_.clear();
  by_name_.reserve(header_.tensors.size());
  for (size_t i = 0; i < header_.tensors.size(); ++i) by_name_.emplace(header_.tensors[i].name, i);
}

void SafetensorsFile::rename(const std::function<std::string(const std::string&)>& name_of) {
  std::unordered_map<std::string, std::string> stored;
  for (TensorInfo& tensor : header_.tensors) {
    std::string name = name_of(tensor.name);
    const auto [known, is_new] = stored.emplace(name, tensor.name);
    if (!is_new)
      base::throw_user_error("{}: tensors '{}' and '{}' are both '{}'; there must be one of it",
                             path().string(), known->second, tensor.name, name);
    tensor.name = std::move(name);
  }
  index_names();
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.tensors[found->second];
}

const TensorInfo& SafetensorsFile::at(std::string_view name) const {
  if (const TensorInfo* tensor = find(name)) return *tensor;
  std::vector<std::string_view> names;
  for (const TensorInfo& tensor : header_.tensors) names.push_back(tensor.name);
  const auto nearest = base::nearest_name(name, names);
  base::throw_user_error("{}: there is no tensor '{}'{}", path().string(), name,
                         nearest ? fmt::format("; the nearest is '{}'", *nearest) : "");
}

void SafetensorsFile::read(const TensorInfo& tensor, void* destination) const {
  read_range(tensor, 0, tensor.bytes(), destination);
}

void SafetensorsFile::read_range(const TensorInfo& tensor, int64_t offset, int64_t bytes,
                                 void* destination) const {
  SNUG_CHECK(offset >= 0 && bytes >= 0 && offset + bytes <= tensor.bytes(),
             "bytes {} to {} of tensor {}, which has {}", offset, offset + bytes, tensor.name,
             tensor.bytes());
  file_.read_at(data_start_ + tensor.begin + offset, destination, bytes);
}

}  // namespace snug::formats
