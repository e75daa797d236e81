#include <algorithm>

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/optimizer_operands.h"
#include "base/dynamic_map.h"

namespace snug::backends::cuda {
namespace {

DynamicMaps dynamic_maps() {
  DynamicMaps maps{};
  std::copy_n(base::signed_dynamic_map().begin(), 256, maps.at[0]);
  std::copy_n(base::unsigned_dynamic_map().begin(), 256, maps.at[1]);
  return maps;
}

CodedTensor coded_tensor(const program::AdamW8bit& adamw, const Invocation& invocation) {
  CodedTensor tensor{
      adamw_tensor(adamw, whole_matrix(invocation.reads[0]), whole_matrix(invocation.updates[0]))};
  for (size_t k = 0; k < 2; ++k) {
    tensor.codes[k] = bytes_of(invocation.updates[1 + k]);
    tensor.scales[k] = floats_of(invocation.updates[3 + k]);
  }
  return tensor;
}

}  // namespace

size_t run_first(const program::AdamW8bit&, std::span<const Invocation> list,
                 CudaContext& context) {
  AdamW8bitCodes launch;
  const size_t count = gather<program::AdamW8bit>(list, launch, coded_tensor);
  adamw(launch, dynamic_maps(), context.stream.get());
  return count;
}

void run(const program::AdamW8bit& adamw, const Invocation& invocation, CudaContext& context) {
  run_first(adamw, {&invocation, 1}, context);
}

}  // namespace snug::backends::cuda
