#include "runtime/random_weights.h"

#include <algorithm>

#include "base/random.h"
#include "models/weights.h"
#include "program/tensor_names.h"
#include "runtime/load_weights.h"
#include "runtime/read_tensors.h"
#include "runtime/stored_weight.h"
#include "runtime/weight_quantizer.h"

namespace snug::runtime {
namespace {

using backends::Buffer;
using backends::RandomForm;
using backends::RandomValues;

base::PhiloxKey tensor_key(std::string_view name, int64_t seed) {
  const uint64_t hash = base::hash_name(name.data(), name.size());
  const auto bits = static_cast<uint64_t>(seed);
  const base::PhiloxCounter words =
      base::philox({static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32), 0, 0},
                   {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)});
  return {words[0], words[1]};
}

// Made some blocks at a time and quantised from there: what the weight would be in the compute
// type, as quantised_from says of files.
void fill_stored(const models::Weight& weight, const RandomValues& values, Executor& executor) {
  WeightQuantizer quantizer(executor, 0);
  const StoredWeight stored = stored_weight(executor, weight.name);
  float* const gathered =
      stored.nested()
          ? executor.tensor(program::ProgramName::load, program::load_absmax_name(0)).as<float>()
          : nullptr;
  const int64_t elements = weight.shape.elements();
  const int64_t most = plan::kLoadSlotBytes / base::size_of(stored.compute);
  for (int64_t first = 0; first < elements; first += most) {
    const WeightPiece piece{first, std::min(most, elements - first)};
    executor.backend().fill(quantizer.values(stored.compute, piece), values, first);
    quantizer.quantize(stored.compute, piece, stored, gathered);
  }
  if (!stored.nested()) return;
  executor.backend().synchronise();
  HostWindow window(executor, 0);
  store_scales(gathered, elements, stored, window);
}

}  // namespace

void fill_normal(const TensorName& tensor, int64_t seed, float deviation, Executor& executor) {
  executor.backend().fill(tensor.buffer,
                          {RandomForm::normal, tensor_key(tensor.name, seed), deviation}, 0);
}

void fill_uniform(const TensorName& tensor, int64_t seed, float bound, Executor& executor) {
  executor.backend().fill(tensor.buffer,
                          {RandomForm::uniform, tensor_key(tensor.name, seed), bound}, 0);
}

void fill_constant(const Buffer& buffer, float value, Executor& executor) {
  executor.backend().fill(buffer, {RandomForm::constant, {}, value}, 0);
}

void random_weights(const models::ModelConfig& config, int64_t seed, Executor& executor) {
  executor.backend().synchronise();
  for (const models::Weight& weight : models::weights_of(config)) {
    if (is_stored_as_nf4(executor, weight.name)) {
      fill_stored(weight,
                  {RandomForm::normal, tensor_key(weight.name, seed), config.initializer_range},
                  executor);
      continue;
    }
    const Buffer& buffer = original_of(executor, weight.name);
    if (weight.initializer == models::Initializer::normal)
      fill_normal({buffer, weight.name}, seed, config.initializer_range, executor);
    else
      fill_constant(buffer, weight.initializer == models::Initializer::ones ? 1.0F : 0.0F,
                    executor);
  }
  write_inverse_frequencies(config, executor);
}

}  // namespace snug::runtime
