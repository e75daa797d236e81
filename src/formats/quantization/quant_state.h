// A linear that bitsandbytes stored as NF4, in a safetensors file. Next to the codes, under the
// weight's own name, lie tensors whose names begin with it:
//   NAME                                    u8 (ceil(E / 2), 1); the same bytes as another type too
//   NAME.absmax                             f32 (blocks), or u8 (blocks) when double quantised
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

// What the JSON says of one weight.
struct QuantState {
  base::DType dtype = base::DType::bf16;  // of the weight before, and of what transformers computes
  std::vector<int64_t> shape;             // of the weight
  std::optional<float> nested_offset;     // only when double quantised

  bool nested() const { return nested_offset.has_value(); }
  int64_t elements() const;
  bool operator==(const QuantState&) const = default;
};

// The text that bitsandbytes writes, byte for byte.
std::string to_json(const QuantState& state);
// Throws UserError naming `where` (file and tensor) for broken JSON, FP4, and sizes of blocks other
// than 64 and 256.
QuantState parse_quant_state(std::string_view json, const std::string& where);

// One stored weight, checked: all parts are there, in the types and sizes that its shape asks for.
// The pointers live as long as the index.
struct Nf4Parts {
  QuantState state;
  const IndexedTensor* codes = nullptr;          // nf4_code_bytes(E) bytes, whatever their type
  const IndexedTensor* absmax = nullptr;         // u8 when nested, else f32
  const IndexedTensor* nested_absmax = nullptr;  // f32; none unless nested
  base::DynamicMap nested_map{};                 // as stored: values are decoded with this one
};

// What the JSON of the weight `name` says, or nothing where the index holds none for it. Throws
// UserError naming file and tensor for what parse_quant_state refuses.
std::optional<QuantState> find_quant_state(const TensorIndex& index, const std::string& name);

// The parts of the weight `name`, or nothing when the index holds it unquantised or not at all.
// Throws UserError naming file and tensor for a part that is missing or of another type or size, a
// weight of another shape than `shape`, FP4, and codes with other values than NF4's.
std::optional<Nf4Parts> find_nf4(const TensorIndex& index, const std::string& name,
                                 const std::vector<int64_t>& shape);

// "p.weight" for "p.weight.absmax" and the other parts of a stored weight, FP4's too; nothing for
// every other name. For telling parts from tensors that do not belong to a model.
std::optional<std::string_view> weight_of_part(std::string_view name);

// Whether the index holds any quantised weight of bitsandbytes, 4 or 8 bits.
bool holds_quantised(const TensorIndex& index);

// The tensors to write for a weight `name`, in the order codes, absmax, map, nested parts, state.
std::vector<TensorSpec> nf4_parts(const std::string& name, const QuantState& state);

}  // namespace snug::formats
