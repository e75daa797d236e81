#include "runtime/loading/weight_quantizer.h"

#include "backends/backend.h"
#include "program/ir/tensor_names.h"

namespace snug::runtime {

using backends::Buffer;

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
