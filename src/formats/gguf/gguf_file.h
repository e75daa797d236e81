// Reads a GGUF file (version 2 or 3, little-endian) with pread. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Threading: const after opening; reads
// into different destinations may run in parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "formats/gguf/ggml_type.h"
#include "formats/gguf/metadata.h"

namespace snug::formats {

struct GgufTensorInfo {
  std::string name;  // "blk.0.attn_q.weight"
  // As in Hugging Face's folders, the slowest axis first: (out, in). Files have them reversed.
  std::vector<int64_t> shape;
  GgmlType type = GgmlType::f32;
  int64_t begin = 0;  // in bytes from the start of the file

  int64_t elements() const;
  int64_t bytes() const { return stored_bytes(type, elements()); }
};

class GgufFile {
 public:
  // Reads and checks everything before the data. Throws UserError, in one paragraph that says what
  // the file is or where it breaks off, for a file that is missing, truncated, inconsistent, of
  // another version, or one part of several.
  explicit GgufFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<GgufTensorInfo>& tensors() const { return tensors_; }  // in the file's order
  const GgufTensorInfo* find(std::string_view name) const;

  // Reads bytes of the tensor from its byte `offset` on.
  void read_range(const GgufTensorInfo& tensor, int64_t offset, std::span<std::byte> bytes) const;

 private:
  base::File file_;
  Metadata metadata_;
  std::vector<GgufTensorInfo> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace snug::formats
