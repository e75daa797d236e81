#include "runtime/stored_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dynamic_map.h"
#include "base/error.h"
#include "formats/nf4.h"
#include "passes/quantize.h"

namespace snug::runtime {

bool is_stored_as_nf4(const Executor& executor, const std::string& weight) {
  return executor.has(passes::absmax_name(weight));
}

StoredWeight stored_weight(const Executor& executor, const std::string& weight) {
  StoredWeight stored;
  stored.codes = executor.tensor(weight);
  stored.absmax = executor.tensor(passes::absmax_name(weight));
  if (!executor.has(passes::nested_map_name(weight))) return stored;
  stored.nested_absmax = executor.tensor(passes::nested_absmax_name(weight));
  stored.nested_map = executor.tensor(passes::nested_map_name(weight));
  stored.nested_offset = executor.tensor(passes::nested_offset_name(weight));
  return stored;
}

void store_scales(float* absmax, int64_t elements, const StoredWeight& weight) {
  const int64_t blocks = program::nf4_blocks(elements);
  if (!weight.nested()) {
    auto* own = weight.absmax.as<float>();
    if (own != absmax) std::memcpy(own, absmax, static_cast<size_t>(blocks) * sizeof(float));
    return;
  }
  *weight.nested_offset.as<float>() = formats::quantize_absmax(
      absmax, blocks, weight.absmax.as<uint8_t>(), weight.nested_absmax.as<float>());
  const auto& map = base::signed_dynamic_map();
  std::memcpy(weight.nested_map.data, map.data(), sizeof(map));
}

void check_finite(const formats::TensorIndex& index, const formats::IndexedTensor& source,
                  std::span<const float> absmax) {
  if (std::all_of(absmax.begin(), absmax.end(), [](float x) { return std::isfinite(x); })) return;
  base::throw_user_error(
      "{}: tensor '{}' holds an infinity or NaN, which 4 bits cannot store. Is the file whole, and "
      "was the model trained to the end?",
      index.path_of(source).string(), source.info->name);
}

}  // namespace snug::runtime
