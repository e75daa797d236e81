#include "backends/cuda/needs/kind_needs.h"

#include "backends/cuda/needs/attention.h"
#include "backends/dispatch.h"
#include "backends/operation_checks.h"

namespace snug::backends::cuda {

bool runs(const OperationView& view, const Card& card) {
  return has_known_types(view) &&
         dispatch<bool>(view.operation.attributes,
                        [&](const auto& attributes) { return supports(attributes, view, card); });
}

int64_t workspace_bytes(const OperationView& view, const Card& card) {
  return dispatch<int64_t>(view.operation.attributes, [&](const auto& attributes) {
    return workspace_bytes(attributes, view, card);
  });
}

program::Attributes decide(const OperationView& view, const Card& card) {
  return dispatch<program::Attributes>(view.operation.attributes, [&](const auto& attributes) {
    return program::Attributes(decide(attributes, view, card));
  });
}

// What a library asks for is bounded by a table; own kernels need what they say.
program::Workspace workspace(const OperationView& view, const Card& card) {
  return {.bytes = workspace_bytes(view, card), .exact = !is_by_cudnn(view)};
}

}  // namespace snug::backends::cuda
