#include "runtime/loading/stored_weight.h"

#include <algorithm>
#include <cstring>

#include "backends/backend.h"
#include "base/dynamic_map.h"
#include "formats/quantization/nf4.h"
#include "passes/lowering/quantize.h"
#include "program/ir/tensor_names.h"

namespace snug::runtime {

using backends::Buffer;

bool is_stored_as_nf4(const Executor& executor, const std::string& weight) {
  return executor.has(passes::absmax_name(weight));
}

StoredWeight stored_weight(const Executor& executor, const std::string& weight) {
  StoredWeight stored;
  stored.codes = executor.tensor(weight);
  stored.absmax = executor.tensor(passes::absmax_name(weight));
  stored.compute = executor.job().compute;
  if (!executor.has(passes::nested_map_name(weight))) return stored;
  stored.nested_absmax = executor.tensor(passes::nested_absmax_name(weight));
  stored.nested_map = executor.tensor(passes::nested_map_name(weight));
  stored.nested_offset = executor.tensor(passes::nested_offset_name(weight));
  return stored;
}

base::DType quantised_from(base::DType in_file, base::DType compute) {
  return base::size_of(in_file) == 2 ? in_file : compute;
}

int64_t held_elements(const StoredWeight& weight, int64_t elements) {
  const int64_t first = weight.codes.first * 2;
  return std::clamp<int64_t>(elements - first, 0, weight.codes.elements() * 2);
}

// Scales beyond the end of the weight are set to 0.
int64_t store_scales(const float* absmax, int64_t blocks, const StoredWeight& weight,
                     HostWindow& window) {
  if (!weight.nested()) return 0;
  const int64_t first = weight.absmax.first;
  const int64_t held = std::clamp<int64_t>(blocks - first, 0, weight.absmax.elements());
  int64_t bytes = 0;
  const auto open = [&](const backends::Buffer& buffer) {
    bytes += buffer.bytes();
    return window.open(buffer.data, buffer.bytes());
  };
  std::byte* const offset = open(weight.nested_offset);
  std::byte* const map = open(weight.nested_map);
  auto* const codes = reinterpret_cast<uint8_t*>(open(weight.absmax));
  auto* const scales = reinterpret_cast<float*>(open(weight.nested_absmax));
  std::memset(codes, 0, static_cast<size_t>(weight.absmax.bytes()));
  std::memset(scales, 0, static_cast<size_t>(weight.nested_absmax.bytes()));
  const float mean = formats::mean_absmax(absmax, blocks);
  formats::quantize_absmax(absmax + first, held, mean, codes, scales);
  std::memcpy(offset, &mean, sizeof mean);
  std::memcpy(map, base::signed_dynamic_map().data(), sizeof(base::DynamicMap));
  window.close();
  return bytes;
}

WeightQuantizer::WeightQuantizer(Executor& executor, program::ProgramName program, int slot)
    : backend_(executor.backend()) {
  if (const std::string name = program::staging_slot_name(slot); executor.has(program, name))
    slot_ = values_ = executor.tensor(program, name).data;
  if (backend_.host_reaches_device()) return;
  values_ = executor.tensor(program, program::staging_values_name(slot)).data;
  if (const std::string name = program::staging_scales_name(slot); executor.has(program, name))
    scales_ = executor.tensor(program, name).as<float>();
  done_ = backend_.events(1);
}

Buffer WeightQuantizer::values(base::DType dtype, const WeightPiece& piece) const {
  return {values_, dtype, {piece.elements}, {1, 0, 0, 0}};
}

void WeightQuantizer::quantize(base::DType dtype, const WeightPiece& piece,
                               const StoredWeight& weight, float* gathered) {
  float* absmax = scales_;
  if (!weight.leaves_absmax())
    absmax = weight.absmax.as<float>() + piece.first_block();
  else if (!is_remote())
    absmax = gathered + piece.first_block();
  backend_.quantize_nf4(values(dtype, piece), weight.codes.as<uint8_t>() + piece.first / 2, absmax);
  if (is_remote() && gathered != nullptr)
    backend_.queue_copy(gathered + piece.first_block(), absmax,
                        piece.blocks() * int64_t{sizeof(float)});
}

std::span<const float> WeightQuantizer::quantize_slot(base::DType dtype, const WeightPiece& piece,
                                                      const StoredWeight& weight, float* gathered) {
  if (is_remote()) backend_.queue_copy(values_, slot_, piece.elements * base::size_of(dtype));
  quantize(dtype, piece, weight, gathered);
  if (is_remote()) {
    done_->mark(0);
    done_->wait(0);
  }
  const float* const absmax = gathered != nullptr ? gathered : weight.absmax.as<float>();
  return {absmax + piece.first_block(), static_cast<size_t>(piece.blocks())};
}

}  // namespace snug::runtime
