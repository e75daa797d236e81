#include "plan/time/token_work.h"

#include <set>

namespace snug::plan {

TokenWork token_work(const program::Program& decode, const program::BatchBounds& bounds) {
  TokenWork work;
  std::set<int32_t> layers;
  double in_layers = 0;
  for (const program::Operation& operation : decode.operations) {
    if (program::traits_of(operation).copying == program::Copying::with_host) continue;
    const program::Cost cost = program::cost({decode, operation}, bounds);
    work.launches += cost.launches;
    work.bytes += cost.bytes;
    if (operation.layer < 0) continue;
    layers.insert(operation.layer);
    in_layers += cost.launches;
  }
  if (!layers.empty()) work.layer_launches = in_layers / static_cast<double>(layers.size());
  return work;
}

}  // namespace snug::plan
