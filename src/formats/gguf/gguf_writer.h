// Writes a GGUF file, version 3, with an alignment of 32 bytes: first everything that describes it,
// then the tensors' data in the declared order, piece by piece. The file is written as
// PATH.snug-tmp, which finish() syncs and renames; a writer that is destroyed before finish()
// leaves nothing behind. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/gguf/ggml_type.h"
#include "formats/gguf/metadata.h"

namespace snug::formats {

struct GgufTensorSpec {
  std::string name;            // "blk.0.attn_q.weight"
  std::vector<int64_t> shape;  // the slowest axis first: (out, in)
  GgmlType type = GgmlType::f32;

  int64_t elements() const;
  int64_t bytes() const { return stored_bytes(type, elements()); }
};

// The size of the whole file.
int64_t gguf_file_bytes(const Metadata& metadata, const std::vector<GgufTensorSpec>& tensors);

class GgufWriter {
 public:
  // Creates PATH.snug-tmp in its full size. Throws UserError where that fails. Metadata have no
  // general.alignment.
  GgufWriter(const std::filesystem::path& path, const Metadata& metadata,
             std::vector<GgufTensorSpec> tensors);
  ~GgufWriter();
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  // Appends to the data of the tensor that is being written; the next begins where one is full.
  void write(std::span<const std::byte> bytes);
  // Syncs and renames. Every tensor must be full.
  void finish();

 private:
  // Pads a tensor that is full, and goes on to the next that has bytes.
  void next_tensor();
  void discard();

  std::filesystem::path path_;
  std::vector<GgufTensorSpec> tensors_;
  base::File file_;
  size_t current_ = 0;
  int64_t written_ = 0;   // of the current tensor
  int64_t position_ = 0;  // in the file
  bool finished_ = false;
};

}  // namespace snug::formats
