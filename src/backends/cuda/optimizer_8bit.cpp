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

}  // namespace

void run(const program::AdamW8bit& adamw, const Invocation& invocation, CudaContext& context) {
  const Matrix gradient = whole_matrix(invocation.reads[0]);
  const Matrix weight = whole_matrix(invocation.updates[0]);
  AdamW8bitRun run{.elements = weight.columns,
                   .scalars = adamw_scalars(invocation),
                   .constants = adamw_constants(adamw),
                   .gradient = gradient.operand,
                   .weight = weight.operand};
  for (size_t k = 0; k < 2; ++k) {
    run.codes[k] = bytes_of(invocation.updates[1 + k]);
    run.scales[k] = floats_of(invocation.updates[3 + k]);
  }
  adamw_8bit(run, dynamic_maps(), context.stream.get());
}

}  // namespace snug::backends::cuda
