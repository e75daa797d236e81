// A linear that bitsandbytes stored as NF4, in a safetensors file. The codes have the weight's own
// name; the names of the other tensors begin with it:
//   NAME                                    u8 (ceil(E / 2), 1), or the same bytes with another
//   type NAME.absmax                             f32 (blocks), or u8 (blocks) when double quantised
//   NAME.quant_map                          f32 (16), the codes' values
//   NAME.nested_absmax                      f32 (ceil(blocks / 256)), only when double quantised
//   NAME.nested_quant_map                   f32 (256), only when double quantised
//   NAME.quant_state.bitsandbytes__nf4      u8, a JSON object: QuantState
// docs/nf4.md is the format's page.
#pragma once

#include "base/dtype.h"
#include "base/dynamic_map.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

inline constexpr std::string_view kAbsmaxSuffix = ".absmax";
inline constexpr std::string_view kMapSuffix = ".quant_map";
inline constexpr std::string_view kNestedAbsmaxSuffix = ".nested_absmax";
inline constexpr std::string_view kNestedMapSuffix = ".nested_quant_map";
inline constexpr std::string_view kStateSuffix = ".quant_state.bitsandbytes__nf4";

// The content of one weight's JSON.
struct QuantState {
  // Of the original weight, and of the values that transformers dequantises to.
  base::DType dtype = base::DType::bf16;
  std::vector<int64_t> shape;          // of the original weight
  std::optional<float> nested_offset;  // only with double quantisation

  bool nested() const { return nested_offset.has_value(); }
  int64_t elements() const;
  bool operator==(const QuantState&) const = default;
};

// The JSON that bitsandbytes writes, byte for byte.
std::string to_json(const QuantState& state);
// Throws UserError naming `where` (file and tensor) for broken JSON, FP4, and block sizes other
// than 64 and 256.
QuantState parse_quant_state(std::string_view json, const std::string& where);

// A stored weight after checks: all parts exist, with the types and sizes that its shape requires.
// The pointers are valid as long as the index.
struct Nf4Parts {
  QuantState state;
  const IndexedTensor* codes = nullptr;          // nf4_code_bytes(E) bytes of any type
  const IndexedTensor* absmax = nullptr;         // u8 with double quantisation, else f32
  const IndexedTensor* nested_absmax = nullptr;  // f32; nullptr without double quantisation
  base::DynamicMap nested_map{};                 // as stored; used for decoding
};

// The JSON of the weight `name`, or nothing if the index has none for it. Throws UserError naming
// file and tensor for what parse_quant_state refuses.
std::optional<QuantState> find_quant_state(const TensorIndex& index, const std::string& name);

// The parts of the weight `name`, or nothing if the index holds it unquantised or not at all.
// Throws UserError naming file and tensor for a part that is missing or has another type or size, a
// weight with another shape than `shape`, FP4, and code values other than NF4's.
std::optional<Nf4Parts> find_nf4(const TensorIndex& index, const std::string& name,
                                 const std::vector<int64_t>& shape);

// "p.weight" for "p.weight.absmax" and the other parts of a stored weight, including FP4's; nothing
// for any other name. Distinguishes such parts from tensors that do not belong to a model.
std::optional<std::string_view> weight_of_part(std::string_view name);

// Whether the index holds any weight quantised by bitsandbytes to 4 or 8 bits.
bool holds_quantised(const TensorIndex& index);

// The tensors to write for a weight `name`, in the order codes, absmax, map, nested parts, state.
std::vector<TensorSpec> nf4_parts(const std::string& name, const QuantState& state);

}  // namespace snug::formats
