// Reads a safetensors file with pread rather than mmap: mapped pages of the page cache would count
// as resident memory of the process, which the plan predicts. Threading: const after opening; reads
// into different destinations may run in parallel.
#pragma once

#include "base/file.h"
#include "formats/folder/safetensors_header.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace snug::formats {

class SafetensorsFile {
 public:
  // Reads and checks the header. Throws UserError for a file that is missing, truncated or
  // inconsistent.
  explicit SafetensorsFile(const std::filesystem::path& path);

  // Renames each tensor to name_of(its name). Throws UserError if two tensors would have the same
  // name. Must not be called during reads.
  void rename(const std::function<std::string(const std::string&)>& name_of);

  const std::filesystem::path& path() const { return file_.path(); }
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  // The number of bytes before the tensors' data.
  int64_t header_bytes() const { return data_start_; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  // nullptr when there is no such tensor.
  const TensorInfo* find(std::string_view name) const;
  // The same, but throws UserError that names the most similar tensor name.
  const TensorInfo& at(std::string_view name) const;

  // Reads tensor.bytes() bytes into `destination`, as stored.
  void read(const TensorInfo& tensor, void* destination) const;
  // Reads `bytes` bytes of the tensor from its byte `offset` on.
  void read_range(const TensorInfo& tensor, int64_t offset, int64_t bytes, void* destination) const;

 private:
  void index_names();

  base::File file_;
  int64_t data_start_ = 0;
  SafetensorsHeader header_;
  std::unordered_map<std::string_view, size_t> by_name_;  // keys point into header_.tensors
};

}  // namespace snug::formats
