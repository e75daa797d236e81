// Reads a GGUF file (version 2 or 3, little-endian) with pread. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Threading: const after opening; reads
// into different destinations may run in parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "formats/gguf/gguf_header.h"

namespace snug::formats {

class GgufFile {
 public:
  // Reads and checks everything before the data. Throws UserError, in one paragraph that says what
  // the file is or where it breaks off, for a file that is missing, truncated, inconsistent, of
  // another version, or one part of several.
  explicit GgufFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const Metadata& metadata() const { return header_.metadata; }
  const std::vector<GgufTensorInfo>& tensors() const {
    return header_.tensors;
  }  // in the file's order
  const GgufTensorInfo* find(std::string_view name) const;

  // Reads bytes of the tensor from its byte `offset` on.
  void read_range(const GgufTensorInfo& tensor, int64_t offset, std::span<std::byte> bytes) const;

 private:
  base::File file_;
  GgufHeader header_;
  std::unordered_map<std::string_view, size_t> by_name_;  // keys point into header_
};

}  // namespace snug::formats
