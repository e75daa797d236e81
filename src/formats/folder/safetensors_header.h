// The header of a safetensors file: eight bytes of little-endian length, then that many bytes of
// JSON
//   {"NAME": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [BEGIN, END]}, ...,
//    "__metadata__": {"key": "text"}}
// then the data, each tensor row-major at its offsets, without gaps or overlaps. Format page:
// https://github.com/huggingface/safetensors#format
#pragma once

#include "base/dtype.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct TensorInfo {
  std::string name;
  std::string stored_dtype;          // as in the file: "BF16", "F8_E4M3", ...
  std::optional<base::DType> dtype;  // empty for element types that Snug does not compute with
  std::vector<int64_t> shape;
  int64_t begin = 0;  // in bytes from the start of the data, not of the file
  int64_t end = 0;

  int64_t bytes() const { return end - begin; }
  int64_t elements() const;
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
  int64_t data_bytes = 0;
};

// Parses and checks the JSON part. `data_bytes`: the size of the rest of the file, which the
// tensors must fill exactly. Throws UserError naming `file` and the tensor.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes,
                                           const std::string& file);

// The length field, the JSON and padding: a multiple of 8 bytes, and at least `least_bytes`.
std::string make_safetensors_header(const SafetensorsHeader& header, int64_t least_bytes = 0);

// The element type's name in the file: "BF16" for bf16.
std::string_view safetensors_name_of(base::DType dtype);

// The bits of an element of the type with this name in files, which the format must have.
int64_t stored_bits(std::string_view stored_dtype);

// Text such as "[2, 3]".
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace snug::formats
