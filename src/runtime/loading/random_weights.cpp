#include "runtime/loading/random_weights.h"

#include <algorithm>

#include "backends/backend.h"
#include "formats/quantization/nf4.h"
#include "plan/job/storage_programs.h"
#include "program/ir/tensor_names.h"
#include "runtime/loading/stored_weight.h"
#include "runtime/storage/host_window.h"
#include "runtime/storage/perform.h"

namespace snug::runtime {

using backends::Buffer;
using backends::RandomValues;
using program::FillForm;

base::PhiloxKey tensor_key(std::string_view name, int64_t seed) {
  const uint64_t hash = base::hash_name(name.data(), name.size());
  const auto bits = static_cast<uint64_t>(seed);
  const base::PhiloxCounter words =
      base::philox({static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32), 0, 0},
                   {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)});
  return {words[0], words[1]};
}

void fill_normal(const TensorName& tensor, int64_t seed, float deviation, Executor& executor) {
  executor.backend().fill(tensor.buffer,
                          {FillForm::normal, tensor_key(tensor.name, seed), deviation}, 0);
}

void fill_uniform(const TensorName& tensor, int64_t seed, float bound, Executor& executor) {
  executor.backend().fill(tensor.buffer, {FillForm::uniform, tensor_key(tensor.name, seed), bound},
                          0);
}

void fill_constant(const Buffer& buffer, float value, Executor& executor) {
  executor.backend().fill(buffer, {FillForm::constant, {}, value}, 0);
}

int64_t fill_stored(const RandomValues& values, const StoredWeight& weight, int64_t elements,
                    program::ProgramName program, Executor& executor) {
  WeightQuantizer quantizer(executor, program, 0);
  float* gathered = weight.gathered;
  if (weight.nested() && gathered == nullptr)
    gathered = executor.tensor(program, program::staging_absmax_name(0)).as<float>();
  const int64_t begin = weight.codes.first * 2;
  const int64_t held = held_elements(weight, elements);
  const int64_t most = plan::kSlotBytes / base::size_of(weight.compute);
  int64_t bytes = 0;
  for (int64_t first = 0; first < held; first += most) {
    const WeightPiece piece{first, std::min(most, held - first)};
    executor.backend().fill(quantizer.values(weight.compute, piece), values, begin + first);
    quantizer.quantize(weight.compute, piece, weight, gathered);
    bytes += formats::nf4_code_bytes(piece.elements);
    if (!weight.nested()) bytes += piece.blocks() * int64_t{sizeof(float)};
  }
  if (!weight.leaves_absmax()) return bytes;
  executor.backend().synchronise();
  if (!weight.nested()) return bytes;
  HostWindow window(executor, program, 0);
  return bytes + store_scales(gathered, formats::nf4_blocks(elements), weight, window);
}

void random_weights(const models::ModelConfig& config, Executor& executor) {
  perform(program::ProgramName::load, {.model = &config}, executor);
}

}  // namespace snug::runtime
