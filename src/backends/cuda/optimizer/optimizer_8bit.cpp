#include <algorithm>

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/optimizer/optimizer_operands.h"
#include "base/dynamic_map.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::backends::cuda {
namespace {

using program::AdamW8bit;

DynamicMaps dynamic_maps() {
  DynamicMaps maps{};
  std::copy_n(base::signed_dynamic_map().begin(), 256, maps.at[0]);
  std::copy_n(base::unsigned_dynamic_map().begin(), 256, maps.at[1]);
  return maps;
}

CodedTensor coded_tensor(const AdamW8bit& adamw, const Invocation& invocation) {
  CodedTensor tensor{adamw_tensor(adamw, whole_matrix(invocation[AdamW8bit::kGradient]),
                                  whole_matrix(invocation[AdamW8bit::kWeight]),
                                  invocation[AdamW8bit::kWeight].first)};
  tensor.codes[0] = bytes_of(invocation[AdamW8bit::kFirstMoment]);
  tensor.codes[1] = bytes_of(invocation[AdamW8bit::kSecondMoment]);
  tensor.scales[0] = floats_of(invocation[AdamW8bit::kFirstScale]);
  tensor.scales[1] = floats_of(invocation[AdamW8bit::kSecondScale]);
  // Vectors of floats and bf16, and vectors of eight codes.
  tensor.vectors = is_aligned(tensor.gradient) && is_aligned(tensor.weight) &&
                   is_aligned(tensor.codes[0], 8) && is_aligned(tensor.codes[1], 8);
  return tensor;
}

void run_together(const AdamW8bit&, std::span<const Invocation> list, CudaContext& context) {
  AdamW8bitCodes launch;
  gather<AdamW8bit>(list, launch, adamw_constants<AdamW8bit>, coded_tensor);
  adamw(launch, dynamic_maps(), context.stream.get());
}

void run(const AdamW8bit& adamw, const Invocation& invocation, CudaContext& context) {
  run_together(adamw, {&invocation, 1}, context);
}

}  // namespace

SNUG_CUDA_KIND(AdamW8bit, .run_together = run_together);

}  // namespace snug::backends::cuda
