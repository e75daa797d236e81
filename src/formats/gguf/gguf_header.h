// Reads what stands before the data of a GGUF file, front to back. Everything in the file is a
// claim of somebody else's: each count and length is held against what is left of the file before
// anything is allocated for it, so that memory stays within a small multiple of the header's bytes.
#pragma once

#include <cstdint>
#include <string>
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

struct GgufHeader {
  Metadata metadata;
  std::vector<GgufTensorInfo> tensors;  // in the file's order
};

// Throws UserError, in one paragraph that says what the file is or where it breaks off.
GgufHeader read_gguf_header(const base::File& file);

}  // namespace snug::formats
