// Writes safetensors files from memory that the caller owns: the header is made from a declared
// list, then each tensor's bytes are written directly from the caller's buffer to their place in
// the file. The file is written as PATH.snug-tmp, which finish() syncs and renames; a writer that
// is destroyed before finish() leaves nothing behind. Not thread-safe.
#pragma once

#include "base/dtype.h"
#include "base/file.h"
#include "formats/folder/safetensors_header.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace snug::formats {

struct TensorSpec {
  std::string name;
  base::DType dtype = base::DType::f32;
  std::vector<int64_t> shape;
  // The element type by the format's name, where base::DType has none ("F8_E4M3").
  std::string other_dtype{};

  int64_t bytes() const;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// The header that SafetensorsWriter makes for these tensors.
SafetensorsHeader lay_out(const std::vector<TensorSpec>& tensors,
                          const SafetensorsMetadata& metadata = {{"format", "pt"}},
                          const std::vector<TensorSpec>& late = {});

class SafetensorsWriter {
 public:
  // Creates PATH.snug-tmp, reserves its full size and writes the header. Larger element types come
  // first in the file, so that every tensor is aligned to its element; otherwise the declared order
  // is kept. `late`: one-dimensional u8 tensors whose size is known only when they are written.
  // They come last in the file, and their declared size is an upper limit. Throws UserError when
  // the file cannot be created or the disk is too small.
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorSpec>& tensors,
                    const SafetensorsMetadata& metadata = {{"format", "pt"}},
                    const std::vector<TensorSpec>& late = {});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Writes the next `bytes` bytes of the tensor, which may be written in several pieces; tensors
  // may be written in any order. Unknown names and surplus bytes are bugs and fail a CHECK. Returns
  // the number of bytes that the file grew by.
  int64_t write(std::string_view name, const void* source, int64_t bytes);
  // Sets the content of a late tensor, which is kept in memory until finish().
  void write_late(std::string_view name, std::string_view bytes);
  // Requires that every declared tensor is complete. Syncs and renames.
  void finish();

  // Exact once finished; before that, late tensors count with their limits.
  int64_t file_bytes() const { return data_start_ + header_.data_bytes; }
  int64_t data_bytes() const { return header_.data_bytes; }  // of the tensors alone
  bool complete() const { return written_bytes_ == header_.data_bytes; }

 private:
  void discard();
  void append_late();

  std::filesystem::path path_;
  SafetensorsHeader header_;
  base::File file_;
  int64_t data_start_ = 0;
  int64_t written_bytes_ = 0;
  bool finished_ = false;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::vector<int64_t> progress_;       // bytes written so far for each tensor
  std::map<size_t, std::string> late_;  // by tensor: the content from write_late
  size_t first_late_ = 0;
};

}  // namespace snug::formats
