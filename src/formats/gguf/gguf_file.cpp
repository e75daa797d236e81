#include "formats/gguf/gguf_file.h"

#include "base/error.h"

namespace snug::formats {

GgufFile::GgufFile(const std::filesystem::path& path)
    : file_(base::File::open_for_reading(path)), header_(read_gguf_header(file_)) {
  by_name_.reserve(tensors().size());
  for (size_t i = 0; i < tensors().size(); ++i) by_name_.emplace(tensors()[i].name, i);
}

const GgufTensorInfo* GgufFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors()[found->second];
}

void GgufFile::read_range(const GgufTensorInfo& tensor, int64_t offset,
                          std::span<std::byte> bytes) const {
  SNUG_CHECK(offset >= 0 && offset + std::ssize(bytes) <= tensor.bytes(),
             "bytes {} to {} of tensor {}, which has {}", offset, offset + std::ssize(bytes),
             tensor.name, tensor.bytes());
  file_.read_at(tensor.begin + offset, bytes.data(), std::ssize(bytes));
}

}  // namespace snug::formats
