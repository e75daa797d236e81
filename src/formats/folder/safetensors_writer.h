// Writing safetensors files from memory the caller owns: the header is laid out from a declared
// list, then each tensor's bytes go straight from the caller's buffer to their place in the file.
// A file is written next to it as PATH.snug-tmp, synced and renamed by finish(); a writer that is
// destroyed before finish() leaves nothing behind. Not thread-safe.
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

  int64_t bytes() const;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// Where SafetensorsWriter puts the tensors of a file.
SafetensorsHeader lay_out(const std::vector<TensorSpec>& tensors,
                          const SafetensorsMetadata& metadata = {{"format", "pt"}},
                          const std::vector<TensorSpec>& late = {});

class SafetensorsWriter {
 public:
  // Creates PATH.snug-tmp, reserves its full size and writes the header. Larger element types come
  // first in the file, so that every tensor is aligned to its element; otherwise the declared order
  // is kept. `late` are u8 tensors of one dimension whose size is known only when they are written:
  // they come last in the file, and what is declared is the most they may have. Throws UserError
  // when the file cannot be created or the disk is too small.
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorSpec>& tensors,
                    const SafetensorsMetadata& metadata = {{"format", "pt"}},
                    const std::vector<TensorSpec>& late = {});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Writes the next `bytes` bytes of the tensor, which may come in several pieces; tensors may come
  // in any order. Unknown names and surplus bytes are bugs and CHECK. Returns how many bytes the
  // file took.
  int64_t write(std::string_view name, const void* source, int64_t bytes);
  // The whole of a late tensor. It is kept until finish().
  void write_late(std::string_view name, std::string_view bytes);
  // Every declared tensor must be complete. Syncs and renames.
  void finish();

  // Exact once finished; before, with late tensors at their most.
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
  std::vector<int64_t> progress_;       // bytes written so far, a tensor
  std::map<size_t, std::string> late_;  // what write_late was given, by tensor
  size_t first_late_ = 0;
};

}  // namespace snug::formats
